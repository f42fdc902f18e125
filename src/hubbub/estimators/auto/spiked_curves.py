"""A smooth curve with spikes: for answers that heap at round numbers, such as 40 hours, among smooth neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto.candidate_fits import START_WIDTH, AutoCandidate, CandidateFamily, WeightedPatterns
from hubbub.solvers.spiked_curve import CurveBasis, SpikedLikelihood

MIN_GAIN_NATS = 3.0  # besides the logarithm of the number of values, that each spike must gain
KNOTS_PER_LENGTH = 2.0
MAX_KNOTS = 60
MAX_SEARCHED_ENTRIES = 4_000_000  # of the channel, up to which spikes are searched for
HANDICAP = 2.0
CURVES = (("stiff", 4.0, 1.0), ("flexible", 10.0, 2.0))  # extents over lengths, deviations


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
        """Yield the fits; each weighting has spikes of its own."""
        channel = patterns.channel
        if channel.entries > MAX_SEARCHED_ENTRIES:
            return
        min_gain = MIN_GAIN_NATS + math.log(channel.values)
        starts = patterns.start(START_WIDTH)
        for detail, basis in self.curves:
            thetas = np.empty((len(starts), channel.values))
            for row, (weights, u) in enumerate(zip(patterns.weightings, starts, strict=True)):
                roughly = np.exp(u - u.max())
                start = basis.coordinates(u, roughly / roughly.sum())
                thetas[row] = SpikedLikelihood(channel, weights, basis).fit(start, min_gain).theta
            description = f"{self.name} ({detail})"
            yield AutoCandidate(self.name, description, "a more flexible curve", handicap=self.handicap), thetas


def curve_basis(shape: DomainShape, length: float, deviation: float) -> CurveBasis:
    """Return parabolas plus a Gaussian field (Matern 3/2) on a line, from its values at knots a part of a length apart.

    The parabolas cost nothing; the constant is left out, since adding it to u changes nothing.
    """
    trends = shape.trends(2)
    trends = (trends - trends.mean(axis=0)).T
    basis, sizes, _ = np.linalg.svd(trends.T, full_matrices=False)
    free = basis[:, sizes > 1e-9].T * math.sqrt(shape.values)
    if not deviation:
        return CurveBasis(free, np.zeros(len(free)))
    along = shape.scaled[:, 0]
    count = int(min(MAX_KNOTS, shape.values, 2 + math.ceil(KNOTS_PER_LENGTH * np.ptp(along) / length)))
    knots = np.linspace(along.min(), along.max(), count)
    between = _matern(np.abs(knots[:, None] - knots), length) + 1e-6 * np.eye(count)
    across = _matern(np.abs(along[:, None] - knots), length)
    field = np.linalg.solve(np.linalg.cholesky(between), across.T)
    rows = np.concatenate([free, deviation * field])
    return CurveBasis(rows, np.concatenate([np.zeros(len(free)), np.ones(count)]))


def _matern(distances: Floats, length: float) -> Floats:
    scaled = np.sqrt(3.0) * distances / length
    return np.asarray((1.0 + scaled) * np.exp(-scaled))


def spiked_curves(shape: DomainShape) -> SpikedCurves:
    """Return the family for a line."""
    return SpikedCurves(
        tuple((detail, curve_basis(shape, shape.extent / part, deviation)) for detail, part, deviation in CURVES)
    )
