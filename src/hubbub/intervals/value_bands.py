"""Intervals for all values: a band around the distribution."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, as_array, frozen
from hubbub.core.progress import Progress, finish, stepwise
from hubbub.core.threads import processors, step_by_step, threads_for
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.interval_endpoints import profile_interval
from hubbub.intervals.likelihood_region import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import Band, Interval
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports

# Entries of the channel between which one thread per group of values pays: below, products are too short to share out;
# above, the linear algebra's own threads are better.
MIN_THREADED_ENTRIES, MAX_THREADED_ENTRIES = 50_000, 4_000_000
MAX_GROUPS = 64  # of values, each of which reports progress once


@stepwise
def band(
    reports: Reports,
    level: float = 0.95,
    *,
    values: object = None,
    simultaneous: bool = False,
    estimate: Estimate | None = None,
) -> Generator[Any, None, Band]:
    """Return `interval` for every value of the domain, or for some `values`.

    Parameters
    ----------
    reports : Reports
        The reports to learn from.
    level : float
        The probability with which each interval holds its value's true share.
    values : list of labels, optional
        The values to compute intervals for; all of them by default.
    simultaneous : bool
        Make all intervals hold together with probability `level` (Bonferroni over the whole domain).
    estimate : Estimate, optional
        The estimate to show in the intervals; the maximum of the likelihood by default.

    Returns
    -------
    Band
        With arrays `low`, `estimate` and `high` in the order of ``domain.labels``, and `to_frame()`, `plot()`.
    """
    check_reports(reports, "band")
    level = validation.level(level, "band")
    validation.boolean(simultaneous, "simultaneous", "band")
    shown = check_estimate(estimate, reports, "band")
    size = len(reports.domain)
    positions = np.arange(size) if values is None else np.unique(np.atleast_1d(reports.domain.index(as_array(values))))
    return step_by_step(_band(reports, positions, level, simultaneous, shown), reports.weights.size * size)


def _band(
    reports: Reports, positions: Positions, level: float, simultaneous: bool, shown: Floats | None
) -> Generator[Any, None, Band]:
    region = yield from LikelihoodRegion.around(Likelihood.of(reports))
    size = len(reports.domain)
    low, high, notes = np.full(size, np.nan), np.full(size, np.nan), dict[str, int]()
    entries = reports.weights.size * size
    is_threaded = MIN_THREADED_ENTRIES <= entries <= MAX_THREADED_ENTRIES
    workers = min(processors(), positions.size) if is_threaded else 1

    def intervals_of(group: Positions) -> list[Interval]:
        own_region = LikelihoodRegion(region.top)  # its linear algebra has a workspace that threads must not share
        shares = [Statistic.share_of(reports.domain, [position]) for position in group.tolist()]
        with threads_for(entries):
            return [
                finish(profile_interval(own_region, reports, share, level, simultaneous=simultaneous))
                for share in shares
            ]

    groups = np.array_split(positions, max(1, min(positions.size, MAX_GROUPS)))
    with ThreadPoolExecutor(workers) as pool:
        tasks = [(group, pool.submit(intervals_of, group)) for group in groups]
        for done, (group, task) in enumerate(tasks, start=1):
            intervals = task.result()
            low[group], high[group] = [each.low for each in intervals], [each.high for each in intervals]
            for note in (each.note for each in intervals if each.note):
                notes[note] = notes.get(note, 0) + 1
            yield Progress(done, len(groups), "intervals")
    share = region.top.theta if shown is None else shown
    note = " ".join(text if count == positions.size else f"{count:,} of them: {text}" for text, count in notes.items())
    return Band(reports.domain, frozen(low), frozen(share.copy()), frozen(high), level, simultaneous, note)
