"""Laws that do not depend on theta: how large sets are, which attribute is sent, how reports repeat and agree.

The number of values in a unary or hashed report's set is the value's own bit and k - 1 independent others, whatever
the value. The hash of a sketch, and the attribute of a report of `SampleOne`, are chosen without looking at the values.
Only few pairs of reports, or seeds, can be equal. How often two reports from one permanent response agree is known,
whatever the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.core.packed_bits import ones_in_rows
from hubbub.mechanisms import (
    CountMeanSketch,
    DBitFlip,
    LocalHashing,
    LongitudinalHashing,
    LongitudinalResponse,
    Mechanism,
    SampleOne,
    SubsetSelection,
)
from hubbub.mechanisms.longitudinal_unary import LongitudinalBits
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.mechanisms.sketches import Sketch
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.outputs.output_enumeration import can_list
from hubbub.sampling import NUMBER_BYTES

SEEDS = 2.0**64  # that a hashed report may have
MAX_REPORT_LETTERS = 60  # of a report in a sentence
CHUNK_BITS = 80_000_000  # of reports, worked on at a time

SetMechanism = UnaryEncoding | LocalHashing | SubsetSelection  # mechanisms whose outputs stand for sets of values


class KnownLaw(NamedTuple):
    """Counts whose probabilities do not depend on theta."""

    name: str
    counts: Floats
    probabilities: Floats
    noun: str
    names: tuple[str, ...] = ()  # of what is counted, where that is not a number of `noun`


class Repeats(NamedTuple):
    """Equal reports: how many pairs, and the largest possible probabilities of a pair and of three."""

    name: str
    users: int
    pairs: float
    two: float
    three: float
    most: int  # users behind the most frequent one...
    text: str  # ...and what it is


class Outputs(NamedTuple):
    """Encoded outputs of a mechanism, and how many users sent each."""

    codes: Codes
    counts: Floats

    def merged_with(self, other: Outputs) -> Outputs:
        """Return both together."""
        return Outputs(np.concatenate([self.codes, other.codes]), np.concatenate([self.counts, other.counts]))


class PairProbabilities(NamedTuple):
    """The probability that a set holds two given values."""

    own: float  # one of them is the user's
    neither: float


def pair_probabilities(mechanism: SetMechanism) -> PairProbabilities:
    """Return the probabilities that the set of a report holds two given values."""
    true, other = mechanism.support
    if not isinstance(mechanism, SubsetSelection):
        return PairProbabilities(true * other, other**2)
    size, chosen = len(mechanism.domain), int(mechanism.size or 1)
    others = max(1, (size - 1) * (size - 2))
    neither = (true * (chosen - 1) * (chosen - 2) + (1 - true) * chosen * (chosen - 1)) / others
    return PairProbabilities(true * (chosen - 1) / (size - 1), neither)


def set_size_law(mechanism: Mechanism, outputs: Outputs) -> KnownLaw | None:
    """Return the law of the number of values in a report's set; None for mechanisms without sets of random size."""
    if isinstance(mechanism, DBitFlip):
        return _answers_law(mechanism, outputs)
    if isinstance(mechanism, CountMeanSketch):
        width, right = mechanism.width, mechanism.support.true
        ones = _users_by_ones(lambda part: outputs.codes[part, NUMBER_BYTES:], outputs.counts, width)
        return KnownLaw("number of ones, CountMeanSketch", ones, _ones_law(width, right, 1.0 - right), "ones")
    if not isinstance(mechanism, UnaryEncoding | LocalHashing):
        return None
    size, (true, other) = len(mechanism.domain), mechanism.support
    probabilities = _ones_law(size, true, other)
    counts = _users_by_ones(lambda part: mechanism.sets(outputs.codes[part]), outputs.counts, size)
    name, noun = (
        ("number of ones", "ones") if isinstance(mechanism, UnaryEncoding) else ("size of sets", "values in the set")
    )
    return KnownLaw(f"{name}, {type(mechanism).__name__}", counts, probabilities, noun)


def _ones_law(size: int, true: float, other: float) -> Floats:
    """Return the probabilities of 0 to `size` ones, one of which has another probability than the rest."""
    rest = _binomial(size - 1, other)
    return true * np.append(0.0, rest) + (1.0 - true) * np.append(rest, 0.0)


def _answers_law(mechanism: DBitFlip, outputs: Outputs) -> KnownLaw:
    """Return the law of the number of ones in answers: the value's own bucket is as likely asked as any other."""
    buckets, asked = int(mechanism.buckets or 2), int(mechanism.bits or 1)
    wrong = 1.0 / (1.0 + math.exp(mechanism.nats))
    own = asked / buckets
    probabilities = own * _ones_law(asked, 1.0 - wrong, wrong) + (1.0 - own) * _binomial(asked, wrong)
    half = outputs.codes.shape[1] // 2
    counts = _users_by_ones(lambda part: outputs.codes[part, half:], outputs.counts, asked)
    return KnownLaw(f"number of ones, {type(mechanism).__name__}", counts, probabilities, "ones")


