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
from hubbub.intervals import band, interval, quantile
from hubbub.intervals.api import ROUNDING
from hubbub.intervals.linear_statistic import parse_statistic
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
    """Some statistics of a distribution: labels for tables, weights over the values, and how `interval` knows them."""

    domain: Domain
    labels: NDArray[np.object_]
    weights: Floats | None  # statistics by values; None for a quantile
    of: object  # None for every value
    probability: float | None = None  # of the quantile

    @classmethod
    def choose(cls, domain: Domain, of: object, probability: float | None) -> FollowedStatistics:
        """Return what was asked for; by default the mean of numbers, and every value of others."""
        if probability is not None:
            return cls._quantile(domain, of, probability)
        if of is not None:
            statistic = parse_statistic(domain, of)
            label = statistic.title if statistic.single is None else domain.labels[statistic.single]
            return cls(domain, _objects([label]), statistic.weights[None], of)
        if domain.places is None:
            return cls(domain, _objects(domain.labels.tolist()), np.eye(len(domain)), None)
        mean: Mapping[object, float] = dict(zip(domain.labels.tolist(), domain.places.tolist(), strict=True))
        return cls(domain, _objects([MEAN]), domain.places[None].copy(), mean)

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
        return cls(domain, _objects([label]), None, None, probability)

    @property
    def is_share(self) -> bool:
        """Whether all of them are shares."""
        return self.weights is not None and set(np.unique(self.weights).tolist()) <= {0.0, 1.0}

    def values(self, theta: Floats) -> Floats:
        """Return the statistics of each distribution (periods by values)."""
        if self.weights is not None:
            return np.asarray(theta @ self.weights.T)
        last = theta.shape[1] - 1
        places = [np.searchsorted(np.cumsum(own), (self.probability or 0.0) - ROUNDING) for own in theta]
        return np.asarray(self.domain.labels[np.minimum(places, last)], dtype=np.float64)[:, None]

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


def _objects(labels: list[Any]) -> NDArray[np.object_]:
    objects = np.empty(len(labels), dtype=object)
    objects[:] = labels
    return objects
