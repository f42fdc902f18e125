"""Value, gradient and certificate of the log-likelihood.

With w_i users who sent pattern i, n = sum_i w_i, and theta a distribution over the domain,

    L(theta) = sum_i w_i log f_i,     f = theta G.

**Certificate.** With D_x = (1/n) sum_i w_i g_xi / f_i, concavity of the logarithm gives for every other
distribution theta'

    L(theta') - L(theta) = sum_i w_i log(f'_i / f_i) <= n log( (1/n) sum_i w_i f'_i / f_i )
                         = n log( sum_x theta'_x D_x ) <= n log max_x D_x,

so that log max_x D_x, the gap, bounds how far the mean log-likelihood lies below its maximum, in nats per
user. It is 0 exactly at the maxima.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats
from hubbub.channels import Channel
from hubbub.likelihood.faint import Faint
from hubbub.reports import Reports

SMALLEST = 1e-290  # of a plain probability: one over it is still a float


class Likelihood:
    """The log-likelihood of some reports."""

    def __init__(self, channel: Channel, weights: Floats, users: int) -> None:
        self.channel = channel
        self.weights = weights
        self.users = users
        self.total = float(weights.sum())  # the users, unless only sums of bits were kept
        self.sent = weights > 0  # a pattern that nobody sent says nothing, even where it is impossible
        self.all_sent = bool(self.sent.all())

    @cached_property
    def shares(self) -> Floats:
        """The weights, with sum 1."""
        return self.weights / self.total

    @cached_property
    def constant(self) -> float:
        """What the patterns' own factors add to the log-likelihood."""
        return float(self.weights @ self.channel.log_scale)

    @classmethod
    def of(cls, reports: Reports) -> Likelihood:
        """Return the likelihood of `reports`."""
        return cls(reports.channel, reports.weights, reports.users)

    def at(self, theta: Floats) -> Point:
        """Return everything there is to know at `theta`; each piece is computed when first asked for."""
        return Point(self, theta)


class Point:
    """The log-likelihood at one distribution: all that solvers need of the likelihood."""

    def __init__(self, likelihood: Likelihood, theta: Floats) -> None:
        self.likelihood = likelihood
        self.theta = theta

    @cached_property
    def fitted(self) -> Floats:
        """The likelihood of each pattern (up to the channel's scale): f = theta G."""
        return self.likelihood.channel.forward(self.theta)

    @cached_property
    def plain(self) -> NDArray[np.bool_] | None:
        """Which patterns were sent and have a probability that floats can hold; None where that is all of them."""
        if self.likelihood.all_sent and self.fitted.min() > SMALLEST:
            return None
        return self.likelihood.sent & (self.fitted > SMALLEST)

    @cached_property
    def faint(self) -> Faint | None:
        """The patterns that were sent and whose probability is too small for floats, or 0; None without any."""
        if self.plain is None or not (missing := self.likelihood.sent & ~self.plain).any():
            return None
        return Faint.of(self.likelihood.channel, self.theta, np.flatnonzero(missing))

    @cached_property
    def log_likelihood(self) -> float:
        """Return L(theta): -inf where a pattern that was sent has probability 0."""
        kept = self.plain
        if kept is None:
            value = float(self.likelihood.weights @ np.log(self.fitted)) + self.likelihood.constant
        else:
            logs = np.log(self.fitted[kept]) + self.likelihood.channel.log_scale[kept]
            value = float(self.likelihood.weights[kept] @ logs)
        if self.faint is not None:
            value += self.faint.log_likelihood(self.likelihood.weights)
        return value if math.isfinite(value) else -math.inf  # what is not a number explains nothing

    @cached_property
    def gradient(self) -> Floats:
        """Return D, the gradient of L divided by its total weight: D_x = (1/n) sum_i w_i g_xi / f_i."""
        if self.faint is None:
            return self._plain_gradient
        return self._plain_gradient + self.faint.gradient(self.likelihood.shares)

    @cached_property
    def _plain_gradient(self) -> Floats:
        weights = self.likelihood.weights
        if self.plain is None:
            ratio = weights / self.fitted
        else:
            ratio = np.divide(weights, self.fitted, out=np.zeros_like(weights), where=self.plain)
        gradient = self.likelihood.channel.backward(ratio)
        gradient /= self.likelihood.total
        return gradient

    @cached_property
    def gap(self) -> float:
        """The certified upper bound on what is missing to the maximum, in nats per user; inf where none is known."""
        if self.faint is None:
            with np.errstate(divide="ignore"):
                top = float(np.log(self._plain_gradient.max()))
        else:
            top = self.faint.log_top(self._plain_gradient, self.likelihood.shares)
        # For a distribution sum_x theta_x D_x = 1, hence max D >= 1, and less is rounding. If theta sums to another
        # number m, the bound is that of theta / m, whose D is m times as large.
        with np.errstate(divide="ignore", invalid="ignore"):
            top += float(np.log(self.theta.sum()))
        if math.isnan(top) or not math.isfinite(self.log_likelihood):
            return math.inf
        return max(0.0, top) * self.likelihood.total / self.likelihood.users

    @cached_property
    def update(self) -> Floats:
        """The next EM iterate: the mean of the users' posterior distributions (the paper's eq. mstep)."""
        moved = self.theta * self._plain_gradient
        if self.faint is not None:
            moved = moved + self.faint.posterior(self.likelihood.shares)
        moved = np.maximum(moved, 0.0)  # below 0, and a sum other than 1, are rounding, which would build up
        moved /= moved.sum()
        return moved
