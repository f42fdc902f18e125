"""The exact law of two answers whose probabilities are fractions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.sampling.base import Law
from hubbub.sampling.random_source import RandomSource


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
