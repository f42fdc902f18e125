"""What solvers need of a likelihood at one distribution, wherever its reports are stored.

With w_i users who sent pattern i, n = sum_i w_i, theta a distribution over the domain and f = theta G,

    L(theta) = sum_i w_i log f_i,     D_x = (1/n) sum_i w_i g_xi / f_i.

**Certificate.** Concavity of the logarithm gives for every other distribution theta'

    L(theta') - L(theta) = sum_i w_i log(f'_i / f_i) <= n log( (1/n) sum_i w_i f'_i / f_i )
                         = n log( sum_x theta'_x D_x ) <= n log max_x D_x,

so that log max_x D_x, the gap, bounds how far the mean log-likelihood is below its maximum, in nats per
user. It is 0 exactly at the maxima.

**Rounding.** D is computed in floats. `measured_gap` is the result; `gap` adds the most that rounding can have taken
from it (`channels/rounding.py`), so that "at most" is true to the last digit: both for the probabilities as the channel
stores them and for the mechanisms' own, which differ from the stored ones by a few units in the last place. Solvers use
the first, readers of a result get the second.

L and D are sums over patterns; everything else follows from theta, L and D, which are of the domain's size. The
formulas here are therefore the same for reports in this process (`Point`) and elsewhere (`PooledPoint`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from hubbub.channels.rounding import UNIT_ROUNDOFF, gamma, pairwise_additions
from hubbub.core.arrays import Floats
from hubbub.likelihood.underflow import Underflow

MAX_LOG_ROUNDING_OF_SUM = 1e-9  # the logarithm of a sum that is 1 but for rounding


class Excess(NamedTuple):
    """By how much a sum may be larger than its computed value: a relative and an absolute part, for each value."""

    relative: float
    absolute: Floats | float = 0.0


class Evaluation(ABC):
    """The log-likelihood at one distribution; each quantity is computed on first use."""

    theta: Floats

    @abstractmethod
    def at(self, theta: Floats) -> Self:
        """Return the same likelihood at another distribution."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The weight of all patterns: the number of users, unless only sums of bits were kept."""

    @property
    @abstractmethod
    def users(self) -> int:
        """How many users sent the reports."""

    @property
    @abstractmethod
    def log_likelihood(self) -> float:
        """Return L(theta): -inf where a pattern that was sent has probability 0."""

    @property
    @abstractmethod
    def plain_gradient(self) -> Floats:
        """The part of D from patterns whose probability floats can represent."""

    @property
    @abstractmethod
    def underflow(self) -> Underflow | None:
        """The patterns that were sent and whose probability underflows or is 0; None if there are none."""

    @cached_property
    def gradient(self) -> Floats:
        """Return D, the gradient of L divided by its total weight: D_x = (1/n) sum_i w_i g_xi / f_i."""
        if self.underflow is None:
            return self.plain_gradient
        return self.plain_gradient + self.underflow.gradient

    @property
    @abstractmethod
    def excess(self) -> Excess:
        """The most that rounding can have taken from the plain part of D."""

    @cached_property
    def measured_gap(self) -> float:
        """The gap as computed, up to rounding; inf where no bound is known."""
        if self.underflow is None:
            with np.errstate(divide="ignore"):
                top = float(np.log(self.plain_gradient.max()))
        else:
            top = self.underflow.log_top(self.plain_gradient)
        # For a distribution sum_x theta_x D_x = 1, hence max D >= 1, and less is rounding. If theta sums to another
        # number m, the bound is that of theta / m, whose D is m times as large.
        with np.errstate(divide="ignore", invalid="ignore"):
            top += float(np.log(self.theta.sum()))
        if math.isnan(top) or not math.isfinite(self.log_likelihood):
            return math.inf
        return max(0.0, top) * self.total / self.users

    @cached_property
    def gap(self) -> float:
        """The certified bound on the distance to the maximum, in nats per user; inf where none is known."""
        return self._certified() if math.isfinite(self.measured_gap) else math.inf

    def _certified(self) -> float:
        return self.certify(self.plain_gradient, self.excess)

    def certify(self, plain: Floats, excess: Excess) -> float:
        """Return the bound that a computed D proves, including the most that rounding can have taken from it."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            highest = plain * (1.0 + excess.relative) + excess.absolute
            if self.underflow is None:
                top = float(np.log(highest.max()))
            else:
                top = self.underflow.log_top(highest) + self.underflow.log_rounding
            mass = float(np.log(self.theta.sum()))
        # A sum that is 1 but for rounding counts as whichever is worse: theta as it is, or theta / m.
        top += max(mass, 0.0) if abs(mass) < MAX_LOG_ROUNDING_OF_SUM else mass
        top += gamma(pairwise_additions(self.theta.size) + 8) + 8 * UNIT_ROUNDOFF * abs(top)
        if math.isnan(top):
            return math.inf
        return max(0.0, top) * (self.total / self.users) * (1.0 + 8 * UNIT_ROUNDOFF)

    @cached_property
    def update(self) -> Floats:
        """The next EM iterate: the mean of the users' posterior distributions (the paper's eq. mstep)."""
        moved = self.theta * self.plain_gradient
        if self.underflow is not None:
            moved = moved + self.underflow.posterior
        moved = np.maximum(
            moved, 0.0
        )  # negative entries and a sum other than 1 are rounding errors, which would build up
        moved /= moved.sum()
        return moved
