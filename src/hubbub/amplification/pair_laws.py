r"""Pair laws: all that the shuffled reports of a mechanism tell about one person, who has one of two values.

For two values x and y, an output z counts by how likely it is for either, and by how likely it is at least for
whatever value anybody else may have, the **blanket** :math:`w_z = \min_v P(z | v)` (Balle, Bell, Gascón, Nissim 2019).
Outputs with the same ratios P(z | x) / w_z and P(z | y) / w_z are one atom. Whatever leaves w_z too small, or moves an
atom to others with the same mean, gives more away: `blanket_divergence` says why. Closed forms use this twice.

- Values that share a bit, a subset or a window are better hidden than those that do not: outputs that both support and
  outputs that neither does become outputs that one of them supports. So the pair with least in common is the worst.
- A pair that differs in all attributes is worse than one that differs in some.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.mechanisms import (
    CountMeanSketch,
    DBitFlip,
    Duchi,
    Geometric,
    HadamardCountMeanSketch,
    HadamardResponse,
    LocalHashing,
    LongitudinalHashing,
    LongitudinalResponse,
    Mechanism,
    ProjectiveResponse,
    RandomizedResponse,
    SampleOne,
    Split,
    SubsetSelection,
    TruncatedGeometric,
)
from hubbub.mechanisms.base import check_rows
from hubbub.mechanisms.longitudinal_unary import LongitudinalBits
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.mechanisms.square_wave import SlidingWindow
from hubbub.mechanisms.unary_encoding import BitLogs, UnaryEncoding

PROBABILITY_ROUNDING = 1e-9  # relative: more than floats lose of the whole numbers that reports are drawn from
MAX_TABLE_ENTRIES = 4_000_000  # of a matrix that is looked at; of any larger, the claimed epsilon counts
MAX_PAIR_OUTPUTS = 10_000_000  # pairs of values times outputs: some seconds
MAX_LISTED_OUTPUTS = 4_000_000  # of sets that are compared output by output
MAX_ATOMS = 4_096  # of several attributes together


@dataclass(frozen=True)
class PairLaw:
    """Atoms of outputs: P(atom | x), P(atom | y), and the blanket's mass; the last sums to at most 1."""

    own: Floats
    other: Floats
    blanket: Floats

    @classmethod
    def of(cls, atoms: Sequence[tuple[float, float, float]]) -> PairLaw:
        """Return the law of atoms (ratio for x, ratio for y, blanket's mass)."""
        first, second, blanket = np.array([atom for atom in atoms if atom[2] > 0.0]).T
        return cls(first * blanket, second * blanket, blanket)

    def merged(self) -> PairLaw:
        """Return the law with atoms of equal ratios joined, which changes nothing."""
        ratios = np.stack([self.own / self.blanket, self.other / self.blanket], axis=1).round(12)
        _, which = np.unique(ratios, axis=0, return_inverse=True)
        own, other, blanket = (
            np.bincount(which.ravel(), weights=part).astype(np.float64) for part in (self.own, self.other, self.blanket)
        )
        return PairLaw(own, other, blanket)

    def rounded_outward(self) -> PairLaw:
        """Return the law with x likelier, y less likely and a thinner blanket: what floats may have lost."""
        up, down = 1.0 + PROBABILITY_ROUNDING, 1.0 - PROBABILITY_ROUNDING
        return PairLaw(self.own * up, self.other * down, self.blanket * down)


def any_mechanism(epsilon: float) -> PairLaw:
    """Return the worst law of all mechanisms with this plain epsilon: randomized response between two values.

    It is that of the stronger clones of Feldman, McMillan and Talwar (2023): of any mechanism max(P, P') / e^epsilon is
    a part of the blanket, and the atoms that it leaves can be moved to those of randomized response.
    """
    return _response(epsilon, 2)


