"""A smooth curve with spikes: for answers that heap at single values, such as 40 hours or round ages.

Each weighting (all users, and all but those of each fold) is searched for spikes of its own, so that spikes that are
accidents of the users who are fitted predict the others badly. Constants were chosen on truths with heaps (hours
worked, prices ending in 9, a bump with a spike, rounded ages, many zeros), on smooth and steep ones, and on the "tune"
half of benchmarks/cases.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto.candidate_fits import START_WIDTH, AutoCandidate, CandidateFamily, WeightedPatterns
from hubbub.solvers.spiked_curve import CurveBasis, SpikedLikelihood

CURVES = (("stiff", 3.0, 1.0), ("flexible", 8.0, 1.5))  # extent of the domain over length, deviation
MIN_GAIN_NATS = 2.0  # of a spike, besides the logarithm of the number of values where it may be
HANDICAP = 4.0  # nats: it can put mass anywhere
MIN_EXTENT = 15.0  # spacings of a line on which a spike can be distinguished from a curve
MAX_VALUES_OF_ALL = 400  # with more values, where a search takes long, only the first curve
MAX_SEARCHED_ENTRIES = 4_000_000  # of the channel, up to which spikes are searched for
KNOTS_PER_LENGTH = 2.0
POWER_DEVIATION = 1.0  # of the exponents of the distances to the ends
RELATIVE_JITTER = 1e-6  # independent variance at each knot, relative to the variance of the Gaussian field


@dataclass(frozen=True, eq=False)
class SpikedCurves(CandidateFamily):
    """Curves from stiff to flexible, each with as many spikes as the reports of a weighting call for."""

    curves: tuple[tuple[str, CurveBasis], ...]
    handicap: float = HANDICAP

    name = "a smooth curve with spikes"

    @property
    def count(self) -> int:
        """One for each curve."""
        return len(self.curves)

    def fits(self, patterns: WeightedPatterns) -> Iterator[tuple[AutoCandidate, Floats]]:
        """Yield the fits; none of a channel that is too large."""
        channel = patterns.channel
        if channel.entries > MAX_SEARCHED_ENTRIES:
            return
        starts = patterns.start(START_WIDTH)
        for detail, basis in self.curves:
            thetas = np.empty((len(starts), channel.values))
            for row, (weights, u) in enumerate(zip(patterns.weightings, starts, strict=True)):
                roughly = np.exp(u - u.max())
                start = basis.coordinates(u, roughly / roughly.sum())
                thetas[row] = SpikedLikelihood(channel, weights, basis).fit(start, MIN_GAIN_NATS).theta
            description = f"{self.name} ({detail})"
            yield AutoCandidate(self.name, description, "a more flexible curve", handicap=self.handicap), thetas


def spiked_curves(shape: DomainShape) -> list[SpikedCurves]:
    """Return the family for a line of enough values, nothing for other domains: on maps it gained nothing."""
    if shape.steps is None or shape.steps.shape[1] != 1 or shape.extent < MIN_EXTENT:
        return []
    chosen = CURVES if shape.values <= MAX_VALUES_OF_ALL else CURVES[:1]
    curves = [(detail, curve_basis(shape, shape.extent / parts, deviation)) for detail, parts, deviation in chosen]
    return [SpikedCurves(tuple(curves))]


def curve_basis(shape: DomainShape, length: float, deviation: float) -> CurveBasis:
    """Return parabolas, which cost nothing, plus powers of the distances to both ends, plus a Gaussian field.

    The powers are for truths that are steep at an end, as Zipf's law is: they would be mistaken for spikes there. The
    field (Matern 3/2) is made from its values at a few knots. The constant is left out: it changes nothing.
    """
    trends = shape.trends(2)
    basis, sizes, _ = np.linalg.svd(trends - trends.mean(axis=0), full_matrices=False)
    free = math.sqrt(shape.values) * basis[:, sizes > 1e-9].T
    along = shape.scaled[:, 0]
    knots = np.linspace(along.min(), along.max(), 2 + math.ceil(KNOTS_PER_LENGTH * shape.extent / length))
    between = _matern(knots[:, None] - knots, length) + RELATIVE_JITTER * np.eye(knots.size)
    field = deviation * np.linalg.solve(np.linalg.cholesky(between), _matern(knots[:, None] - along, length))
    ends = POWER_DEVIATION * np.log1p(np.stack([along - along.min(), along.max() - along]))
    rows = np.concatenate([free, ends, field])
    return CurveBasis(rows, np.repeat([0.0, 1.0], [len(free), 2 + knots.size]), along)


def _matern(differences: Floats, length: float) -> Floats:
    scaled = math.sqrt(3.0) * np.abs(differences) / length
    return np.asarray((1.0 + scaled) * np.exp(-scaled))
