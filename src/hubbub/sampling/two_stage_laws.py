"""Exact laws in two stages: a permanent response, and reports that are made from it without looking at the value."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.sampling.base import Law
from hubbub.sampling.frequency_oracle_laws import BitFlipLaw, ResponseLaw
from hubbub.sampling.random_source import RandomSource


class TwoStageLaw(Law):
    """A permanent response, and any number of reports made from it.

    Attributes
    ----------
    permanent
        The law of the permanent response. All reports together tell no more than that.
    """

    permanent: Law

    @property
    @abstractmethod
    def once(self) -> Law:
        """The law of a single report."""

    @abstractmethod
    def report(self, codes: Codes, source: RandomSource) -> Codes:
        """Return one report for each permanent response."""

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Draw single reports, in one stage: nobody keeps their permanent responses."""
        return self.once.draw(positions, source)


@dataclass(frozen=True)
class TwoStageFlipLaw(TwoStageLaw):
    """Noisy bits in two stages: reports lose a one of the permanent row, or raise a zero, each over 2^width."""

    permanent: BitFlipLaw
    lost: int
    raised: int

    @property
    def once(self) -> BitFlipLaw:
        """The law of a single report."""
        values, width = self.permanent.values, self.permanent.width
        whole = 1 << width
        own, other = (
            one * (whole - self.lost) + (whole - one) * self.raised
            for one in (self.permanent.own, self.permanent.other)
        )
        return BitFlipLaw(values, 2 * width, own, other)

    def report(self, codes: Codes, source: RandomSource) -> NDArray[np.uint8]:
        """Turn bits of permanent rows."""
        raising = self._turns(self.raised, len(codes), source)
        if self.lost == self.raised:
            return np.asarray(codes ^ raising, dtype=np.uint8)
        losing = self._turns(self.lost, len(codes), source)
        return np.asarray((codes & ~losing) | (~codes & raising), dtype=np.uint8)

    def _turns(self, chance: int, rows: int, source: RandomSource) -> NDArray[np.uint8]:
        law = BitFlipLaw(self.permanent.values, self.permanent.width, chance, chance)
        return law.draw(np.zeros(rows, dtype=np.int64), source)


@dataclass(frozen=True)
class TwoStageResponseLaw(TwoStageLaw):
    """Randomized response to a randomized response, which is kept with probability kept / 2^width."""

    permanent: ResponseLaw
    kept: int

    @property
    def once(self) -> ResponseLaw:
        """The law of a single report: any output if either stage takes any."""
        law = self.permanent
        return ResponseLaw(law.values, 2 * law.width, law.keep * self.kept)

    def report(self, codes: Codes, source: RandomSource) -> Positions:
        """Respond to permanent responses."""
        return ResponseLaw(self.permanent.values, self.permanent.width, self.kept).draw(codes, source)