def closed_law(mechanism: Mechanism) -> PairLaw | None:
    """Return the law of the worst pair of values where there is a formula; None otherwise."""
    if isinstance(mechanism, LongitudinalHashing | LongitudinalResponse):  # one report alone
        hashed = isinstance(mechanism, LongitudinalHashing)
        outputs = int(mechanism.buckets or 2) if isinstance(mechanism, LongitudinalHashing) else len(mechanism.domain)
        return _response(mechanism.first, outputs, 1.0 / outputs if hashed else 0.0)
    if isinstance(mechanism, RandomizedResponse):
        return _response(mechanism.log_ratio, len(mechanism.domain)) if mechanism.log_ratio > 0.0 else None
    if isinstance(mechanism, LocalHashing):
        outputs = int(mechanism.buckets or 2)
        return _response(mechanism.log_ratio, outputs, 1.0 / outputs)
    if isinstance(mechanism, UnaryEncoding | LongitudinalBits):
        return _bits(mechanism.log_bits, len(mechanism.domain))
    if isinstance(mechanism, CountMeanSketch):  # RAPPOR on the bucket; values that share some buckets are better hidden
        right = -math.log1p(math.exp(-mechanism.epsilon / 2))
        wrong = right - mechanism.epsilon / 2
        return _bits(BitLogs(right, wrong, wrong, right), mechanism.width)
    if isinstance(mechanism, SubsetSelection):
        return _subsets(math.exp(mechanism.epsilon), len(mechanism.domain), int(mechanism.size or 1))
    if isinstance(mechanism, SlidingWindow):
        return _windows(mechanism)
    if isinstance(mechanism, DBitFlip):
        return _asked_bits(mechanism)
    if isinstance(mechanism, HadamardResponse | ProjectiveResponse):
        return _listed_sets(mechanism)
    if isinstance(mechanism, HadamardCountMeanSketch):  # entries of rows that differ agree in half of the columns
        return _response(mechanism.epsilon, 2, 0.5)
    if isinstance(mechanism, Duchi):  # the ends of the line
        return _response(mechanism.epsilon, 2)
    return _attributes(mechanism) if isinstance(mechanism, Split | SampleOne) else None


def _response(epsilon: float, outputs: int, collisions: float = 0.0) -> PairLaw:
    """Return that of k-RR; `collisions` is the share of seeds for which both values are in one bucket."""
    ratio = math.exp(epsilon)
    least = 1.0 / (ratio + outputs - 1)
    apart = (1.0 - collisions) * least
    rest = (outputs - 2) * apart + (outputs - 1) * collisions * least
    return PairLaw.of([(ratio, 1.0, apart), (1.0, ratio, apart), (ratio, ratio, collisions * least), (1.0, 1.0, rest)])


def _bits(bits: BitLogs, size: int) -> PairLaw:
    """Return that of rows of bits: those that differ are in the bits of x and y; only a row of ones hides more."""
    least, most = math.exp(bits.own_zero - bits.other_zero), math.exp(bits.own_one - bits.other_one)
    ratio, one, zero = most / least, math.exp(bits.other_one), math.exp(bits.other_zero)
    others = one ** (size - 2)  # all other bits are ones, too
    return PairLaw.of(
        [
            (ratio, 1.0, least * one * zero),
            (1.0, ratio, least * one * zero),
            (ratio, ratio, least * one**2 * (1.0 - others)),
            (1.0, 1.0, least * zero**2 + most * one**2 * others),
        ]
    )


def _subsets(ratio: float, values: int, chosen: int) -> PairLaw:
    pairs = values * (values - 1.0)
    total = (ratio * chosen + values - chosen) / values * pairs
    one, both = chosen * (values - chosen) / total, chosen * (chosen - 1) / total
    neither = (values - chosen) * (values - chosen - 1) / total
    return PairLaw.of([(ratio, 1.0, one), (1.0, ratio, one), (ratio, ratio, both), (1.0, 1.0, neither)])


def _windows(mechanism: SlidingWindow) -> PairLaw:
    """Return that of both ends of the line; outputs in both their windows are in everybody's."""
    values, width, ratio = len(mechanism.domain), mechanism.window, math.exp(mechanism.epsilon)
    shared = max(0, width - (values - 1))
    outputs = values - 1 + width
    least = 1.0 / (ratio * width + outputs - width)
    alone = (width - shared) * least
    rest = (outputs - 2 * width + shared + ratio * shared) * least
    return PairLaw.of([(ratio, 1.0, alone), (1.0, ratio, alone), (1.0, 1.0, rest)])


def _listed_sets(mechanism: HadamardResponse | ProjectiveResponse) -> PairLaw:
    """Return that of the first two values: no sets have less in common."""
    outputs, size, ratio = mechanism.output_count, mechanism.set_size, math.exp(mechanism.epsilon)
    shared = 0
    if outputs <= MAX_LISTED_OUTPUTS:
        codes, both = np.arange(outputs), np.arange(2)
        shared = int(mechanism.holds(codes[None, :], both[:, None]).all(axis=0).sum())
    least = 1.0 / (ratio * size + outputs - size)
    alone, rest = (size - shared) * least, (outputs - 2 * size + shared) * least
    return PairLaw.of([(ratio, 1.0, alone), (1.0, ratio, alone), (ratio, ratio, shared * least), (1.0, 1.0, rest)])


