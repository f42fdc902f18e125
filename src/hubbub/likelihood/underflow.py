"""Patterns whose probability is below the smallest float, though not 0.

A channel's columns are scaled to a maximum of 1, so that this happens only for a distribution with no mass near a
pattern's likely values: all of it 1,000 standard deviations away, for example. It is rare, but a likelihood of
exp(-2000) is not 0, and the log-likelihood there is -2000, not minus infinity.

`UnderflowPatterns` holds such patterns of one channel; `UnderflowSums` holds their sums, one number for each value,
which are small enough to send between machines. Both implement `Underflow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hubbub.channels import Channel
from hubbub.channels.rounding import gamma
from hubbub.core.arrays import Floats, Positions


class Underflow(Protocol):
    """What patterns whose probability underflows add to a likelihood's derivatives."""

    @property
    def gradient(self) -> Floats:
        """Their part of D; it may be larger than any float."""

    @property
    def posterior(self) -> Floats:
        """The sum of their users' posterior distributions, divided by all weight: each entry is at most 1."""

    def log_top(self, plain: Floats) -> float:
        """Return log max_x D_x, with `plain` the other patterns' part of D."""

    @property
    def log_rounding(self) -> float:
        """The most by which rounding can have lowered log D."""


@dataclass(frozen=True)
class UnderflowPatterns:
    """Some patterns at one distribution, in logarithms throughout."""

    log_columns: Floats  # log g, values by these patterns
    log_theta: Floats
    log_fitted: Floats
    weights: Floats  # of these patterns
    shares: Floats  # the same, divided by the weight of all patterns

    @classmethod
    def of(
        cls, channel: Channel, theta: Floats, patterns: Positions, weights: Floats, shares: Floats
    ) -> UnderflowPatterns:
        """Return log g and log f of these patterns; `weights` and `shares` are those of all."""
        from scipy.special import logsumexp

        columns = channel.log_columns(patterns)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(theta)
            fitted = np.asarray(logsumexp(logs[:, None] + columns, axis=0))
        return cls(columns, logs, fitted, weights[patterns], shares[patterns])

    @property
    def log_likelihood(self) -> float:
        """Their part of L."""
        return float(self.weights @ self.log_fitted)

    @property
    def gradient(self) -> Floats:
        """Their part of D; it may be larger than any float."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.exp(self.log_columns - self.log_fitted) @ self.shares)

    @property
    def posterior(self) -> Floats:
        """The sum of their users' posterior distributions, divided by all weight: each entry is at most 1."""
        return self._posterior(self.shares)

    def log_top(self, plain: Floats) -> float:
        """Return log max_x D_x, with `plain` the other patterns' part of D."""
        return _log_top(plain, self._log_gradient(self.shares))

    @property
    def log_rounding(self) -> float:
        """The most by which rounding can have lowered log D.

        A logarithm loses as many roundings as its size, in g and in f; a sum over values or patterns one for each term.
        """
        sizes = [np.abs(logs[np.isfinite(logs)]).max(initial=0.0) for logs in (self.log_columns, self.log_theta)]
        return gamma(16.0 * float(sum(sizes)) + sum(self.log_columns.shape) + 64.0)

    def sums(self) -> UnderflowSums:
        """Return the sums of these patterns for each value, not yet divided by the weight of all patterns."""
        return UnderflowSums(self._log_gradient(self.weights), self._posterior(self.weights), self.log_rounding)

    def _posterior(self, weights: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            posterior = np.exp(self.log_theta[:, None] + self.log_columns - self.log_fitted)
            return np.asarray(posterior @ weights)

    def _log_gradient(self, weights: Floats) -> Floats:
        from scipy.special import logsumexp

        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(logsumexp(self.log_columns - self.log_fitted + np.log(weights), axis=1))


@dataclass(frozen=True)
class UnderflowSums:
    """Sums of patterns whose probability underflows, one number for each value.

    log sum_i w_i g_xi / f_i and sum_i w_i theta_x g_xi / f_i: the second does not follow from the first, which may be
    beyond all floats where theta_x is 0.
    """

    log_gradient: Floats
    posterior: Floats
    log_rounding: float  # the most by which rounding can have lowered the first

    def __add__(self, other: UnderflowSums) -> UnderflowSums:
        with np.errstate(invalid="ignore"):
            both = np.logaddexp(self.log_gradient, other.log_gradient)
        rounding = max(self.log_rounding, other.log_rounding) + self._rounding_of(both)
        return UnderflowSums(both, self.posterior + other.posterior, rounding)

    def divided(self, total: float) -> UnderflowSums:
        """Return the sums for weights divided by `total`."""
        logs = self.log_gradient - np.log(total)
        return UnderflowSums(logs, self.posterior / total, self.log_rounding + self._rounding_of(logs))

    @staticmethod
    def _rounding_of(logs: Floats) -> float:
        return gamma(4.0 * float(np.abs(logs[np.isfinite(logs)]).max(initial=0.0)) + 16.0)

    @property
    def gradient(self) -> Floats:
        """Their part of D; it may be larger than any float."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.log_gradient))

    def log_top(self, plain: Floats) -> float:
        """Return log max_x D_x, with `plain` the other patterns' part of D."""
        return _log_top(plain, self.log_gradient)


def _log_top(plain: Floats, log_gradient: Floats) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.logaddexp(np.log(plain), log_gradient).max())
