"""The covariance of an estimate over thousands of values, in a form that is small: `CompactCovariance`.

Errors of neighbours on a line or a map are correlated, those of values far apart hardly ever, and errors of categories
only because shares sum to 1. So the covariance is, up to little,

    M  =  diagonal  +  bands  +  F' C F,

where a band holds the covariances of all pairs whose numbers (labels of a line or a map, else positions) differ by one
offset, F has a few rows, and C is small. What is left out is bounded, so that no set's deviation is understated. With c
the indicator of a set:

* For covariances E that no band holds, c' E c is at most the sum of the rows of max(E, 0) over the set: `left_out`.
* Where the local part is not M itself but (I - X) M (I - X)', Minkowski's inequality bounds its deviation by that of M
  plus the root of c' X M X' c, which is at most the sum of the rows of |X| |M| |X|' over the set: `inexact`.

Both hold for any weights c between 0 and 1, with the sums over all values weighted by c. All shares sum to 1, so a set
and its complement have the same deviation. It is computed for the smaller of both, from which less is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.serialization import Portable


@dataclass(frozen=True, eq=False)
class CompactCovariance(Portable):
    """A covariance as a diagonal, bands and a matrix of low rank, with bounds on what these leave out."""

    numbers: Positions  # of the values, increasing
    diagonal: Floats
    offsets: Positions  # above 0
    bands: Floats  # offsets by values: with the value whose number is larger by the offset; 0 if there is none
    factors: Floats  # rank by values
    core: Floats  # rank by rank, symmetric
    left_out: Floats  # for each value; its sum over a set is added to the variance of the local part
    inexact: Floats  # for each value; the root of its sum is added to the deviation of the local part

    @classmethod
    def of_matrix(cls, matrix: Floats) -> CompactCovariance:
        """Return all of a matrix, as the bands of all offsets."""
        size = len(matrix)
        bands = np.zeros((size - 1, size))
        for offset in range(1, size):
            bands[offset - 1, : size - offset] = np.diagonal(matrix, offset)
        nothing = np.zeros(size)
        return cls(
            numbers=np.arange(size),
            diagonal=np.diagonal(matrix).copy(),
            offsets=np.arange(1, size),
            bands=bands,
            factors=np.zeros((0, size)),
            core=np.zeros((0, 0)),
            left_out=nothing,
            inexact=nothing,
        )

    @property
    def size(self) -> int:
        """The number of values."""
        return self.numbers.size

    @cached_property
    def position_of(self) -> Positions:
        """The position of the value with a number, from the first number on; -1 if there is none."""
        positions = np.full(int(self.numbers[-1] - self.numbers[0]) + 1, -1)
        positions[self.numbers - self.numbers[0]] = np.arange(self.size)
        return positions

    def partners(self, offset: int) -> tuple[Positions, Positions]:
        """Return the positions of all pairs of values whose numbers differ by `offset`."""
        shifted = self.numbers - self.numbers[0] + offset
        first = np.flatnonzero(shifted < self.position_of.size)
        second = self.position_of[shifted[first]]
        return first[second >= 0], second[second >= 0]

    def matrix(self) -> Floats:
        """Return the matrix, without what was left out."""
        matrix = self.factors.T @ self.core @ self.factors
        matrix[np.diag_indices(self.size)] += self.diagonal
        for offset, band in zip(self.offsets.tolist(), self.bands, strict=True):
            first, second = self.partners(offset)
            matrix[first, second] += band[first]
            matrix[second, first] += band[first]
        return matrix

    def deviation(self, positions: Positions) -> float:
        """Return the standard deviation of a set's share, or a bound that is a little larger."""
        inside = np.zeros((1, self.size))
        inside[0, positions] = 1.0
        return float(self.weighted_deviations(inside)[0])

    def weighted_deviations(self, weights: Floats) -> Floats:
        """Return the standard deviation of each row of weights between 0 and 1, or a bound that is a little larger."""
        inside = np.where(2.0 * weights.sum(axis=1, keepdims=True) > self.size, 1.0 - weights, weights)
        local = inside**2 @ self.diagonal + inside @ self.left_out
        for offset, band in zip(self.offsets.tolist(), self.bands, strict=True):
            first, second = self.partners(offset)
            local += 2.0 * np.einsum("mx,x,mx->m", inside[:, first], band[first], inside[:, second])
        sums = inside @ self.factors.T
        squares = np.einsum("mr,rs,ms->m", sums, self.core, sums)
        return np.array([_deviation(*parts) for parts in zip(local, inside @ self.inexact, squares, strict=True)])

    def deviations(self) -> Floats:
        """Return the standard deviations of all single values."""
        squares = np.einsum("rx,rs,sx->x", self.factors, self.core, self.factors)
        single = zip(self.diagonal + self.left_out, self.inexact, squares, strict=True)
        return np.array([_deviation(*parts) for parts in single])

    def running_deviations(self) -> Floats:
        """Return the standard deviations of the shares up to each value."""
        half = self.size // 2
        return np.concatenate([self._running(1)[:half], self._running(-1)[::-1][half + 1 :], [0.0]])

    def _running(self, sign: int) -> Floats:
        """Return the deviations of the shares up to each value (sign 1), or, the last first, from each value on."""
        added = self.diagonal + self.left_out
        for offset, band in zip(self.offsets.tolist(), self.bands, strict=True):
            first, second = self.partners(offset)
            added = added + np.bincount(second if sign > 0 else first, 2.0 * band[first], minlength=self.size)
        sums = np.cumsum(self.factors[:, ::sign], axis=1)
        squares = np.einsum("rx,rs,sx->x", sums, self.core, sums)
        running = zip(np.cumsum(added[::sign]), np.cumsum(self.inexact[::sign]), squares, strict=True)
        return np.array([_deviation(*parts) for parts in running])


def _deviation(local: float, inexact: float, squares: float) -> float:
    return math.sqrt(max(0.0, (math.sqrt(max(0.0, local)) + math.sqrt(max(0.0, inexact))) ** 2 + squares))
