"""Exact laws of noisy Bloom filters: a cohort that has nothing to tell, and bits with fractions for probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.sampling.base import Law
from hubbub.sampling.bit_rows import draw_bytes
from hubbub.sampling.numbered_rows import NUMBER_BYTES, with_numbers
from hubbub.sampling.random_source import RandomSource
from hubbub.sampling.two_stage_laws import TwoStageLaw

CHUNK_BYTES = 250_000  # of rows, drawn at a time


@dataclass(frozen=True, eq=False)
class BloomFilters:
    """The filters of all values in all cohorts, packed: cohorts by values by bytes.

    The value at position `rest` stands for texts that are not listed, and sets `hashes` random bits; -1 for none.
    """

    packed: NDArray[np.uint8]
    bits: int
    hashes: int
    rest: int = -1

    def of(self, cohorts: Positions, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Return the packed bits of values in cohorts, a row for each."""
        rows: NDArray[np.uint8] = self.packed[cohorts, positions]
        unlisted = np.flatnonzero(positions == self.rest)
        drawn = source.integers(self.bits, unlisted.size * self.hashes).reshape(unlisted.size, self.hashes)
        np.bitwise_or.at(rows, (unlisted[:, None], drawn >> 3), (128 >> (drawn & 7)).astype(np.uint8))
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
        rows = self.filters.of(cohorts, positions, source)
        return with_numbers(cohorts, noisy_rows(rows, self.filters.bits, self.zero, self.one, source))


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
        drawn[:, NUMBER_BYTES:] = noisy_rows(codes[:, NUMBER_BYTES:], bits, self.p, self.q, source)
        return drawn


def noisy_rows(
    rows: NDArray[np.uint8], bits: int, zero: Fraction, one: Fraction, source: RandomSource
) -> NDArray[np.uint8]:
    """Draw a bit for each bit of packed rows: 1 with probability `zero` or `one`, as it is 0 or 1."""
    noisy = np.empty_like(rows)
    step = max(1, CHUNK_BYTES // rows.shape[1])
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        of_zeros = draw_bytes(some.size, zero, source).reshape(some.shape)
        if zero + one == 1:  # a bit is turned round, whatever it is
            noisy[first : first + step] = some ^ of_zeros
        else:
            of_ones = draw_bytes(some.size, one, source).reshape(some.shape)
            noisy[first : first + step] = (some & of_ones) | (~some & of_zeros)
    if bits % 8:  # no bit behind the last one
        noisy[:, -1] &= np.uint8(255 << (8 - bits % 8) & 255)
    return noisy