def _asked_bits(mechanism: DBitFlip) -> PairLaw:
    """Return that of values in two buckets: both are asked, one of them, or none."""
    buckets, asked, nats = int(mechanism.buckets or 2), int(mechanism.bits or 1), mechanism.nats
    one = math.exp(-nats) / (1.0 + math.exp(-nats))  # another value's bit is a one
    raised, lowered = math.exp(nats), math.exp(-nats)
    pairs = buckets * (buckets - 1.0)
    cases = {
        (True, True): asked * (asked - 1) / pairs,
        (True, False): asked * (buckets - asked) / pairs,
        (False, True): asked * (buckets - asked) / pairs,
        (False, False): (buckets - asked) * (buckets - asked - 1) / pairs,
    }
    atoms = []
    for (of_own, of_other), chance in cases.items():
        rest = one ** (asked - of_own - of_other)  # all other answers are ones
        for own in (0, 1) if of_own else (1,):
            for other in (0, 1) if of_other else (1,):
                likely = chance * (one if own else 1 - one) ** of_own * (one if other else 1 - one) ** of_other
                first = (raised if own else lowered) if of_own else 1.0
                second = (raised if other else lowered) if of_other else 1.0
                for all_ones, share in ((True, rest), (False, 1.0 - rest)):
                    floor = lowered if not (all_ones and own and other) else 1.0 if asked < buckets else raised
                    atoms.append((first / floor, second / floor, likely * share * floor))
    return PairLaw.of(atoms)


def _attributes(mechanism: Split | SampleOne) -> PairLaw | None:
    """Return that of combinations that differ in all attributes, where each attribute has a formula."""
    laws = [closed_law(part) for part in mechanism.parts.values()]
    known = [law.merged() for law in laws if law is not None]
    if len(known) < len(laws):
        return None
    if isinstance(mechanism, SampleOne):
        shares = list(mechanism.probabilities.values())
        columns = zip(*((law.own, law.other, law.blanket) for law in known), strict=True)
        return PairLaw(*(np.concatenate([s * c for s, c in zip(shares, column, strict=True)]) for column in columns))
    law = known[0]
    for part in known[1:]:
        if law.own.size * part.own.size > MAX_ATOMS:
            return None
        products = (np.outer(getattr(law, name), getattr(part, name)).ravel() for name in ("own", "other", "blanket"))
        law = PairLaw(*products).merged()
    return law


def listed_matrix(mechanism: Mechanism) -> Floats | None:
    """Return P(z | x) for all outputs that occur; None where they cannot be listed, or are too many.

    A matrix that is listed must be one: a claimed epsilon says nothing about rows that are no distributions.
    """
    if isinstance(mechanism, Geometric):  # outputs from an end on have the same ratios for all values
        mechanism = TruncatedGeometric(mechanism.domain, mechanism.epsilon)
    outputs = _output_count(mechanism)
    if outputs is None or len(mechanism.domain) * outputs > MAX_TABLE_ENTRIES or mechanism.outputs is None:
        return None
    if isinstance(mechanism, SeveralAttributes):  # its outputs are records, which may hold rows of bits: no labels
        matrix = mechanism.matrix()
        check_rows(matrix, f"{type(mechanism).__name__}.matrix()")
    else:
        matrix = mechanism.checked_matrix()
    return np.asarray(matrix[:, (matrix > 0.0).any(axis=0)])


def _output_count(mechanism: Mechanism) -> int | None:
    """Return how many outputs there are; None where nobody counts them."""
    if isinstance(mechanism, SeveralAttributes) and mechanism.outputs is not None:
        return len(mechanism.outputs)
    return mechanism.output_space.size


def realised_epsilon(matrix: Floats) -> float:
    """Return the epsilon of a matrix, rounded up: the largest log-ratio of two values' probabilities of an output."""
    most, least = matrix.max(axis=0), matrix.min(axis=0)
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.log1p((most - least) / least).max()) * (1.0 + PROBABILITY_ROUNDING)


def realised_by_logs(mechanism: Mechanism) -> float:
    """Return the epsilon from logarithms, where a mechanism has a formula for those that floats cannot hold."""
    if type(mechanism).log_columns is Mechanism.log_columns:
        return math.inf
    if isinstance(mechanism, Geometric):
        mechanism = TruncatedGeometric(mechanism.domain, mechanism.epsilon)
    logs = mechanism.log_columns(mechanism.output_space.encode(mechanism.outputs))
    possible = logs[:, np.isfinite(logs).any(axis=0)]
    return float(np.ptp(possible, axis=0).max()) * (1.0 + PROBABILITY_ROUNDING)


def pairs_are_few(matrix: Floats) -> bool:
    """Whether all pairs of values can be compared in all outputs."""
    return len(matrix) * matrix.size <= MAX_PAIR_OUTPUTS
