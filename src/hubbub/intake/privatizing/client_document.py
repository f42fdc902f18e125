"""The JSON form of a study for clients in other languages: its values, and the numbers that outputs are drawn from.

    study.toml ──hubbub.client──► values, laws ──export_client──► study.json ──► clients/javascript, or any other

Every JSON number is a whole number that floats hold exactly; all others are texts. So equal documents have equal
canonical forms, and one digest, in every language: large whole numbers are hexadecimal digits, fractions two of them
with a stroke between, and floats the shortest decimal number that is read as the same float.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Generator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from hubbub.client import (
    MechanismFields,
    Noise,
    StudyValues,
    chance_weights,
    digest_of,
    drawn_numbers,
    parse_laws,
)
from hubbub.core.files import write_file
from hubbub.core.progress import Progress, stepwise
from hubbub.intake.privatizing.device_tables import compute_tables, new_file
from hubbub.intake.study_files import read_study
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.longitudinal import Longitudinal

CLIENT_FORMAT_VERSION = 1
OWN_KIND = "matrix"  # what a mechanism that is not hubbub's own is to clients: a table of outputs
COUNTS = (
    "width",
    "size",
    "buckets",
    "reach",
    "bits",
    "blocks",
    "prime",
    "hashes",
)  # entries of laws that are no probabilities
BOX = ("south", "west", "north", "east")


@stepwise
def export_client(study: str | Path, path: str | Path, *, allow_code: bool = False) -> Generator[Progress, None, str]:
    """Write a study for clients in other languages, such as the one in `clients/javascript`.

    The file has the study's values and the whole numbers from which every mechanism is drawn, tables included, so that
    a client computes no exponentials to read it and refuses what does not fit.

    Parameters
    ----------
    study
        The study file.
    path
        The JSON file to write; an existing one is never overwritten.
    allow_code : bool, default False
        Import the classes of mechanisms that the study names: as in `read_study`.

    Returns
    -------
    str
        The digest by which clients know the file; a page may pin it.

    Raises
    ------
    StudyError
        If the study file has a mistake, or a file is at `path` already.
    MechanismError
        If the exact probabilities of a mechanism cannot be drawn from, or would be too large a table.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> text = '''
    ... version = 1
    ... [domain]
    ... kind = "categories"
    ... labels = ["yes", "no"]
    ... [mechanisms.coin]
    ... kind = "randomized-response"
    ... epsilon = 1.0
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study, path = Path(folder, "study.toml"), Path(folder, "study.json")
    ...     _ = study.write_text(text)
    ...     digest = hb.export_client(study, path)
    ...     document = json.loads(path.read_text())
    >>> document["digest"] == digest, document["mechanisms"]["coin"]["width"]
    (True, 256)
    """
    with new_file(path, "the study for clients") as target:
        document = yield from client_document.steps(study, allow_code=allow_code)
        write_file(target, document_bytes(document), replace=False)
    digest: str = document["digest"]
    return digest


@stepwise
def client_document(study: str | Path, *, allow_code: bool = False) -> Generator[Progress, None, dict[str, Any]]:
    """Return what `export_client` writes, for those who serve it."""
    described, content = read_study(study, allow_code=allow_code), Path(study).read_bytes()
    tables = yield from compute_tables(described)
    values, mechanisms = parse_laws(content, str(study))
    document: dict[str, Any] = {
        "version": CLIENT_FORMAT_VERSION,
        "study": hashlib.sha256(content).hexdigest(),
        "fingerprint": described.fingerprint,
        "name": described.name,
        "domain": _domain(values),
        **({} if described.question is None else {"question": dict(described.question)}),
        "mechanisms": {
            name: _law(name, fields, values, tables) | _promise(described.mechanisms[name])
            for name, fields in mechanisms.items()
        },
    }
    return document | {"digest": digest_of(document)}


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the content of the file."""
    return (json.dumps(document) + "\n").encode()


def _domain(values: StudyValues) -> dict[str, Any]:
    """Return what finds values: labels as reports write them, and the places of those that are numbers."""
    fields: dict[str, Any] = {"kind": values.kind}
    if values.kind == "categories":
        numbers = [place for place, label in enumerate(values.labels) if not isinstance(label, str)]
        return fields | {"labels": [str(label) for label in values.labels], "numbers": numbers}
    if values.kind == "integers":
        return fields | {"low": values.labels[0], "high": values.labels[-1]}
    if values.kind == "bins":
        return fields | {"edges": [repr(edge) for edge in values.bounds]}
    if values.kind == "grid":
        fields |= {"columns": values.columns, "rows": values.rows}
        fields["sides"] = [_fraction(Fraction(side)) for side in values.sides]
        if values.bounds:
            fields["box"] = {side: repr(bound) for side, bound in zip(BOX, values.bounds, strict=True)}
        return fields if values.whole else fields | {"cells": list(values.labels)}
    attributes = [{"name": name, **_domain(own)} for name, own in values.attributes.items()]
    rules = [{name: sorted(places) for name, places in rule.items()} for rule in values.barred]
    return fields | {"attributes": attributes, "impossible": rules}


def _law(name: str, mechanism: MechanismFields, values: StudyValues, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a mechanism, or of each of its parts."""
    law: dict[str, Any] = {"kind": OWN_KIND if mechanism.is_foreign else mechanism.kind}
    if name in tables:
        return law | {entry: content for entry, content in tables[name].items() if entry != "kind"}
    if not mechanism.parts:
        return law | {entry: _written(entry, number) for entry, number in drawn_numbers(mechanism, values).items()}
    law["parts"] = {
        attribute: _law(f"{name}.{attribute}", part, values.attributes[attribute], tables)
        for attribute, part in mechanism.parts.items()
    }
    if mechanism.kind == "split":
        return law
    chances, fakes = mechanism.extra
    law["weights"] = [f"{weight:x}" for weight in chance_weights(chances)]
    if mechanism.kind == "sample-one-with-fakes":
        law["fakes"] = {own: [f"{weight:x}" for weight in chance_weights(shares)] for own, shares in fakes.items()}
    return law


def _written(entry: str, number: Any) -> Any:
    """Return a number of a law as JSON holds it: counts as they are, weights and fractions as hexadecimal digits."""
    if isinstance(number, Noise):  # its steps follow from the ratio of neighbours
        ratio = (1 << number.width) - number.steps[0]
        return {"width": number.width, "side": f"{number.side:x}", "ratio": f"{ratio:x}", "steps": len(number.steps)}
    if isinstance(number, Fraction):
        return _fraction(number)
    if isinstance(number, list):
        return [_written(entry, each) for each in number]
    is_weight = isinstance(number, int) and not isinstance(number, bool) and entry not in COUNTS
    return f"{number:x}" if is_weight else number


def _fraction(number: Fraction) -> str:
    return f"{number.numerator:x}/{number.denominator:x}"


def _promise(mechanism: Mechanism) -> dict[str, Any]:
    """Return what a mechanism promises, for programs and in a sentence for people."""
    if not math.isfinite(mechanism.epsilon):
        return {"epsilon": None, "promise": "One report can rule out values: there is no bound on what it gives away."}
    entries = {"epsilon": repr(mechanism.epsilon)}
    pair, unit = "any two values", mechanism.domain.unit if mechanism.metric else None
    if unit is not None:
        entries["unit"], pair = unit, f"two values 1 {unit} apart"
    most = _factor(mechanism.epsilon, unit)
    if isinstance(mechanism, Longitudinal):
        entries["first"] = repr(mechanism.first)
        most = f"{_factor(mechanism.first)}, and all reports about one value together {most}"
    return entries | {"promise": f"One report changes the odds between {pair} by at most a factor of {most}."}


def _factor(epsilon: float, unit: str | None = None) -> str:
    factor = math.exp(epsilon)
    shown = "more than a billion" if factor >= 1e9 else f"{factor:,.0f}" if factor >= 10 else f"{factor:.2g}"
    return f"about {shown} (epsilon {epsilon:g}{f' per {unit}' if unit else ''})"
