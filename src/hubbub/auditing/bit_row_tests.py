"""Tests of rows of bits: each bit, pairs of bits, the number of ones, and rows that occur twice.

The value's own bit is tested by itself. The other bits of a row are independent of each other and of it, or, of a
subset of fixed size, as independent as its size allows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.auditing.count_tests import (
    Counts,
    LawTest,
    Sensitivity,
    binomial_p_values,
    binomial_test,
    chi_square,
    one_test,
    several_tests,
)
from hubbub.auditing.distinguishing_events import sortable_keys, value_text
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.core.packed_bits import ones_in_rows
from hubbub.mechanisms import SubsetSelection
from hubbub.mechanisms.frequency_oracle import SetValuedOracle

ONE_BIT = "the probability of a bit, for a single value, off by more than {} percentage points"
UNPACKED_BITS = 4_000_000  # in memory at a time
MAX_PAIRED_BITS = 128  # up to which all pairs are tested; of more bits, those that are close
MAX_PAIR_STEPS = 8  # how far apart bits are that are close
MIN_OUTPUTS_PER_VALUE = 50  # for tests of a value's own bits
MAX_VALUE_BITS = 200_000  # such tests
MAX_EXPECTED_REPEATS = 0.5  # of whole rows: where more are expected, repeats say little


class PairChances(NamedTuple):
    """The probabilities that two bits are both 1: two other values', or the value's own and another."""

    others: float
    own_and_other: float


def bit_row_tests(mechanism: SetValuedOracle, positions: Positions, rows: Codes) -> list[LawTest]:
    """Return the tests of packed rows of bits."""
    counts = _BitCounts(positions, rows, len(mechanism.domain))
    labels, size, total = mechanism.domain.labels, len(mechanism.domain), len(rows)
    true, other = mechanism.support
    subset = isinstance(mechanism, SubsetSelection)
    tests = [binomial_test("how often the value's own bit is 1", counts.own, total, true)]
    if not subset:
        ones = int(counts.ones.sum())
        tests.append(binomial_test("how often other bits are 1", ones, total * (size - 1), other))
        tests += _number_of_ones(counts.numbers, size - 1, other)
    trials = total - counts.outputs
    p_values = binomial_p_values(counts.ones, trials, other)
    least = Sensitivity(max(1, int(trials.min())), 1, other * (1 - other))
    tests += several_tests("each bit", p_values, least, lambda bit: f"the bit of {value_text(labels[bit])}")
    tests += _bits_of_values(mechanism, counts)
    chances = _pair_chances(mechanism)
    tests += _pair_tests(counts, chances, labels)
    if not subset:
        tests += _neighbour_tests(mechanism, positions, rows)
    return tests + _repeated_rows(mechanism, rows)


def ones_scores(mechanism: SetValuedOracle, positions: Positions, rows: Codes, rng: np.random.Generator) -> Floats:
    """Return a number for each row that is uniform on 0 to 1 if bits are as they should be: by the number of ones.

    Of a subset, whose size is fixed, it is the number of ones in the first half of the other bits.
    """
    from scipy.stats import binom, hypergeom

    size, (true, other) = len(mechanism.domain), mechanism.support
    bits = _unpacked_sums(rows, positions, size, half=isinstance(mechanism, SubsetSelection))
    own, ones, counted = bits.own, bits.ones, bits.counted
    if isinstance(mechanism, SubsetSelection):
        chosen = int(mechanism.size or 1) - own
        below = hypergeom.cdf(ones - 1, size - 1, chosen, counted)
        chance = hypergeom.pmf(ones, size - 1, chosen, counted)
        within = below + chance * rng.random(ones.size)
        return np.where(own == 1, true * within, true + (1 - true) * within)
    listed = np.arange(size)
    sums, chances = binom.cdf(listed - 1, size - 1, other), binom.pmf(listed, size - 1, other)
    within = sums[ones] + chances[ones] * rng.random(ones.size)
    return np.where(own == 1, true * within, true + (1 - true) * within)


class _RowSums(NamedTuple):
    own: Counts  # the value's bit of each row
    ones: Counts  # among the others
    counted: Counts  # how many others were looked at


def _unpacked_sums(rows: Codes, positions: Positions, size: int, *, half: bool) -> _RowSums:
    own = _bit_of(rows, positions)
    if not half:
        ones = ones_in_rows(rows) - own
        return _RowSums(own, ones, np.full(len(rows), size - 1))
    width = (size + 1) // 2
    first = np.unpackbits(rows[:, : (width + 7) // 8], axis=1, count=width).sum(axis=1, dtype=np.int64)
    inside = positions < width
    return _RowSums(own, first - np.where(inside, own, 0), width - inside.astype(np.int64))


class _BitCounts:
    """Counts over all rows, without the values' own bits unless they are named."""

    def __init__(self, positions: Positions, rows: Codes, size: int) -> None:
        self.outputs = np.bincount(positions, minlength=size)  # of each value
        self.values = self._tested_values(size)
        self.by_value = np.zeros((self.values.size, size), dtype=np.int64)  # ones, the value's own bit among them
        self.ones: Counts = np.zeros(size, dtype=np.int64)
        self.numbers: Counts = np.zeros(size, dtype=np.int64)  # how many rows have so many ones
        self.own = 0
        self.own_pairs: Counts = np.zeros(size, dtype=np.int64)  # own bit and this one
        self.steps = size - 1 if size <= MAX_PAIRED_BITS else MAX_PAIR_STEPS
        self.pairs: NDArray[np.float64] = np.zeros((size, size) if size <= MAX_PAIRED_BITS else (self.steps, size))
        place = np.full(size, -1)
        place[self.values] = np.arange(self.values.size)
        step = max(1, UNPACKED_BITS // size)
        for first in range(0, len(rows), step):
            self._add(
                np.unpackbits(rows[first : first + step], axis=1, count=size), positions[first : first + step], place
            )

    def _tested_values(self, size: int) -> Positions:
        enough = np.flatnonzero(self.outputs >= MIN_OUTPUTS_PER_VALUE)
        most = max(2, MAX_VALUE_BITS // size)
        return np.sort(enough[np.argsort(-self.outputs[enough], kind="stable")[:most]])

    def _add(self, bits: NDArray[np.uint8], positions: Positions, place: Positions) -> None:
        users = np.arange(len(bits))
        tested = np.flatnonzero(place[positions] >= 0)
        if tested.size:
            entries = (np.ones(tested.size, dtype=np.int64), (place[positions[tested]], tested))
            chosen = sparse.csr_array(entries, shape=(self.values.size, len(bits)))
            self.by_value += np.asarray(chosen @ bits.astype(np.int32))
        own = bits[users, positions].astype(bool)
        self.own += int(np.count_nonzero(own))
        bits[users, positions] = 0
        self.ones += bits.sum(axis=0, dtype=np.int64)
        self.own_pairs += bits[own].sum(axis=0, dtype=np.int64)
        self.numbers += np.bincount(bits.sum(axis=1, dtype=np.int64), minlength=self.numbers.size)
        if bits.shape[1] <= MAX_PAIRED_BITS:
            floats = bits.astype(np.float32)  # exact: no chunk has 2^24 rows
            self.pairs += floats.T @ floats
            return
        for step in range(1, self.steps + 1):
            self.pairs[step - 1, :-step] += (bits[:, :-step] & bits[:, step:]).sum(axis=0)


def _number_of_ones(numbers: Counts, bits: int, chance: float) -> list[LawTest]:
    from scipy.stats import binom

    answer = chi_square(numbers, binom.pmf(np.arange(bits + 1), bits, chance))
    total = int(numbers.sum())
    return [one_test("the number of ones", answer.p_value, total, answer.freedom)] if answer.freedom else []


def _bits_of_values(mechanism: SetValuedOracle, counts: _BitCounts) -> list[LawTest]:
    """Test each bit for each value that has enough outputs."""
    if not counts.values.size:
        return []
    labels, size = mechanism.domain.labels, len(mechanism.domain)
    chances = np.full(counts.by_value.shape, mechanism.support.other)
    chances[np.arange(counts.values.size), counts.values] = mechanism.support.true
    outputs = counts.outputs[counts.values]
    p_values = binomial_p_values(counts.by_value, outputs[:, None], chances).ravel()
    least = Sensitivity(int(outputs.min()), 1, float((chances * (1 - chances)).max()))

    def text(place: int) -> str:
        value, bit = counts.values[place // size], place % size
        return f"the bit of {value_text(labels[bit])} for the value {value_text(labels[value])}"

    return several_tests("each bit of each value", p_values, least, text, ONE_BIT)


def _pair_chances(mechanism: SetValuedOracle) -> PairChances:
    true, other = mechanism.support
    if not isinstance(mechanism, SubsetSelection):
        return PairChances(other**2, true * other)
    values, chosen = len(mechanism.domain), int(mechanism.size or 1)
    pairs = max(1, (values - 1) * (values - 2))
    others = (true * (chosen - 1) * (chosen - 2) + (1 - true) * chosen * (chosen - 1)) / pairs
    return PairChances(others, true * (chosen - 1) / (values - 1))


def _pair_tests(counts: _BitCounts, chances: PairChances, labels: Codes) -> list[LawTest]:
    """Test how often two bits are both 1: of other values, and the value's own with another."""
    size, total = counts.ones.size, int(counts.outputs.sum())
    if size <= MAX_PAIRED_BITS:
        first, second = np.triu_indices(size, 1)
        both = counts.pairs[first, second]
    else:
        steps, first = np.divmod(np.arange(counts.steps * size), size)
        kept = first + steps + 1 < size
        both = counts.pairs[steps[kept], first[kept]]
        first, second = first[kept], (first + steps + 1)[kept]
    trials = total - counts.outputs[first] - counts.outputs[second]
    p_values = binomial_p_values(both.astype(np.int64), trials, chances.others)
    least = Sensitivity(max(1, int(trials.min())), 1, chances.others * (1 - chances.others))
    tests = []
    if chances.others > 0 and size > 2:
        tests += several_tests(
            "pairs of bits",
            p_values,
            least,
            lambda pair: (
                f"the bits of {value_text(labels[first[pair]])} and {value_text(labels[second[pair]])} together"
            ),
        )
    if chances.own_and_other > 0:
        trials = total - counts.outputs
        chance = chances.own_and_other
        tests += several_tests(
            "pairs of the value's own bit and another",
            binomial_p_values(counts.own_pairs, trials, chance),
            Sensitivity(max(1, int(trials.min())), 1, chance * (1 - chance)),
            lambda bit: f"the value's own bit and that of {value_text(labels[bit])} together",
        )
    return tests


def _neighbour_tests(mechanism: SetValuedOracle, positions: Positions, rows: Codes) -> list[LawTest]:
    """Test in how many bits rows differ from the one before, and from the last one of the same value."""
    drawn, by_value = np.arange(len(rows)), np.argsort(positions, kind="stable")
    before, after = by_value[0:-1:2], by_value[1::2]
    alike = positions[before] == positions[after]
    return [
        *_difference_test(mechanism, positions, rows, drawn[0:-1:2], drawn[1::2], "the row before"),
        *_difference_test(mechanism, positions, rows, before[alike], after[alike], "the last row of the value"),
    ]


def _difference_test(
    mechanism: SetValuedOracle, positions: Positions, rows: Codes, first: Positions, second: Positions, other: str
) -> list[LawTest]:
    """Test in how many bits rows differ, in pairs that have no row in common.

    Values' own bits are left out, so that all bits of all pairs are independent.
    """
    size, chance = len(mechanism.domain), mechanism.support.other
    alike = positions[first] == positions[second]
    apart = rows[first] ^ rows[second]
    own = _bit_of(apart, positions[first]) + np.where(alike, 0, _bit_of(apart, positions[second]))
    differing = int(np.bitwise_count(apart).sum(dtype=np.int64) - own.sum())
    trials = int(alike.size * (size - 2) + alike.sum())
    about = f"bits that differ from {other}"
    return [binomial_test(about, differing, trials, 2 * chance * (1 - chance), fault="")] if trials else []


def _bit_of(rows: Codes, positions: Positions) -> Counts:
    """Return one bit of each packed row."""
    return ((rows[np.arange(len(rows)), positions // 8] >> (7 - positions % 8)) & 1).astype(np.int64)


def _repeated_rows(mechanism: SetValuedOracle, rows: Codes) -> list[LawTest]:
    """Test how many pairs of rows are equal, where hardly any should be."""
    from scipy.special import gammaln, pdtrc

    size, (true, other) = len(mechanism.domain), mechanism.support
    if isinstance(mechanism, SubsetSelection):
        chosen = int(mechanism.size or 1)
        log_subsets = float(gammaln(size) - gammaln(chosen) - gammaln(size - chosen + 1))
        log_equal = math.log(true) - log_subsets  # at most: the likeliest subsets are this likely
    else:
        alike = true**2 + (1 - true) ** 2, true * other + (1 - true) * (1 - other)
        same_other = other**2 + (1 - other) ** 2
        log_equal = max(
            math.log(alike[0]) + (size - 1) * math.log(same_other),
            2 * math.log(alike[1]) + (size - 2) * math.log(same_other),
        )
    expected = math.exp(min(0.0, math.log(max(1.0, len(rows) * (len(rows) - 1) / 2)) + log_equal))
    if expected > MAX_EXPECTED_REPEATS:
        return []
    frequencies = np.unique(sortable_keys(rows), return_counts=True)[1]
    repeats = int((frequencies * (frequencies - 1) // 2).sum())
    p_value = 1.0 if repeats == 0 else float(pdtrc(repeats - 1, expected))
    return [one_test("rows that occur twice", p_value, len(rows))]
