"""What a trend follows through the periods: every value, one statistic, the mean, or a quantile."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.comparison import compare
from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.domains import Domain
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.intervals import band, interval, quantile
from hubbub.intervals.linear_statistic import NAMED, STATISTIC, Statistics, parse_statistics
from hubbub.intervals.quantiles import ROUNDING
from hubbub.intervals.result import extend
from hubbub.intervals.weighted_sums import sum_intervals
from hubbub.reports import Reports
from hubbub.sampling import Randomness

MEAN, MEDIAN = "the mean", "the median"


class Intervals(NamedTuple):
    """Estimates and the ends of their intervals, one for each statistic."""

    estimate: Floats
    low: Floats
    high: Floats


class Differences(NamedTuple):
    """How the statistics of two stretches of time differ, and which differ for certain."""

    intervals: Intervals
    changed: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FollowedStatistics:
    """Some statistics of a distribution, and how `compare` knows them; or a quantile."""

    domain: Domain
    labels: NDArray[np.object_]
    statistics: Statistics | None  # None for a quantile
    of: object = None  # None for every value
    probability: float | None = None  # of the quantile

    @classmethod
    def choose(cls, domain: Domain, of: object, probability: float | None) -> FollowedStatistics:
        """Return what was asked for; by default the mean of numbers, and every value of others."""
        if probability is not None:
            return cls._quantile(domain, of, probability)
        if of is not None or domain.places is None:
            statistics = parse_statistics(domain, of)
            return cls(domain, statistics.labels, statistics, of)
        mean: Mapping[object, float] = dict(zip(domain.labels.tolist(), domain.places.tolist(), strict=True))
        return cls(domain, np.array([MEAN], dtype=object), parse_statistics(domain, mean), mean)

    @classmethod
    def _quantile(cls, domain: Domain, of: object, probability: float) -> FollowedStatistics:
        probability = validation.share(
            probability, "quantile", "trend", expected="a probability between 0 and 1, such as 0.5 for the median"
        )
        if of is not None:
            raise SettingError(
                "a trend follows one thing at a time",
                where="trend(of=, quantile=)",
                got=f"of={shorten(of)}, quantile={probability:g}",
                expected="either of them",
                remedy="leave one of them out, and call trend twice",
            )
        if domain.places is None:
            raise EstimateError(
                "these values have no order",
                where="trend(quantile=)",
                got=domain.describe(),
                expected="a domain on a line: Integers or Bins",
                remedy="follow the share of a set of values by of=",
            )
        label = MEDIAN if probability == 0.5 else f"the {100.0 * probability:g}% quantile"
        return cls(domain, np.array([label], dtype=object), None, None, probability)

    @property
    def is_share(self) -> bool:
        """Whether all of them are shares."""
        return self.statistics is not None and self.statistics.are_shares

    @property
    def kind(self) -> str:
        """What they are: every value, one statistic, or several that have names."""
        return STATISTIC if self.statistics is None else self.statistics.kind

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to know about them."""
        return () if self.statistics is None else self.statistics.caveats

    def values(self, theta: Floats) -> Floats:
        """Return the statistics of each distribution (periods by values)."""
        if self.statistics is not None:
            return np.asarray(theta @ self.statistics.weights.T)
        last = theta.shape[1] - 1
        places = [np.searchsorted(np.cumsum(own), (self.probability or 0.0) - ROUNDING) for own in theta]
        return np.asarray(self.domain.labels[np.minimum(places, last)], dtype=np.float64)[:, None]

    def period(
        self, reports: Reports, levels: tuple[float, float], rng: Randomness
    ) -> Generator[Any, None, tuple[Intervals, Intervals, str]]:
        """Return the intervals of one period at two levels, and how those of sums with names were computed.

        They are what `hubbub.band`, `interval` or `quantile` say, and of regions what ``Regions.shares`` says.
        """
        if self.statistics is not None and self.kind in NAMED:
            return (yield from self._of_sums(reports, self.statistics, levels))
        alone = yield from self.intervals(reports, levels[0], rng)
        together = yield from self.intervals(reports, levels[1], rng)
        return alone, together, ""

    def _of_sums(
        self, reports: Reports, sums: Statistics, levels: tuple[float, float]
    ) -> Generator[Any, None, tuple[Intervals, Intervals, str]]:
        shown = (yield from shown_estimate(reports, None, "trend")).probabilities
        found = yield from sum_intervals(reports, shown, sums.rows, levels)
        estimate = self.values(shown)
        alone = Intervals(estimate, *extend(found.low, found.high, estimate))
        return alone, Intervals(estimate, *extend(found.low_together, found.high_together, estimate)), found.note

    def intervals(self, reports: Reports, level: float, rng: Randomness) -> Generator[Any, None, Intervals]:
        """Return what `hubbub.band`, `interval` or `quantile` say of one period."""
        if self.probability is not None:
            own = yield from quantile.steps(reports, self.probability, level)
            return Intervals(*(np.array([float(each)]) for each in (own.estimate, own.low, own.high)))
        if self.of is None:
            table = yield from band.steps(reports, level)
            return Intervals(table.estimate, table.low, table.high)
        one = yield from interval.steps(reports, self.of, level, rng=rng)
        return Intervals(*(np.array([each]) for each in (one.estimate, one.low, one.high)))

    def differences(
        self, before: Reports, after: Reports, level: float, rng: Randomness
    ) -> Generator[Any, None, Differences]:
        """Return the later stretch minus the earlier one, by `hubbub.compare`; quantiles from an interval of each."""
        if self.probability is not None:
            half = 1.0 - (1.0 - level) / 2.0  # both hold at once
            first = yield from self.intervals(before, half, rng)
            second = yield from self.intervals(after, half, rng)
            own = Intervals(second.estimate - first.estimate, second.low - first.high, second.high - first.low)
            return Differences(own, (own.low > 0.0) | (own.high < 0.0))
        answer = yield from compare.steps(before, after, of=self.of, level=level, rng=rng)
        return Differences(Intervals(answer.difference, answer.low, answer.high), answer.changed)
