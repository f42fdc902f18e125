"""An upper bound on what any column could gain, where columns are too many to compare.

With gain(r) = lambda . r + r' P r / (centre . r) and both mean(r) = 1 and r in the cone, d bounds all gains if ::

    r' ( d sym(centre mean') - sym(centre lambda') - P ) r >= 0    for all r in the cone.

For r in the cone r[x] r[y] >= 0, and (e r[y] - r[x]) (e r[x] - r[y]) >= 0 with e = exp(bounds[x, y]). So it is enough
that the matrix, less a combination of these with multipliers that are not negative, is positive semidefinite. The
smallest such d is a semidefinite program, solved by a barrier method whose points are all feasible: each of them, the
last one included, has passed a Cholesky factorisation with room for rounding, which proves its d.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.designing.column_pricing import ColumnPrices
from hubbub.designing.information_goals import basis_of_changes
from hubbub.designing.privacy_policy import PrivacyPolicy
from hubbub.designing.ray_families import MAX_LOG_RATIO

MAX_BOUNDED_VALUES = 40  # pairs of values are the variables: 780 of them, twice
MAX_STEPS = 150
PATH_FACTOR = 0.1
SUFFICIENT_DECREASE = 0.01
SHORTEST_STEP = 1e-6
REGULARISATIONS = (1e-13, 1e-10, 1e-7)  # relative, tried one after the other
START_ROOM = 0.25  # of what keeps the first matrix diagonally dominant
PROOF_ROOM = 1e-13  # relative to the largest entry: more than rounding of the eigenvalues


def bound_gain(policy: PrivacyPolicy, prices: ColumnPrices, accuracy: float) -> Generator[Progress, None, float]:
    """Return a number that no gain of a column of mean 1 exceeds; infinite where none is computed.

    `accuracy` is how far it may be above the smallest number that this proves.
    """
    size = len(policy.domain)
    if size > MAX_BOUNDED_VALUES or prices.information is None or prices.budget:
        return np.inf
    program = _BoundProgram.of(policy, prices, prices.information)
    level, multipliers = program.level, program.multipliers
    count = size + multipliers.size  # of the barrier's logarithms: the gap is `barrier` times this
    barrier = abs(level) / count
    for step in range(MAX_STEPS):
        yield Progress(step, MAX_STEPS, "bounding what other columns could gain")
        newton = program.direction(level, multipliers, barrier)
        if newton is None:
            break
        direction, decrement = newton
        length = program.length(level, multipliers, barrier, direction, decrement)
        if length > 0:
            level, multipliers = level + length * direction[0], multipliers + length * direction[1:]
        if decrement < 1.0 or length == 0:
            if barrier * count < accuracy / program.scale:
                break
            barrier *= PATH_FACTOR
    return program.scale * level


@dataclass(frozen=True, eq=False)
class _BoundProgram:
    """The semidefinite program: minimise the level so that level * unit - told - sum of multipliers times A >= 0.

    All is in coordinates in which columns of the cone, whose entries may differ by little, are spread out: `places`
    has the unit vector of each value as a row. With f and g those of a pair, A is (f g' + g f') / 2 for the first half
    of the multipliers, and `beside` (f g' + g f') / 2 - `apart` (f - g) (f - g)' for the second. `told` is divided by
    `scale`, so that its largest entry is 1. All points here are feasible, with room for rounding.
    """

    unit: Floats
    told: Floats
    scale: float
    first: Floats
    second: Floats
    beside: Floats
    apart: Floats
    level: float
    multipliers: Floats

    @classmethod
    def of(cls, policy: PrivacyPolicy, prices: ColumnPrices, information: Floats) -> _BoundProgram:
        """Return the program for a policy and prices, with a level and multipliers to start from."""
        size = len(policy.domain)
        told = _symmetric(prices.centre, prices.sums) + information
        scale = max(float(np.abs(told).max()), 1e-300)
        told, unit = told / scale, _symmetric(prices.centre, np.full(size, 1.0 / size))
        first, second = np.triu_indices(size, 1)
        bounds = np.minimum(policy.bounds[first, second], MAX_LOG_RATIO)
        # (e r[y] - r[x]) (e r[x] - r[y]) / (e^2 + 1) = r[x] r[y] - apart (r[x]^2 + r[y]^2), with apart = e / (e^2 + 1);
        # beside = 1 - 2 apart, without cancellation, goes with apart (r[x] - r[y])^2.
        apart = 1 / (2 * np.cosh(bounds))
        beside = 2 * np.sinh(bounds / 2) ** 2 / np.cosh(bounds)
        spread = np.tanh(bounds.max() / 4)
        places = np.hstack([np.full((size, 1), size**-0.5), spread * basis_of_changes(size)])
        level, multipliers = _start(unit, told, first, second)
        return cls(
            unit=places.T @ unit @ places,
            told=places.T @ told @ places,
            scale=scale,
            first=places[first],
            second=places[second],
            beside=np.concatenate([np.ones(first.size), beside]),
            apart=apart,
            level=level,
            multipliers=multipliers,
        )

    def combined(self, multipliers: Floats) -> Floats:
        """Return the sum of multipliers times A."""
        pairs = self.apart.size
        shared = multipliers * self.beside
        product = (self.first.T * (shared[:pairs] + shared[pairs:])) @ self.second
        steps = self.first - self.second
        return np.asarray((product + product.T) / 2 - (steps.T * (multipliers[pairs:] * self.apart)) @ steps)

    def direction(self, level: float, multipliers: Floats, barrier: float) -> tuple[Floats, float] | None:
        """Return Newton's direction for the merit, with its decrement; None if it fails."""
        inverse = np.asarray(
            np.linalg.inv(level * self.unit - self.told - self.combined(multipliers)), dtype=np.float64
        )
        unit_told = inverse @ self.unit @ inverse
        slope = np.append(1 / barrier - np.trace(inverse @ self.unit), self._traces(inverse) - 1 / multipliers)
        curve = self._products(inverse)
        curve[np.diag_indices_from(curve)] += 1 / multipliers**2
        system = np.empty((slope.size, slope.size))
        system[1:, 1:] = curve
        system[0, 0] = np.trace(unit_told @ self.unit)
        system[0, 1:] = system[1:, 0] = -self._traces(unit_told)
        scaling = 1 / np.sqrt(np.diag(system))
        scaled = scaling[:, None] * system * scaling
        for regularisation in REGULARISATIONS:
            try:
                factor = cho_factor(scaled + regularisation * np.eye(slope.size))
            except np.linalg.LinAlgError:
                continue
            direction = -scaling * cho_solve(factor, scaling * slope)
            return direction, -float(slope @ direction)
        return None

    def length(self, level: float, multipliers: Floats, barrier: float, direction: Floats, decrement: float) -> float:
        """Return how far to go: the new point is feasible, and the merit falls enough; 0 if no step is good."""
        merit = self.merit(level, multipliers, barrier)
        length = 1.0
        shrinking = direction[1:] < 0
        if shrinking.any():
            length = min(1.0, 0.95 * float(np.min(-multipliers[shrinking] / direction[1:][shrinking])))
        while length > SHORTEST_STEP:
            after = self.merit(level + length * direction[0], multipliers + length * direction[1:], barrier)
            if after <= merit - SUFFICIENT_DECREASE * length * decrement + 1e-13 * abs(merit):
                return length
            length *= 0.6
        return 0.0

    def merit(self, level: float, multipliers: Floats, barrier: float) -> float:
        """Return level / barrier - log det - sum of logs; infinite where the matrix is not safely positive definite."""
        combined = self.combined(multipliers)
        largest = max(float(np.abs(each).max()) for each in (level * self.unit, self.told, combined))
        matrix = level * self.unit - self.told - combined
        try:
            factor = np.linalg.cholesky(matrix - PROOF_ROOM * largest * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            return np.inf
        return float(level / barrier - 2 * np.log(factor.diagonal()).sum() - np.log(multipliers).sum())

    def _traces(self, matrix: Floats) -> Floats:
        """Return the trace of a matrix times each A."""
        near = np.einsum("ij,ij->i", self.first @ matrix, self.second)
        steps = self.first - self.second
        far = np.einsum("ij,ij->i", steps @ matrix, steps)
        return np.concatenate([near, self.beside[near.size :] * near - self.apart * far])

    def _products(self, inverse: Floats) -> Floats:
        """Return trace(S^-1 A S^-1 B) for all A and B."""
        pairs = self.apart.size
        steps = self.first - self.second
        to_first, to_second = inverse @ self.first.T, inverse @ self.second.T
        cross = self.first @ to_second
        near = ((self.first @ to_first) * (self.second @ to_second) + cross * cross.T) / 2
        mixed = -self.apart[:, None] * (steps @ to_first) * (steps @ to_second)  # of a step and a pair
        beside = self.beside[pairs:]
        products = np.empty((2 * pairs, 2 * pairs))
        products[:pairs, :pairs] = near
        products[pairs:, :pairs] = beside[:, None] * near + mixed
        products[:pairs, pairs:] = products[pairs:, :pairs].T
        both = mixed * beside
        far = np.outer(self.apart, self.apart) * (steps @ inverse @ steps.T) ** 2
        products[pairs:, pairs:] = np.outer(beside, beside) * near + both + both.T + far
        return products


def _start(unit: Floats, told: Floats, first: Positions, second: Positions) -> tuple[float, Floats]:
    """Return a level and multipliers that are feasible.

    With a level so high that all entries of level * unit - told are positive, the multipliers of r[x] r[y] take nearly
    all that is beside the diagonal, which is then dominant.
    """
    level = float((told / unit).max()) + float(np.abs(told).max() / unit.min())
    matrix = level * unit - told
    left = START_ROOM * float((matrix.diagonal() / matrix.sum(axis=1)).min())
    limits = START_ROOM * float(matrix.diagonal().min()) / len(matrix)
    return level, np.concatenate([2 * matrix[first, second] * (1 - left), np.full(first.size, 2 * limits)])


def _symmetric(left: Floats, right: Floats) -> Floats:
    product = np.outer(left, right)
    return (product + product.T) / 2
