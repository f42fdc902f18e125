"""A channel kept as a matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hubbub.arrays import Floats, Positions, frozen
from hubbub.channels.base import PART, Channel, check_entries


class Dense(Channel):
    """A matrix of likelihoods, one column for each pattern, each column scaled to a maximum of 1."""

    def __init__(self, values: int, patterns: int, log_columns: Callable[[slice | Positions], Floats]) -> None:
        # Some patterns at a time: what it takes to compute logs need not fit beside the matrix.
        check_entries(values, patterns)
        self.values, self.patterns = values, patterns
        self._log_columns = log_columns  # what exp has flushed to 0 can still be asked for
        self.matrix = np.empty((values, patterns))
        self.log_scale = np.zeros(patterns)
        step = max(1, PART // max(1, values))
        for first in range(0, patterns, step):
            part = slice(first, min(first + step, patterns))
            logs = log_columns(part)
            top = logs.max(axis=0)
            self.log_scale[part] = np.where(np.isfinite(top), top, 0.0)  # an impossible column stays all zero
            self.matrix[:, part] = np.exp(logs - self.log_scale[part])
        frozen(self.matrix)
        frozen(self.log_scale)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return theta @ self.matrix

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return ratio @ self.matrix.T

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return np.asarray(np.einsum("xi,xi,i->x", self.matrix, self.matrix, weights))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        chosen: Floats = self.matrix[positions]
        return chosen

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g as it was given, also where exp has flushed it to 0."""
        return self._log_columns(patterns)

    def dense(self) -> Floats:
        """Return the matrix itself."""
        return self.matrix
