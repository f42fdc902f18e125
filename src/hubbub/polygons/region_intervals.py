"""The shares of regions, with intervals of each and intervals of all together.

A region within one cell has that cell's interval, as `hubbub.band` computes it, times its part of the cell. Others
have profile intervals (`intervals.interval_endpoints`), or those of the unbiased linear estimate
(`intervals.set_intervals`), which take one matrix product for all regions. Intervals that hold together are made as
`band` makes them, by Bonferroni's inequality: each at the level 1 - (1 - level) / m for m regions.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.errors import EstimateError
from hubbub.core.progress import stepwise
from hubbub.core.text import plural
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators import Estimate
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.api import APPROXIMATE, statistic_endpoints
from hubbub.intervals.interval_endpoints import MAX_VALUES_ALL_SIMULATED, LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import extend, joined_notes
from hubbub.intervals.set_intervals import MAX_MATRIX_VALUES, NoSetShares, set_shares
from hubbub.likelihood import Likelihood
from hubbub.polygons.result import RegionShare, RegionShares
from hubbub.reports import Reports

if TYPE_CHECKING:
    from hubbub.polygons.region_set import Regions

METHODS = ("auto", "profile", "linear")
MIN_REST_CELLS = 0.01  # in no region: less is how neighbours were digitised
# Statements about many regions at once reach farther into the tails: two users more for each output, as in `resolve`.
SPARE_USERS = 2.0
BY_PROFILE = "by the profile likelihood"
BY_LINEAR = "from an unbiased estimate that is linear in the reports"
NARROWER = (
    "Profile intervals (--region-intervals profile, method='profile') take longer, and are narrower where the noise "
    "reaches over several cells."
)


class _Ends(NamedTuple):
    """Low and high ends, of each region by itself and of all together; NaN where nothing is known."""

    low: Floats
    high: Floats
    low_together: Floats
    high_together: Floats

    @classmethod
    def unknown(cls, count: int) -> _Ends:
        return cls(*(np.full(count, np.nan) for _ in range(4)))

    def put(self, places: Positions, alone: tuple[Floats, Floats], together: tuple[Floats, Floats]) -> None:
        """Take over some rows; what holds together is never the narrower one."""
        self.low[places], self.high[places] = alone
        self.low_together[places] = np.minimum(alone[0], together[0])
        self.high_together[places] = np.maximum(alone[1], together[1])


@stepwise
def region_shares(
    regions: Regions,
    reports: Reports,
    *,
    level: float = 0.95,
    estimate: Estimate | None = None,
    method: str = "auto",
) -> Generator[Any, None, RegionShares]:
    """Return what `Regions.shares` returns, yielding progress."""
    check_reports(reports, "Regions.shares")
    level = validation.level(level, "Regions.shares")
    check_estimate(estimate, reports, "Regions.shares")
    method = validation.one_of(method, METHODS, "method", "Regions.shares", default="'auto'")
    domain = reports.domain
    weights, rest = regions.weights_over(domain).toarray(), regions.rest_over(domain)
    has_rest = float(rest.sum()) > MIN_REST_CELLS
    if has_rest:
        weights = np.vstack([weights, rest])

    def steps() -> Generator[Any, None, RegionShares]:
        shown = yield from shown_estimate(reports, estimate, "Regions.shares")
        ends, note = yield from _ends(reports, shown, weights, level, method)
        if reports.approximate:
            note = f"{note} {APPROXIMATE}"
        inside = np.append(regions.inside, 1.0) if has_rest else regions.inside
        rows = _rows([*regions.names, *([""] if has_rest else [])], weights, inside, shown.probabilities, ends)
        count = len(regions)
        return RegionShares(regions, tuple(rows[:count]), rows[count] if has_rest else None, level, reports.users, note)

    return limit_threads_per_step(steps(), reports.weights.size * len(domain))


def _ends(
    reports: Reports, shown: Estimate, weights: Floats, level: float, method: str
) -> Generator[Any, None, tuple[_Ends, str]]:
    """Return the ends of all regions, and how they were computed."""
    size = weights.shape[1]
    known = np.flatnonzero(weights.any(axis=1))
    ends = _Ends.unknown(len(weights))
    level_together = 1.0 - (1.0 - level) / max(1, known.size)
    by_profile = known[_is_by_profile(weights[known], method)]
    by_linear = np.setdiff1d(known, by_profile)
    notes = []
    if by_linear.size:
        alone = yield from set_shares.steps(reports, shown.probabilities)
        if isinstance(alone, NoSetShares):
            if method == "linear":
                raise _not_linear(alone.reason)
            by_profile, by_linear = known, known[:0]
            notes.append(f"Not linear, because {alone.reason}.")
        else:
            spread = alone
            if size <= MAX_MATRIX_VALUES:
                more = yield from set_shares.steps(reports, shown.probabilities, spare=SPARE_USERS)
                spread = alone if isinstance(more, NoSetShares) else more
            some = weights[by_linear]
            together = spread.weighted_intervals(some, level_together)
            ends.put(by_linear, alone.weighted_intervals(some, level), together)
            notes.append(_how(by_linear.size, known.size, BY_LINEAR))
            if method == "auto":
                notes.append(NARROWER)
    if by_profile.size:
        statistics = [_statistic(weights[place]) for place in by_profile.tolist()]
        top = yield from LikelihoodRegion.around(Likelihood.of(reports))
        alone_ends = yield from statistic_endpoints(reports, top, statistics, level)
        together_ends = yield from statistic_endpoints(reports, top, statistics, level_together)
        pairs = [
            (np.array([each.low for each in some]), np.array([each.high for each in some]))
            for some in (alone_ends, together_ends)
        ]
        ends.put(by_profile, *pairs)
        notes += [_how(by_profile.size, known.size, BY_PROFILE), joined_notes([each.note for each in alone_ends])]
    return ends, " ".join(notes)


def _is_by_profile(weights: Floats, method: str) -> NDArray[np.bool_]:
    """Return which regions have profile intervals: on small grids all, on others those within one cell."""
    count, size = weights.shape
    if method != "auto" or size <= MAX_VALUES_ALL_SIMULATED:
        return np.full(count, method != "linear")
    return np.asarray((np.count_nonzero(weights, axis=1) == 1) & (size <= MAX_MATRIX_VALUES))


def _not_linear(reason: str) -> EstimateError:
    return EstimateError(
        "these reports have no linear intervals",
        where="Regions.shares(method='linear')",
        got=reason,
        expected="reports whose outputs determine every share, from users who count alike",
        remedy="use method='profile'",
    )


def _how(count: int, total: int, way: str) -> str:
    return f"Intervals are {way}." if count == total else f"{plural(count, 'interval')} of {total:,}: {way}."


def _statistic(weights: Floats) -> Statistic:
    """Return the share of a region as a statistic; a part of one cell is that cell's share, scaled."""
    used = np.flatnonzero(weights)
    return Statistic(frozen(weights.copy()), "the share of a region", int(used[0]) if used.size == 1 else None)


def _rows(names: list[str], weights: Floats, inside: Floats, shown: Floats, ends: _Ends) -> list[RegionShare]:
    """Return a row for each region, its intervals extended to its estimate; nothing is known of one outside."""
    known = weights.any(axis=1)
    estimates = np.where(known, weights @ shown, np.nan)
    low, high = extend(ends.low, ends.high, estimates)
    low_together, high_together = extend(ends.low_together, ends.high_together, estimates)
    columns = (estimates, low, high, low_together, high_together, ends.low, ends.high, weights.sum(axis=1), inside)
    return [
        RegionShare(name, *(float(number) for number in row))
        for name, row in zip(names, zip(*columns, strict=True), strict=True)
    ]
