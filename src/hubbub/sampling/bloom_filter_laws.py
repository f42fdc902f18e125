"""Exact laws of noisy Bloom filters: a cohort that has nothing to tell, and bits with fractions for probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.sampling.base import Law
from hubbub.sampling.numbered_rows import NUMBER_BYTES, with_numbers
from hubbub.sampling.random_source import RandomSource
from hubbub.sampling.two_answer_law import TwoAnswerLaw
from hubbub.sampling.two_stage_laws import TwoStageLaw

CHUNK_BITS = 2_000_000  # drawn at a time


@dataclass(frozen=True, eq=False)
class BloomFilters:
    """The filters of all values in all cohorts, packed: cohorts by values by bytes.

    The value at position `rest` stands for texts that are not listed, and sets `hashes` random bits; -1 for none.
    """

    packed: NDArray[np.uint8]
    bits: int
    hashes: int
    rest: int = -1

    def of(self, cohorts: Positions, positions: Positions, source: RandomSource) -> NDArray[np.bool_]:
        """Return the bits of values in cohorts, a row for each."""
        rows = np.unpackbits(self.packed[cohorts, positions], axis=1, count=self.bits).astype(bool)
        unlisted = np.flatnonzero(positions == self.rest)
        drawn = source.integers(self.bits, unlisted.size * self.hashes).reshape(unlisted.size, self.hashes)
        rows[unlisted[:, None], drawn] = True
        return rows


@dataclass(frozen=True, eq=False)
class NoisyFilterLaw(Law):
    """Any cohort, and for each bit of the filter a one with probability `one` or `zero`, as it is a one or a zero."""

    filters: BloomFilters
    zero: Fraction
    one: Fraction

    @property
    def cohorts(self) -> int:
        """The number of cohorts."""
        return len(self.filters.packed)

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Draw cohorts, and then bits."""
        cohorts = source.integers(self.cohorts, positions.size)
        drawn = [np.empty((0, -(-self.filters.bits // 8)), dtype=np.uint8)]
        step = max(1, CHUNK_BITS // self.filters.bits)
        for first in range(0, positions.size, step):
            part = slice(first, first + step)
            rows = self.filters.of(cohorts[part], positions[part], source)
            drawn.append(noisy_rows(rows, self.zero, self.one, source))
        return with_numbers(cohorts, np.concatenate(drawn))


@dataclass(frozen=True, eq=False)
class BloomLaw(TwoStageLaw):
    """Permanent bits, and reports that send a permanent zero as a one with probability `p`, a one with `q`."""

    permanent: NoisyFilterLaw
    p: Fraction
    q: Fraction

    @property
    def once(self) -> NoisyFilterLaw:
        """The law of a single report."""
        zero, one = (self.p + chance * (self.q - self.p) for chance in (self.permanent.zero, self.permanent.one))
        return NoisyFilterLaw(self.permanent.filters, zero, one)

    def report(self, codes: Codes, source: RandomSource) -> NDArray[np.uint8]:
        """Draw the bits of reports."""
        drawn, bits = codes.copy(), self.permanent.filters.bits
        step = max(1, CHUNK_BITS // bits)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            rows = np.unpackbits(codes[part, NUMBER_BYTES:], axis=1, count=bits).astype(bool)
            drawn[part, NUMBER_BYTES:] = noisy_rows(rows, self.p, self.q, source)
        return drawn


def noisy_rows(rows: NDArray[np.bool_], zero: Fraction, one: Fraction, source: RandomSource) -> NDArray[np.uint8]:
    """Draw a bit for each bit of some rows: 1 with probability `zero` or `one`, as it is 0 or 1."""
    ones = TwoAnswerLaw((zero, one)).draw(rows.ravel().astype(np.int64), source) == 0
    return np.packbits(ones.reshape(rows.shape), axis=1)
