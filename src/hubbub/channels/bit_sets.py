"""Outputs that stand for sets of values: one likelihood for the values in the set, another for the rest.

Unary encodings, hashed outputs and selected subsets all have the same likelihood up to a factor: 1 for
the values in the output's set and `low`, mostly exp(-epsilon), for the others. `BitSetChannel` keeps the sets packed,
eight values to a byte; for each byte position a table of 256 sums replaces eight multiplications. `HashedSetChannel`
keeps seeds and buckets, for sets that would not fit even as bits, and hashes again each time.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.base import Channel
from hubbub.channels.rounding import UNDERFLOW_NATS, RoundingBound, entry_error, gamma, pairwise_additions
from hubbub.core.arrays import Floats, Positions, frozen

# Row b holds the eight bits of byte b, in np.packbits order.
BYTE_BITS: Floats = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)
GOLDEN = 0x9E3779B97F4A7C15
PATTERN_PARTS = 16  # into which the patterns are split for sums over all of them


class SetChannel(Channel):
    """Likelihood 1 for the values in a pattern's set and `low` for all others, times ``exp(log_scale)``."""

    takes_rows: ClassVar[bool] = False  # whether `members` and `holders` take a leading batch axis

    def __init__(self, values: int, log_scale: Floats, low: float, among: Positions | None) -> None:
        self.values, self.patterns = values if among is None else among.size, log_scale.size
        self.log_scale = frozen(log_scale)
        self._low = low
        self._whole = values
        self._among = among

    @abstractmethod
    def members(self, weights: Floats) -> Floats:
        """Return for each pattern the total weight of the values in its set: one weight for each value."""

    @abstractmethod
    def holders(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns whose set holds it: one weight for each pattern."""

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return self._combined(theta, self.members, self._low, self.patterns)

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return self._combined(ratio, self.holders, self._low, self.values)

    @property
    @abstractmethod
    def member_additions(self) -> float:
        """Through how many operations a value's weight passes in `members`."""

    @property
    @abstractmethod
    def holder_additions(self) -> float:
        """Through how many operations a pattern's weight passes in `holders`."""

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for the sums inside and over all."""
        return RoundingBound(gamma(max(self.member_additions, pairwise_additions(self.values)) + 8))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for the sums inside and over all."""
        return RoundingBound(gamma(max(self.holder_additions, pairwise_additions(self.patterns)) + 8))

    @property
    def entry_rounding(self) -> float:
        """From the lower likelihood: the other is 1."""
        return entry_error(-math.log(self._low) if self._low > 0.0 else UNDERFLOW_NATS)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return self._combined(weights, self.holders, self._low**2, self.values)

    def _combined(self, numbers: Floats, inside: Callable[[Floats], Floats], low: float, size: int) -> Floats:
        """Return low times the sum of all numbers, and the rest of 1 times the sum of those inside each set."""
        if numbers.ndim > 1 and not self.takes_rows:
            each = [self._combined(row, inside, low, size) for row in numbers.reshape(-1, numbers.shape[-1])]
            return np.reshape(each, (*numbers.shape[:-1], size))
        sums = inside(np.ascontiguousarray(numbers))
        sums *= 1.0 - low
        sums += low * numbers.sum(axis=-1, keepdims=True)
        return sums

    def _over_all(self, weights: Floats) -> Floats:
        """Return the weights of all values, 0 for those that are not among these."""
        if self._among is None:
            return weights
        full = np.zeros((*weights.shape[:-1], self._whole))
        full[..., self._among] = weights
        return full

    def _kept(self, positions: Positions) -> Positions:
        return positions if self._among is None else self._among[positions]


class BitSetChannel(SetChannel):
    """Sets as packed bits: one row of bytes for each pattern."""

    def __init__(
        self,
        sets: NDArray[np.uint8],
        values: int,
        *,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(values, log_scale, low, among)
        self._sets = sets

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix: one bit for each pattern."""
        whole = self._kept(positions)
        bits = (self._sets[:, whole // 8] >> (7 - whole % 8).astype(np.uint8)) & 1
        chosen: Floats = np.where(bits.T, 1.0, self._low)
        return chosen

    def members(self, weights: Floats) -> Floats:
        """Return for each pattern the total weight of the values in its set."""
        from hubbub.channels.compiled_loops import sums_of_sets

        padded = np.zeros(8 * self._sets.shape[1])
        padded[slice(self.values) if self._among is None else self._among] = weights
        return np.asarray(sums_of_sets(self._sets.size, self._sets, padded.reshape(-1, 8) @ BYTE_BITS.T))

    def holders(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns whose set holds it."""
        from hubbub.channels.compiled_loops import weights_of_bytes

        sums = (weights_of_bytes(self._sets.size, self._sets, weights) @ BYTE_BITS).ravel()
        kept: Floats = sums[: self._whole] if self._among is None else sums[self._among]
        return kept

    @property
    def member_additions(self) -> float:
        """Eight in a table, then one for each byte."""
        return 16.0 + int(self._sets.shape[1])

    @property
    def holder_additions(self) -> float:
        """Those of a part of the patterns, all parts, and the 256 bytes."""
        return -(-self.patterns // PATTERN_PARTS) + PATTERN_PARTS + 256.0


class HashedSetChannel(SetChannel):
    """Sets of the values that hash into one bucket, under a seed for each pattern: never written down."""

    def __init__(
        self,
        codes: NDArray[np.uint64],
        values: int,
        *,
        buckets: int,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(values, log_scale, low, among)
        self._seeds, self._reported = np.ascontiguousarray(codes[:, 0]), np.ascontiguousarray(codes[:, 1])
        self._buckets = buckets
        positions = np.arange(values) if among is None else among
        self._steps = (positions.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix, each from the one value's hashes."""
        chosen = np.empty((positions.size, self.patterns))
        for place, position in enumerate(positions):
            chosen[place] = np.where(self._sums(self._steps[[position]], np.ones(1)) > 0, 1.0, self._low)
        return chosen

    def _sums(self, steps: NDArray[np.uint64], weights: Floats) -> Floats:
        from hubbub.channels.compiled_loops import sums_of_hashed

        work = self.patterns * steps.size
        return np.asarray(sums_of_hashed(work, self._seeds, self._reported, steps, self._buckets, weights))

    def members(self, weights: Floats) -> Floats:
        """Return for each pattern the total weight of the values that hash into its bucket."""
        return self._sums(self._steps, weights)

    def holders(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns into whose bucket it hashes."""
        from hubbub.channels.compiled_loops import weights_of_hashed

        hashed = self._seeds, self._reported, self._steps, self._buckets
        return np.asarray(weights_of_hashed(self.entries, *hashed, weights))

    @property
    def member_additions(self) -> float:
        """One for each value, in any order."""
        return float(self.values)

    @property
    def holder_additions(self) -> float:
        """Those of a part of the patterns, and all parts."""
        return -(-self.patterns // PATTERN_PARTS) + float(PATTERN_PARTS)
