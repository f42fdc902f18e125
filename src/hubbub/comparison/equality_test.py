"""A test of whether several groups have the same distribution.

The statistic is the likelihood ratio, computed near the likeliest common distribution: with s_g the score of group g
there and J_g its information,

    T = 2 (min of h'Jh/2 - s'h for all groups together  -  the sum over groups of their own minima),

over the h that keep all probabilities at least 0. With no noise it is Pearson's chi-square of the table of counts.

**Permutations.** If each kind of report occurs in all groups, users who sent the same kind are exchangeable when the
distributions are equal: who is in which group is then chance. T is computed again for users dealt to the groups at
random, and the p-value is the share of deals with a T as large. It holds for any number of users, and whether
shares are 0 or not.

**Simulations.** If groups used different mechanisms, reports are drawn from the likeliest common distribution instead.

**Survey weights.** Users of different weights, strata and clusters are not exchangeable: scores are drawn from the
normal law with the covariance of the sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.comparison.populations import Populations
from hubbub.comparison.score_sources import ScoreSource, observed_scores, report_kinds, score_source
from hubbub.comparison.tail_probability import tail_probability
from hubbub.core.arrays import Floats, frozen
from hubbub.core.progress import Progress
from hubbub.core.serialization import Portable
from hubbub.intervals.deviance_cutoff import MAX_SIMULATED_VALUES, LocalScores, quantile
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import Point
from hubbub.solvers.boundary_deviance import limited_minima

MIN_DRAWS, MAX_DRAWS = 999, 9_999
MAX_WORK = 4e7  # draws x values^2 x groups: about a second
MAX_ERRORS_OF_DOUBTFUL = 1.2  # standard errors of a share, below which it is simulated as 0
SLIGHTLY_LESS = 1.0 - 1e-6
MAX_DEALS = 50_000  # draws x groups, of more than two groups: these are dealt one by one
BATCH_ENTRIES = 5_000_000  # of counts, at a time


@dataclass(frozen=True, eq=False)
class Equality(Portable):
    """The test: the likelihood ratio, its p-value, and how that was found."""

    deviance: float
    p_value: float
    draws: int
    note: str
    common: Floats = field(repr=False)  # the likeliest distribution if they are equal
    sample: Floats = field(repr=False)  # of deviances under equality

    def cutoff(self, level: float) -> float:
        """Return the deviance from which on equality is rejected; the observed one is on the side of its p-value."""
        cutoff = quantile(self.sample, level)
        if self.p_value <= 1.0 - level:
            return min(cutoff, SLIGHTLY_LESS * self.deviance)
        return max(cutoff, self.deviance / SLIGHTLY_LESS)


def equality_test(
    populations: Populations, rng: np.random.Generator, max_draws: int = MAX_DRAWS
) -> Generator[Any, None, Equality]:
    """Test whether all groups have the same distribution."""
    null = yield from EqualGroups.of(populations, rng, max_draws)
    (tested,) = yield from null.test([null.ratio.of])
    return tested


@dataclass(frozen=True, eq=False)
class EqualGroups:
    """Groups under the hypothesis that they are equal: their scores, observed and as chance makes them."""

    common: Floats  # the likeliest distribution of all groups together
    deviance: float
    points: list[Point]
    source: ScoreSource
    draws: int
    ratio: LikelihoodRatio

    @classmethod
    def of(
        cls, populations: Populations, rng: np.random.Generator, max_draws: int = MAX_DRAWS
    ) -> Generator[Any, None, EqualGroups]:
        """Find the likeliest common distribution, and how scores can be drawn there."""
        region = yield from LikelihoodRegion.around(populations.pooled())
        common = region.top
        deviance = 2.0 * max(0.0, sum(top.log_likelihood for top in populations.tops) - common.log_likelihood)
        kinds = None if populations.is_weighted else report_kinds(populations.reports)
        theta = common.theta if kinds is not None else without_doubtful(common, rng)
        points = [top.likelihood.at(theta) for top in populations.tops]
        draws = _affordable_draws(populations, max_draws)
        source = score_source(points, populations.reports, kinds, draws, rng)
        ratio = LikelihoodRatio(source.informations, theta, populations.users)
        return cls(frozen(common.theta.copy()), deviance, points, source, draws, ratio)

    def test(self, statistics: Sequence[Callable[[Floats], Floats]]) -> Generator[Progress, None, list[Equality]]:
        """Return the p-value of each statistic of the scores (groups by draws by values), from the same draws."""
        scores = observed_scores(self.points)[:, None]
        observed = [float(statistic(scores)[0]) for statistic in statistics]
        sample = np.empty((len(statistics), self.draws))
        patterns = sum(point.likelihood.channel.patterns for point in self.points)
        step = max(1, BATCH_ENTRIES // (len(self.points) * max(patterns, self.common.size)))
        for first in range(0, self.draws, step):
            yield Progress(first, self.draws, "testing equality")
            last = min(self.draws, first + step)
            scores = self.source.scores(last - first)
            for own, statistic in zip(sample, statistics, strict=True):
                own[first:last] = statistic(scores)
        note = f"{self.draws:,} {self.source.what}"
        return [
            Equality(self.deviance, tail_probability(own, seen), self.draws, note, self.common, frozen(own))
            for own, seen in zip(sample, observed, strict=True)
        ]


def _affordable_draws(populations: Populations, max_draws: int) -> int:
    groups = len(populations.tops)
    draws = int(np.clip(MAX_WORK / (populations.values**2 * (groups + 1)), MIN_DRAWS, max_draws))
    return draws if groups == 2 else max(MIN_DRAWS, min(draws, MAX_DEALS // groups))


class LikelihoodRatio:
    """T, for many scores at once; informations are per user of all groups."""

    def __init__(self, informations: Floats, theta: Floats, users: float) -> None:
        self._informations, self._users = informations, users
        self._lower, self._total = -math.sqrt(users) * theta, np.ones(theta.size)

    def of(self, scores: Floats) -> Floats:
        """Return T for scores: groups by draws by values."""
        own = sum(self._minima(block, score) for block, score in zip(self._informations, scores, strict=True))
        return np.maximum(0.0, 2.0 * (self._together(scores) - own))

    def of_best_step(self, scores: Floats) -> Floats:
        """Return the largest T of two groups that are all groups up to one of them, and all later ones."""
        informations, sums = np.cumsum(self._informations, axis=0), np.cumsum(scores, axis=0)
        largest = np.zeros(scores.shape[1])
        together = self._together(scores)
        for information, before in zip(informations[:-1], sums[:-1], strict=True):
            own = self._minima(information, before) + self._minima(informations[-1] - information, sums[-1] - before)
            largest = np.maximum(largest, 2.0 * (together - own))
        return largest

    def _together(self, scores: Floats) -> Floats:
        return self._minima(self._informations.sum(axis=0), scores.sum(axis=0))

    def _minima(self, information: Floats, scores: Floats) -> Floats:
        """Return the minimum for each score."""
        return limited_minima(information, scores, self._lower, self._total, self._users)


def without_doubtful(common: Point, rng: np.random.Generator) -> Floats:
    """Return the common distribution without shares that are small beside their standard errors.

    A share of 0 is estimated as a small one half of the time, and a small one as 0. Simulations that take either for
    the truth find differences too seldom or too often; this threshold balances both. The doubtful shares go one after
    the other, the most doubtful first, while the sum of those that go is doubtful as well: the tails of a hump are
    small share by share, but together they are there.
    """
    if common.theta.size > MAX_SIMULATED_VALUES:
        return common.theta
    positive = common.theta > 0.0
    shares, covariance = common.theta[positive], LocalScores(common, 0, rng).covariance(positive)
    errors = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    with np.errstate(divide="ignore"):
        order = np.argsort(shares / errors)
    sums, shares, errors = np.cumsum(shares[order]), shares[order], errors[order]
    # The sums of ever larger corners of the covariance are the variances of the sums.
    corners = covariance[np.ix_(order, order)].cumsum(axis=0).cumsum(axis=1).diagonal()
    errors_of_sums = np.sqrt(np.maximum(corners, 0.0))
    is_doubtful = (shares < MAX_ERRORS_OF_DOUBTFUL * errors) & (sums < MAX_ERRORS_OF_DOUBTFUL * errors_of_sums)
    gone = order[np.logical_and.accumulate(is_doubtful)]
    kept = common.theta.copy()
    kept[np.flatnonzero(positive)[gone]] = 0.0
    return kept / kept.sum() if kept.any() else common.theta
