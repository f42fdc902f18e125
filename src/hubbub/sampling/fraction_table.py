"""The exact law of a table of fractions."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.sampling.random_source import RandomSource


class FractionTable:
    """One table: cell i is drawn with probability `chances[i]`, any positive fractions that add up to 1."""

    def __init__(self, chances: Sequence[Fraction]) -> None:
        self._borders = list(accumulate(chances))[:-1]
        self._whole = math.lcm(*(chance.denominator for chance in chances))
        self._heads = np.array([math.floor(border * 2**64) for border in self._borders], dtype=np.uint64)

    def draw(self, count: int, source: RandomSource) -> Positions:
        """Compare the first 64 bits with the borders, and where they are those of a border what is left of it."""
        words = source.words(count)
        drawn = np.searchsorted(self._heads, words, side="right")
        for place in np.flatnonzero(np.isin(words, self._heads)):
            number = (int(words[place]) + Fraction(source.below(self._whole), self._whole)) / 2**64
            drawn[place] = bisect_right(self._borders, number)
        return drawn
