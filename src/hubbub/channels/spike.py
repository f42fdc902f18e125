"""Diagonal plus constant: the same likelihood for all values but one."""

from __future__ import annotations

import math

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
        self._at, self._elsewhere = math.exp(log_at - top), math.exp(log_elsewhere - top)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix: flat, but for the patterns that peak there."""
        peaking = (self._peaks[None, :] == positions[:, None]) & self._inside
        chosen: Floats = np.where(peaking, self._at, self._elsewhere)
        return chosen

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        # The two parts apart: as a constant and a difference they would cancel where `at` is much the smaller.
        peak = np.where(self._inside, theta[..., self._peaks], 0.0)
        fitted: Floats = self._elsewhere * (theta.sum(axis=-1, keepdims=True) - peak) + self._at * peak
        return fitted

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        inside = np.where(self._inside, ratio, 0.0)
        own = np.empty((*ratio.shape[:-1], self.values))
        for batch in np.ndindex(*ratio.shape[:-1]):
            own[batch] = np.bincount(self._peaks, weights=inside[batch], minlength=self.values)
        others = ratio.sum(axis=-1, keepdims=True) - own
        gradient: Floats = self._elsewhere * others + self._at * own
        return gradient
