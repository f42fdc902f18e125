"""Diagonal plus constant: the same likelihood for all values but one."""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats, Positions, frozen
from hubbub.channels.base import Channel


class Spike(Channel):
    """Pattern i has likelihood `at` for the value at `peaks[i]` and `elsewhere` for all others: O(values) work.

    A peak of -1 is a value outside the domain (see `Reports.restrict`): that pattern is flat.
    """

    def __init__(self, values: int, peaks: Positions, *, log_at: float, log_elsewhere: float) -> None:
        self.values, self.patterns = values, peaks.size
        top = max(log_at, log_elsewhere)
        self.log_scale = frozen(np.full(peaks.size, top))
        self._inside = peaks >= 0
        self._peaks = np.where(self._inside, peaks, 0)
        self._elsewhere = float(np.exp(log_elsewhere - top))
        self._height = np.where(self._inside, np.exp(log_at - top) - self._elsewhere, 0.0)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix: flat, but for the patterns that peak there."""
        chosen: Floats = self._elsewhere + self._height * (self._peaks[None, :] == positions[:, None])
        return chosen

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        flat = self._elsewhere * theta.sum(axis=-1, keepdims=True)
        fitted: Floats = flat + self._height * theta[..., self._peaks]
        return fitted

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        gradient = np.repeat(self._elsewhere * ratio.sum(axis=-1, keepdims=True), self.values, axis=-1)
        lifted = self._height * ratio
        for batch in np.ndindex(*ratio.shape[:-1]):
            gradient[batch] += np.bincount(self._peaks, weights=lifted[batch], minlength=self.values)
        return gradient
