"""Real draws against the exact matrix, and the rare ways on purpose: ties, blocks, rejections.

The level of the statistical checks is stated in tests/counting.py. What one word in 2^32 or 2^64 leads to is driven by
sources that hand out chosen words, and counted over all of them where an enumeration is possible.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate, pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
from counting import LEVEL, Scripted, p_value, rest, worst_p_value
from hubbub import client
from hubbub.sampling import (
    BitFlipLaw,
    LineNoiseLaw,
    PlanarGeometricLaw,
    RandomSource,
    ResponseLaw,
    SubsetLaw,
    SystemSource,
    TableLaw,
)
from hubbub.sampling.bit_rows import OPEN, byte_table, draw_bytes, draw_rows
from hubbub.sampling.bloom_filter_laws import noisy_rows
from hubbub.sampling.compiled_draws import REDRAW, UNDECIDED, choose, respond
from hubbub.sampling.geometric_noise import LineNoise
from hubbub.sampling.weight_tables import WeightTable

COLOURS = hb.Categories(["red", "green", "blue", "white", "black"])
LINE = hb.Integers(-3, 6)
UNEVEN = hb.Bins([0.0, 0.5, 2.0, 2.25, 6.0, 7.0])
MAP = hb.Grid(4, 3, cell=(1.0, 0.75))
COAST = hb.Grid(4, 3, cell=(1.0, 0.75), cells=[0, 1, 5, 6, 11])

MECHANISMS: dict[str, hb.Mechanism] = {
    "randomized response": hb.RandomizedResponse(COLOURS, 1.0),
    "randomized response, many values": hb.RandomizedResponse(hb.Integers(0, 99), 3.0),
    "geometric": hb.Geometric(LINE, 0.5),
    "truncated geometric": hb.TruncatedGeometric(LINE, 0.4),
    "laplace on integers": hb.Laplace(LINE, 0.6),
    "laplace on uneven bins": hb.Laplace(UNEVEN, 0.8),
    "exponential on a line": hb.Exponential(UNEVEN, 1.0),
    "exponential on a map": hb.Exponential(COAST, 1.0),
    "exponential on categories": hb.Exponential(COLOURS, 2.0),
    "planar geometric": hb.PlanarGeometric(MAP, 1.0),
    "planar geometric, untruncated": hb.PlanarGeometric(MAP, 1.0, truncated=False),
    "planar geometric, missing cells": hb.PlanarGeometric(COAST, 1.0),
    "planar laplace": hb.PlanarLaplace(MAP, 1.0),
    "planar laplace, missing cells": hb.PlanarLaplace(COAST, 4.0),
    "rappor": hb.Rappor(COLOURS, 2.0),
    "rappor with memory": hb.LongitudinalRappor(COLOURS, 3.0, 2.0),
    "unary with memory": hb.LongitudinalUnary(COLOURS, 3.0, 2.0),
    "unary with memory, optimized twice": hb.LongitudinalUnary(COLOURS, 3.0, 1.5, "oue", "oue"),
    "response with memory": hb.LongitudinalResponse(COLOURS, 3.0, 2.0),
    "hashing with memory": hb.LongitudinalHashing(LINE, 3.0, 1.5),
    "dBitFlip": hb.DBitFlip(LINE, 2.0, 5, 3),
    "dBitFlip, about few": hb.DBitFlip(LINE, 2.0, 7, 1),
    "dBitFlip, about all": hb.DBitFlip(COLOURS, 2.0),
    "Bloom filters": hb.BloomRappor(COLOURS, 2, 6, 2, f="2/3", p=0.25, q="9/10"),
    "Bloom filters, any text": hb.BloomRappor(COLOURS, 3, 5, 3, epsilon=3.0, first=1.0, rest="white"),
    "Bloom filters, one report": hb.BloomRappor(COLOURS, 1, 7, 1, epsilon=2.0),
    "optimized unary": hb.OptimizedUnary(COLOURS, 1.0),
    "local hashing": hb.LocalHashing(LINE, 1.2),
    "local hashing, two buckets": hb.LocalHashing(LINE, 1.2, 2),
    "subset selection": hb.SubsetSelection(COLOURS, 1.0, size=2),
    "subset selection, one": hb.SubsetSelection(COLOURS, 1.0, size=1),
    "subset selection, all but one": hb.SubsetSelection(COLOURS, 1.0, size=4),
    "square wave": hb.SquareWave(UNEVEN, 1.0),
    "square wave, no reach": hb.SquareWave(LINE, 1.0, reach=0),
    "piecewise": hb.Piecewise(LINE, 1.5),
    "duchi": hb.Duchi(LINE, 1.5),
    "staircase": hb.Staircase(LINE, 1.5),
    "staircase, lowest stair as long as the line": hb.Staircase(LINE, 0.7, gamma=1),
    "staircase, two values": hb.Staircase(hb.Integers(-3, -2), 0.7),
    "unary": hb.Unary(COLOURS, "2/3", "1/6"),
    "hadamard response": hb.HadamardResponse(LINE, 1.0),
    "hadamard response, blocks": hb.HadamardResponse(LINE, 1.0, blocks=4),
    "hadamard response, blocks of one": hb.HadamardResponse(COLOURS, 5.0),
    "projective response": hb.ProjectiveResponse(LINE, 1.0),
    "projective response, planes": hb.ProjectiveResponse(hb.Integers(0, 12), 1.0, prime=2),
    "projective response, sets of one": hb.ProjectiveResponse(COLOURS, 2.0),
    "sketch of bits": hb.CountMeanSketch(COLOURS, 1.5, hashes=3, width=4),
    "sketch of signs": hb.HadamardCountMeanSketch(LINE, 1.5, hashes=3, width=8),
    "matrix": hb.Matrix(LINE, range(4), np.random.default_rng(0).dirichlet([0.3, 1.0, 2.0, 3.0], size=10)),
    "cloaking": hb.Cloaking(LINE, list("aabbbcccca")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_real_draws_follow_the_exact_matrix(name: str) -> None:
    assert worst_p_value(MECHANISMS[name], draws=10_000_000) > LEVEL


@pytest.mark.parametrize("mechanism", [hb.Rappor(hb.Integers(0, 18), 3.0), hb.OptimizedUnary(hb.Integers(0, 18), 1.5)])
def test_bits_of_longer_rows_are_independent_and_in_their_places(mechanism: hb.Rappor | hb.OptimizedUnary) -> None:
    own, other = mechanism.support
    for position in (0, 7, 8, 18):
        rows = np.unpackbits(mechanism.privatize(np.full(100_000, position)), axis=1, count=19)
        for value in range(19):
            chance, ones = own if value == position else other, float(rows[:, value].sum())
            assert p_value(np.array([ones, 100_000 - ones]), np.array([chance, 1 - chance])) > LEVEL
            after = (value + 1) % 19
            near = own if after == position else other
            both = np.bincount(rows[:, value] * 2 + rows[:, after], minlength=4).astype(np.float64)
            chances = np.outer([1 - chance, chance], [1 - near, near]).ravel()
            assert p_value(both, chances) > LEVEL


def test_wide_noise_far_beyond_a_block() -> None:
    mechanism = hb.Geometric(hb.Integers(0, 1), 0.002)  # a block ends at 4,096 steps: exp(-8.2)
    drawn = np.abs(mechanism.privatize(np.zeros(1_000_000, dtype=np.int64)))
    edges = np.array([0, 1, 50, 500, 1000, 2000, 4000, 4090, 4096, 4097, 4100, 5000, 6000, 8193, 10**9])
    tail = np.array([1.0, *(2 * math.exp(-0.002 * edge) / (1 + math.exp(-0.002)) for edge in edges[1:-1]), 0.0])
    assert p_value(np.histogram(drawn, edges)[0].astype(np.float64), -np.diff(tail)) > LEVEL


# -- tables -----------------------------------------------------------------------------------------------


def crowded(width: int) -> tuple[int, list[int]]:
    """Return a word, and a table that has many borders within the thirty words from it on: some cells are empty."""
    rng = np.random.default_rng(8)
    first, beyond = 0xA0C0_1234_5678_9ABC, width - 64
    tiny = [0, 1, *rng.integers(0, 400, size=25).tolist(), 0, 1 << beyond, 2 << beyond]
    weights = [first << beyond, *tiny]
    return first, [*weights, (1 << width) - sum(weights)]


@pytest.mark.parametrize("kind", ["cells", "rows"])
def test_tables_are_exact_to_the_last_bit(kind: str) -> None:
    """All numbers of thirty words that many borders share, eight bits after each word: all fall where they should."""
    first, weights = crowded(72)
    sums = list(accumulate(weights))
    cells, rows = WeightTable(72, weights), TableLaw(1, len(weights), 72, lambda _: weights)
    found: Counter[int] = Counter()
    for word in range(first - 1, first + 30):
        undecided = any(border >> 8 == word for border in sums[:-1])
        for last in range(256 if undecided else 1):
            script = Scripted(word, *(rest(last, 8) if undecided else []))
            drawn = cells.draw(1, script) if kind == "cells" else rows.draw(np.array([0]), script)
            assert script.left == []
            found[int(drawn[0])] += 1 if undecided else 256
    inside = {cell: weight for cell, weight in enumerate(weights) if 0 < cell < len(weights) - 1 and weight}
    assert {cell: found[cell] for cell in inside} == inside
    assert sum(found.values()) == 31 * 256


def test_a_table_is_looked_up_in_all_of_its_parts() -> None:
    rng = np.random.default_rng(5)
    weights = [int(weight) << 183 for weight in rng.integers(0, 2**60, size=5_000)]
    weights.append((1 << 256) - sum(weights))
    sums = np.array([total >> 192 for total in accumulate(weights)][:-1], dtype=np.uint64)
    words = rng.integers(0, 2**64, size=100_000, dtype=np.uint64)
    drawn = WeightTable(256, weights).draw(words.size, Scripted(*words.tolist()))
    np.testing.assert_array_equal(drawn, np.searchsorted(sums, words, side="right"))


def test_empty_cells_at_the_end_are_never_drawn() -> None:
    weights = [1 << 255, (1 << 255) - 1, 1, 0, 0]
    top = 2**64 - 1
    for last, cell in ((2**192 - 1, 2), (2**192 - 2, 1), (0, 1)):
        assert WeightTable(256, weights).draw(1, Scripted(top, *rest(last, 192))).tolist() == [cell]
        assert TableLaw(1, 5, 256, lambda _: weights).draw(np.array([0]), Scripted(top, *rest(last, 192))).tolist() == [
            cell
        ]


def test_a_table_that_does_not_sum_to_one_is_refused() -> None:
    with pytest.raises(ArithmeticError):
        WeightTable(256, [1 << 255, 1 << 254])
    with pytest.raises(ArithmeticError):
        WeightTable(256, [(1 << 256) + 1, -1])


# -- randomized response ----------------------------------------------------------------------------------


def test_a_tie_in_the_first_half_of_a_word_is_decided_by_all_further_digits() -> None:
    law = ResponseLaw(5, 24, keep=(0x9001 << 8) + 77)
    kept: Counter[bool] = Counter()
    for last in range(256):
        lie = [] if last < 77 else rest(3, 67)  # 2^64 5-fold: below(5) of 67 bits
        script = Scripted(0x9001 << 16, *rest(last, 8), *lie)
        value = int(law.draw(np.array([1]), script)[0])
        assert value == (1 if last < 77 else 3)
        assert script.left == []
        kept[value == 1] += 1
    assert kept[True] == 77
    assert law.draw(np.array([1]), Scripted(0x9000_FFFF)).tolist() == [1]
    assert law.draw(np.array([1]), Scripted(0x9002_FFFF)).tolist() == [4]


def test_a_tie_among_many_values_is_decided_by_all_further_digits() -> None:
    law = ResponseLaw(5000, 40, keep=(0x9000_0001 << 8) + 77)
    for last in range(256):
        lie = [] if last < 77 else rest(3, 77)
        value = int(law.draw(np.array([1]), Scripted(0x9000_0001 << 32, *rest(last, 8), *lie))[0])
        assert value == (1 if last < 77 else 3)
    assert law.draw(np.array([1]), Scripted(0x9000_0000_FFFF_FFFF)).tolist() == [1]
    assert law.draw(np.array([1]), Scripted(0x9000_0002 << 32 | 0xFFFF_FFFF)).tolist() == [4999]


@pytest.mark.parametrize("values", [2, 3, 64, 100, 4096])
def test_each_of_few_values_has_as_many_quarter_words(values: int) -> None:
    lows = np.arange(2**16, dtype=np.uint32)
    drawn = respond(lows | np.uint32(2**31), np.zeros(lows.size, dtype=np.int64), values, top=5)
    assert np.bincount(drawn[drawn != REDRAW], minlength=values).tolist() == [2**16 // values] * values


@pytest.mark.parametrize("values", [5000, 10_000, 3 * 2**18 + 1])
def test_each_value_has_as_many_half_words(values: int) -> None:
    rng = np.random.default_rng(values)
    for value in [0, 1, values - 1, *rng.integers(0, values, size=5).tolist()]:
        first, last = -(-(value << 32) // values), -(-((value + 1) << 32) // values)
        if values <= 10_000:  # too many to list: the ends decide
            lows = np.concatenate([np.arange(first, first + 1000), np.arange(last - 1000, last)])
        else:
            lows = np.arange(first, last)
        words = lows.astype(np.uint64) | np.uint64(2**63)
        drawn = respond(words, np.zeros(lows.size, dtype=np.int64), values, top=5)
        assert set(drawn.tolist()) <= {value, REDRAW}
        taken = int((drawn == value).sum()) + (last - first - lows.size)
        assert taken == 2**32 // values


def test_what_is_rejected_is_drawn_anew() -> None:
    law = ResponseLaw(5, 256, keep=1 << 250)
    script = Scripted(2**31, 5 * 1234 + 2)  # the lower quarter 0 favours value 0
    assert law.draw(np.array([4]), script).tolist() == [2]
    assert script.left == []
    top = np.array([(law.keep >> 240) << 16], dtype=np.uint32)
    assert respond(top, np.array([0]), 5, law.keep >> 240).tolist() == [UNDECIDED]
    many = ResponseLaw(5000, 256, keep=1 << 250)
    script = Scripted(2**63, 5000 * 1234 + 2)
    assert many.draw(np.array([4]), script).tolist() == [2]
    assert script.left == []


# -- bits -------------------------------------------------------------------------------------------------


class Pieces(RandomSource):
    """Hands out pieces of 16 bits, a list at each call and zeros after it; and numbers below a bound."""

    secure = False

    def __init__(self, calls: list[list[int]], *numbers: int) -> None:
        self.calls, self.numbers = calls, list(numbers)

    def words(self, count: int) -> NDArray[np.uint64]:
        pieces = self.calls.pop(0)
        return np.array([*pieces, *[0] * (4 * count - len(pieces))], dtype=np.uint16).view(np.uint64)

    def below(self, bound: int) -> int:
        number = self.numbers.pop(0)
        assert 0 <= number < bound
        return number


def pieces_of(*words: int) -> list[int]:
    return [word >> shift & 0xFFFF for word in words for shift in (48, 32, 16, 0)]


CHANCES = [
    Fraction(hb.OptimizedUnary(COLOURS, 1.0).law.other, 2**256),
    Fraction(hb.Rappor(COLOURS, 2.0).law.other, 2**256),
    Fraction(1, 2), Fraction(1, 3), Fraction(10**6, 10**6 + 7), Fraction(1, 10**30), Fraction(0), Fraction(1),
]  # fmt: skip


@functools.cache
def likely_first(chance: Fraction) -> tuple[list[int], list[Fraction]]:
    """Return all bytes, and where each of them ends from 0 to 1."""
    weights = [chance**ones * (1 - chance) ** (8 - ones) for ones in range(9)]
    order = sorted(range(256), key=lambda byte: (-weights[byte.bit_count()], byte))
    return order, list(accumulate(weights[byte.bit_count()] for byte in order))


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_bytes_are_exact_at_every_border(chance: Fraction) -> None:
    """A word below the first 64 bits of a border, one above them, and those bits with what decides after them."""
    order, ends = likely_first(chance)
    whole = chance.denominator**8
    for border in set(ends):
        head, left = divmod(int(border * whole) << 64, whole)
        for word, later in ((head - 1, 0), (head + 1, 0), (head, left - 1), (head, left)):
            if 0 <= word < 2**64 and 0 <= later < whole:
                number = (word + Fraction(later, whole)) / 2**64
                source = Pieces([[*pieces_of(word), 65535], [65535]], later)  # then the value's own bit, never one here
                row = draw_rows(8, Fraction(0), chance, np.array([0]), source)
                assert int(row[0, 0]) == order[bisect_right(ends, number)] & 127


class Number(SystemSource):
    """The same number each time: its first 64 bits, and what decides after them."""

    def __init__(self, word: int, later: int) -> None:
        self.word, self.later = word, later

    def bytes(self, count: int) -> NDArray[np.uint8]:
        return np.full(count // 2, self.word >> 48, dtype=np.uint16).view(np.uint8)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, self.word & 2**48 - 1, dtype=np.uint64) << np.uint64(16)

    def below(self, bound: int) -> int:
        return self.later


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_bytes_that_are_drawn_together_are_exact_at_every_border(chance: Fraction) -> None:
    order, ends = likely_first(chance)
    whole = chance.denominator**8
    for border in set(ends):
        head, left = divmod(int(border * whole) << 64, whole)
        for word, later in ((head - 1, 0), (head + 1, 0), (head, left - 1), (head, left)):
            if 0 <= word < 2**64 and 0 <= later < whole:
                number = (word + Fraction(later, whole)) / 2**64
                expected = order[bisect_right(ends, number)]
                assert draw_bytes(3, chance, Number(word, later)).tolist() == [expected] * 3


@pytest.mark.parametrize("bits", [5, 8, 19])
def test_noise_of_filters_is_that_of_their_bits(bits: int) -> None:
    """Certain chances turn every bit, keep it or replace it; none is set behind the last one."""
    rows = np.packbits(np.random.default_rng(bits).integers(0, 2, (7, bits)).astype(bool), axis=1)
    every = np.packbits(np.ones((7, bits), dtype=bool), axis=1)
    cases = {(0, 1): rows, (1, 0): rows ^ every, (1, 1): every, (0, 0): 0 * every}
    for (of_zeros, of_ones), expected in cases.items():
        noisy = noisy_rows(rows, bits, Fraction(of_zeros), Fraction(of_ones), SystemSource())
        np.testing.assert_array_equal(noisy, expected)
    source = SystemSource()
    for zero, one in ((Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 8), Fraction(3, 4))):  # turned, or drawn for each
        many = np.repeat(rows[:1], 40_000, axis=0)
        drawn = np.unpackbits(noisy_rows(many, bits, zero, one, source), axis=1, count=bits)
        chances = np.where(np.unpackbits(rows[0], count=bits), float(one), float(zero))
        ones = drawn.sum(axis=0)
        deviations = (ones - 40_000 * chances) ** 2 / (40_000 * chances * (1 - chances))
        assert stats.chi2(bits).sf(deviations.sum()) > LEVEL


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_sixteen_bits_decide_only_where_all_further_ones_would_agree(chance: Fraction) -> None:
    table = byte_table(chance)
    order, ends = likely_first(chance)
    assert table.order.tolist() == order
    for place, (start, end) in enumerate(pairwise([Fraction(0), *ends])):
        pieces = np.flatnonzero(table.places == place)
        if pieces.size:
            assert Fraction(int(pieces.max()) + 1, 2**16) <= end
            assert Fraction(int(pieces.min()), 2**16) >= start
    assert (table.places == OPEN).sum() <= 256


@pytest.mark.parametrize("own", [Fraction(1, 2), Fraction(2, 3), Fraction(171 * 2**300 + 9, 2**308)], ids=str)
def test_own_bits_are_exact_at_their_chance(own: Fraction) -> None:
    head, left = divmod(own.numerator << 64, own.denominator)
    cases = [(head - 1, None, 1), (head + 1, None, 0), (head, left, 0), *([(head, left - 1, 1)] if left else [])]
    for word, later, bit in cases:
        source = Pieces([[0, *pieces_of(word)]], *([] if later is None else [later]))
        assert draw_rows(2, own, Fraction(0), np.array([1]), source).tolist() == [[64 * bit]]
        assert source.numbers == []


@pytest.mark.parametrize("values", [2, 8, 9, 63, 64, 65, 130])
def test_bits_lie_in_their_places_and_no_further(values: int) -> None:
    for position in {0, 1, values // 2, values - 1}:
        alone = 1 << (-(-values // 8) * 8 - 1 - position)
        every = ((1 << values) - 1) << (-values % 8)
        for own, other, expected in ((1, 0, alone), (0, 1, every - alone), (1, 1, every), (0, 0, 0)):
            row = draw_rows(values, Fraction(own), Fraction(other), np.array([position]), SystemSource())
            assert int.from_bytes(row.tobytes(), "big") == expected


def test_a_row_goes_on_after_what_64_bits_left_open() -> None:
    """Two bytes of one row, and then its own bit; the next row begins anew."""
    third, own = Fraction(1, 3), Fraction(2, 7)
    table = byte_table(third)
    piece = [int(np.flatnonzero(table.places == place)[0]) for place in range(4)]
    head, left = divmod(2**8 << 64, 3**8)  # the first border
    calls = [
        [piece[1], *pieces_of(head)], pieces_of(head), pieces_of((2 << 64) // 7), [piece[2], piece[3], piece[1], 0]
    ]  # fmt: skip
    source = Pieces(calls, left, left - 1, (2 << 64) % 7 - 1)
    rows = draw_rows(24, own, third, np.array([0, 20]), source)
    zero, one, two, three = table.order[:4].tolist()
    assert rows.tolist() == [[one | 128, one, zero], [two, three, one | 8]]
    assert (source.calls, source.numbers) == ([], [])


def test_rows_go_on_where_the_pieces_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.sampling import bit_rows

    monkeypatch.setattr(bit_rows, "CHUNK_BYTES", 40)
    mechanism = MECHANISMS["rappor"]
    assert worst_p_value(mechanism, draws=30_000) > LEVEL


# -- subsets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
@pytest.mark.parametrize(("size", "held"), [(1, False), (2, False), (2, True), (3, True), (3, False), (1, True)])
def test_every_choice_of_pieces_makes_every_subset_as_often(size: int, held: bool, kind: type) -> None:
    """Floyd's method for five values: all numbers that its steps can draw, each by a piece from its middle."""
    others, chosen, bits = 4, size - held, 8 * np.dtype(kind).itemsize
    for mine in range(5):
        found: Counter[bytes] = Counter()
        for numbers in product(*(range(last + 1) for last in range(others - chosen, others))):
            bounds = range(others - chosen + 1, others + 1)
            pieces: NDArray[Any] = np.array(
                [(2 * number + 1 << bits) // (2 * bound) for number, bound in zip(numbers, bounds, strict=True)], kind
            )
            packed = np.zeros((1, 1), dtype=np.uint8)
            assert choose(pieces, np.array([mine]), np.array([held]), 5, size, packed) == 1
            row = np.unpackbits(packed, axis=1)[0].tolist()
            assert sum(row) == size
            assert row[mine] == held
            assert row[5:] == [0, 0, 0]
            found[packed.tobytes()] += 1
        assert len(found) == math.comb(4, chosen)
        assert len(set(found.values())) == 1


def test_pieces_that_would_favour_a_number_are_passed_over() -> None:
    """One of five others: each has as many of the 65,536 pieces, and the one that is left over is not used."""
    found: Counter[int] = Counter()
    for piece in range(2**16):
        packed = np.zeros((1, 1), dtype=np.uint8)
        done = choose(np.array([piece], np.uint16), np.array([5]), np.array([False]), 6, 1, packed)
        assert done == int(packed[0, 0] > 0)
        found[int(packed[0, 0])] += 1
    assert found == {0: 1, **dict.fromkeys((128, 64, 32, 16, 8), 13_107)}


def test_a_row_that_its_pieces_do_not_finish_is_left_empty() -> None:
    packed = np.zeros((2, 1), dtype=np.uint8)
    pieces = np.array([9, 9, 9], dtype=np.uint16)
    assert choose(pieces, np.array([0, 0]), np.array([True, True]), 5, 3, packed) == 1
    assert packed[1, 0] == 0


def test_the_true_value_is_left_out_by_all_digits() -> None:
    law = SubsetLaw(4, 2, 24, out=(0x1234 << 8) + 77)
    taken = [bool(law._taken(1, Scripted(0x1234, *rest(last, 8)))[0]) for last in range(256)]
    assert taken == [last >= 77 for last in range(256)]
    assert law._taken(2, Scripted(0x1235_1233)).tolist() == [False, True]


def test_subsets_in_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.sampling import frequency_oracle_laws as pointing

    monkeypatch.setattr(pointing, "CHUNK_BYTES", 17)
    assert worst_p_value(MECHANISMS["subset selection"], draws=30_000) > LEVEL


# -- noise on a line --------------------------------------------------------------------------------------


def short_blocks(monkeypatch: pytest.MonkeyPatch, rate: float, block: int, *, rounded: bool = False) -> client.Noise:
    """Return noise whose tables hold so few steps that draws go on often."""
    monkeypatch.setattr(client, "MAX_BLOCK_STEPS", block)
    return client.line_noise.__wrapped__(Fraction(rate), rounded)


@pytest.mark.parametrize("block", [1, 2, 5])
def test_noise_of_many_blocks(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    noise = short_blocks(monkeypatch, 0.5, block)
    assert len(noise.steps) == block
    drawn = LineNoise(noise).draw(300_000, SystemSource())
    chances = [float(noise.probability(abs(step))) for step in range(-40, 41)]
    seen = np.bincount(np.clip(drawn + 40, 0, 80), minlength=81).astype(np.float64)
    assert p_value(seen, np.array(chances)) > LEVEL
    assert abs(sum(chances) - 1) < 1e-8


def test_noise_that_may_stop_early_is_clamped_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = hb.TruncatedGeometric(LINE, 0.4)
    law = LineNoiseLaw(short_blocks(monkeypatch, 0.4, 2), 10, 0, clamped=True)
    for position in (0, 3, 9):
        drawn = law.draw(np.full(200_000, position), SystemSource())
        assert p_value(np.bincount(drawn, minlength=10).astype(np.float64), mechanism.matrix()[position]) > LEVEL


def test_one_draw_of_the_client_is_the_same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = short_blocks(monkeypatch, 0.5, 3)
    chances = np.array([float(noise.probability(abs(step))) for step in range(-40, 41)])
    drawn = np.array([noise.draw() for _ in range(30_000)])
    assert p_value(np.bincount(np.clip(drawn + 40, 0, 80), minlength=81).astype(np.float64), chances) > LEVEL
    ends = np.clip([noise.draw(most=4) for _ in range(30_000)], -4, 4)
    tail = float(noise.beyond(4))
    wanted = np.array([tail, *chances[37:44], tail])
    assert p_value(np.bincount(ends + 4, minlength=9).astype(np.float64), wanted) > LEVEL


# -- noise on a map ---------------------------------------------------------------------------------------


def displacements(count: int, reach: float) -> NDArray[np.int64]:
    rng = np.random.default_rng(4)
    sizes = np.exp(rng.uniform(0, math.log(reach), size=(count, 2)))
    signed: NDArray[np.int64] = (sizes * rng.choice([-1, 1], size=(count, 2))).astype(np.int64)
    return signed


@pytest.mark.parametrize(
    ("epsilon", "sides"), [(1.0, (1.0, 0.75)), (0.01, (0.3, 2.0)), (20.0, (0.01, 0.02)), (3.0, (1e-3, 5.0))]
)
def test_bounds_by_floats_hold_the_exact_chance(epsilon: float, sides: tuple[float, float]) -> None:
    law = PlanarGeometricLaw(epsilon, sides, np.zeros((1, 2), dtype=np.int64), np.asarray)
    proposed = np.concatenate([np.array([[0, 0], [1, 0], [0, 1], [-1, 1]]), displacements(60, 200.0)])
    low, high = law._bounds(proposed)
    for place, (columns, rows) in enumerate(np.abs(proposed).tolist()):
        chance = client.acceptance_probability(epsilon, sides, columns, rows) * 2**53
        assert Fraction(float(low[place])) <= chance <= Fraction(float(high[place]))
    assert ((high - low) <= np.maximum(high * 2.0**-30, 1.0)).all()  # so close that one word nearly always decides


def test_undecided_displacements_are_decided_by_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = MECHANISMS["planar geometric, missing cells"]
    monkeypatch.setattr(
        PlanarGeometricLaw, "_bounds", lambda _, proposed: (np.zeros(len(proposed)), np.full(len(proposed), 2.0**53))
    )
    assert worst_p_value(mechanism, draws=30_000) > LEVEL


def test_a_displacement_is_taken_below_its_chance_to_the_last_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    law = PlanarGeometricLaw(1.0, (1.0, 0.75), np.zeros((1, 2), dtype=np.int64), np.asarray)
    chance = client.acceptance_probability(1.0, (1.0, 0.75), 3, 1)
    width = max(128, -(-chance.denominator.bit_length() // 64) * 64)
    border = int(chance * 2**width)
    assert Fraction(border, 2**width) == chance
    for number, taken in ((border - 1, True), (border, False), (0, True), (2**width - 1, False)):
        word, last = number >> (width - 64), number & ((1 << (width - 64)) - 1)
        close = number in (border - 1, border)
        script = Scripted(word, *(rest(last, width - 64) if close else []))
        assert law._take(np.array([[-3, 1]]), script).tolist() == [taken]
        assert script.left == []


def test_one_draw_of_the_client_is_the_same_planar_noise() -> None:
    mechanism = MECHANISMS["planar geometric, untruncated"]
    own = MAP.steps

    def one_by_one(values: NDArray[Any]) -> NDArray[Any]:
        return np.array([np.add(own[value], client.draw_planar_noise(1.0, MAP.sides)) for value in values.tolist()])

    assert worst_p_value(mechanism, one_by_one, draws=30_000) > LEVEL


def test_one_draw_of_the_client_is_the_same_subset_and_number() -> None:
    law = SubsetLaw(5, 2, *client.subset_parameters(5, 2, Fraction(1)))

    def one_by_one(values: NDArray[Any]) -> NDArray[Any]:
        positions = COLOURS.index(values).tolist()
        rows = [client.draw_subset(5, position, 2, law.width, law.out) for position in positions]
        return np.packbits(np.array(rows), axis=1)

    assert worst_p_value(MECHANISMS["subset selection"], one_by_one, draws=30_000) > LEVEL
    thirds = np.bincount([client.random_below(3) for _ in range(30_000)], minlength=3).astype(np.float64)
    assert p_value(thirds, np.full(3, 1 / 3)) > LEVEL
    heads = sum(client.random_event(Fraction(3, 8)) for _ in range(30_000))
    assert p_value(np.array([heads, 30_000.0 - heads]), np.array([3 / 8, 5 / 8])) > LEVEL


def test_the_client_hashes_like_the_library() -> None:
    from hubbub.mechanisms.local_hashing import hash_v1

    rng = np.random.default_rng(1)
    for buckets in (2, 3, 1000, 2**31):
        seeds = rng.integers(0, 2**64, size=50, dtype=np.uint64)
        positions = rng.integers(0, 10**8, size=50)
        ours = [client.bucket_of(s, p, buckets) for s, p in zip(seeds.tolist(), positions.tolist(), strict=True)]
        assert ours == hash_v1(seeds, positions, buckets).tolist()


def test_the_law_of_bits_is_the_one_the_kernel_compares_with() -> None:
    assert isinstance(hb.OptimizedUnary(COLOURS, 1.0).law, BitFlipLaw)
    assert hb.OptimizedUnary(COLOURS, 1.0).law.own == 1 << (hb.OptimizedUnary(COLOURS, 1.0).law.width - 1)
