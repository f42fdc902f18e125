"""The exact laws of two answers whose probabilities are fractions, and of rows of bits like them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.sampling.base import Law
from hubbub.sampling.random_source import RandomSource

CHUNK_BITS = 1_000_000  # drawn at a time


@dataclass(frozen=True)
class TwoAnswerLaw(Law):
    """The first of two answers with probability `chances[position]`, any fraction, otherwise the second."""

    chances: tuple[Fraction, ...]

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Compare the first 64 bits, and where they are equal what is left of the fraction."""
        top = [min((chance.numerator << 64) // chance.denominator, 2**64 - 1) for chance in self.chances]
        heads = np.array(top, dtype=np.uint64)[positions]
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
        """Draw every bit as one of two answers, for some users at a time."""
        packed = np.empty((positions.size, -(-self.values // 8)), dtype=np.uint8)
        answers, step = TwoAnswerLaw((self.other, self.own)), max(1, CHUNK_BITS // self.values)
        for first in range(0, positions.size, step):
            mine = positions[first : first + step]
            is_own = mine[:, None] == np.arange(self.values)
            drawn = answers.draw(is_own.ravel().astype(np.int64), source).reshape(is_own.shape)
            packed[first : first + step] = np.packbits(drawn == 0, axis=1)
        return packed
