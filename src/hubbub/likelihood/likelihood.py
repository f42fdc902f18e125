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

from hubbub.arrays import Floats
from hubbub.channels import Channel
from hubbub.reports import Reports


class Likelihood:
    """The log-likelihood of some reports."""

    def __init__(self, channel: Channel, weights: Floats, users: int) -> None:
        self.channel = channel
        self.weights = weights
        self.users = users
        self.total = float(weights.sum())  # the users, unless only sums of bits were kept
        self._shares = weights / self.total
        self._constant = float(weights @ channel.log_scale)

    @classmethod
    def of(cls, reports: Reports) -> Likelihood:
        """Return the likelihood of `reports`."""
        return cls(reports.channel, reports.weights, reports.users)

    def at(self, theta: Floats) -> Point:
        """Return everything there is to know at `theta`; each piece is computed when first asked for."""
        return Point(self, theta)


class Point:
    """The log-likelihood at one distribution."""

    def __init__(self, likelihood: Likelihood, theta: Floats) -> None:
        self.likelihood = likelihood
        self.theta = theta

    @cached_property
    def fitted(self) -> Floats:
        """The likelihood of each pattern (up to the channel's scale): f = theta G."""
        return self.likelihood.channel.forward(self.theta)

    @cached_property
    def log_likelihood(self) -> float:
        """Return L(theta): -inf where a pattern that was observed has probability 0."""
        if (self.fitted <= 0).any():
            return -math.inf
        return float(self.likelihood.weights @ np.log(self.fitted)) + self.likelihood._constant

    @cached_property
    def gradient(self) -> Floats:
        """Return D, the gradient of L divided by its total weight: D_x = (1/n) sum_i w_i g_xi / f_i."""
        with np.errstate(divide="ignore"):
            ratio = self.likelihood._shares / self.fitted
        return self.likelihood.channel.backward(ratio)

    @cached_property
    def gap(self) -> float:
        """The certified upper bound on what is missing to the maximum, in nats per user."""
        if (self.fitted <= 0).any():
            return math.inf
        # sum_x theta_x D_x = 1, hence max D >= 1; less than that is rounding.
        excess = math.log(max(1.0, float(self.gradient.max())))
        return excess * self.likelihood.total / self.likelihood.users

    @cached_property
    def update(self) -> Floats:
        """The next EM iterate: the mean of the users' posterior distributions (the paper's eq. mstep)."""
        moved = self.theta * self.gradient
        moved /= moved.sum()  # the sum is 1 up to rounding, which would build up
        return moved
