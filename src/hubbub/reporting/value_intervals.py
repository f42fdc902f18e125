"""The confidence interval of each value on a page: by the profile likelihood as time allows, or the linear estimate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.text import plural
from hubbub.domains import Domain
from hubbub.estimators import Estimate
from hubbub.intervals import Band
from hubbub.intervals.result import extended_note
from hubbub.intervals.set_intervals import SetShares, normal_quantile


class ValueBounds(NamedTuple):
    """The ends of each value's confidence interval, which need not hold the estimate (NaN: not computed), and notes."""

    low: Floats
    high: Floats
    notes: list[str]


def value_bounds(
    shown: Estimate, band: Band | None, linear: SetShares | None, level: float, *, quick: bool
) -> ValueBounds:
    """Return the intervals of the band; values without one get that of the linear estimate, if there is one."""
    low, high = (np.full(len(shown.domain), np.nan) for _ in range(2))
    if band is not None:
        low, high = band.confidence_low.copy(), band.confidence_high.copy()
    notes = _fill_from_linear(shown.domain, low, high, linear, level, quick)
    extended = int(np.count_nonzero((shown.probabilities < low) | (shown.probabilities > high)))
    if extended:
        notes.append(extended_note(extended))
    return ValueBounds(low, high, notes)


def _fill_from_linear(
    domain: Domain, low: Floats, high: Floats, linear: SetShares | None, level: float, quick: bool
) -> list[str]:
    """Give values without an interval that of the linear estimate, in place; return a note about it."""
    missing = np.flatnonzero(np.isnan(low))
    if missing.size == 0:
        return []
    intervals = "The intervals" if missing.size == len(domain) else f"The intervals of {plural(missing.size, 'value')}"
    if linear is None:
        reason = "this is a quick page" if quick else "they would take too long"
        return [f"{intervals} were not computed, because {reason}."]
    margin = normal_quantile(level) * linear.deviations
    centre = np.clip(linear.centre, 0.0, 1.0)
    low[missing] = np.maximum(centre - margin, 0.0)[missing]
    high[missing] = np.minimum(centre + margin, 1.0)[missing]
    reason = "because this is a quick page" if quick else "to save time"
    return [f"{intervals} come from the unbiased linear estimate, not from the likelihood, {reason}."]
