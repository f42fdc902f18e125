"""The exact law of noisy bits about a few buckets: which ones are asked is drawn first, and has nothing to tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.sampling.frequency_oracle_laws import BitFlipLaw
from hubbub.sampling.random_source import RandomSource
from hubbub.sampling.two_stage_laws import TwoStageLaw

CHUNK_PLACES = 2_000_000  # of lists of buckets that are shuffled at a time


@dataclass(frozen=True)
class AskedBitsLaw(TwoStageLaw):
    """Any `asked` of the buckets, and for each a bit: 1 with probability own / 2^width for the value's, else other.

    The values are dealt into buckets one after the other. Rows are packed twice: the buckets that are asked, and the
    ones among them. A report is the permanent response itself.
    """

    values: int
    asked: int
    bits: BitFlipLaw  # of all buckets

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return self.bits.values

    @property
    def permanent(self) -> AskedBitsLaw:  # type: ignore[override]
        """The law itself."""
        return self

    @property
    def once(self) -> AskedBitsLaw:
        """The law itself."""
        return self

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Draw which buckets are asked, and a bit for every bucket; keep those that are asked."""
        asked = self._asked(positions.size, source)
        ones = self.bits.draw(positions * self.buckets // self.values, source)
        return np.concatenate([asked, asked & ones], axis=1)

    def report(self, codes: Codes, source: RandomSource) -> Codes:  # noqa: ARG002
        """Return the responses."""
        return codes

    def _asked(self, users: int, source: RandomSource) -> NDArray[np.uint8]:
        """Return packed rows with a one for each bucket that is asked: the first places of shuffled lists.

        If they are more than half of the buckets, those that are not asked are drawn.
        """
        few = min(self.asked, self.buckets - self.asked)
        packed = np.empty((users, -(-self.buckets // 8)), dtype=np.uint8)
        step = max(1, CHUNK_PLACES // self.buckets)
        for first in range(0, users, step):
            rows = np.arange(min(step, users - first))
            lists = np.tile(np.arange(self.buckets), (rows.size, 1))
            chosen = np.zeros(lists.shape, dtype=bool)
            for place in range(few):
                other = place + source.integers(self.buckets - place, rows.size)
                chosen[rows, lists[rows, other]] = True
                lists[rows, other] = lists[:, place]
            packed[first : first + step] = np.packbits(chosen if few == self.asked else ~chosen, axis=1)
        return packed
