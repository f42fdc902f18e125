"""Files of tables for devices: the whole numbers that `hubbub.client` cannot compute itself."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hubbub.client import MECHANISMS, digest_of
from hubbub.core.errors import MechanismError, StudyError
from hubbub.core.files import NameTakenError, write_file
from hubbub.core.progress import Progress, stepwise
from hubbub.intake.study import Study
from hubbub.intake.study_files import read_study
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.mechanism_kinds import kind_of
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.sampling import PlanarTableLaw, TableLaw


@stepwise
def export_tables(study: str | Path, path: str | Path, *, allow_code: bool = False) -> Generator[Progress, None, str]:
    """Write the tables that devices need for a study file.

    Only some mechanisms need tables: ``exponential``, ``matrix``, ``planar-laplace``, ``laplace`` on uneven bins, and
    all that are not hubbub's own; ``hubbub.client.Client(study, tables)`` reads them.

    Parameters
    ----------
    study
        The study file.
    path
        The file to write; an existing one is never overwritten.
    allow_code : bool, default False
        Import the classes of mechanisms that the study names: as in `read_study`.

    Returns
    -------
    str
        The digest by which devices know the tables.

    Raises
    ------
    StudyError
        If the study file has a mistake, or a file is at `path` already.
    MechanismError
        If the exact probabilities of a mechanism would be too large a table, or it is none of hubbub's own and draws in
        a way of its own.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import hubbub as hb
    >>> from hubbub.client import Client
    >>> text = '''
    ... version = 1
    ... [domain]
    ... kind = "integers"
    ... low = 0
    ... high = 3
    ... [mechanisms.near]
    ... kind = "exponential"
    ... epsilon = 1.0
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study, tables = Path(folder, "study.toml"), Path(folder, "tables.json")
    ...     _ = study.write_text(text)
    ...     digest = hb.export_tables(study, tables)
    ...     output = Client(study, tables, digest=digest).privatize(2)
    >>> output in ("0", "1", "2", "3")
    True
    """
    with new_file(path, "the tables") as target:
        described, content = read_study(study, allow_code=allow_code), Path(study).read_bytes()
        document: dict[str, Any] = {
            "version": 1,
            "study": hashlib.sha256(content).hexdigest(),
            "fingerprint": described.fingerprint,
            "tables": (yield from compute_tables(described)),
        }
        digest = document["digest"] = digest_of(document)
        write_file(target, (json.dumps(document) + "\n").encode(), replace=False)
    return digest


@contextmanager
def new_file(path: str | Path, what: str) -> Iterator[Path]:
    """Refuse a path where something is already: before it takes minutes to compute what is written, and after it."""
    target = Path(path)
    try:
        if os.path.lexists(target):
            raise NameTakenError(target)
        yield target
    except NameTakenError:
        raise StudyError(
            f"{what} cannot be written",
            where=str(path),
            got="a file that is there already",
            expected="a new path in a folder that exists",
            remedy="choose another path; a file that is there already is never overwritten",
        ) from None


def compute_tables(study: Study) -> Generator[Progress, None, dict[str, Any]]:
    """Return the tables of the mechanisms that need them; those of several attributes as NAME.ATTRIBUTE."""
    tables = {}
    drawn: dict[str, Mechanism] = {}
    for name, mechanism in study.mechanisms.items():
        if isinstance(mechanism, SeveralAttributes):
            drawn |= {f"{name}.{attribute}": part for attribute, part in mechanism.parts.items()}
        else:
            drawn[name] = mechanism
    for done, (name, mechanism) in enumerate(drawn.items()):
        yield Progress(done, len(drawn), f"tables of {name}")
        table = _table(mechanism)
        if table is not None:
            tables[name] = table
    return tables


def _table(mechanism: Mechanism) -> dict[str, Any] | None:
    """Return the table of one mechanism, None where the client computes what it needs."""
    law = mechanism.law
    if isinstance(law, TableLaw):
        listed = mechanism.outputs
        assert listed is not None  # noqa: S101  # a table has a column for each
        outputs = [mechanism.output_space.write(output) for output in listed.tolist()]
        rows = [[f"{weight:x}" for weight in law.row(position)] for position in range(law.values)]
        return {"kind": "rows", "width": law.width, "outputs": outputs, "rows": rows}
    if isinstance(law, PlanarTableLaw):
        quarter = [[f"{mass:x}" for mass in column] for column in law.quarter]
        return {
            "kind": "clipped",
            "width": law.width,
            "quarter": quarter,
            "window": [corner.tolist() for corner in law.window],
        }
    if kind_of(type(mechanism)) not in MECHANISMS:
        raise MechanismError(
            "devices cannot draw from this mechanism",
            where=type(mechanism).__qualname__,
            got=f"a law of its own, {type(law).__name__}",
            expected="the law that follows from its matrix: a table of probabilities",
            remedy="leave `law` as it is in hubbub.Mechanism, or privatize with hubbub.privatize_file",
        )
    return None
