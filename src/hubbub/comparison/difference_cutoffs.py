"""How large the deviance of a difference between two groups is by chance, where shares may be 0.

As for single intervals (`intervals.deviance_cutoff`), the law of the deviance is simulated in the limit of many users:
scores are drawn for both groups, and the deviance is what holding the difference at its value costs. All statistics are
simulated at the same pairs of distributions, so that one solution for each score serves them all
(`solvers.compiled_sweeps`). Three pairs are tried, and the largest cutoff counts: the likeliest distribution of each
group, the same with doubtful shares taken to be 0, and both groups with the likeliest common distribution.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.comparison.populations import Populations
from hubbub.comparison.tail_probability import tail_probability
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.intervals.deviance_cutoff import MAX_SIMULATED_VALUES, LocalScores, chi_square, draws_for, quantile
from hubbub.solvers.boundary_deviance import held_deviances

MAX_CALIBRATED_VALUES = 100  # with more, only values with large shares are calibrated, and sets of values
MAX_WORK = 4e8  # draws x statistics x values^2 of one pair of distributions: about a second
MIN_DRAWS = 199


@dataclass(frozen=True)
class Calibration:
    """The simulated deviances of each statistic, one sample for each pair of distributions; none: chi-square.

    `effects` are the design effects of the statistics: 1 without survey weights.
    """

    samples: tuple[Floats, ...]  # draws by statistics
    effects: Floats

    def cutoff(self, statistic: int, level: float) -> float:
        """Return the cutoff of a statistic, never below that of chi-square."""
        plain = self.effects[statistic] * chi_square(level)
        return float(max([plain, *(quantile(sample[:, statistic], level) for sample in self.samples)]))

    def p_value(self, statistic: int, deviance: float) -> float:
        """Return how likely a deviance as large is if nothing differs in this statistic."""
        from scipy.special import chdtrc

        plain = float(chdtrc(1, deviance / self.effects[statistic]))
        return max([plain, *(tail_probability(sample[:, statistic], deviance) for sample in self.samples)])


def calibrate(
    populations: Populations, statistics: Floats, level: float, common: Floats, rng: np.random.Generator
) -> Generator[Progress, None, Calibration]:
    """Simulate the deviances of differences; `statistics` are rows over the values, `common` both groups' likeliest."""
    yield Progress(0, 3, "simulating differences")
    draws = _affordable_draws(level, len(statistics), populations.values)
    local = LocalScores(populations.stacked, draws, rng, populations.groups)
    effects = np.array([local.design_effect(np.concatenate([-weights, weights])) for weights in statistics])
    if local.is_away_from_border():
        return Calibration((), effects)
    pairs = [*local.guesses(populations.stacked.theta), local.guesses(np.tile(common, 2))[0]]
    samples = []
    for done, lower in enumerate(pairs):
        samples.append(_deviances(local, lower, statistics))
        yield Progress(done + 1, len(pairs), "simulating differences")
    return Calibration(tuple(samples), effects)


def simulated_cutoff(
    populations: Populations, weights: Floats, level: float, common: Floats, rng: np.random.Generator
) -> Generator[Progress, None, float]:
    """Return the cutoff of one statistic; that of chi-square where there are too many values to simulate it."""
    if 2 * populations.values > MAX_SIMULATED_VALUES:
        return chi_square(level)
    return (yield from calibrate(populations, weights[None], level, common, rng)).cutoff(0, level)


def _affordable_draws(level: float, statistics: int, values: int) -> int:
    affordable = MAX_WORK / (statistics * values**2)
    return int(np.clip(affordable, MIN_DRAWS, draws_for(level)))


def _deviances(local: LocalScores, lower: Floats, statistics: Floats) -> Floats:
    groups = len(local.groups.starts)
    size = local.top.theta.size // groups
    blocks = local.information.reshape(groups, size, groups, size)
    informations = np.stack([blocks[group, :, group] for group in range(groups)])
    scores = local.scores.reshape(-1, groups, size)
    return held_deviances(
        informations, scores, lower.reshape(groups, size), statistics, np.array([-1.0, 1.0]), local.users
    )


def is_calibrated(weights: Floats, thetas: Sequence[Floats]) -> bool:
    """Whether the deviance of a statistic is simulated: all are, unless it is a small share among very many values."""
    if weights.size <= MAX_CALIBRATED_VALUES:
        return True
    return max(float(np.abs(weights) @ theta) for theta in thetas) > math.sqrt(1.0 / weights.size)
