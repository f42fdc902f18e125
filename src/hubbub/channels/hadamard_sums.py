"""Sums over the rows of Hadamard matrices, whose entries are (-1)^(number of bits that row and column share).

The set of a value are the columns of a block in which its row is +1, so that likelihoods are sums over such sets. They
are made without subtracting, so that no digit is lost: of each row both sums are kept, that of the columns with +1 and
that of the others. One bit of the columns after the other is then replaced by one of the rows (a fast Walsh-Hadamard
transform), by log2(size) additions.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.channels.bit_sets import SetChannel
from hubbub.core.arrays import Floats, Positions


def signed_sums(plus: Floats, minus: Floats) -> tuple[Floats, Floats]:
    """Return for each row of a Hadamard matrix the sums of numbers with the signs of its entries, along the last axis.

    Parameters
    ----------
    plus, minus
        For each column the number to count where the matrix is +1, and where it is -1; a power of two columns.

    Returns
    -------
    tuple
        For each row, sum_c plus_c [H = +1] + minus_c [H = -1], and the sum with both exchanged.
    """
    size = plus.shape[-1]
    step = 1
    while step < size:
        shape = (*plus.shape[:-1], size // (2 * step), 2, step)
        high, low = plus.reshape(shape), minus.reshape(shape)
        first, second, first_low, second_low = high[..., 0, :], high[..., 1, :], low[..., 0, :], low[..., 1, :]
        plus = np.stack([first + second, first + second_low], axis=-2).reshape(plus.shape)
        minus = np.stack([first_low + second_low, first_low + second], axis=-2).reshape(plus.shape)
        step *= 2
    return plus, minus


def parities(rows: Positions, columns: Positions) -> Positions:
    """Return 0 where a Hadamard matrix is +1, and 1 where it is -1."""
    shared: Positions = np.bitwise_count(rows & columns).astype(np.int64) & 1
    return shared


class HadamardBlocksChannel(SetChannel):
    """Outputs in blocks: the set of value x are the columns of block x mod `blocks` where row x // blocks + 1 is +1."""

    def __init__(
        self,
        codes: Positions,
        values: int,
        *,
        blocks: int,
        size: int,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(values, log_scale, low, among)
        self._codes, self._blocks, self._size = codes, blocks, size
        self._most_alike = int(np.bincount(codes).max(initial=1))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        kept = self._kept(positions)[:, None]
        same = self._codes // self._size == kept % self._blocks
        odd = parities(kept // self._blocks + 1, self._codes % self._size)
        chosen: Floats = np.where(same & (odd == 0), 1.0, self._low)
        return chosen

    def members(self, weights: Floats) -> Floats:
        """Return for each pattern the total weight of the values in its set."""
        positions = self._kept(np.arange(self.values))
        placed = np.zeros((self._blocks, self._size))
        placed[positions % self._blocks, positions // self._blocks + 1] = weights
        sums, _ = signed_sums(placed, np.zeros_like(placed))
        chosen: Floats = sums.ravel()[self._codes]
        return chosen

    def holders(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns whose set holds it."""
        outputs = self._blocks * self._size
        sent = np.zeros((self._blocks, self._size))
        sent += np.bincount(self._codes, weights=weights, minlength=outputs).reshape(sent.shape)
        sums, _ = signed_sums(sent, np.zeros_like(sent))
        positions = self._kept(np.arange(self.values))
        held: Floats = sums[positions % self._blocks, positions // self._blocks + 1]
        return held

    @property
    def member_additions(self) -> float:
        """One for each bit of a row."""
        return math.log2(self._size)

    @property
    def holder_additions(self) -> float:
        """The same, and those of the patterns with one code."""
        return math.log2(self._size) + self._most_alike
