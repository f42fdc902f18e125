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
        self.inside = peaks >= 0
        self.peaks = np.where(self.inside, peaks, 0)
        self.at, self.elsewhere = math.exp(log_at - top), math.exp(log_elsewhere - top)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix: flat, but for the patterns that peak there."""
        peaking = (self.peaks[None, :] == positions[:, None]) & self.inside
        chosen: Floats = np.where(peaking, self.at, self.elsewhere)
        return chosen

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        # The two parts apart: as a constant and a difference they would cancel where `at` is much the smaller.
        peak = np.where(self.inside, theta[..., self.peaks], 0.0)
        fitted: Floats = self.elsewhere * (theta.sum(axis=-1, keepdims=True) - peak) + self.at * peak
        return fitted

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return self._spread(ratio, self.at, self.elsewhere)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return self._spread(weights, self.at**2, self.elsewhere**2)

    def _spread(self, ratio: Floats, at: float, elsewhere: float) -> Floats:
        inside = np.where(self.inside, ratio, 0.0)
        own = np.empty((*ratio.shape[:-1], self.values))
        for batch in np.ndindex(*ratio.shape[:-1]):
            own[batch] = np.bincount(self.peaks, weights=inside[batch], minlength=self.values)
        others = ratio.sum(axis=-1, keepdims=True) - own
        gradient: Floats = elsewhere * others + at * own
        return gradient
