"""Diagonal plus constant: the same likelihood for all values but one."""

from __future__ import annotations

import math

import numpy as np

from hubbub.channels.base import Channel
from hubbub.channels.rounding import UNDERFLOW_NATS, RoundingBound, entry_error, gamma, pairwise_additions
from hubbub.core.arrays import Floats, Positions, frozen


class DiagonalPlusConstantChannel(Channel):
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
        self._runs = _runs(peaks) if rising else None
        self.at, self.elsewhere = math.exp(log_at - top), math.exp(log_elsewhere - top)
        self.excess = -math.expm1(log_elsewhere - log_at) * self.at  # at - elsewhere, where they are nearly equal too

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix: flat, but for the patterns that peak there."""
        peaking = self.peaks[None, :] == positions[:, None]
        if self.inside is not None:
            peaking &= self.inside
        chosen: Floats = np.where(peaking, self.at, self.elsewhere)
        return chosen

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g of some patterns."""
        peaking = self.peaks[patterns][None, :] == np.arange(self.values)[:, None]
        if self.inside is not None:
            peaking &= self.inside[patterns]
        with np.errstate(divide="ignore"):
            logs = np.log([self.elsewhere, self.at])
        return np.asarray(np.where(peaking, logs[1], logs[0]) + self.log_scale[patterns])

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        total = theta.sum(axis=-1, keepdims=True)
        peak = self._gathered(theta)
        if self.inside is not None:
            peak[..., ~self.inside] = 0.0
        if self.at >= self.elsewhere:
            peak *= self.excess
            peak += self.elsewhere * total
            return peak
        # The two parts apart: as a constant and a difference they would cancel where `at` is much the smaller.
        fitted: Floats = self.elsewhere * (total - peak) + self.at * peak
        return fitted

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return self._spread(ratio, self.at, self.elsewhere)

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for one sum over all values, and what is added to it."""
        operations = pairwise_additions(self.values) + 12
        if self.at >= self.elsewhere:
            return RoundingBound(gamma(operations))
        # The sum over the others is a difference: its error is relative to the sum over all.
        return RoundingBound(gamma(8), self.elsewhere * gamma(operations) * float(theta.sum()))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the bound for one sum over all patterns, and for those of one value."""
        own = 1 if self.distinct else int(np.bincount(self.peaks).max(initial=1))
        operations = pairwise_additions(self.patterns) + own + 12
        if self.at >= self.elsewhere:
            return RoundingBound(gamma(operations))
        return RoundingBound(gamma(8), self.elsewhere * gamma(operations) * float(ratio.sum()))

    @property
    def entry_rounding(self) -> float:
        """From the two likelihoods that there are."""
        low = min(self.at, self.elsewhere)
        return entry_error(
            float(np.abs(self.log_scale).max(initial=0.0)) - (math.log(low) if low > 0.0 else -UNDERFLOW_NATS)
        )

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return self._spread(weights, self.at**2, self.elsewhere**2)

    def _spread(self, ratio: Floats, at: float, elsewhere: float) -> Floats:
        total = ratio.sum(axis=-1, keepdims=True)
        own = self.scattered(ratio)
        if at >= elsewhere:
            own *= at - elsewhere
            own += elsewhere * total
            return own
        gradient: Floats = elsewhere * (total - own) + at * own
        return gradient

    def _gathered(self, theta: Floats) -> Floats:
        """Return for each pattern the number of its value."""
        if self._runs is None:
            chosen: Floats = theta[..., self.peaks]
            return chosen
        peak = np.empty((*theta.shape[:-1], self.patterns))
        for first, last, shift in self._runs:
            peak[..., first:last] = theta[..., first + shift : last + shift]
        return peak

    def scattered(self, ratio: Floats) -> Floats:
        """Return for each value the sum over its patterns."""
        own = np.zeros((*ratio.shape[:-1], self.values))
        inside = slice(None) if self.inside is None else self.inside
        if self._runs is not None:
            for first, last, shift in self._runs:
                own[..., first + shift : last + shift] = ratio[..., first:last]
        elif self.distinct:
            own[..., self.peaks[inside]] = ratio[..., inside]
        else:
            for batch in np.ndindex(*ratio.shape[:-1]):
                np.add.at(own[batch], self.peaks[inside], ratio[batch][inside])
        return own


def _runs(peaks: Positions) -> list[tuple[int, int, int]] | None:
    """Return runs of patterns (first, beyond the last) whose values follow each other, and how far these are shifted.

    Large studies see almost every output, in the order of the values: to copy runs is quicker than to look up each.
    """
    cuts = np.flatnonzero(np.diff(peaks) > 1) + 1
    if peaks.size == 0 or cuts.size > peaks.size // 100:
        return None
    starts, ends = np.concatenate([[0], cuts]), np.concatenate([cuts, [peaks.size]])
    return [(int(first), int(last), int(peaks[first] - first)) for first, last in zip(starts, ends, strict=True)]
