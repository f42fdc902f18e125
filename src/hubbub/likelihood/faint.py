"""Patterns whose probability is below the smallest float, though not 0.

A channel's columns are scaled to a maximum of 1, so that only a distribution with no mass anywhere near a
pattern's likely values gets here: all of it 1,000 standard deviations away, say. Rare, but a likelihood of
exp(-2000) is not 0, and the log-likelihood there is -2000, not minus infinity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Floats, Positions
from hubbub.channels import Channel


@dataclass(frozen=True)
class Faint:
    """Some patterns at one distribution, in logarithms throughout."""

    patterns: Positions
    log_columns: Floats  # log g, values by these patterns
    log_theta: Floats
    log_fitted: Floats

    @classmethod
    def of(cls, channel: Channel, theta: Floats, patterns: Positions) -> Faint:
        """Return log g and log f of these patterns."""
        from scipy.special import logsumexp

        columns = channel.log_columns(patterns)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(theta)
            return cls(patterns, columns, logs, np.asarray(logsumexp(logs[:, None] + columns, axis=0)))

    def log_likelihood(self, weights: Floats) -> float:
        """Return the part of L that belongs to these patterns."""
        return float(weights[self.patterns] @ self.log_fitted)

    def gradient(self, shares: Floats) -> Floats:
        """Return their part of D; it may be larger than any float."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.exp(self.log_columns - self.log_fitted) @ shares[self.patterns])

    def posterior(self, shares: Floats) -> Floats:
        """Return their users' posterior distributions, added up: each entry is at most a share."""
        with np.errstate(invalid="ignore"):
            posterior = np.exp(self.log_theta[:, None] + self.log_columns - self.log_fitted)
            return np.asarray(posterior @ shares[self.patterns])

    def log_top(self, plain: Floats, shares: Floats) -> float:
        """Return log max_x D_x, with `plain` the other patterns' part of D."""
        from scipy.special import logsumexp

        with np.errstate(divide="ignore", invalid="ignore"):
            own = logsumexp(self.log_columns - self.log_fitted + np.log(shares[self.patterns]), axis=1)
            return float(np.logaddexp(np.log(plain), own).max())
