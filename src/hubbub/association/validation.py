"""Checks of what `independence` is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hubbub.association.attribute_pair import AttributePair
from hubbub.core.arrays import Positions
from hubbub.core.errors import DomainError, EstimateError, SettingError, restated, shorten
from hubbub.core.text import plural
from hubbub.intervals.deviance_cutoff import MAX_SIMULATED_VALUES
from hubbub.reports import Reports

WHERE = "independence"


def check_exact(reports: Reports) -> None:
    """Refuse sums of bits, which have lost what users sent together."""
    if reports.approximate:
        raise EstimateError(
            "sums of bits do not say what users sent together",
            where=f"{WHERE}(reports)",
            got=f"{reports!r}",
            expected="one report for each user",
            remedy="keep the reports themselves: Reports.from_outputs(mechanism, outputs)",
        )


def check_size(pair: AttributePair) -> None:
    """Refuse more combinations than can be tested together, and attributes with a single value."""
    size = pair.sides[0] * pair.sides[1]
    if size > MAX_SIMULATED_VALUES:
        raise SettingError(
            "there are too many combinations to test",
            where=f"{WHERE}(first, second)",
            got=f"{pair.sides[0]:,} x {pair.sides[1]:,} = {plural(size, 'combination')}",
            expected=f"at most {MAX_SIMULATED_VALUES:,}",
            remedy="collect over coarser attributes: wider bins, larger cells, or categories that are joined",
        )
    for name, side in zip(pair.names, pair.sides, strict=True):
        if side < 2:
            raise SettingError(
                f"{name} has a single value",
                where=f"{WHERE}(first, second)",
                got="1 value",
                expected="attributes with two values or more",
                remedy="name another attribute",
            )


def check_odds(odds: object, pair: AttributePair) -> tuple[Positions, Positions] | None:
    """Return the positions of two values of each attribute, in the pair's order; None if no odds ratio is asked for."""
    if odds is None:
        return None if pair.sides != (2, 2) else (np.arange(2), np.arange(2))
    where = f"{WHERE}(odds=)"
    first, second = pair.names
    if not isinstance(odds, Mapping) or set(odds) != {first, second}:
        raise SettingError(
            "odds must name two values of each attribute",
            where=where,
            got=shorten(odds),
            expected=f"a dictionary such as {{{first!r}: (value, value), {second!r}: (value, value)}}",
            remedy="leave odds out, or name both attributes",
        )
    chosen = []
    for name, domain in pair.domain.attributes.items():
        values = odds[name]
        if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != 2 or values[0] == values[1]:
            raise SettingError(
                f"odds must have two different values of {name}",
                where=where,
                got=shorten(values),
                expected="two values: the odds of the first against the second",
                remedy="write them as a pair",
            )
        try:
            chosen.append(domain.index(list(values)))
        except DomainError as error:
            raise restated(error, DomainError, where=f"{where}, attribute {name}") from None
    return chosen[0], chosen[1]
