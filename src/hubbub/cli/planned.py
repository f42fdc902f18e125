"""What ``hubbub plan`` is given, read; and what it found, written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from hubbub.core.arrays import plain
from hubbub.core.errors import SettingError, shorten
from hubbub.core.files import write_file
from hubbub.domains import Domain
from hubbub.intake.reject_causes import refusal
from hubbub.intake.result_files import ENDINGS, write_json
from hubbub.intake.sources.database_address import is_address
from hubbub.intake.study import MECHANISMS, Study
from hubbub.intake.value_counts import read_counts
from hubbub.planning import Plan
from hubbub.planning.plan_tables import COLUMNS
from hubbub.planning.truths import SHAPES, WORST, truths_from
from hubbub.planning.validation import ALL
from hubbub.rendering import as_csv, picture_bytes

__all__ = [
    "ENDINGS",
    "epsilons",
    "labels_of",
    "mixture",
    "truth_of",
    "user_counts",
    "ways_to_report",
    "whole_numbers",
    "write_plan",
]

SIZE = (9.0, 5.0)  # inches of a picture


def _numbers(text: str, option: str, example: str) -> list[float]:
    found = []
    for piece in text.split(","):
        try:
            number = float(piece)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            told = f"{piece.strip()!r} is not a number" if piece.strip() else "a number is missing beside a comma"
            raise typer.BadParameter(f"{told}; write {example}", param_hint=option)
        found.append(number)
    return found


def labels_of(texts: Sequence[str] | None, domain: Domain) -> object:
    """Return the labels that are written so; what is none is told by the plan itself."""
    if texts is None or list(texts) == [ALL]:
        return texts if texts is None else ALL
    labels = {str(label): plain(label) for label in domain.labels}
    return [labels.get(text, text) for text in texts]


def whole_numbers(text: str, option: str, example: str = "2, or 1,2,4") -> list[int]:
    """Return whole numbers from 1, separated by commas."""
    found = _numbers(text, option, example)
    for number in found:
        if number < 1 or not number.is_integer():
            hint = "; a comma separates several numbers: write 1000 or 1e3 for a thousand" if "," in text else ""
            raise typer.BadParameter(f"{number:g} is not a whole number from 1{hint}", param_hint=option)
    return [int(number) for number in found]


def user_counts(text: str | None) -> list[int] | None:
    """Return numbers of users."""
    return None if text is None else whole_numbers(text, "--users", "10000, 1e4, or 1000,10000")


def epsilons(text: str | None) -> list[float] | None:
    """Return budgets, separated by commas."""
    if text is None:
        return None
    found = _numbers(text, "--epsilon", "1, or 0.5,1,2")
    for number in found:
        if number <= 0:
            raise typer.BadParameter(f"{number:g} is not a positive number", param_hint="--epsilon")
    return found


def mixture(text: str) -> list[tuple[str, float]]:
    """Return who sends what of a mixture: names and shares of users."""
    found = []
    for piece in text.split(","):
        name, sign, share = piece.partition("=")
        if not sign or not name.strip():
            raise typer.BadParameter(f"{piece!r} is not NAME=SHARE; write strong=0.3,light=0.7", param_hint="--mix")
        found.append((name.strip(), _numbers(share, "--mix", "strong=0.3,light=0.7")[0]))
    total = math.fsum(share for _, share in found)
    if abs(total - 1.0) > 1e-9 or min(share for _, share in found) <= 0:
        raise typer.BadParameter(f"the shares sum to {total:g}; they must be above 0, with sum 1", param_hint="--mix")
    return found


def ways_to_report(
    study: Study,
    mechanisms: Sequence[str],
    kinds: Sequence[str],
    mixtures: Sequence[Sequence[tuple[str, float]]],
    *,
    has_epsilon: bool,
) -> Mapping[str, Any]:
    """Return what is compared, by name: mechanisms of the study, kinds at a budget, mixtures of either."""
    found: dict[str, Any] = {name: _mechanism(study, name, "--mechanism") for name in mechanisms}
    for name in kinds:
        if name not in MECHANISMS:
            raise typer.BadParameter(f"no kind {name!r}; there are {', '.join(MECHANISMS)}", param_hint="--kind")
        found[f"{name} (kind)" if name in found else name] = name
    for parts in mixtures:
        title = " + ".join(f"{100 * share:g}% {name}" for name, share in parts)
        found[title] = [(_mechanism(study, name, "--mix", or_kind=has_epsilon), share) for name, share in parts]
    if kinds and not has_epsilon:
        raise typer.BadParameter("a kind needs the budget of a user, such as --epsilon 1", param_hint="--kind")
    if has_epsilon and not any(isinstance(part, str) for way in found.values() for part in _parts(way)):
        raise typer.BadParameter(
            "mechanisms of the study have an epsilon already; name kinds, such as --kind rappor", param_hint="--epsilon"
        )
    return found or dict(study.mechanisms)


def _parts(way: Any) -> list[Any]:
    return [part for part, _ in way] if isinstance(way, list) else [way]


def _mechanism(study: Study, name: str, option: str, *, or_kind: bool = False) -> Any:
    if name in study.mechanisms:
        return study.mechanisms[name]
    if or_kind and name in MECHANISMS:
        return name
    known = ", ".join(study.mechanisms)
    more = "; kinds need --epsilon" if name in MECHANISMS else ""
    raise SettingError(
        "the study has no such mechanism",
        where=f"hubbub plan {option}",
        got=repr(name),
        expected=known,
        remedy=f"name one of these{more}",
    )


def truth_of(given: Sequence[str], study: Study) -> object:
    """Return what is assumed of the truth: names of shapes as they are, files as counts under their name.

    A shape's name is the shape, whatever lies in the folder; ./bell is a file.
    """
    found: list[object] = []
    for one in given:
        path = Path(one)
        if one in SHAPES or one == WORST:
            found.append(one)
        elif is_address(one) or _is_path(path, one):
            counts = truths_from(read_counts(one, study), study.domain)[0]
            found.append(replace(counts, name=path.name))
        else:
            found.append(one)
    return found[0] if len(found) == 1 else found


def _is_path(path: Path, text: str) -> bool:
    """Whether a truth is a file; refuse one that is not there."""
    if "\0" not in text and path.exists():
        return True
    if path.suffix or path.name != text:
        raise refusal(
            "no-such-file",
            "there is no such file of counts",
            where="hubbub plan --truth",
            got=shorten(text),
            expected=f"a table value,count, or a shape: {', '.join(SHAPES)}, {WORST}",
            remedy="check the path",
        )
    return False


def write_plan(found: Plan, document: dict[str, Any], path: Path) -> None:
    """Write a plan as .json (everything), .csv (a table that spreadsheets may open), .png or .svg (a picture)."""
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(document, path)
    elif ending == ".csv":
        write_file(path, as_csv(COLUMNS, ([row[name] for name in COLUMNS] for row in found.rows())))
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=SIZE, layout="constrained")
        found.plot(figure.subplots())
        write_file(path, picture_bytes(figure, ending, dpi=120))