def choice_law(mechanism: Mechanism, outputs: Outputs) -> KnownLaw | None:
    """Return the law of the attribute, or the hash, that is sent; None for mechanisms that choose none."""
    if isinstance(mechanism, Sketch):
        count = mechanism.hashes
        hashes = mechanism.hashes_of(outputs.codes)
        sent = np.bincount(hashes, weights=outputs.counts, minlength=count).astype(np.float64)
        names = tuple(f"hash {number}" for number in range(count))
        return KnownLaw(
            f"hash that is sent, {type(mechanism).__name__}", sent, np.full(count, 1 / count), "reports", names
        )
    if not isinstance(mechanism, SampleOne):
        return None
    counts = outputs.counts @ mechanism.output_space.present(outputs.codes)
    names, chances = zip(*mechanism.probabilities.items(), strict=True)
    return KnownLaw("attribute that is sent", counts, np.array(chances), "reports", tuple(names))


def agreement_law(mechanism: Mechanism, codes: Codes, first: Positions, second: Positions) -> KnownLaw | None:
    """Return the law of what two reports of a user have in common (`second` is -1 for none).

    Devices that forget their permanent response send reports that agree less; so do those whose value changed.
    """
    several = second >= 0
    if not several.any():
        return None
    size, first, second = len(mechanism.domain), first[several], second[several]
    name = f"two reports of one user, {type(mechanism).__name__}"
    if isinstance(mechanism, LongitudinalBits):
        different = _users_by_ones(lambda part: codes[first[part]] ^ codes[second[part]], np.ones(first.size), size)
        return KnownLaw(name, different[::-1], _ones_law(size, *mechanism.agreement()), "bits in common")
    if isinstance(mechanism, LongitudinalResponse | LongitudinalHashing):
        same = codes[first] == codes[second]
        equal = float(np.count_nonzero(same if same.ndim == 1 else same.all(axis=1)))  # seeds are, too
        counts, agreement = np.array([first.size - equal, equal]), mechanism.stages.agreement
        return KnownLaw(name, counts, np.array([1.0 - agreement, agreement]), "outputs in common")
    return None


def _users_by_ones(rows: Callable[[slice], Codes], users: Floats, size: int) -> Floats:
    """Return how many users have 0 to `size` ones in their packed row; `rows` returns some of them at a time."""
    counts = np.zeros(size + 1)
    step = max(1, CHUNK_BITS // size)
    for start in range(0, users.size, step):
        part = slice(start, start + step)
        ones = ones_in_rows(rows(part))
        counts += np.bincount(ones, weights=users[part], minlength=size + 1)
    return counts


def _binomial(size: int, probability: float) -> Floats:
    """Return the probabilities of 0 to `size` successes."""
    from scipy.special import gammaln, xlog1py, xlogy

    successes = np.arange(size + 1, dtype=np.float64)
    logs = gammaln(size + 1) - gammaln(successes + 1) - gammaln(size + 1 - successes) + xlogy(successes, probability)
    return np.asarray(np.exp(logs + xlog1py(size - successes, -probability)))


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_REPORT_LETTERS else text[: MAX_REPORT_LETTERS - 3] + "..."


def repeats_of(mechanism: Mechanism, outputs: Outputs) -> Repeats | None:
    """Return how many pairs of users sent the same report, or drew the same seed for a hashed one.

    The sums over outputs of f^2 and of f^3 are convex in theta: largest if all users have one value.
    """
    if not isinstance(mechanism, SetMechanism) or can_list(mechanism):
        return None
    codes, counts, name = outputs.codes, outputs.counts, f"repeated reports, {type(mechanism).__name__}"
    size = len(mechanism.domain)
    if isinstance(mechanism, LocalHashing):
        codes, name = codes[:, 0], f"repeated seeds, {type(mechanism).__name__}"
        two, three = 1.0 / SEEDS, 1.0 / SEEDS**2
    elif isinstance(mechanism, UnaryEncoding):
        true, other = mechanism.support
        two, three = (
            (true**power + (1 - true) ** power) * (other**power + (1 - other) ** power) ** (size - 1)
            for power in (2, 3)
        )
    else:
        chosen = int(mechanism.size or 1)
        with_it, without = math.comb(size - 1, chosen - 1), math.comb(size - 1, chosen)
        two, three = (
            with_it * (mechanism.support.true / with_it) ** power
            + without * ((1 - mechanism.support.true) / without) ** power
            for power in (2, 3)
        )
    distinct, back = index_codes(codes)
    times = np.bincount(back, weights=counts, minlength=len(distinct))
    top = int(np.argmax(times))
    space = mechanism.output_space
    text = f"seed {distinct[top]}" if isinstance(mechanism, LocalHashing) else _shortened(space.write(distinct[top]))
    pairs = float((times * (times - 1)).sum() / 2)
    return Repeats(name, int(counts.sum()), pairs, two, three, int(times[top]), text)
