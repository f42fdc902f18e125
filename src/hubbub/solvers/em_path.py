"""EM on many weightings of the same patterns, looked at on the way: stopped early, it is smooth."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import numpy as np

from hubbub.channels import Channel, DenseChannel
from hubbub.core.arrays import Floats, Positions
from hubbub.likelihood import SMALLEST

WRITTEN_UP_TO = 4_000_000  # entries of a channel that is multiplied out with its smoothing

Smoothing = Callable[[Floats], Floats]  # of rows of distributions


class Smoothed(Channel):
    """A channel behind a smoothing of the domain: theta = smooth(phi), and EM is over phi."""

    def __init__(self, channel: Channel, smooth: Smoothing, adjoint: Smoothing) -> None:
        self.values, self.patterns, self.log_scale = channel.values, channel.patterns, channel.log_scale
        self._channel, self._smooth, self._adjoint = channel, smooth, adjoint

    def forward(self, theta: Floats) -> Floats:
        """Return smooth(theta) @ stored."""
        return self._channel.forward(self._smooth(theta))

    def backward(self, ratio: Floats) -> Floats:
        """Return the adjoint of the smoothing, of stored @ ratio."""
        return self._adjoint(self._channel.backward(ratio))

    def squares(self, weights: Floats) -> Floats:
        """Return (smoothed and squared) @ weights."""
        return np.asarray(np.einsum("xi,xi,i->x", self.dense(), self.dense(), weights))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the smoothed matrix."""
        return self.forward(np.eye(self.values)[positions])


def smoothed_by(channel: Channel, kernel: Floats) -> Channel:
    """Return the channel behind theta = phi @ kernel, multiplied out where it is small."""
    if channel.entries <= WRITTEN_UP_TO:
        return DenseChannel(kernel @ channel.dense(), channel.log_scale)
    return Smoothed(channel, lambda rows: rows @ kernel, lambda rows: rows @ kernel.T)


def em_path(channel: Channel, weights: Floats, stops: Sequence[int]) -> Generator[tuple[int, Floats], None, None]:
    """Yield the number of updates and the distributions (weightings by values) at each of the increasing `stops`."""
    theta = np.full((len(weights), channel.values), 1.0 / channel.values)
    shares = weights / weights.sum(axis=1, keepdims=True)
    updates = 0
    for stop in stops:
        while updates < stop:
            ratio = np.maximum(channel.forward(theta), SMALLEST)
            np.divide(shares, ratio, out=ratio)
            theta = theta * channel.backward(ratio)
            updates += 1
        np.maximum(theta, 0.0, out=theta)  # below 0, and a sum other than 1, are rounding, which would build up
        theta /= theta.sum(axis=1, keepdims=True)
        yield updates, theta
