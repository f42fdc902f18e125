"""Intervals of several weighted sums of shares, each by itself and at one more level.

A sum over one value has that value's interval, as `hubbub.band` computes it, times its weight. Others have profile
intervals (`interval_endpoints`), or those of the unbiased linear estimate (`set_intervals`), which take one matrix
product for all sums.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.core.text import plural
from hubbub.intervals.api import statistic_endpoints
from hubbub.intervals.interval_endpoints import MAX_VALUES_ALL_SIMULATED, Endpoints, LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import joined_notes
from hubbub.intervals.set_intervals import MAX_MATRIX_VALUES, NoSetShares, set_shares
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports

METHODS = ("auto", "profile", "linear")
# Statements about many sums at once reach farther into the tails: two users more for each output, as in `resolve`.
SPARE_USERS = 2.0
BY_PROFILE = "by the profile likelihood"
BY_LINEAR = "from an unbiased estimate that is linear in the reports"


class SumIntervals(NamedTuple):
    """Low and high ends, of each sum by itself and at the second level, and how they were computed."""

    low: Floats
    high: Floats
    low_together: Floats
    high_together: Floats
    note: str = ""
    by_linear: int = 0  # how many are linear
    refusal: str = ""  # why linear ones could not be had, if they were asked for

    @classmethod
    def unknown(cls, count: int) -> SumIntervals:
        """Return intervals that are still to be computed."""
        low, high, low_together, high_together = (np.full(count, np.nan) for _ in range(4))
        return cls(low, high, low_together, high_together)

    def put(self, places: Positions, alone: tuple[Floats, Floats], together: tuple[Floats, Floats]) -> None:
        """Take over some rows; those at the second level are never the narrower ones."""
        self.low[places], self.high[places] = alone
        self.low_together[places] = np.minimum(alone[0], together[0])
        self.high_together[places] = np.maximum(alone[1], together[1])


def sum_intervals(
    reports: Reports,
    shown: Floats,
    statistics: Sequence[Statistic],
    levels: tuple[float, float],
    method: str = "auto",
) -> Generator[Any, None, SumIntervals]:
    """Return the intervals of all sums; `shown` is the distribution near which the linear estimate is made.

    With ``method="linear"``, where there is no linear estimate, nothing is computed, and `refusal` says why.
    """
    count, size = len(statistics), shown.size
    weights = np.reshape([statistic.weights for statistic in statistics], (count, size))
    found = SumIntervals.unknown(count)
    is_by_profile = _is_by_profile(weights, method)
    by_profile, by_linear = np.flatnonzero(is_by_profile), np.flatnonzero(~is_by_profile)
    notes = []
    if by_linear.size:
        alone = yield from set_shares.steps(reports, shown)
        if isinstance(alone, NoSetShares):
            if method == "linear":
                return found._replace(refusal=alone.reason)
            by_profile, by_linear = np.arange(count), by_linear[:0]
            notes.append(f"Not linear, because {alone.reason}.")
        else:
            spread = alone
            if size <= MAX_MATRIX_VALUES:
                more = yield from set_shares.steps(reports, shown, spare=SPARE_USERS)
                spread = alone if isinstance(more, NoSetShares) else more
            some = weights[by_linear]
            found.put(by_linear, alone.weighted_intervals(some, levels[0]), spread.weighted_intervals(some, levels[1]))
            notes.append(_how(by_linear.size, count, BY_LINEAR))
    if by_profile.size:
        own = [statistics[place] for place in by_profile.tolist()]
        top = yield from LikelihoodRegion.around(Likelihood.of(reports))
        first = yield from statistic_endpoints(reports, top, own, levels[0])
        second = yield from statistic_endpoints(reports, top, own, levels[1])
        found.put(by_profile, _arrays(first), _arrays(second))
        notes += [_how(by_profile.size, count, BY_PROFILE), joined_notes([each.note for each in first])]
    return found._replace(note=" ".join(notes), by_linear=by_linear.size)


def _is_by_profile(weights: Floats, method: str) -> NDArray[np.bool_]:
    """Return which sums have profile intervals: over few values all, over more those of one value."""
    count, size = weights.shape
    if method != "auto" or size <= MAX_VALUES_ALL_SIMULATED:
        return np.full(count, method != "linear")
    return np.asarray((np.count_nonzero(weights, axis=1) == 1) & (size <= MAX_MATRIX_VALUES))


def _arrays(endpoints: Sequence[Endpoints]) -> tuple[Floats, Floats]:
    return np.array([each.low for each in endpoints]), np.array([each.high for each in endpoints])


def _how(count: int, total: int, way: str) -> str:
    return f"Intervals are {way}." if count == total else f"{plural(count, 'interval')} of {total:,}: {way}."
