"""A channel kept as a matrix."""

from __future__ import annotations

import numpy as np

from hubbub.arrays import Floats
from hubbub.channels.base import Channel
from hubbub.errors import ReportsError

MOST_ENTRIES = 1_000_000_000  # 8 GB


class Dense(Channel):
    """A matrix of likelihoods, one column for each pattern, each column scaled to a maximum of 1."""

    def __init__(self, log_columns: Floats) -> None:
        self.values, self.patterns = log_columns.shape
        top = log_columns.max(axis=0) if self.values else np.zeros(self.patterns)
        self.log_scale = np.where(np.isfinite(top), top, 0.0)  # an impossible column stays all zero
        self.matrix: Floats = np.exp(log_columns - self.log_scale)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return theta @ self.matrix

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return ratio @ self.matrix.T

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
