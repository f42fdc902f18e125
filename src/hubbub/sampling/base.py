"""What a mechanism really does to its values: probabilities as whole numbers over powers of two."""

from __future__ import annotations

from abc import ABC, abstractmethod

from hubbub.core.arrays import Codes, Positions
from hubbub.sampling.random_source import RandomSource


class Law(ABC):
    """An exact conditional distribution over codes of outputs, and how it is drawn.

    The first word of randomness nearly always decides; where it does not, further ones are drawn and compared as
    whole numbers, so that a draw has exactly the stated probabilities.
    """

    @abstractmethod
    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Return one encoded output for each value, given by position."""


class FixedLaw(Law):
    """No randomness at all: a code for each value."""

    def __init__(self, codes: Positions) -> None:
        self.codes = codes

    def draw(self, positions: Positions, source: RandomSource) -> Codes:  # noqa: ARG002
        """Look the code up."""
        return self.codes[positions]
