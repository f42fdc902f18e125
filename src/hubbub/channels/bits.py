"""One bit for each value: whether it is in the set that the output points at.

Unary encodings, hashed outputs and selected subsets all have the same likelihood up to a factor: 1 for
the values in the output's set and exp(-epsilon) for the others. The sets stay packed, eight values to a
byte; for each byte position a table of 256 sums replaces eight multiplications.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Positions, frozen
from hubbub.channels.base import Channel

# Row b holds the eight bits of byte b, in np.packbits order.
BYTE_BITS: Floats = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)


class Bits(Channel):
    """Likelihood 1 where the bit is set and `low` where it is not, times ``exp(log_scale)``."""

    def __init__(
        self,
        sets: NDArray[np.uint8],
        values: int,
        *,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        self.values, self.patterns = values if among is None else among.size, sets.shape[0]
        self.log_scale = frozen(log_scale)
        self._low = low
        self._whole = values
        self._among = among
        self._bytes = np.ascontiguousarray(sets.T)  # one byte position after the other, as the sums run

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix: one bit for each pattern."""
        whole = positions if self._among is None else self._among[positions]
        bits = (self._bytes[whole // 8] >> (7 - whole % 8).astype(np.uint8)[:, None]) & 1
        chosen: Floats = np.where(bits, 1.0, self._low)
        return chosen

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        batch = np.atleast_2d(theta.reshape(-1, self.values))
        padded = np.zeros((batch.shape[0], 8 * self._bytes.shape[0]))
        padded[:, slice(self.values) if self._among is None else self._among] = batch
        tables = padded.reshape(batch.shape[0], -1, 8) @ BYTE_BITS.T
        inside = np.zeros((batch.shape[0], self.patterns))
        for position, column in enumerate(self._bytes):
            inside += tables[:, position, column]
        result: Floats = self._low * batch.sum(axis=1, keepdims=True) + (1.0 - self._low) * inside
        return np.reshape(result, (*theta.shape[:-1], self.patterns))

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        batch = np.atleast_2d(ratio.reshape(-1, self.patterns))
        result: Floats = self._low * batch.sum(axis=1, keepdims=True) + (1.0 - self._low) * self.support(batch)
        return np.reshape(result, (*ratio.shape[:-1], self.values))

    def support(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns whose set holds it; batches by rows."""
        sums = np.empty((weights.shape[0], 8 * self._bytes.shape[0]))
        for row, weight in enumerate(weights):
            counted = np.stack([np.bincount(column, weights=weight, minlength=256) for column in self._bytes])
            sums[row] = (counted @ BYTE_BITS).ravel()
        kept: Floats = sums[:, : self._whole] if self._among is None else sums[:, self._among]
        return kept
