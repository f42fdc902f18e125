"""The worst pair of values of a mechanism, and the central epsilon that it takes.

Epsilons are searched for on a fixed grid, so that more users, or a larger delta, never give a larger one: the bound of
a pair falls with the users and with epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from hubbub.amplification.blanket_divergence import divergence_bound
from hubbub.amplification.pair_laws import (
    PROBABILITY_ROUNDING,
    PairLaw,
    any_mechanism,
    closed_law,
    probability_matrix,
)
from hubbub.core.arrays import Floats
from hubbub.mechanisms import Mechanism

GRID_STEPS = 8_192  # of epsilon within a factor of e: it is rounded up by 0.012% at most
LEAST_EPSILON = 1e-9
GUESS_STEPS = 16  # of the grid, at first
NORMAL_STEPS = 40
MAX_LOCAL_EPSILON = 40.0  # beyond, nobody is hidden among any number of users
DIGITS_OF_EQUAL_LAWS = 10  # of logarithms: more than PROBABILITY_ROUNDING leaves open


@dataclass(frozen=True)
class ShuffledMechanism:
    """One report of a mechanism by each of many people: the epsilon of a report, and its pairs of values."""

    local: float
    law: PairLaw | None  # of the worst pair of values
    matrix: Floats | None  # P(z | x), where the worst pair has to be looked for
    specific: bool  # whether anything besides `local` is known

    @classmethod
    def of(cls, mechanism: Mechanism) -> ShuffledMechanism:
        """Return what is known about a mechanism; its epsilon is infinite if a value is distinguished for sure."""
        law, spent = closed_law(mechanism), mechanism.spent(1)
        local = spent * mechanism.domain.diameter if mechanism.metric else spent
        if law is not None or not local <= MAX_LOCAL_EPSILON:
            return cls(local, law, None, specific=law is not None)
        matrix = probability_matrix(mechanism)
        if matrix is None:
            return cls(local, any_mechanism(local), None, specific=False)
        if not (matrix > 0.0).all():  # whatever is claimed
            return cls(math.inf, None, None, specific=False)
        logs = np.log(matrix)
        realised = float((logs.max(axis=0) - logs.min(axis=0)).max()) * (1.0 + PROBABILITY_ROUNDING)
        return cls(realised, None, matrix, specific=True)

    def central_epsilon(self, users: int, delta: float) -> float:
        """Return the least epsilon of the grid at which no two values of a person differ by more than delta."""
        if self.local > MAX_LOCAL_EPSILON:
            return self.local
        if self.law is not None:
            return epsilon_of_pair(self.law, users, delta, self.local)
        epsilon = 0.0
        for law in self._pairs(users, delta, epsilon):
            epsilon = epsilon_of_pair(law, users, delta, self.local, at_least=epsilon)
            break  # the likely worst; all others are compared with it
        for law in self._pairs(users, delta, epsilon):
            epsilon = epsilon_of_pair(law, users, delta, self.local, at_least=epsilon)
        return epsilon

    def fits(self, users: int, delta: float, epsilon: float) -> bool:
        """Whether the shuffled reports are (epsilon, delta)-private."""
        if self.local <= epsilon:
            return True
        if self.local > MAX_LOCAL_EPSILON:
            return False
        laws = self._pairs(users, delta, epsilon) if self.law is None else [self.law]
        return all(divergence_bound(law, users, epsilon, self.local) <= delta for law in laws)

    def _pairs(self, users: int, delta: float, epsilon: float) -> Iterator[PairLaw]:
        """Yield the distinct pairs that may differ by more than delta, the likely worst first.

        Since s_+ <= e^(theta s - 1) / theta for any theta, a pair differs by M(theta)^n / (e theta n) at most.
        """
        matrix = self.matrix
        assert matrix is not None  # noqa: S101  # without a law there is one
        blanket = matrix.min(axis=0) * (1.0 - PROBABILITY_ROUNDING)
        rows = matrix * (1.0 + PROBABILITY_ROUNDING), matrix * (1.0 - PROBABILITY_ROUNDING)
        distances = np.stack([((row - matrix) ** 2 / blanket).sum(axis=1) for row in matrix])
        odds, variance = math.exp(epsilon), float(distances.max())
        # of the farthest pair, as if sums were normal
        tilt = (odds - 1.0) / variance + math.sqrt(2.0 / (users * variance)) if variance else 1.0
        left = np.zeros(distances.shape, dtype=bool)
        for value, row in enumerate(rows[0]):
            with np.errstate(over="ignore", divide="ignore"):  # infinite: nothing is known of such a pair
                rises = np.log1p(np.expm1(tilt * (row - odds * rows[1]) / blanket) @ blanket)
            log_bound = users * rises - 1.0 - math.log(tilt * users)
            left[value] = log_bound > math.log(delta) - PROBABILITY_ROUNDING
        left[np.diag_indices_from(left)] = False
        order = np.argsort(-distances[left], kind="stable")
        seen: set[bytes] = set()
        for value, other in np.argwhere(left)[order].tolist():
            law = PairLaw(matrix[value], matrix[other], matrix.min(axis=0))
            atoms = np.log(np.stack([law.own, law.other, law.blanket], axis=1)).round(DIGITS_OF_EQUAL_LAWS)
            key = atoms[np.lexsort(atoms.T)].tobytes()
            if key not in seen:
                seen.add(key)
                yield law.merged()


def epsilon_of_pair(law: PairLaw, users: int, delta: float, local: float, *, at_least: float = 0.0) -> float:
    """Return the least epsilon of the grid, from `at_least` up to `local`, at which a pair differs by delta at most."""
    if divergence_bound(law, users, at_least, local) <= delta:
        return at_least
    low = math.floor(GRID_STEPS * math.log(max(at_least, LEAST_EPSILON)))
    high = math.ceil(GRID_STEPS * math.log(local))
    guess = math.floor(GRID_STEPS * math.log(max(_normal_epsilon(law, users, delta, local), LEAST_EPSILON)))
    middle, stride = min(max(guess, low + 1), high - 1), GUESS_STEPS
    while high - low > 1:  # what is found does not depend on the guess
        if divergence_bound(law, users, math.exp(middle / GRID_STEPS), local) <= delta:
            high, following = middle, middle - stride
        else:
            low, following = middle, middle + stride
        stride *= 4
        middle = following if low < following < high else (low + high) // 2
    return min(math.exp(high / GRID_STEPS), local)


def _normal_epsilon(law: PairLaw, users: int, delta: float, local: float) -> float:
    """Return epsilon as if the two laws of all reports were normal with equal variances: where to start looking."""
    apart = math.sqrt(float(((law.own - law.other) ** 2 / law.blanket).sum()) / users)
    low, high = LEAST_EPSILON, local
    for _ in range(NORMAL_STEPS):
        middle = math.sqrt(low * high)
        below, above = ndtr([apart / 2.0 - middle / apart, -apart / 2.0 - middle / apart]).tolist()
        low, high = (low, middle) if below - math.exp(middle) * above <= delta else (middle, high)
    return low
