"""How the options of ``hubbub plan`` become arguments of `hubbub.plan`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hubbub.core.defaults import TRUTH_SHAPES, WORST_SHAPE
from hubbub.core.errors import SettingError, shorten

if TYPE_CHECKING:
    from hubbub.domains import Domain
    from hubbub.intake.study import Study

TRUTHS = ", ".join([*TRUTH_SHAPES, WORST_SHAPE])
MIX_EXAMPLE = "strong=0.3,light=0.7"


def _parse_numbers(text: str, option: str, example: str) -> list[float]:
    """Return finite numbers, separated by commas."""
    numbers = []
    for piece in text.split(","):
        try:
            number = float(piece)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            what = f"{piece.strip()!r} is not a number" if piece.strip() else "a number is missing next to a comma"
            raise typer.BadParameter(f"{what}; write {example}", param_hint=option)
        numbers.append(number)
    return numbers


def parse_whole_numbers(text: str, option: str, example: str) -> list[int]:
    """Return positive whole numbers, separated by commas."""
    numbers = _parse_numbers(text, option, example)
    for number in numbers:
        if number < 1 or not number.is_integer():
            hint = "; commas separate numbers: write 1000 or 1e3 for a thousand" if "," in text else ""
            raise typer.BadParameter(f"{number:g} is not a positive whole number{hint}", param_hint=option)
    return [int(number) for number in numbers]


def parse_epsilons(text: str) -> list[float]:
    """Return positive numbers, separated by commas."""
    numbers = _parse_numbers(text, "--epsilon", "1, or 0.5,1,2")
    if min(numbers) <= 0:
        raise typer.BadParameter(f"{min(numbers):g} is not a positive number", param_hint="--epsilon")
    return numbers


def _parse_mixture(text: str) -> list[tuple[str, float]]:
    """Return the names of mechanisms and the shares of users who send them."""
    parts = []
    for piece in text.split(","):
        name, sign, share = piece.partition("=")
        if not sign or not name.strip():
            raise typer.BadParameter(f"{piece!r} is not NAME=SHARE; write {MIX_EXAMPLE}", param_hint="--mix")
        parts.append((name.strip(), _parse_numbers(share, "--mix", MIX_EXAMPLE)[0]))
    return parts


def named_mechanisms(
    study: Study, mechanisms: Sequence[str], kinds: Sequence[str], mixtures: Sequence[str], *, has_epsilon: bool
) -> dict[str, Any] | str:
    """Return what to compare, by name: mechanisms of the study, kinds, mixtures of either; by default the study's.

    The name of all kinds stands for itself.
    """
    from hubbub.planning.every_kind import EVERY_KIND

    if EVERY_KIND in kinds:
        if len(kinds) > 1 or mechanisms or mixtures:
            raise typer.BadParameter("all kinds are compared with each other alone", param_hint="--kind all")
        return EVERY_KIND
    named: dict[str, Any] = {name: _mechanism(study, name, "--mechanism") for name in mechanisms}
    named |= {f"{kind} (kind)" if kind in named else kind: kind for kind in kinds}
    for mixture in mixtures:
        parts = _parse_mixture(mixture)
        title = " + ".join(f"{100 * share:g}% {name}" for name, share in parts)
        named[title] = [(_mechanism(study, name, "--mix", or_kind=has_epsilon), share) for name, share in parts]
    return named or dict(study.mechanisms)


def _mechanism(study: Study, name: str, option: str, *, or_kind: bool = False) -> Any:
    from hubbub.intake.study_entries import full_kind
    from hubbub.mechanisms.mechanism_kinds import find_kind

    if name in study.mechanisms:
        return study.mechanisms[name]
    is_kind = ":" not in name and find_kind(full_kind(name), f"hubbub plan {option}") is not None
    if or_kind and is_kind:
        return name
    raise SettingError(
        "the study has no such mechanism",
        where=f"hubbub plan {option}",
        got=repr(name),
        expected=", ".join(study.mechanisms),
        remedy=f"name one of these{'; kinds need --epsilon' if is_kind else ''}",
    )


def read_truths(texts: Sequence[str], study: Study, option: str = "hubbub plan --truth") -> object:
    """Return names of shapes as they are, and files as counts under the file's name; a list only of several.

    The name of a shape is always the shape, even if there is a file of that name; ./bell is a file. `option` is where
    they were named, for messages.
    """
    from hubbub.intake.sources.database_address import is_address
    from hubbub.intake.value_counts import read_counts
    from hubbub.planning.truths import truths_from

    truths: list[object] = []
    for text in texts:
        path = Path(text)
        if text in (*TRUTH_SHAPES, WORST_SHAPE) or not (is_address(text) or _is_file(path, text, option)):
            truths.append(text)
        else:
            (counts,) = truths_from(read_counts(text, study), study.domain)
            truths.append(replace(counts, name=path.name))
    return truths[0] if len(truths) == 1 else truths


def _is_file(path: Path, text: str, option: str) -> bool:
    """Whether a truth is a file; refuse one that does not exist."""
    from hubbub.intake.reject_causes import refusal

    if "\0" not in text and path.exists():
        return True
    if path.suffix or path.name != text:
        raise refusal(
            "no-such-file",
            "there is no such file of counts",
            where=option,
            got=shorten(text),
            expected=f"a table value,count, or a shape: {TRUTHS}",
            remedy="check the path",
        )
    return False


def labels_of(texts: Sequence[str] | None, domain: Domain) -> object:
    """Return the labels that are written like the texts; a text that is not a label stays as it is."""
    from hubbub.core.arrays import plain
    from hubbub.planning.validation import ALL_VALUES

    if texts is None or list(texts) == [ALL_VALUES]:
        return texts and ALL_VALUES
    labels = {str(label): plain(label) for label in domain.labels}
    return [labels.get(text, text) for text in texts]
