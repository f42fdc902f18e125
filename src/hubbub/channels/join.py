"""Channels made of channels: side by side, and products for several outputs of one user."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from hubbub.arrays import Floats
from hubbub.channels.base import Channel
from hubbub.channels.dense import Dense, check_entries


class Joined(Channel):
    """Several channels over the same values, their patterns one after the other."""

    def __init__(self, parts: Sequence[Channel]) -> None:
        self.parts = tuple(parts)
        self.values = self.parts[0].values
        self.patterns = sum(part.patterns for part in self.parts)
        self.log_scale = np.concatenate([part.log_scale for part in self.parts])
        self._cuts = np.cumsum([part.patterns for part in self.parts])[:-1]

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
    check_entries(log_items.shape[0], repeats.shape[0])
    # Only stored entries are multiplied, so that an impossible item (-inf) touches its own patterns alone.
    return Dense(np.asarray(repeats @ log_items.T).T)
