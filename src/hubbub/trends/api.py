"""`trend`: shares or numbers over time, and where they changed."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.comparison.api import APPROXIMATE
from hubbub.comparison.populations import Populations
from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.reports import Reports
from hubbub.sampling import Randomness
from hubbub.trends.change_search import ChangeSearch, FoundChange, join
from hubbub.trends.common_patterns import CommonPatterns
from hubbub.trends.followed_statistics import FollowedStatistics, Intervals
from hubbub.trends.result import Change, Trend
from hubbub.trends.time_smoothing import CONSTANT, SMOOTH, Smoothing, choose_smoothing, smooth
from hubbub.trends.validation import check_periods, check_times


@stepwise
def trend(
    periods: Mapping[str, Reports] | Sequence[tuple[str, Reports]],
    *,
    of: object = None,
    quantile: float | None = None,
    times: object = None,
    level: float = 0.95,
    rng: Randomness = None,
) -> Generator[Any, None, Trend]:
    """Follow shares, or one statistic, over several periods, and find where the distribution changed.

    Each period is estimated by itself, as ``hubbub.estimate`` and ``hubbub.interval`` do; bands hold for all periods at
    once. Changes are found by testing spans of periods such that, with probability `level`, no change is named where
    there is none (see the page on comparing periods). Mechanisms and epsilons may differ between periods.

    Parameters
    ----------
    periods : mapping from str to Reports, or list of pairs
        The reports of each period, over one domain, in the order of time.
    of : label, list or set of labels, dict, or Regions, optional
        What to follow: the share of a value, the joint share of several values, or a weighted sum {value: weight}.
        Several sums with names: the regions of a map, or {name: list or set of values}. By default the mean where
        values are numbers, and every value otherwise.
    quantile : float, optional
        Follow a quantile instead, of values on a line: 0.5 for the median.
    times : list of numbers or dates, optional
        When the periods were. By default what their names say, if all of them are dates (2026-03-31, 2026-W14, 2026-03)
        or numbers, and even steps otherwise.
    level : float, default 0.95
        The probability with which each interval and each band holds, and 1 minus that of naming any change where there
        is none.
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed. By default the same reports give the same answer.

    Returns
    -------
    Trend
        With `changes`, `p_value`, `to_frame()`, `explain()`, `smoothing` and `plot()`.

    Raises
    ------
    ReportsError
        If the periods are over different domains.
    DomainError
        If `of` names a value that the domain does not have.
    SettingError
        If there are fewer than 2 periods or more than 400, they are not in the order of time, two have the same name,
        or a keyword has a wrong value; if the domain has more than 1,500 values.
    EstimateError
        If a period is not reports in this process or has survey weights, or a quantile of values without an order is
        asked for.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=2.0)
    >>> yes = {"April": 90, "May": 94, "June": 138}
    >>> periods = {month: hb.Reports.from_counts(coin, [count, 200 - count]) for month, count in yes.items()}
    >>> print(hb.trend(periods, of="yes").sentence)
    Between May and June yes became more frequent: by 18 to 42 percentage points.
    """
    names, reports = check_periods(periods)
    level = validation.level(level, "trend")
    when = check_times(times, names)
    followed = FollowedStatistics.choose(reports[0].domain, of, quantile)
    generator, _ = validation.generator(rng, "trend")
    run = _trend(names, reports, when, followed, level, generator, rng)
    return limit_threads_per_step(run, max(own.weights.size for own in reports) * len(reports[0].domain))


def _trend(
    names: list[str],
    reports: list[Reports],
    times: Floats,
    followed: FollowedStatistics,
    level: float,
    generator: np.random.Generator,
    rng: Randomness,
) -> Generator[Any, None, Trend]:
    evidence = CommonPatterns.of(reports)
    search = ChangeSearch((yield from Populations.of(reports)), evidence, level, generator)
    test = yield from search.test_all()
    found = yield from search.find()
    stretches = _stretches(found, len(reports))
    doubtful = sum(change.span.boundaries > 1 for change in found)
    smoothing = yield from choose_smoothing(evidence, times, stretches, doubtful, generator)
    shown = []
    for place, own in enumerate(reports):
        yield Progress(place, len(reports), "estimating periods")
        shown.append((yield from shown_estimate(own, None, "trend")).probabilities)
    smoothed = yield from _smoothed(reports, evidence, smoothing, stretches, np.array(shown))
    each, bands, notes = yield from _intervals(reports, followed, level, rng)
    changes = yield from _changes(names, reports, followed, found, stretches, level, rng)
    epsilon, metric = _epsilon_in_all(reports)
    return Trend(
        reports[0].domain,
        tuple(names),
        frozen(times),
        tuple(own.users for own in reports),
        followed.labels,
        frozen(each.estimate),
        frozen(each.low),
        frozen(each.high),
        frozen(np.minimum(each.low, bands.low)),
        frozen(np.maximum(each.high, bands.high)),
        frozen(followed.values(smoothed)),
        smoothing,
        changes,
        test,
        level,
        followed.is_share,
        epsilon,
        metric,
        " ".join([*notes, *followed.caveats, *([APPROXIMATE] if any(own.approximate for own in reports) else [])]),
        followed.kind,
    )


def _stretches(found: Sequence[FoundChange], count: int) -> Positions:
    """Return the number of changes before each period."""
    return np.searchsorted([change.place for change in found], np.arange(count))


def _stretch(reports: Sequence[Reports], stretches: Positions, number: int) -> Reports:
    return join([own for own, stretch in zip(reports, stretches.tolist(), strict=True) if stretch == number])


def _smoothed(
    reports: list[Reports],
    evidence: CommonPatterns | None,
    smoothing: Smoothing,
    stretches: Positions,
    shown: Floats,
) -> Generator[Any, None, Floats]:
    """Return the smoothed distributions; where whole stretches are one, that is the estimate of their reports."""
    if smoothing.is_none:
        return shown
    if smoothing.kind == SMOOTH and evidence is not None:
        return (yield from smooth(evidence, smoothing.weights))
    numbers = np.zeros_like(stretches) if smoothing.kind == CONSTANT else stretches
    estimates = []
    for number in range(int(numbers[-1]) + 1):
        stretch = _stretch(reports, numbers, number)
        estimates.append((yield from shown_estimate(stretch, None, "trend")).probabilities)
    return np.array(estimates)[numbers]


def _intervals(
    reports: Sequence[Reports], followed: FollowedStatistics, level: float, rng: Randomness
) -> Generator[Any, None, tuple[Intervals, Intervals, list[str]]]:
    """Return the intervals of each period by itself, those of all periods at once (Bonferroni), and notes."""
    levels = (level, 1.0 - (1.0 - level) / len(reports))
    found = []
    for place, own in enumerate(reports):
        yield Progress(place, len(reports), "intervals of periods")
        found.append((yield from followed.period(own, levels, rng)))
    *both, notes = zip(*found, strict=True)
    alone, together = (Intervals(*map(np.array, zip(*rows, strict=True))) for rows in both)
    return alone, together, [note for note in dict.fromkeys(notes) if note]


def _changes(
    names: Sequence[str],
    reports: Sequence[Reports],
    followed: FollowedStatistics,
    found: Sequence[FoundChange],
    stretches: Positions,
    level: float,
    rng: Randomness,
) -> Generator[Any, None, tuple[Change, ...]]:
    changes = []
    for number, change in enumerate(found):
        yield Progress(number, len(found), "comparing before and after")
        before, after = (_stretch(reports, stretches, place) for place in (number, number + 1))
        own, changed = yield from followed.differences(
            before, after, 1.0 - (1.0 - level) * _selected_share(change, len(found), len(reports)), rng
        )
        changes.append(
            Change(
                names[change.place],
                names[change.place + 1],
                names[change.span.first],
                names[change.span.last],
                change.adjusted,
                followed.labels,
                frozen(own.estimate),
                frozen(own.low),
                frozen(own.high),
                frozen(changed),
                followed.is_share,
                followed.kind,
            )
        )
    return tuple(changes)


def _selected_share(change: FoundChange, changes: int, periods: int) -> float:
    """Return the share of 1 - level that an interval at a change may miss with, because the reports have chosen it.

    They have chosen one place of its span: the interval holds at each of them at once (Bonferroni). And they have
    chosen these changes among all boundaries between periods: of the intervals that are shown, on average no more than
    1 - level miss, those at false changes among them (false coverage rate: Benjamini and Yekutieli, 2005).
    """
    return min(1.0 / change.span.boundaries, changes / (periods - 1))


def _epsilon_in_all(reports: Sequence[Reports]) -> tuple[float, bool]:
    """Return what a user spends at most who reports in all periods, and whether it is per unit of distance."""
    most = [[spent for block in own.blocks for spent in block.spending()] for own in reports]
    plain, metric = (sum(max(spent[kind] for spent in own) for own in most) for kind in (0, 1))
    return (metric, True) if plain == 0.0 else (plain, False)
