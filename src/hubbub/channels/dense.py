"""A channel kept as a matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hubbub.arrays import Floats, Positions, frozen
from hubbub.channels.base import Channel
from hubbub.errors import ReportsError

MOST_ENTRIES = 1_000_000_000  # 8 GB
PART = 4_000_000  # entries worked on at a time

LogColumns = Callable[[slice | Positions], Floats]  # log-likelihoods of some patterns, values by patterns


class Dense(Channel):
    """A matrix of likelihoods, one column for each pattern, each column scaled to a maximum of 1."""

    def __init__(self, values: int, patterns: int, log_columns: LogColumns) -> None:
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


def check_entries(values: int, patterns: int) -> None:
    """Refuse matrices that would not fit, before they are built."""
    if values * patterns > MOST_ENTRIES:
        raise ReportsError(
            "the channel would not fit in memory",
            where="building the likelihood of the observed patterns",
            got=f"{values:,} values x {patterns:,} distinct patterns: {8e-9 * values * patterns:,.0f} GB",
            expected=f"at most {8e-9 * MOST_ENTRIES:,.0f} GB",
            remedy="use a coarser domain, or a mechanism with a structured channel (k-RR, unary, hashed)",
        )
