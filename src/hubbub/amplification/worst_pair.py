"""The worst pair of values of a mechanism, and the central epsilon that it takes.

Epsilons are searched for on a fixed grid, so that more users, or a larger delta, never give a larger one: the bound of
a pair falls with the users and with epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtr

from hubbub.amplification.blanket_divergence import ReportSum, stays_within
from hubbub.amplification.pair_laws import (
    PROBABILITY_ROUNDING,
    PairLaw,
    any_mechanism,
    closed_law,
    listed_matrix,
    pairs_are_few,
    realised_by_logs,
    realised_epsilon,
)
from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress, finish
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.several_attributes import SeveralAttributes

GRID_STEPS = 8_192  # of epsilon within a factor of e: it is rounded up by 0.012% at most
LEAST_EPSILON = 1e-9
GUESS_STEPS = 16  # of the grid, at first
NORMAL_STEPS = 40
MAX_LOCAL_EPSILON = 40.0  # beyond, nobody is hidden among any number of users
DIGITS_OF_EQUAL_LAWS = 10  # of logarithms: more than PROBABILITY_ROUNDING leaves open


@dataclass(frozen=True)
class ShuffledMechanism:
    """One report of a mechanism by each of many people: the epsilon of a report, and its pairs of values."""

    local: float  # as claimed, or as realised if that is more or if all pairs are compared
    law: PairLaw | None  # of the worst pair of values
    matrix: Floats | None  # P(z | x), where the worst pair has to be looked for
    specific: bool  # whether anything besides `local` is known

    @classmethod
    def of(cls, mechanism: Mechanism) -> ShuffledMechanism:
        """Return what is known about a mechanism; its epsilon is infinite if a value is distinguished for sure."""
        law, claimed = closed_law(mechanism), _claimed(mechanism)
        if law is not None or not math.isfinite(claimed):
            return cls(claimed, law, None, specific=law is not None)
        matrix = listed_matrix(mechanism)
        if matrix is None:
            return cls._of_epsilon(claimed + cls._beyond_claims(mechanism))
        realised = realised_epsilon(matrix)
        if claimed > MAX_LOCAL_EPSILON:
            realised = realised if math.isfinite(realised) else realised_by_logs(mechanism)
        elif math.isfinite(realised) and pairs_are_few(matrix):
            return cls(realised, None, matrix, specific=True)
        refuted = realised > claimed * (1.0 + 2.0 * PROBABILITY_ROUNDING)  # by more than the rounding
        return cls._of_epsilon(realised if refuted else claimed)

    @classmethod
    def _beyond_claims(cls, mechanism: Mechanism) -> float:
        """Return what attributes realise beyond what they claim, where their combinations cannot be listed."""
        parts = mechanism.parts.values() if isinstance(mechanism, SeveralAttributes) else ()
        return sum(max(0.0, cls.of(part).local - _claimed(part) * (1.0 + 2.0 * PROBABILITY_ROUNDING)) for part in parts)

    @classmethod
    def _of_epsilon(cls, local: float) -> Self:
        law = any_mechanism(local) if local <= MAX_LOCAL_EPSILON else None
        return cls(local, law, None, specific=False)

    def central_epsilon(self, users: int, delta: float) -> float:
        """Return the least epsilon of the grid at which no two values of a person differ by more than delta."""
        return finish(self.search(users, delta))

    def search(self, users: int, delta: float) -> Generator[Progress, None, float]:
        """Return the central epsilon, with progress over the pairs of values."""
        if self.local > MAX_LOCAL_EPSILON:
            return self.local
        if self.law is not None:
            return epsilon_of_pair(self.law, users, delta, self.local)
        epsilon = 0.0
        for law, _ in self._pairs(users, delta, epsilon):
            epsilon = epsilon_of_pair(law.merged(), users, delta, self.local)
            break  # the likely worst; all others are compared with it
        for law, progress in self._pairs(users, delta, epsilon):
            if epsilon >= self.local:
                break
            yield progress
            if not stays_within(delta, law, users, epsilon, self.local):
                epsilon = epsilon_of_pair(law.merged(), users, delta, self.local, at_least=epsilon)
        return epsilon

    def fits(self, users: int, delta: float, epsilon: float) -> bool:
        """Whether the shuffled reports are (epsilon, delta)-private."""
        if self.local <= epsilon:
            return True
        if self.local > MAX_LOCAL_EPSILON:
            return False
        laws = (law for law, _ in self._pairs(users, delta, epsilon)) if self.law is None else [self.law]
        return all(stays_within(delta, law, users, epsilon, self.local) for law in laws)

    def _pairs(self, users: int, delta: float, epsilon: float) -> Iterator[tuple[PairLaw, Progress]]:
        """Yield the distinct pairs that may differ by more than delta, the likely worst first.

        Since s_+ <= e^(theta s - 1) / theta for any theta, a pair differs by M(theta)^n / (e theta n) at most; and by
        no more than a report alone.
        """
        matrix = self.matrix
        assert matrix is not None  # noqa: S101  # without a law there is one
        blanket = matrix.min(axis=0) * (1.0 - PROBABILITY_ROUNDING)
        rows = matrix * (1.0 + PROBABILITY_ROUNDING), matrix * (1.0 - PROBABILITY_ROUNDING)
        distances = np.stack([((row - matrix) ** 2 / blanket).sum(axis=1) for row in matrix])
        odds, common = math.exp(epsilon), self._tilt_of_farthest(distances, users, epsilon)
        left = np.zeros(distances.shape, dtype=bool)
        for value, row in enumerate(rows[0]):
            atoms = (row - odds * rows[1]) / blanket
            tilts = (np.full(len(matrix), common), _normal_tilts(distances[value], users, odds))
            log_bounds = [_log_chernoff(atoms, blanket, users, theta) for theta in tilts]
            of_one_report = np.maximum(atoms, 0.0) @ blanket
            left[value] = np.min(log_bounds, axis=0) > math.log(delta) - PROBABILITY_ROUNDING
            left[value] &= of_one_report > delta * (1.0 - PROBABILITY_ROUNDING)
        left[np.diag_indices_from(left)] = False
        order = np.argsort(-distances[left], kind="stable")
        codes, blanket_codes, base = _codes(matrix)
        seen: set[bytes] = set()
        for place, (value, other) in enumerate(np.argwhere(left)[order].tolist()):
            key = np.sort((codes[value] * base + codes[other]) * base + blanket_codes).tobytes()
            if key not in seen:
                seen.add(key)
                law = PairLaw(matrix[value], matrix[other], matrix.min(axis=0))
                yield law, Progress(place, order.size, "comparing pairs of values")

    def _tilt_of_farthest(self, distances: Floats, users: int, epsilon: float) -> float:
        matrix = self.matrix
        assert matrix is not None  # noqa: S101  # see `_pairs`
        value, other = np.unravel_index(np.argmax(distances), distances.shape)
        law = PairLaw(matrix[value], matrix[other], matrix.min(axis=0))
        total = ReportSum.of(law, users, epsilon, self.local)
        return 1.0 if total is None else total.tilt


def _claimed(mechanism: Mechanism) -> float:
    """Return the epsilon that one report is said to have, between any two values of the domain."""
    spent = mechanism.spent(1)
    return spent * mechanism.domain.diameter if mechanism.metric else spent


def _normal_tilts(variances: Floats, users: int, odds: float) -> Floats:
    """Return the best theta of pairs whose sums were normal; of equal values any will do."""
    known = np.where(variances > 0.0, variances, 1.0)
    return np.asarray((odds - 1.0) / known + np.sqrt(2.0 / (users * known)))


def _codes(matrix: Floats) -> tuple[Positions, Positions, int]:
    """Return numbers for the probabilities and for the blanket, equal where the logarithms are, and how many."""
    logs = np.log(np.concatenate([matrix, matrix.min(axis=0)[None, :]])).round(DIGITS_OF_EQUAL_LAWS)
    kinds, codes = np.unique(logs, return_inverse=True)
    table = codes.reshape(logs.shape).astype(np.int64)
    return table[:-1], table[-1], kinds.size


def _log_chernoff(atoms: Floats, blanket: Floats, users: int, tilts: Floats) -> Floats:
    with np.errstate(over="ignore", divide="ignore"):  # infinite: nothing is known of such a pair
        rises = np.log1p(np.expm1(tilts[:, None] * atoms) @ blanket)
    return np.asarray(users * rises - 1.0 - np.log(tilts * users))


def epsilon_of_pair(law: PairLaw, users: int, delta: float, local: float, *, at_least: float = 0.0) -> float:
    """Return the least epsilon of the grid, from `at_least` up to `local`, at which a pair differs by delta at most."""
    if stays_within(delta, law, users, at_least, local):
        return at_least
    low = math.floor(GRID_STEPS * math.log(max(at_least, LEAST_EPSILON)))
    high = math.ceil(GRID_STEPS * math.log(local))
    guess = math.floor(GRID_STEPS * math.log(max(_normal_epsilon(law, users, delta, local), LEAST_EPSILON)))
    middle, stride = min(max(guess, low + 1), high - 1), GUESS_STEPS
    while high - low > 1:  # what is found does not depend on the guess
        if stays_within(delta, law, users, math.exp(middle / GRID_STEPS), local):
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
