"""Sums over the hyperplanes of a projective space: the values v of an output u are those with <u, v> = 0 (mod q).

With w = e^(2 pi i / q), the sum over c of w^(c <u, v>) is q where the product is 0, and 0 elsewhere. So sums over all
hyperplanes are one Fourier transform of the numbers of the points, each of which stands at all its multiples, with the
total at the origin: q^t log q^t operations for q^t / (q - 1) points. Its rounding is relative to the whole vector.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import fft

from hubbub.channels.bit_sets import SetChannel
from hubbub.channels.rounding import RoundingBound, gamma, transform_error
from hubbub.client import points
from hubbub.core.arrays import Floats, Positions


def point_coordinates(positions: Positions, prime: int, dimensions: int) -> Positions:
    """Return the coordinates of points, as `hubbub.client.point_digits` numbers them: the last one that is not 0 is 1.

    Parameters
    ----------
    positions
        Numbers of points.
    prime, dimensions
        The space.

    Returns
    -------
    numpy.ndarray
        Coordinates (first axis) of each point.
    """
    starts = np.array([points(prime, free) for free in range(dimensions)])
    free = np.searchsorted(starts, positions, side="right") - 1
    rest = positions - starts[free]
    digits = np.empty((dimensions, *np.shape(positions)), dtype=np.int64)
    for place in range(dimensions):
        digits[place] = np.where(place < free, rest % prime, np.where(place == free, 1, 0))
        rest = rest // prime
    return digits


def point_numbers(digits: Positions, prime: int) -> Positions:
    """Return the numbers of points whose last coordinate other than 0 is 1."""
    dimensions = len(digits)
    starts = np.array([points(prime, free) for free in range(dimensions)])
    numbers = np.zeros(digits.shape[1:], dtype=np.int64)
    last = np.zeros(digits.shape[1:], dtype=np.int64)
    for place in range(dimensions):
        last = np.where(digits[place] != 0, place, last)
    for place in range(dimensions):
        numbers += np.where(place < last, digits[place] * prime**place, 0)
    return np.asarray(numbers + starts[last], dtype=np.int64)


def are_orthogonal(outputs: Positions, values: Positions, prime: int, dimensions: int) -> Positions:
    """Return whether inner products are 0, for numbers of outputs and values that broadcast against each other.

    The coordinates of values are read backwards, as `hubbub.client.point_member` explains.
    """
    own = point_coordinates(values, prime, dimensions)[::-1]
    sent = point_coordinates(outputs, prime, dimensions)
    product = np.zeros(np.broadcast_shapes(outputs.shape, values.shape), dtype=np.int64)
    for one, other in zip(own, sent, strict=True):
        product = (product + one * other) % prime
    return np.asarray(product == 0)


class HyperplaneChannel(SetChannel):
    """The set of output u are the values v with <u, v> = 0: sums over all hyperplanes at once."""

    def __init__(
        self,
        codes: Positions,
        values: int,
        *,
        prime: int,
        dimensions: int,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(values, log_scale, low, among)
        self._codes, self._prime, self._dimensions = codes, prime, dimensions
        self._most_alike = int(np.unique(codes, return_counts=True)[1].max(initial=1))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        kept = self._kept(positions)[:, None]
        held = are_orthogonal(self._codes[None, :], kept, self._prime, self._dimensions)
        chosen: Floats = np.where(held, 1.0, self._low)
        return chosen

    def members(self, weights: Floats) -> Floats:
        """Return for each pattern the total weight of the values in its set."""
        return self._sums(self._value_cells, weights, self._sent)

    def holders(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns whose set holds it."""
        return self._sums(self._sent_cells, weights, self._own)

    @cached_property
    def _sent(self) -> Positions:
        return point_coordinates(self._codes, self._prime, self._dimensions)

    @cached_property
    def _own(self) -> Positions:
        """The coordinates of values, read backwards."""
        return point_coordinates(self._kept(np.arange(self.values)), self._prime, self._dimensions)[::-1]

    @cached_property
    def _sent_cells(self) -> Positions:
        return self._multiples(self._sent)

    @cached_property
    def _value_cells(self) -> Positions:
        return self._multiples(self._own)

    def _multiples(self, vectors: Positions) -> Positions:
        """Return the cells of all multiples but 0 of some vectors: multiples by vectors."""
        factors = np.arange(1, self._prime)[:, None]
        cells = np.zeros((self._prime - 1, vectors.shape[1]), dtype=np.int64)
        for digits in vectors:
            cells *= self._prime
            cells += factors * digits % self._prime
        return cells

    def _sums(self, cells: Positions, weights: Floats, wanted: Positions) -> Floats:
        """Return for each wanted vector the sum of the weights of the points orthogonal to it."""
        prime, shape = self._prime, (self._prime,) * self._dimensions
        repeated = np.broadcast_to(weights, cells.shape).ravel()
        table = np.bincount(cells.ravel(), weights=repeated, minlength=prime**self._dimensions)
        table[0] = weights.sum()
        # Each number stands at all multiples, so that the transform is the same at all multiples, and real.
        half = fft.rfftn(table.reshape(shape)).real
        beyond = wanted[-1] > prime // 2  # the other half of the transform, which is that of the opposite vector
        at = np.where(beyond, (prime - wanted) % prime, wanted)
        sums: Floats = half[tuple(at)] / prime
        return np.maximum(sums, 0.0) if weights.min(initial=0.0) >= 0.0 else sums  # rounding makes nothing negative

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for the sums of all, and for the transform."""
        return self._rounding(theta)

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the bound for the sums of all, and for the transform."""
        return self._rounding(ratio)

    def _rounding(self, numbers: Floats) -> RoundingBound:
        cells = self._prime**self._dimensions
        total = float(np.abs(numbers).sum())
        # The table's length is at most the sum of its entries, of which there are q - 1 for each number.
        lost = (transform_error(cells) + gamma(self._most_alike + self.values)) * total * self._prime
        return RoundingBound(gamma(self.values + self.patterns + 8), lost)

    @property
    def member_additions(self) -> float:
        """Those of a transform, which `forward_rounding` bounds."""
        return float(self.values)

    @property
    def holder_additions(self) -> float:
        """Those of a transform, which `backward_rounding` bounds."""
        return float(self.patterns)
