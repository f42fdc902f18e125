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
        outside = peaks < 0
        self.inside = None if not outside.any() else ~outside  # None: all of them
        self.peaks = peaks if self.inside is None else np.where(self.inside, peaks, 0)
        rising = bool((peaks[1:] > peaks[:-1]).all()) and self.inside is None
        self.distinct = rising or np.unique(peaks[peaks >= 0]).size == np.count_nonzero(peaks >= 0)
        self._aligned = rising and peaks.size == values  # outputs in the order of the values, none missing
        self.at, self.elsewhere = math.exp(log_at - top), math.exp(log_elsewhere - top)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix: flat, but for the patterns that peak there."""
        peaking = self.peaks[None, :] == positions[:, None]
        if self.inside is not None:
            peaking &= self.inside
        chosen: Floats = np.where(peaking, self.at, self.elsewhere)
        return chosen

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        total = theta.sum(axis=-1, keepdims=True)
        peak = theta[..., self.peaks] if not self._aligned else theta.copy()
        if self.inside is not None:
            peak[..., ~self.inside] = 0.0
        if self.at >= self.elsewhere:
            peak *= self.at - self.elsewhere
            peak += self.elsewhere * total
            return peak
        # The two parts apart: as a constant and a difference they would cancel where `at` is much the smaller.
        fitted: Floats = self.elsewhere * (total - peak) + self.at * peak
        return fitted

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return self._spread(ratio, self.at, self.elsewhere)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return self._spread(weights, self.at**2, self.elsewhere**2)

    def _spread(self, ratio: Floats, at: float, elsewhere: float) -> Floats:
        total = ratio.sum(axis=-1, keepdims=True)
        if self._aligned:
            own = ratio.copy()
        else:
            own = np.zeros((*ratio.shape[:-1], self.values))
            inside = slice(None) if self.inside is None else self.inside
            if self.distinct:
                own[..., self.peaks[inside]] = ratio[..., inside]
            else:
                for batch in np.ndindex(*ratio.shape[:-1]):
                    np.add.at(own[batch], self.peaks[inside], ratio[batch][inside])
        if at >= elsewhere:
            own *= at - elsewhere
            own += elsewhere * total
            return own
        gradient: Floats = elsewhere * (total - own) + at * own
        return gradient
