"""What solvers need of a likelihood at one distribution, wherever its patterns lie.

With w_i users who sent pattern i, n = sum_i w_i, theta a distribution over the domain and f = theta G,

    L(theta) = sum_i w_i log f_i,     D_x = (1/n) sum_i w_i g_xi / f_i.

**Certificate.** Concavity of the logarithm gives for every other distribution theta'

    L(theta') - L(theta) = sum_i w_i log(f'_i / f_i) <= n log( (1/n) sum_i w_i f'_i / f_i )
                         = n log( sum_x theta'_x D_x ) <= n log max_x D_x,

so that log max_x D_x, the gap, bounds how far the mean log-likelihood lies below its maximum, in nats per
user. It is 0 exactly at the maxima.

**Rounding.** D is computed in floats. `measured_gap` is what comes out; `gap` adds all that rounding can have taken
from it (`channels/rounding.py`), so that "at most" is true to the last digit: for the probabilities as the channel
stores them, and for those that its mechanisms show, of which the stored ones are a few units in the last place away.
Solvers go by the first, whoever reads a result gets the second.

L and D are sums over patterns; all else follows from theta, L and D, which are of the domain's size. So do the formulas
here, for a likelihood in this process (`Point`) and for one whose parts lie elsewhere (`PooledPoint`) alike.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from hubbub.channels.rounding import UNIT_ROUNDOFF, gamma, pairwise_additions
from hubbub.core.arrays import Floats
from hubbub.likelihood.underflow import FaintPart

NEARLY_ONE = 1e-9  # the logarithm of a sum that is meant to be 1


class Excess(NamedTuple):
    """By how much a sum may be larger than it was computed: by a share of itself, and by some more for each value."""

    relative: float
    absolute: Floats | float = 0.0


class Evaluation(ABC):
    """The log-likelihood at one distribution; each piece is computed when first asked for."""

    theta: Floats

    @abstractmethod
    def at(self, theta: Floats) -> Self:
        """Return the same likelihood at another distribution."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The weight of all patterns: the users, unless only sums of bits were kept."""

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
        """The part of D that belongs to patterns whose probability floats can hold."""

    @property
    @abstractmethod
    def faint(self) -> FaintPart | None:
        """The patterns that were sent and whose probability is too small for floats, or 0; None without any."""

    @cached_property
    def gradient(self) -> Floats:
        """Return D, the gradient of L divided by its total weight: D_x = (1/n) sum_i w_i g_xi / f_i."""
        if self.faint is None:
            return self.plain_gradient
        return self.plain_gradient + self.faint.gradient

    @property
    @abstractmethod
    def excess(self) -> Excess:
        """What rounding can have taken from the plain part of D."""

    @cached_property
    def measured_gap(self) -> float:
        """What is missing to the maximum as it is computed, up to rounding; inf where no bound is known."""
        if self.faint is None:
            with np.errstate(divide="ignore"):
                top = float(np.log(self.plain_gradient.max()))
        else:
            top = self.faint.log_top(self.plain_gradient)
        # For a distribution sum_x theta_x D_x = 1, hence max D >= 1, and less is rounding. If theta sums to another
        # number m, the bound is that of theta / m, whose D is m times as large.
        with np.errstate(divide="ignore", invalid="ignore"):
            top += float(np.log(self.theta.sum()))
        if math.isnan(top) or not math.isfinite(self.log_likelihood):
            return math.inf
        return max(0.0, top) * self.total / self.users

    @cached_property
    def gap(self) -> float:
        """The certified upper bound on what is missing to the maximum, in nats per user; inf where none is known."""
        return self._certified() if math.isfinite(self.measured_gap) else math.inf

    def _certified(self) -> float:
        return self.certify(self.plain_gradient, self.excess)

    def certify(self, plain: Floats, excess: Excess) -> float:
        """Return the bound that a computed D proves, with all that rounding can have taken from it."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            highest = plain * (1.0 + excess.relative) + excess.absolute
            if self.faint is None:
                top = float(np.log(highest.max()))
            else:
                top = self.faint.log_top(highest) + self.faint.log_rounding
            mass = float(np.log(self.theta.sum()))
        # A sum that is 1 but for rounding counts as it is worse: for theta as it is, and for theta / m.
        top += max(mass, 0.0) if abs(mass) < NEARLY_ONE else mass
        top += gamma(pairwise_additions(self.theta.size) + 8) + 8 * UNIT_ROUNDOFF * abs(top)
        if math.isnan(top):
            return math.inf
        return max(0.0, top) * (self.total / self.users) * (1.0 + 8 * UNIT_ROUNDOFF)

    @cached_property
    def update(self) -> Floats:
        """The next EM iterate: the mean of the users' posterior distributions (the paper's eq. mstep)."""
        moved = self.theta * self.plain_gradient
        if self.faint is not None:
            moved = moved + self.faint.posterior
        moved = np.maximum(moved, 0.0)  # below 0, and a sum other than 1, are rounding, which would build up
        moved /= moved.sum()
        return moved
