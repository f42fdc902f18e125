"""The shares of regions, with intervals of each and intervals of all together.

Intervals are those of weighted sums (`intervals.weighted_sums`). Those that hold together are made as `band` makes
them, by Bonferroni's inequality: each at the level 1 - (1 - level) / m for m regions.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import EstimateError
from hubbub.core.progress import stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators import Estimate
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.api import APPROXIMATE
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import extend
from hubbub.intervals.weighted_sums import METHODS, sum_intervals
from hubbub.polygons.result import RegionShare, RegionShares
from hubbub.reports import Reports

if TYPE_CHECKING:
    from hubbub.polygons.region_set import Regions

MIN_REST_CELLS = 0.01  # in no region: less is how neighbours were digitised
NARROWER = (
    "Profile intervals (--region-intervals profile, method='profile') take longer, and are narrower where the noise "
    "reaches over several cells."
)


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

    names = [*regions.names, *([""] if has_rest else [])]
    known = np.flatnonzero(weights.any(axis=1))
    statistics = [Statistic.weighted(names[place], weights[place]) for place in known.tolist()]
    levels = (level, 1.0 - (1.0 - level) / max(1, known.size))

    def steps() -> Generator[Any, None, RegionShares]:
        shown = yield from shown_estimate(reports, estimate, "Regions.shares")
        found = yield from sum_intervals(reports, shown.probabilities, statistics, levels, method)
        if found.refusal:
            raise _not_linear(found.refusal)
        notes = [found.note]
        if method == "auto" and found.by_linear:
            notes.append(NARROWER)
        if reports.approximate:
            notes.append(APPROXIMATE)
        ends = np.full((4, len(names)), np.nan)
        ends[:, known] = found[:4]
        inside = np.append(regions.inside, 1.0) if has_rest else regions.inside
        rows = _rows(names, weights, inside, shown.probabilities, ends)
        count, rest = len(regions), rows[-1] if has_rest else None
        return RegionShares(regions, tuple(rows[:count]), rest, level, reports.users, " ".join(notes))

    return limit_threads_per_step(steps(), reports.weights.size * len(domain))


def _not_linear(reason: str) -> EstimateError:
    return EstimateError(
        "these reports have no linear intervals",
        where="Regions.shares(method='linear')",
        got=reason,
        expected="reports whose outputs determine every share, from users who count alike",
        remedy="use method='profile'",
    )


def _rows(names: list[str], weights: Floats, inside: Floats, shown: Floats, ends: Floats) -> list[RegionShare]:
    """Return a row for each region, its intervals extended to its estimate; nothing is known of one outside."""
    known = weights.any(axis=1)
    estimates = np.where(known, weights @ shown, np.nan)
    low, high = extend(ends[0], ends[1], estimates)
    low_together, high_together = extend(ends[2], ends[3], estimates)
    columns = (estimates, low, high, low_together, high_together, ends[0], ends[1], weights.sum(axis=1), inside)
    return [
        RegionShare(name, *(float(number) for number in row))
        for name, row in zip(names, zip(*columns, strict=True), strict=True)
    ]
