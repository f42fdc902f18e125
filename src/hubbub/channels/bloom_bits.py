"""Noisy Bloom filters: likelihoods that depend on how many bits of a value's filter are ones in the report.

Relative to a filter without bits, a filter of s bits, i of which are ones in the report, has the likelihood
e^(i gain of a one + (s - i) gain of a zero). There are few such numbers: they are looked up as the bits are counted,
and no matrix is kept. Filters depend on the cohort.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.base import Channel
from hubbub.channels.rounding import entry_error
from hubbub.core.arrays import Floats, Positions, frozen


class BloomChannel(Channel):
    """The likelihood of reports by the bits of filters in their cohorts, and of random filters for one value.

    `rows` are packed reports; `filters` are packed, cohorts by values by bytes; `gains` what a zero and a one of the
    report tell for a one of the filter; `most` the number of bits that a filter has at most. The likelihood of value
    `unlisted` (-1: none) is given for each report.
    """

    def __init__(
        self,
        rows: NDArray[np.uint8],
        cohorts: Positions,
        filters: NDArray[np.uint8],
        *,
        gains: tuple[float, float],
        most: int,
        log_scale: Floats,
        unlisted: int,
        log_unlisted: Floats,
    ) -> None:
        self.values, self.patterns = filters.shape[1], len(rows)
        top = most * max(0.0, *gains)
        self.log_scale = frozen(log_scale + top)
        self._sent, self._cohorts = _words(rows), np.ascontiguousarray(cohorts)
        self._filters = _words(filters)
        self._sizes = np.bitwise_count(filters).sum(axis=2, dtype=np.int64)
        size, ones = np.indices((most + 1, most + 1))
        self._table = np.exp(np.where(ones <= size, ones * gains[1] + (size - ones) * gains[0], 0.0) - top)
        self._unlisted, self._own = unlisted, np.exp(log_unlisted - top)
        self._least = float(self._table[self._table > 0].min(initial=1.0))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        from hubbub.channels.filter_loops import filter_rows

        own = np.ascontiguousarray(self._filters[:, positions]), np.ascontiguousarray(self._sizes[:, positions])
        chosen: Floats = filter_rows(positions.size * self.patterns, self._sent, self._cohorts, *own, self._table)
        chosen[positions == self._unlisted] = self._own
        return chosen

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored, over the values that have a share."""
        if theta.ndim > 1:
            return np.reshape([self.forward(row) for row in theta], (*theta.shape[:-1], self.patterns))
        from hubbub.channels.filter_loops import sums_over_filters

        some = np.flatnonzero(theta)
        some = some[some != self._unlisted]
        own = np.ascontiguousarray(self._filters[:, some]), np.ascontiguousarray(self._sizes[:, some])
        work = some.size * self.patterns
        sums: Floats = sums_over_filters(work, self._sent, self._cohorts, *own, self._table, theta[some])
        return sums + theta[self._unlisted] * self._own if self._unlisted >= 0 else sums

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return self._gathered(ratio, 1)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return self._gathered(weights, 2)

    def _gathered(self, numbers: Floats, power: int) -> Floats:
        if numbers.ndim > 1:
            return np.reshape([self._gathered(row, power) for row in numbers], (*numbers.shape[:-1], self.values))
        from hubbub.channels.filter_loops import sums_over_reports

        weights = np.ascontiguousarray(numbers, dtype=np.float64)
        table = self._table**power
        sums: Floats = sums_over_reports(
            self.values * self.patterns, self._sent, self._cohorts, self._filters, self._sizes, table, weights
        )
        if self._unlisted >= 0:
            sums[self._unlisted] = self._own**power @ weights
        return sums

    @property
    def entry_rounding(self) -> float:
        """From the lowest entry."""
        return entry_error(float(np.abs(self.log_scale).max(initial=0.0)) - math.log(self._least))


def _words(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return packed rows as words of 64 bits."""
    width = -(-rows.shape[-1] // 8) * 8
    padded = np.zeros((*rows.shape[:-1], width), dtype=np.uint8)
    padded[..., : rows.shape[-1]] = rows
    return padded.view(np.uint64)
