"""`compare_groups`: a test of equality of several groups, and each of them against the rest or a reference."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.comparison.api import holm
from hubbub.comparison.difference_intervals import Difference, differences
from hubbub.comparison.equality_test import equality_test
from hubbub.comparison.group_comparison import GroupComparison, MeanDifference
from hubbub.comparison.group_order import order_groups
from hubbub.comparison.partial_pooling import pool
from hubbub.comparison.populations import Populations
from hubbub.comparison.validation import check_groups
from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.core.text import listed
from hubbub.core.threads import limit_threads_per_step
from hubbub.domains import Domain
from hubbub.estimators.result import finite
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import refuse_weights
from hubbub.intervals.linear_statistic import VALUE, Statistics, parse_statistic, parse_statistics
from hubbub.intervals.result import extend
from hubbub.intervals.standard_errors import standard_errors
from hubbub.reports import Reports
from hubbub.sampling import Randomness

DRAWS_FOR_EACH = 999  # of the test of one group


@stepwise
def compare_groups(
    groups: Mapping[str, Reports],
    *,
    of: object = None,
    against: str | None = None,
    order_by: object = None,
    level: float = 0.95,
    rng: Randomness = None,
) -> Generator[Any, None, GroupComparison]:
    """Compare several groups of users: whether they are all equal, and what sets each of them apart.

    Equality of all groups is tested as in `compare`. Intervals hold each by itself; p-values are adjusted for looking
    at all groups and values.

    Parameters
    ----------
    groups : mapping from str to Reports
        The reports of each group, over one domain.
    of : label, list or set of labels, dict, or Regions, optional
        What to compare, as in `compare`: one statistic, or several with names. By default every value.
    against : str, optional
        The name of a group that all others are compared with. By default each group is compared with all others
        together.
    order_by : label, list or set of labels, or dict, optional
        The statistic by which groups are ordered; by default the first that was asked for, otherwise the mean where
        values are numbers, and the first value where they are not.
    level : float, default 0.95
        The probability with which each interval holds its true difference; 1 - `level` is the level of all tests.
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed. By default the same reports give the same answer.

    Returns
    -------
    GroupComparison
        With `p_value`, `to_frame()`, `explain()`, `order` and `plot()`.

    Raises
    ------
    ReportsError
        If the groups are over different domains.
    DomainError
        If `of` or `order_by` names a value that the domain does not have.
    SettingError
        If there are fewer than two groups, `against` is none of them, another keyword has a wrong value, or the domain
        has more than 1,500 values.
    EstimateError
        If a group is not reports in this process, or has survey weights: these are compared two at a time.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=2.0)
    >>> counts = {"north": [480, 520], "south": [560, 440], "west": [500, 500]}
    >>> groups = {name: hb.Reports.from_counts(coin, own) for name, own in counts.items()}
    >>> print(hb.compare_groups(groups).sentence)
    The 3 groups are not all equal (p = 0.001). yes is more frequent in south than in the rest: by 4 to 14 percentage
    points. yes is less frequent in north than in the rest: by 1.6 to 12 percentage points.
    """
    names, reports = _named(groups)
    if against is not None and against not in names:
        raise SettingError(
            "there is no such group to compare with",
            where="compare_groups(against=)",
            got=shorten(against),
            expected=f"one of {listed([repr(name) for name in names], most=6, word='or')}",
            remedy="name one of the groups, or leave against out: then each is compared with the rest",
        )
    level = validation.level(level, "compare_groups")
    generator, _ = validation.generator(rng, "compare_groups")
    statistics = parse_statistics(reports[0].domain, of)
    first = None if statistics.kind == VALUE else statistics.rows[0]
    order = (first.weights, first.title) if first and order_by is None else group_statistic(reports[0].domain, order_by)
    run = _compare_groups(names, reports, statistics, against, order, level, generator)
    return limit_threads_per_step(run, max(own.weights.size for own in reports) * len(reports[0].domain))


def _named(groups: object) -> tuple[list[str], list[Reports]]:
    if not isinstance(groups, Mapping) or len(groups) < 2:
        raise SettingError(
            "there are not several groups",
            where="compare_groups(groups)",
            got=shorten(groups),
            expected="a dictionary from names to reports, with two groups or more",
            remedy="write {'north': reports_north, 'south': reports_south}",
        )
    checked = check_groups(list(groups.values()), "compare_groups")
    refuse_weights(checked[0], "compare_groups", "compare two groups at a time, with hubbub.compare")
    return [str(name) for name in groups], checked


def group_statistic(domain: Domain, order_by: object = None) -> tuple[Floats, str]:
    """Return the weights of the statistic that groups are ordered by, and its name."""
    if order_by is not None:
        statistic = parse_statistic(domain, order_by)
        return statistic.weights, statistic.title
    if domain.places is not None:
        return domain.places, "the mean"
    first = np.zeros(len(domain))
    first[0] = 1.0
    return first, domain.title(0)


def _compare_groups(
    names: list[str],
    reports: list[Reports],
    statistics: Statistics,
    against: str | None,
    order_by: tuple[Floats, str],
    level: float,
    rng: np.random.Generator,
) -> Generator[Any, None, GroupComparison]:
    domain = reports[0].domain
    shown = []
    for own in reports:
        shown.append((yield from shown_estimate(own, None, "compare_groups")).probabilities)
    estimates, rows = np.array(shown), statistics.weights
    shares = estimates @ rows.T
    populations = yield from Populations.of(reports)
    equality = yield from equality_test(populations, rng)
    pooled = yield from pool(reports, rng)
    places = domain.places if statistics.kind == VALUE else None
    compared = list(rows) if places is None else [*rows, places]
    means: dict[int, tuple[Difference, float]] = {}
    shape = (len(names), len(rows))
    difference, low, high, p_values, error = (np.full(shape, np.nan) for _ in range(5))
    reasons = [("",) * len(rows)] * len(names)
    for place, other in enumerate(_others(names, reports, against)):
        yield Progress(place, len(names), "comparing groups")
        if other is None:
            continue
        theirs = (yield from shown_estimate(other, None, "compare_groups")).probabilities
        pair = yield from Populations.of([other, reports[place]])
        test = yield from equality_test(pair, rng, DRAWS_FOR_EACH)
        found, _ = yield from differences(pair, compared, level, test, rng)
        difference[place] = shares[place] - rows @ theirs
        rest = standard_errors(other, theirs, compared)
        errors = standard_errors(reports[place], estimates[place], compared).of_difference(rest)
        error[place], reasons[place] = errors.numbers[: len(rows)], errors.reasons[: len(rows)]
        if places is not None:
            means[place] = found.pop(), float(errors.numbers[-1])
        ends = (np.array([one.low for one in found]), np.array([one.high for one in found]))
        low[place], high[place] = extend(*ends, difference[place])
        p_values[place] = [one.p_value for one in found]
    is_table = statistics.kind == VALUE
    adjusted = _adjusted(p_values, is_pair=is_table and len(domain) == 2)
    if is_table:
        adjusted = np.maximum(adjusted, equality.p_value)
    holds_nothing = (low <= 0.0) & (high >= 0.0)
    return GroupComparison(
        domain,
        tuple(names),
        tuple(own.users for own in reports),
        against,
        frozen(shares),
        replace(pooled, shares=frozen(pooled.shares @ rows.T)),
        frozen(difference),
        frozen(low),
        frozen(high),
        frozen(error),
        tuple(reasons),
        frozen(p_values),
        frozen(adjusted),
        frozen((adjusted <= 1.0 - level) & ~holds_nothing),
        level,
        equality,
        tuple(order_groups(populations, names, order_by[0], estimates @ order_by[0], level)),
        order_by[1],
        () if places is None else _means(names, means, difference @ places, equality.p_value, level),
        labels=statistics.labels,
        is_share=statistics.are_shares,
        kind=statistics.kind,
        caveats=statistics.caveats,
    )


def _means(
    names: list[str], found: dict[int, tuple[Difference, float]], shown: Floats, all_equal: float, level: float
) -> tuple[MeanDifference, ...]:
    """Return the differences of means, with p-values adjusted for looking at all groups."""
    p_values = np.array([one.p_value for one, _ in found.values()])
    means = []
    all_adjusted = np.maximum(holm(p_values), all_equal).tolist()
    for (place, (one, error)), adjusted in zip(found.items(), all_adjusted, strict=True):
        low, high = min(one.low, float(shown[place])), max(one.high, float(shown[place]))
        changed = adjusted <= 1.0 - level and not low <= 0.0 <= high
        ends = (float(shown[place]), low, high)
        means.append(MeanDifference(names[place], *ends, one.p_value, adjusted, changed, finite(error)))
    return tuple(means)


def _others(names: list[str], reports: list[Reports], against: str | None) -> list[Reports | None]:
    """Return what each group is compared with; None for the reference itself."""
    if against is not None:
        reference = reports[names.index(against)]
        return [None if name == against else reference for name in names]
    before: list[Reports | None] = [None]
    after: list[Reports | None] = [None]
    for own in reports[:-1]:
        before.append(own if before[-1] is None else before[-1] + own)
    for own in reports[:0:-1]:
        after.append(own if after[-1] is None else own + after[-1])
    pairs = zip(before, reversed(after), strict=True)
    return [left if right is None else right if left is None else left + right for left, right in pairs]


def _adjusted(p_values: Floats, *, is_pair: bool) -> Floats:
    """Adjust all p-values together; of two values, the second says the same as the first."""
    own = p_values[:, :1] if is_pair else p_values
    known = ~np.isnan(own)
    adjusted = np.full(own.shape, np.nan)
    adjusted[known] = holm(own[known])
    return np.repeat(adjusted, 2, axis=1) if is_pair else adjusted
