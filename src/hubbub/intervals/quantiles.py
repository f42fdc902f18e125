"""Quantiles of ordered values, with intervals by inversion of those of the distribution function."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import EstimateError
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import step_by_step
from hubbub.domains import Domain
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.cutoff import chi_square
from hubbub.intervals.interval_endpoints import profile_interval
from hubbub.intervals.likelihood_region import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import Quantile
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports

ROUNDING = 1e-12  # of a sum of probabilities


@stepwise
def quantile(
    reports: Reports, probability: float, level: float = 0.95, *, estimate: Estimate | None = None
) -> Generator[Any, None, Quantile]:
    """Return the smallest value v with F(v) >= `probability`, F being the share of values up to v, and its interval.

    The interval holds every value that the intervals of F do not exclude: from the first v at which F may reach
    `probability` (its high endpoint does) to the first at which it must (its low endpoint does). If F's intervals hold
    with probability `level`, so does this one.

    Parameters
    ----------
    reports : Reports
        Reports about ordered values (`Integers` or `Bins`).
    probability : float
        The share of the population, between 0 and 1: 0.5 for the median.
    level : float
        The probability with which the interval holds the true quantile.
    estimate : Estimate, optional
        The estimate whose quantile is shown; the maximum of the likelihood by default.

    Returns
    -------
    Quantile
        With `low`, `estimate` and `high`, labels of the domain.
    """
    check_reports(reports, "quantile")
    probability = validation.share(
        probability, "probability", "quantile", expected="a probability between 0 and 1, such as 0.5 for the median"
    )
    level = validation.level(level, "quantile")
    shown = check_estimate(estimate, reports, "quantile")
    _check_ordered(reports.domain)
    entries = reports.weights.size * len(reports.domain)
    return step_by_step(_quantile(reports, probability, level, shown), entries)


def _quantile(
    reports: Reports, probability: float, level: float, shown: Floats | None
) -> Generator[Any, None, Quantile]:
    region = yield from LikelihoodRegion.around(Likelihood.of(reports))
    labels, cutoff = reports.domain.labels.tolist(), chi_square(level)
    last = len(labels) - 1

    def up_to(position: int) -> Floats:
        return np.where(np.arange(len(labels)) <= position, 1.0, 0.0)

    def may_reach(position: int) -> bool:
        return -region.least(-up_to(position), cutoff).limit >= probability

    def must_reach(position: int) -> bool:
        return region.least(up_to(position), cutoff).limit >= probability

    def calibrated(position: int) -> Generator[Progress, None, tuple[float, float]]:
        cumulative = Statistic(frozen(up_to(position)), "the distribution function")
        interval = yield from profile_interval(region, reports, cumulative, level)
        return interval.low, interval.high

    low = _first_position(may_reach, last)
    yield Progress(1, 4, "quantile")
    high = _first_position(must_reach, last)
    yield Progress(2, 4, "quantile")
    # The calibrated cutoff is never smaller than that of chi-square: endpoints only move outwards.
    while low > 0 and (yield from calibrated(low - 1))[1] >= probability:
        low -= 1
    yield Progress(3, 4, "quantile")
    while high < last and (yield from calibrated(high))[0] < probability:
        high += 1
    sums = np.cumsum(region.top.theta if shown is None else shown)
    position = min(int(np.searchsorted(sums, probability - ROUNDING)), last)
    return Quantile(probability, labels[low], labels[position], labels[high], level)


def _first_position(reaches: Callable[[int], bool], last: int) -> int:
    """Return the first position that reaches the probability, by bisection; the last one always does, as F is 1."""
    first = 0
    while first < last:
        middle = (first + last) // 2
        if reaches(middle):
            last = middle
        else:
            first = middle + 1
    return first


def _check_ordered(domain: Domain) -> None:
    if domain.places is None:
        raise EstimateError(
            "these values have no order",
            where="quantile(reports)",
            got=domain.describe(),
            expected="a domain on a line: Integers or Bins",
            remedy="ask for the share of a set of values with hubbub.interval",
        )
