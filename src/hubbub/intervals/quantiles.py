"""Quantiles of ordered values, with intervals by inversion of those of the distribution function."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import EstimateError
from hubbub.core.portable import Portable
from hubbub.core.progress import Progress, finish
from hubbub.core.threads import step_by_step
from hubbub.domains import Domain
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.api import profile
from hubbub.intervals.cutoff import chi_square
from hubbub.intervals.likelihood_region import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.rendering import Fact, facts_html
from hubbub.reports import Reports


@dataclass(frozen=True)
class Quantile(Portable):
    """The value that a share of the population does not exceed: an interval, and the estimate."""

    probability: float
    low: Any
    estimate: Any
    high: Any
    level: float

    def explain(self) -> str:
        """Return the interval as a sentence."""
        return (
            f"{100 * self.probability:g}% of the population have at most {self.estimate}; "
            f"between {self.low} and {self.high} at {100 * self.level:g}%."
        )

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact(f"quantile {self.probability:g}", self.explain())])


def quantile(
    reports: Reports, probability: float, level: float = 0.95, *, estimate: Estimate | None = None
) -> Quantile:
    """Return the smallest value v with F(v) >= `probability`, F being the share of values up to v, and its interval.

    The interval holds every value that the intervals of F do not exclude: from the first v at which F may reach
    `probability` (its upper end does) to the first at which it must (its lower end does). If F's intervals hold
    with probability `level`, so does this one.
    """
    return finish(quantiling(reports, probability, level, estimate=estimate))


def quantiling(
    reports: Reports, probability: float, level: float = 0.95, *, estimate: Estimate | None = None
) -> Generator[Any, None, Quantile]:
    """Do what `quantile` does, yielding progress on the way."""
    check_reports(reports, "quantile")
    probability = validation.share(probability, "probability", "quantile")
    level = validation.level(level, "quantile")
    placed = check_estimate(estimate, reports, "quantile")
    _check_ordered(reports.domain)
    entries = reports.weights.size * len(reports.domain)
    return (yield from step_by_step(_search(reports, probability, level, placed), entries))


def _search(
    reports: Reports, probability: float, level: float, placed: Floats | None
) -> Generator[Any, None, Quantile]:
    likely = yield from LikelihoodRegion.finding(reports)
    labels, cutoff = reports.domain.labels.tolist(), chi_square(level)

    def up_to(place: int) -> Floats:
        return np.where(np.arange(len(labels)) <= place, 1.0, 0.0)

    def may_reach(place: int) -> bool:
        return -likely.least(-up_to(place), cutoff).limit >= probability

    def must_reach(place: int) -> bool:
        return likely.least(up_to(place), cutoff).limit >= probability

    found = {}
    for name, reaches in (("low", may_reach), ("high", must_reach)):
        first, last = 0, len(labels) - 1  # at the last value F is 1
        while first < last:
            middle = (first + last) // 2
            if reaches(middle):
                last = middle
            else:
                first = middle + 1
        found[name] = first
        yield Progress(len(found), 4, "quantile")
    # The calibrated cutoff is never smaller than that of chi-square: ends only move outwards.
    low, high = found["low"], found["high"]
    while low > 0 and (yield from _calibrated(likely, reports, up_to(low - 1), level))[1] >= probability:
        low -= 1
    yield Progress(3, 4, "quantile")
    while high < len(labels) - 1 and (yield from _calibrated(likely, reports, up_to(high), level))[0] < probability:
        high += 1
    sums = np.cumsum(likely.top.theta if placed is None else placed)
    place = min(int(np.searchsorted(sums, probability - 1e-12)), len(labels) - 1)
    return Quantile(probability, labels[low], labels[place], labels[high], level)


def _calibrated(
    likely: LikelihoodRegion, reports: Reports, weights: Floats, level: float
) -> Generator[Any, None, tuple[float, float]]:
    asked = Statistic(frozen(weights), "the distribution function")
    found = yield from profile(likely, reports, asked, level, False, None)
    return found.low, found.high


def _check_ordered(domain: Domain) -> None:
    if domain.places is None:
        raise EstimateError(
            "these values have no order",
            where="quantile(reports)",
            got=domain.describe(),
            expected="a domain on a line: Integers or Bins",
            remedy="ask for the share of a set of values with hubbub.interval",
        )
