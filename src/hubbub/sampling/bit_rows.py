"""Rows of independent bits, eight at a time.

Eight bits that are one with the same chance are one of 256 bytes, whose probabilities are known exactly. A byte is
looked up by 16 random bits, which nearly always decide it; otherwise by 64, and then by all the others.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.sampling.random_source import RandomSource

CHUNK_BYTES = 4_000_000  # of randomness, drawn at a time
KEPT_TABLES = 32  # of so many chances; each takes 140 kB
OPEN = -1  # further bits must decide


@dataclass(frozen=True)
class ByteTable:
    """The bytes that eight bits of the same chance make, likely ones first, and which random bits decide for which.

    Attributes
    ----------
    order
        The bytes.
    places
        The place in `order` for each number of 16 bits; `OPEN` where they do not decide.
    heads
        The first 64 bits of the borders between places.
    borders, whole
        The borders, as whole numbers over `whole`.
    """

    order: NDArray[np.uint8]
    places: NDArray[np.int16]
    heads: NDArray[np.uint64]
    borders: tuple[int, ...]
    whole: int

    def decide(self, word: int, source: RandomSource) -> int:
        """Return the byte of a number whose first 64 bits are `word`, after drawing the others."""
        number = word * self.whole + source.below(self.whole)
        return int(self.order[bisect_right(self.borders, number, key=lambda border: border << 64)])


@functools.lru_cache(maxsize=KEPT_TABLES)
def byte_table(chance: Fraction) -> ByteTable:
    """Return the table of eight bits that are one with this chance."""
    one, zero = chance.numerator, chance.denominator - chance.numerator
    weights = [one**ones * zero ** (8 - ones) for ones in range(9)]
    order = sorted(range(256), key=lambda byte: (-weights[byte.bit_count()], byte))
    *borders, whole = accumulate(weights[byte.bit_count()] for byte in order)
    heads = np.array([head_of(Fraction(border, whole)) for border in borders], dtype=np.uint64)
    return ByteTable(np.array(order, dtype=np.uint8), _decided(heads), heads, tuple(borders), whole)


def head_of(chance: Fraction) -> int:
    """Return the first 64 bits of a chance; of a certain one, the largest number that they can be."""
    return min((chance.numerator << 64) // chance.denominator, 2**64 - 1)


def _decided(heads: NDArray[np.uint64]) -> NDArray[np.int16]:
    """Return the place that all numbers share whose first 16 bits are the same, or `OPEN`."""
    starts = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
    ends = starts | np.uint64(2**48 - 1)
    below, not_above = np.searchsorted(heads, starts, side="left"), np.searchsorted(heads, ends, side="right")
    return np.where(below == not_above, below, OPEN).astype(np.int16)


def draw_bytes(count: int, chance: Fraction, source: RandomSource) -> NDArray[np.uint8]:
    """Return bytes of eight independent bits each, all of which are one with this chance."""
    table, fresh = byte_table(chance), source.bytes(2 * count).view(np.uint16)
    places = table.places[fresh]
    undecided = np.flatnonzero(places == OPEN)
    further = source.words(undecided.size) >> np.uint64(16)
    words = fresh[undecided].astype(np.uint64) << np.uint64(48) | further
    found = np.searchsorted(table.heads, words)
    drawn: NDArray[np.uint8] = table.order[places]  # of those that are undecided, any byte
    drawn[undecided] = table.order[found]
    for place in np.flatnonzero(np.isin(words, table.heads)).tolist():
        drawn[undecided[place]] = table.decide(int(words[place]), source)
    return drawn


def draw_rows(
    values: int, own: Fraction, other: Fraction, positions: Positions, source: RandomSource
) -> NDArray[np.uint8]:
    """Return packed rows of bits, the one at a row's position with the chance `own`, all others with `other`."""
    from hubbub.sampling.compiled_draws import fill_rows

    packed = np.empty((positions.size, -(-values // 8)), dtype=np.uint8)
    table, head = byte_table(other), head_of(own)
    digits = np.array([head >> shift & 0xFFFF for shift in (48, 32, 16, 0)], dtype=np.uint16)
    left = (own.numerator << 64) - head * own.denominator  # of the chance, where the first bits are its own
    width = packed.shape[1]
    step, done, column = max(1, CHUNK_BYTES // (2 * width + 2)), 0, 0
    while done < positions.size:
        part = positions[done : done + step]
        pieces = part.size * (width + 1)
        fresh = source.bytes(2 * (pieces + pieces // 64 + 4 * (width + 1))).view(np.uint16)
        rows, column, word = fill_rows(fresh, part, values, table, digits, packed[done:], column)
        done += rows
        if word is None:
            continue
        if column < width:
            packed[done, column] = table.decide(word, source)
            column += 1
        else:
            if source.below(own.denominator) < left:
                packed[done, positions[done] >> 3] |= 128 >> (positions[done] & 7)
            done, column = done + 1, 0
    return packed
