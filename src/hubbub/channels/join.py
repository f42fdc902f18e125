"""Channels made of channels: side by side, and products for several outputs of one user."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from hubbub.arrays import Floats, Positions, frozen
from hubbub.channels.base import Channel
from hubbub.channels.dense import Dense


class Joined(Channel):
    """Several channels over the same values, their patterns one after the other."""

    def __init__(self, parts: Sequence[Channel]) -> None:
        self.parts = tuple(parts)
        self.values = self.parts[0].values
        self.patterns = sum(part.patterns for part in self.parts)
        self.log_scale = frozen(np.concatenate([part.log_scale for part in self.parts]))
        self._cuts = np.cumsum([part.patterns for part in self.parts])[:-1]

    def rows(self, positions: Positions) -> Floats:
        """Return rows of all parts, side by side."""
        return np.concatenate([part.rows(positions) for part in self.parts], axis=1)

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g of some patterns, each from its own part."""
        which = np.searchsorted(self._cuts, patterns, side="right")
        starts = np.concatenate([[0], self._cuts])
        logs = np.empty((self.values, patterns.size))
        for place in np.unique(which):
            logs[:, which == place] = self.parts[place].log_columns(patterns[which == place] - starts[place])
        return logs

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return np.concatenate([part.forward(theta) for part in self.parts], axis=-1)

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        pieces = np.split(ratio, self._cuts, axis=-1)
        total = self.parts[0].backward(pieces[0])
        for part, piece in zip(self.parts[1:], pieces[1:], strict=True):
            total = total + part.backward(piece)
        return total


def product(log_items: Floats, repeats: sparse.csr_array) -> Dense:
    """Return the channel of patterns made of several items: g is the product, hence log g the sum, over them.

    `log_items` is values by items; row i of `repeats` says how often each item occurs in pattern i.
    """
    # Only stored entries are multiplied, so that an impossible item (-inf) touches its own patterns alone.
    by_item = np.ascontiguousarray(log_items.T)
    return Dense(
        log_items.shape[0], repeats.shape[0], lambda part: np.asarray(sparse.csr_array(repeats[part]) @ by_item).T
    )
