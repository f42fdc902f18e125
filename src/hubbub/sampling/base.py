"""The protocol of laws: exact distributions of outputs, in whole numbers over powers of two, or in fractions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hubbub.core.arrays import Codes, Positions
from hubbub.sampling.random_source import RandomSource


class Law(ABC):
    """An exact conditional distribution over codes of outputs, and how to draw from it.

    The first random word nearly always decides. If it does not, further words are drawn and compared as
    whole numbers, so that a draw has exactly the stated probabilities.
    """

    @abstractmethod
    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Return one encoded output for each position."""


class FixedLaw(Law):
    """One fixed code for each value, without randomness."""

    def __init__(self, codes: Positions) -> None:
        self.codes = codes

    def draw(self, positions: Positions, source: RandomSource) -> Codes:  # noqa: ARG002
        """Look the code up."""
        return self.codes[positions]
