"""Windows that slide along a line: each pattern has one likelihood for the values near it, and a lower one for others.

Sums over all windows of one width are made without subtracting: a line is cut into blocks as long as a window, which
then is the end of one block and the beginning of the next, or a whole block. Running sums inside blocks, in both
directions, give every window by one addition (van Herk), and no digit is lost.
"""

from __future__ import annotations

import numpy as np

from hubbub.channels.base import line_maxima
from hubbub.channels.bit_sets import SetChannel
from hubbub.core.arrays import Floats, Positions


class WindowChannel(SetChannel):
    """The set of pattern i are the `width` values that end at `codes[i]`, as far as these exist."""

    takes_rows = True

    def __init__(
        self,
        codes: Positions,
        values: int,
        *,
        width: int,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(values, log_scale, low, among)
        self._codes, self._width = codes, width
        self._most_alike = int(np.bincount(codes).max(initial=1))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        away = self._codes[None, :] - self._kept(positions)[:, None]
        chosen: Floats = np.where((away >= 0) & (away < self._width), 1.0, self._low)
        return chosen

    def members(self, weights: Floats) -> Floats:
        """Return for each pattern the total weight of the values in its set."""
        count = self._whole + self._width - 1
        sums = window_sums(self._over_all(weights), self._width, before=self._width - 1, count=count)
        chosen: Floats = sums[..., self._codes]
        return chosen

    def holders(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns whose set holds it."""
        sent = sums_by_place(self._codes, weights, self._whole + self._width - 1)
        sums = window_sums(sent, self._width, before=0, count=self._whole)
        return sums if self._among is None else sums[..., self._among]

    @property
    def member_additions(self) -> float:
        """Through a block in one direction, and one more."""
        return self._width + 1.0

    @property
    def holder_additions(self) -> float:
        """The same, and those of the patterns with one code."""
        return self._width + 1.0 + self._most_alike

    @property
    def local(self) -> bool:
        """Neighbouring values have similar likelihoods."""
        return True

    def local_maxima(self, scores: Floats) -> Positions:
        """Return the values whose score neither neighbour exceeds."""
        return line_maxima(scores)


def window_sums(numbers: Floats, width: int, *, before: int, count: int) -> Floats:
    """Return the sums of `count` windows of `width` numbers each; the first one begins `before` places in front.

    Windows slide along the last axis.
    """
    blocks = -(-(count + width - 1) // width) + 1
    rows = numbers.shape[:-1]
    padded = np.zeros((*rows, blocks * width))
    kept = numbers[..., : max(0, blocks * width - before)]
    padded[..., before : before + kept.shape[-1]] = kept
    table = padded.reshape(*rows, blocks, width)
    begun = np.cumsum(table, axis=-1).reshape(padded.shape)
    left = np.cumsum(table[..., ::-1], axis=-1)[..., ::-1].reshape(padded.shape)
    sums: Floats = left[..., :count].copy()
    # A window that is a whole block is one running sum; any other one ends inside the next block.
    ends = begun[..., width - 1 : width - 1 + count]
    ends[..., ::width] = 0.0
    sums += ends
    return sums


def sums_by_place(places: Positions, weights: Floats, size: int) -> Floats:
    """Return the sum of the weights at each of `size` places, along the last axis."""
    if weights.ndim == 1:
        return np.bincount(places, weights, size).astype(np.float64, copy=False)
    rows = weights.reshape(-1, weights.shape[-1])
    shifted = places + size * np.arange(len(rows))[:, None]
    sums = np.bincount(shifted.ravel(), rows.ravel(), size * len(rows)).astype(np.float64, copy=False)
    return sums.reshape(*weights.shape[:-1], size)
