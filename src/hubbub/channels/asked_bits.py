"""Noisy bits about a few buckets of values: three likelihoods, by whether the value's bucket was asked, and the bit.

Relative to a one for the value's bucket, a bucket that was not asked has the likelihood r, and a zero r^2. Every
pattern is the sum of r^2 for all values, what r lacks to that for the buckets not asked, and what 1 lacks to it for the
ones: sums over two sets of buckets, kept as packed bits, and nothing is subtracted.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.base import Channel
from hubbub.channels.bit_sets import BitSetChannel
from hubbub.channels.rounding import RoundingBound, entry_error, gamma, pairwise_additions
from hubbub.core.arrays import Floats, Positions, frozen


class AskedBitsChannel(Channel):
    """Likelihood 1 for values whose bucket has a one, e^-nats where it was not asked, e^(-2 nats) where it has a zero.

    `asked` and `ones` are packed rows, one for each pattern; `bucket_of` says in which bucket each value is.
    """

    def __init__(
        self,
        asked: NDArray[np.uint8],
        ones: NDArray[np.uint8],
        *,
        buckets: int,
        bucket_of: Positions,
        nats: float,
        log_scale: Floats,
    ) -> None:
        self.values, self.patterns = bucket_of.size, log_scale.size
        self.log_scale = frozen(log_scale)
        self._buckets, self._bucket_of, self._nats = buckets, bucket_of, nats
        self._middle, self._low = math.exp(-nats), math.exp(-2.0 * nats)
        padding = np.packbits(np.ones(buckets, dtype=bool))
        sets = [np.ascontiguousarray(rows) for rows in (ones, ~asked & padding)]
        self._ones, self._unasked = (
            BitSetChannel(rows, buckets, low=0.0, log_scale=np.zeros(self.patterns)) for rows in sets
        )
        self._most_alike = int(np.bincount(bucket_of).max(initial=1))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        own = self._bucket_of[positions]
        one, unasked = (channel.rows(own) > 0.0 for channel in (self._ones, self._unasked))
        chosen: Floats = np.where(one, 1.0, np.where(unasked, self._middle, self._low))
        return chosen

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        if theta.ndim > 1:
            return np.reshape([self.forward(row) for row in theta], (*theta.shape[:-1], self.patterns))
        shares = np.bincount(self._bucket_of, weights=theta, minlength=self._buckets).astype(np.float64)
        return self._combined(self._ones.members(shares), self._unasked.members(shares), float(shares.sum()))

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return self._gathered(ratio)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return self._gathered(weights, 2)

    def _gathered(self, numbers: Floats, power: int = 1) -> Floats:
        if numbers.ndim > 1:
            return np.reshape([self._gathered(row, power) for row in numbers], (*numbers.shape[:-1], self.values))
        weights = np.ascontiguousarray(numbers)
        of_ones, of_unasked = (channel.holders(weights) for channel in (self._ones, self._unasked))
        return np.asarray(self._combined(of_ones, of_unasked, float(weights.sum()), power)[self._bucket_of])

    def _combined(self, ones: Floats, unasked: Floats, total: float, power: int = 1) -> Floats:
        """Return the sum over all at the lowest of the three levels, and what the others lack to it."""
        low, middle = self._low**power, self._middle**power
        # middle - low and 1 - low, where the levels are nearly equal, too
        rises = middle * -math.expm1(-power * self._nats), -math.expm1(-2.0 * power * self._nats)
        return np.asarray(rises[1] * ones + rises[0] * unasked + low * total)

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for the sums inside buckets, inside sets and over all."""
        inside = max(self._ones.member_additions, pairwise_additions(self._buckets))
        return RoundingBound(gamma(self._most_alike + inside + 10))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for the sums inside sets and over all."""
        return RoundingBound(gamma(max(self._ones.holder_additions, pairwise_additions(self.patterns)) + 10))

    @property
    def entry_rounding(self) -> float:
        """From the lowest of the three likelihoods."""
        return entry_error(2.0 * self._nats)
