"""The exact laws of two answers whose probabilities are fractions, and of rows of bits like them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.sampling.base import Law
from hubbub.sampling.bit_rows import draw_rows, head_of
from hubbub.sampling.random_source import RandomSource


@dataclass(frozen=True)
class TwoAnswerLaw(Law):
    """The first of two answers with probability `chances[position]`, any fraction, otherwise the second."""

    chances: tuple[Fraction, ...]

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Compare the first 64 bits, and where they are equal what is left of the fraction."""
        heads = np.array([head_of(chance) for chance in self.chances], dtype=np.uint64)[positions]
        words = source.words(positions.size)
        drawn = (words >= heads).astype(np.int64)
        for place in np.flatnonzero(words == heads):
            chance = self.chances[positions[place]]
            rest = (chance.numerator << 64) - int(heads[place]) * chance.denominator
            drawn[place] = source.below(chance.denominator) >= rest
        return drawn


@dataclass(frozen=True)
class FractionFlipLaw(Law):
    """A bit for each value on its own: 1 with probability `own` for the true one, `other` for others; any fractions."""

    values: int
    own: Fraction
    other: Fraction

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Look up eight bits at a time."""
        return draw_rows(self.values, self.own, self.other, positions, source)
