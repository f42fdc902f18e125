"""What every channel does.

A channel holds g[x, i] = P(pattern i | value x) up to a factor of each pattern's own:

    g[x, i] = exp(log_scale[i]) * stored[x, i]

The factors keep products of thousands of probabilities, and outputs thousands of units away, from
underflowing. They cancel from the update of EM and from the gap, and add a constant to the log-likelihood.

Stored entries are never negative, and neither is `forward` of a distribution: a likelihood of -1e-17 would have no
logarithm. `forward` and `backward` accept a leading batch axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from hubbub.arrays import Floats, Positions


class Channel(ABC):
    """A linear operator from distributions over values to likelihoods of patterns."""

    values: int
    patterns: int
    log_scale: Floats

    @abstractmethod
    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored: (..., values) to (..., patterns)."""

    @abstractmethod
    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio: (..., patterns) to (..., values)."""

    @abstractmethod
    def rows(self, positions: Positions) -> Floats:
        """Return the stored rows of the values at `positions`, a matrix with a column for each pattern."""

    def dense(self) -> Floats:
        """Return the stored matrix, values by patterns."""
        return self.rows(np.arange(self.values))

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g of some patterns, with -inf where a value cannot give one."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.dense()[:, patterns]) + self.log_scale[patterns]
        return logs

    def log_dense(self) -> Floats:
        """Return log g, values by patterns."""
        return self.log_columns(np.arange(self.patterns))
