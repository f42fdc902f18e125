"""What every channel does.

A channel holds g[x, i] = P(pattern i | value x) up to a factor of each pattern's own:

    g[x, i] = exp(log_scale[i]) * stored[x, i]

The factors keep products of thousands of probabilities, and outputs thousands of units away, from
underflowing. They cancel from the update of EM and from the gap, and add a constant to the log-likelihood.

`forward` and `backward` accept a leading batch axis, and use operators and methods only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from hubbub.arrays import Floats


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

    def dense(self) -> Floats:
        """Return the stored matrix, values by patterns."""
        return self.forward(np.eye(self.values))

    def log_dense(self) -> Floats:
        """Return log g, values by patterns, with -inf where a value cannot give a pattern."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.dense()) + self.log_scale
        return logs
