"""The likelihood of reports in this process: one channel, one weight for each of its patterns."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.channels.rounding import RoundingBound, gamma
from hubbub.core.arrays import Floats
from hubbub.likelihood.evaluation import Evaluation, Excess
from hubbub.likelihood.partial_sums import Sums
from hubbub.likelihood.underflow import Faint
from hubbub.reports import Reports

SMALLEST = 1e-290  # of a plain probability: one over it is still a float
MOST_LOST = 0.1  # of a sum: beyond, nothing is certified
TIGHT, WORTH = 1e-12, 0.01  # what rounding may add to a gap, in nats and as a share, before sums are made again


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


class Point(Evaluation):
    """The log-likelihood at one distribution: all that solvers need of the likelihood."""

    def __init__(self, likelihood: Likelihood, theta: Floats) -> None:
        self.likelihood = likelihood
        self.theta = theta

    def at(self, theta: Floats) -> Self:
        """Return the same likelihood at another distribution."""
        return type(self)(self.likelihood, theta)

    @property
    def total(self) -> float:
        """The weight of all patterns: the users, unless only sums of bits were kept."""
        return self.likelihood.total

    @property
    def users(self) -> int:
        """How many users sent the reports."""
        return self.likelihood.users

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
        own = self.likelihood
        if self.plain is None or not (missing := own.sent & ~self.plain).any():
            return None
        return Faint.of(own.channel, self.theta, np.flatnonzero(missing), own.weights, own.shares)

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
            value += self.faint.log_likelihood
        return value if math.isfinite(value) else -math.inf  # what is not a number explains nothing

    @cached_property
    def plain_gradient(self) -> Floats:
        """The part of D that belongs to patterns whose probability floats can hold."""
        gradient = self._plain_sum()
        gradient /= self.likelihood.total
        return gradient

    def _plain_sum(self) -> Floats:
        return self.likelihood.channel.backward(self._ratio())

    def _ratio(self) -> Floats:
        weights = self.likelihood.weights
        if self.plain is None:
            return weights / self.fitted
        return np.divide(weights, self.fitted, out=np.zeros_like(weights), where=self.plain)

    @cached_property
    def excess(self) -> Excess:
        """What rounding can have taken from the plain part of D."""
        relative, absolute = self._sum_excess()
        return Excess(relative, absolute / self.likelihood.total)

    def _sum_excess(self, fitted: RoundingBound | None = None) -> Excess:
        """Return what rounding can have taken from the sum over patterns of w_i g_xi / f_i.

        With f_i known up to a factor 1 + a_i, the exact sum is at most that of w_i g_xi (1 + a_i) / f_i, and what
        `backward` loses. Entries that are not quite those of the mechanism count twice: in g and in f.
        """
        channel, ratio = self.likelihood.channel, self._ratio()
        fitted = channel.forward_rounding(self.theta, self.fitted) if fitted is None else fitted
        backward = channel.backward_rounding(ratio)
        entry = channel.entry_rounding
        if max(fitted.relative, backward.relative, entry) > MOST_LOST:
            return Excess(math.inf)
        factor = (1.0 + entry) / (1.0 - entry) / (1.0 - backward.relative) / (1.0 - fitted.relative) * (1.0 + gamma(8))
        absolute: Floats | float = backward.absolute
        if np.any(fitted.absolute):
            with np.errstate(divide="ignore", invalid="ignore"):
                least = self.fitted * (1.0 - fitted.relative) - fitted.absolute
                more = np.where(ratio > 0.0, np.where(least > 0.0, fitted.absolute / least, np.inf), 0.0)
            if not np.isfinite(more).all():
                return Excess(math.inf)
            lifted = channel.backward_rounding(ratio * more)
            absolute = absolute + channel.backward(ratio * more) * (1.0 + lifted.relative) + lifted.absolute
        return Excess(factor - 1.0, absolute * factor)

    def _certified(self) -> float:
        """Return the gap with what rounding can have taken from it.

        Where a channel computes sums by FFT, and what that loses is not small beside the gap itself, they are added up
        again one by one.
        """
        certified = super()._certified()
        if certified - self.measured_gap <= max(TIGHT, WORTH * self.measured_gap) or self.faint is not None:
            return certified
        careful = self.likelihood.channel.careful_forward(self.theta)
        if careful is None:
            return certified
        again = type(self)(self.likelihood, self.theta)
        again.__dict__["fitted"] = careful[0]
        if again.faint is not None or not math.isfinite(again.measured_gap):
            return certified
        relative, absolute = again._sum_excess(careful[1])
        total = self.likelihood.total
        return min(certified, again.certify(again.plain_gradient, Excess(relative, absolute / total)))

    def sums(self) -> Sums:
        """Return what these patterns add to a likelihood that has others as well."""
        faint = None if self.faint is None else self.faint.sums()
        return Sums(self.log_likelihood, self._plain_sum(), faint, self.likelihood.total, self._sum_excess())
