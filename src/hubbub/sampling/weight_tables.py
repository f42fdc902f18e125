"""Tables of whole numbers: one for all values, or one row for each value."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.sampling.base import Law
from hubbub.sampling.random_source import RandomSource


class WeightTable:
    """One table: cell i is drawn with probability weights[i] / 2^width."""

    def __init__(self, width: int, weights: Sequence[int]) -> None:
        self.width = width
        self.sums = running_sums(width, weights)
        self.heads = heads(width, self.sums)
        from hubbub.sampling.compiled_draws import GUIDE_BITS

        starts = np.arange(2**GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
        self._guide = np.searchsorted(self.heads, starts, side="left")

    def draw(self, count: int, source: RandomSource) -> Positions:
        """Return the numbers of `count` cells."""
        from hubbub.sampling.compiled_draws import UNDECIDED, look_up

        words = source.words(count)
        drawn = look_up(words, self.heads, self._guide)
        for place in np.flatnonzero(drawn == UNDECIDED):
            drawn[place] = decide(int(words[place]), self.width, self.sums, source)
        return drawn


class TableLaw(Law):
    """A table for each value: `row(position)` returns its weights over 2^width when the value first occurs."""

    def __init__(self, values: int, outputs: int, width: int, row: Callable[[int], Sequence[int]]) -> None:
        self.values, self.outputs, self.width = values, outputs, width
        self.row = row
        self._heads = np.empty((values, outputs - 1), dtype=np.uint64)
        self._built = np.zeros(values, dtype=bool)

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Look each word up in the row of its value."""
        from hubbub.sampling.compiled_draws import UNDECIDED, look_up_rows

        for position in np.unique(positions):
            if not self._built[position]:
                self._heads[position] = heads(self.width, running_sums(self.width, self.row(int(position))))
                self._built[position] = True
        words = source.words(positions.size)
        drawn = look_up_rows(words, self._heads, positions)
        for place in np.flatnonzero(drawn == UNDECIDED):
            sums = running_sums(self.width, self.row(int(positions[place])))
            drawn[place] = decide(int(words[place]), self.width, sums, source)
        return drawn


def running_sums(width: int, weights: Sequence[int]) -> list[int]:
    """Return the running sums of a table, and check that they end at 2^width."""
    sums = list(accumulate(weights))
    if sums[-1] != 1 << width or min(weights) < 0:
        raise ArithmeticError("the table does not sum to a power of two")
    return sums


def heads(width: int, sums: Sequence[int]) -> NDArray[np.uint64]:
    """Return the first 64 bits of the borders between cells."""
    top = 2**64 - 1  # empty cells at the end: a border that is only met, never passed
    return np.array([min(top, border >> (width - 64)) for border in sums[:-1]], dtype=np.uint64)


def decide(word: int, width: int, sums: Sequence[int], source: RandomSource) -> int:
    """Return the cell of a number whose first 64 bits are `word`, after drawing the others."""
    return bisect_right(sums, (word << (width - 64)) | source.number(width - 64))


def table_of_floats(matrix: Floats) -> TableLaw:
    """Return the table of a matrix's floats, which are whole numbers over powers of two.

    The sum of a row differs from 1 by rounding; the difference is added to its largest entry.
    """
    mantissas, exponents = np.frexp(matrix)
    digits = (mantissas * 2.0**53).astype(np.int64)
    width = max(256, -(-(53 - int(exponents[matrix > 0].min())) // 64) * 64)

    def row(position: int) -> list[int]:
        shifts = (exponents[position] + (width - 53)).tolist()
        weights = [
            digit << shift if digit else 0 for digit, shift in zip(digits[position].tolist(), shifts, strict=True)
        ]
        weights[int(np.argmax(matrix[position]))] += (1 << width) - sum(weights)
        return weights

    values, outputs = matrix.shape
    return TableLaw(values, outputs, width, row)
