"""`quantile`: the value that a share of the users does not exceed, and its interval."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Mapping
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.domains.product import Margin
from hubbub.estimators import Estimate
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.api import check_group, statistic_endpoints
from hubbub.intervals.attribute_statistics import Group, parse_group, parse_numbers
from hubbub.intervals.conditional_shares import ConditionalShare
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import Quantile
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports

ROUNDING = 1e-12  # of a sum of probabilities


@stepwise
def quantile(
    reports: Reports,
    probability: float,
    level: float = 0.95,
    *,
    of: str | None = None,
    given: Mapping[str, object] | None = None,
    estimate: Estimate | None = None,
) -> Generator[Any, None, Quantile]:
    """Return the smallest value v with F(v) >= `probability`, F being the share of values up to v, and its interval.

    The interval holds every value that the intervals of F do not exclude: from the first v at which F may reach
    `probability` (its high endpoint does) to the first at which it must (its low endpoint does). If F's intervals hold
    with probability `level`, so does this one. Among those with given values, F(v) >= p is the linear statement that
    those of them up to v, less p times all of them, have a sum of at least 0, and its intervals are used.

    Parameters
    ----------
    reports : Reports
        Reports about ordered values (`Integers` or `Bins`), or about combinations with such an attribute.
    probability : float
        The share of the population, between 0 and 1: 0.5 for the median.
    level : float, default 0.95
        The probability with which the interval holds the true quantile.
    of : str, optional
        The attribute, where values are combinations.
    given : dict, optional
        Attributes, and a value or a list of values of each: the quantile among those who have them.
    estimate : Estimate, optional
        The estimate whose quantile is shown; that of ``hubbub.estimate(reports)`` by default.

    Returns
    -------
    Quantile
        With `low`, `estimate` and `high`, labels of the domain, or of the attribute's.

    Raises
    ------
    EstimateError
        If the values have no order (`Categories`, `Grid`), `reports` are not reports in this process, or nobody is
        estimated to have the given values.
    DomainError
        If `of` or `given` names an attribute or a value that there is not.
    SettingError
        If `probability` or `level` is not between 0 and 1, or the estimate is over another domain.

    Examples
    --------
    >>> import hubbub as hb
    >>> children = hb.RandomizedResponse(hb.Integers(0, 3), epsilon=3.0)
    >>> reports = hb.Reports.from_counts(children, [20, 30, 40, 10])
    >>> print(hb.quantile(reports, 0.5, estimate=hb.estimate(reports, "mle")))
    50% of the population have at most 1; between 1 and 2 at 95%.
    """
    check_reports(reports, "quantile")
    probability = validation.share(
        probability, "probability", "quantile", expected="a probability between 0 and 1, such as 0.5 for the median"
    )
    level = validation.level(level, "quantile")
    check_estimate(estimate, reports, "quantile")
    margin = parse_numbers(reports.domain, of, "quantile")
    group = parse_group(reports.domain, given, "quantile")
    entries = reports.weights.size * len(reports.domain)
    return limit_threads_per_step(_quantile(reports, probability, level, margin, of, group, estimate), entries)


def _quantile(
    reports: Reports,
    probability: float,
    level: float,
    margin: Margin,
    of: str | None,
    group: Group | None,
    estimate: Estimate | None,
) -> Generator[Any, None, Quantile]:
    shown = yield from shown_estimate(reports, estimate, "quantile")
    if group is not None:
        everybody = Statistic(np.ones(len(reports.domain)), of or "the values")
        check_group(ConditionalShare.of(everybody, group.among, group.title), shown, "quantile")
    region = yield from LikelihoodRegion.around(Likelihood.of(reports))
    labels, cutoff = margin.domain.labels.tolist(), chi_square(level)
    last = len(labels) - 1
    least = probability if group is None else 0.0  # that the statistic of a position must reach

    def up_to(position: int) -> Floats:
        below = np.where(margin.places <= position, 1.0, 0.0)
        return below if group is None else np.asarray((below - probability) * group.among)

    def may_reach(position: int) -> bool:
        return -region.least(-up_to(position), cutoff).limit >= least

    def must_reach(position: int) -> bool:
        return region.least(up_to(position), cutoff).limit >= least

    def calibrated(position: int) -> Generator[Progress, None, tuple[float, float]]:
        cumulative = Statistic(frozen(up_to(position)), "the distribution function", is_share=group is None)
        (around,) = yield from statistic_endpoints(reports, region, [cumulative], level)
        return around.low, around.high

    # The first positions that reach the probability; the last one always does, as F is 1.
    low = bisect_left(range(last), True, key=may_reach)
    yield Progress(1, 4, "quantile")
    high = bisect_left(range(last), True, key=must_reach)
    yield Progress(2, 4, "quantile")
    # The calibrated cutoff is never smaller than that of chi-square: endpoints only move outwards.
    while low > 0 and (yield from calibrated(low - 1))[1] >= least:
        low -= 1
    yield Progress(3, 4, "quantile")
    while high < last and (yield from calibrated(high))[0] < least:
        high += 1

    def position_in(theta: Floats) -> int:
        shares = margin.sums(theta if group is None else theta * group.among)
        total = float(shares.sum()) if group is not None else 1.0
        return min(int(np.searchsorted(np.cumsum(shares), (probability - ROUNDING) * total)), last)

    own = position_in(shown.probabilities)
    return Quantile(
        probability,
        labels[min(low, own)],
        labels[own],
        labels[max(high, own)],
        level,
        likeliest=labels[position_in(region.top.theta)],
        confidence_low=labels[low],
        confidence_high=labels[high],
        of=of or "",
        given="" if group is None else group.title,
    )
