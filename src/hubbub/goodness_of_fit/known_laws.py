"""What does not depend on theta at all: how large sets are, how often reports repeat, how alike one user's are.

The number of values in a unary or hashed report's set is the value's own bit and k - 1 independent others, whatever the
value. Pairs of equal reports, or seeds, can only be few. Two reports from one permanent response agree in each bit with
the same chance, whatever that response is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.goodness_of_fit.output_enumeration import can_list
from hubbub.mechanisms import LocalHashing, LongitudinalRappor, Mechanism, SubsetSelection
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.mechanisms.unary import UnaryEncoding

SEEDS = 2.0**64
LONGEST = 60  # characters of a report that are shown
BITS_AT_ONCE = 80_000_000


class KnownLaw(NamedTuple):
    """Counts with chances that do not depend on theta."""

    name: str
    counts: Floats
    chances: Floats
    noun: str


class Repeats(NamedTuple):
    """Reports that repeat each other: how many pairs, and the chance of a pair, and of three, at most."""

    name: str
    users: int
    pairs: float
    two: float
    three: float
    most: int  # users behind the most frequent one...
    text: str  # ...and what it is


class Outputs(NamedTuple):
    """Encoded outputs of one mechanism, with how many users sent each."""

    codes: Codes
    counts: Floats

    def and_also(self, other: Outputs) -> Outputs:
        """Return both together."""
        return Outputs(np.concatenate([self.codes, other.codes]), np.concatenate([self.counts, other.counts]))


def totals(places: Positions, counts: Floats, size: int) -> Floats:
    """Add up counts by place."""
    return np.bincount(places, weights=counts, minlength=size).astype(np.float64)


def law_of(mechanism: Mechanism, outputs: Outputs) -> KnownLaw | None:
    """Return the law of the number of values in a report's set: own bit and k - 1 others."""
    if not isinstance(mechanism, UnaryEncoding | LocalHashing):
        return None
    size, (true, other) = len(mechanism.domain), mechanism.support
    rest = _binomial(size - 1, other)
    chances = true * np.append(0.0, rest) + (1.0 - true) * np.append(rest, 0.0)
    counts = np.zeros(size + 1)
    step = max(1, BITS_AT_ONCE // size)
    for start in range(0, len(outputs.codes), step):
        part = slice(start, start + step)
        sizes = np.bitwise_count(mechanism.sets(outputs.codes[part])).sum(axis=1, dtype=np.int64)
        counts += np.bincount(sizes, weights=outputs.counts[part], minlength=size + 1)
    name, noun = (
        ("number of ones", "ones") if isinstance(mechanism, UnaryEncoding) else ("size of sets", "values in the set")
    )
    return KnownLaw(f"{name}, {type(mechanism).__name__}", counts, chances, noun)


def agreement_of(mechanism: Mechanism, codes: Codes, one: Positions, two: Positions) -> KnownLaw | None:
    """Return the law of the number of bits that two reports of a user have in common (`two`: -1 for none).

    Both keep the permanent bit, or both turn it, with chance b^2 + (1-b)^2. Devices that forget their permanent
    response send reports that agree less.
    """
    several = two >= 0
    if not isinstance(mechanism, LongitudinalRappor) or not several.any():
        return None
    size, counts = len(mechanism.domain), np.zeros(len(mechanism.domain) + 1)
    step = max(1, BITS_AT_ONCE // size)
    first, second = one[several], two[several]
    for start in range(0, first.size, step):
        part = slice(start, start + step)
        apart = np.bitwise_count(codes[first[part]] ^ codes[second[part]]).sum(axis=1, dtype=np.int64)
        counts += np.bincount(size - apart, minlength=size + 1)
    agreeing = (1.0 + math.tanh(mechanism.log_odds / 2) ** 2) / 2
    name = f"two reports of one user, {type(mechanism).__name__}"
    return KnownLaw(name, counts, _binomial(size, agreeing), "bits in common")


def _binomial(size: int, chance: float) -> Floats:
    """Return the chances of 0 to `size` successes."""
    from scipy.special import gammaln, xlog1py, xlogy

    many = np.arange(size + 1, dtype=np.float64)
    logs = gammaln(size + 1) - gammaln(many + 1) - gammaln(size + 1 - many) + xlogy(many, chance)
    return np.asarray(np.exp(logs + xlog1py(size - many, -chance)))


def _short(text: str) -> str:
    """Cut the text of a long report."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def repeats_of(mechanism: Mechanism, outputs: Outputs) -> Repeats | None:
    """Return how many pairs of users sent the same report (of hashed ones: drew the same seed).

    Sum over outputs of f^2, and of f^3, are convex in theta: largest where all users have one value.
    """
    if not isinstance(mechanism, UnaryEncoding | LocalHashing | SubsetSelection) or can_list(mechanism):
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
    times = totals(back, counts, len(distinct))
    top = int(np.argmax(times))
    space = mechanism.output_space
    text = f"seed {distinct[top]}" if isinstance(mechanism, LocalHashing) else _short(space.write(distinct[top]))
    pairs = float((times * (times - 1)).sum() / 2)
    return Repeats(name, int(counts.sum()), pairs, two, three, int(times[top]), text)
