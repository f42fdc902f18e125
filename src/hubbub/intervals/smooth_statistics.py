"""Statistics that are not linear in the shares: how far one can go among likely distributions.

A smooth statistic g is known by its value and its gradient, as functions of the shares. Its least value over the likely
distributions is searched by **sequential linearisation**: at theta the linear statistic with weights grad g(theta) is
minimised by the solver of linear endpoints (`solvers.profile_extremes`), and its solution is the next theta; if g does
not fall there, a point on the way, which is likely too, because the set is convex. Where many users leave few
distributions likely, g is nearly linear among them, and a few steps are enough.

* A ratio of two linear statistics (a conditional share, `conditional_shares`) falls with every full step: this is
  Dinkelbach's method, which converges superlinearly to the least value of all.
* The largest variance is a concave problem: its stationary point is the solution, and its tangent a certified limit.
* Others (the least variance, a correlation) may have several stationary points. The one is found that is reached from
  the maximum of the likelihood.

**Cutoffs.** The hypothesis g(theta) = v is, near a theta that has this value, the linear one that grad g(theta) keeps
its value: of a ratio exactly, otherwise up to what is quadratic. So the cutoff of an endpoint is simulated for the
gradient at the distribution that attains it (`deviance_cutoff`), as for linear statistics.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.serialization import Portable
from hubbub.solvers.profile_extremes import Extreme

MAX_LINEARISATIONS = 40
MAX_GAP_OF_REACH = 2e-3  # between the last two values, relative to their distance from that of the maximum
MAX_HALVINGS = 12  # of a step after which the statistic has not fallen
MIN_SHARE_OF_PROMISE = 0.1  # of what the linear statistic falls by, that the statistic itself must fall by
MAX_DOUBLINGS = 6  # of what a limit is moved outwards by, in search of its proof
MIN_REACH = 1e-12  # of the range of the gradient: less is rounding


class SmoothStatistic(Portable, ABC):
    """A function of the shares, by its value and its gradient.

    `title` is what it is called, and `among` the weights of the share without which it is not defined; None if it
    always is. `value` is not a number where it is not defined.
    """

    title: str
    among: Floats | None

    @property
    def lowest(self) -> float:
        """The least value that any distribution can have."""
        return -math.inf

    @property
    def highest(self) -> float:
        """The largest value that any distribution can have."""
        return math.inf

    @abstractmethod
    def value(self, theta: Floats) -> float:
        """Return the statistic of a distribution."""

    @abstractmethod
    def gradient(self, theta: Floats) -> Floats:
        """Return the derivatives by the shares; a constant may be added to all of them."""

    def face(self, sign: float) -> Floats | None:  # noqa: ARG002
        """Return a linear statistic that is least where this one is lowest (sign 1) or highest (-1); None if none."""
        return None

    def level_set(self, value: float) -> Floats | None:  # noqa: ARG002
        """Return the linear statistic that has the sign of this one minus a value; None if there is none."""
        return None


class Linearised(NamedTuple):
    """The least value of a statistic among likely distributions, and its gradient where it is attained."""

    extreme: Extreme
    weights: Floats


def least_smooth(
    least: Callable[[Floats], Extreme], statistic: SmoothStatistic, sign: float, top: Floats, begin: Floats
) -> Linearised:
    """Return the least `sign` * statistic, given the solver of linear statistics and a distribution to begin from.

    `top` is the maximum of the likelihood. The limit is proven for ratios; for others it is that of the tangent.
    """
    lowest = statistic.lowest if sign > 0.0 else -statistic.highest
    theta, value = begin, math.inf  # the first step is taken as it is: with another cutoff, begin may be too far out
    own = sign * statistic.value(top)
    slope, found, turns = sign * statistic.gradient(begin), None, 0
    for _ in range(MAX_LINEARISATIONS):
        found = least(slope)
        turns += max(1, found.iterations)
        promised = float(slope @ (theta - found.theta))
        if value < math.inf and promised <= max(MAX_GAP_OF_REACH * (own - value), MIN_REACH * float(np.ptp(slope))):
            break
        theta, value, has_moved = _step(statistic, sign, theta, value, found.theta, promised)
        slope = sign * statistic.gradient(theta)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            return Linearised(Extreme(lowest, lowest, found.theta, turns), np.zeros_like(top))
        if not has_moved:
            break
    assert found is not None  # noqa: S101  # there is at least one turn
    shortfall = max(0.0, float(slope @ theta) - found.limit) if np.isfinite(slope).all() else 0.0
    limit = _proven(least, statistic, sign, value, shortfall)
    return Linearised(Extreme(max(lowest, limit), value, theta, turns), slope)


def _step(
    statistic: SmoothStatistic, sign: float, theta: Floats, value: float, target: Floats, promised: float
) -> tuple[Floats, float, bool]:
    """Return a distribution on the way to the target where the statistic is less, its value, and if there is one."""
    size = 1.0
    for _ in range(MAX_HALVINGS):
        tried = theta + size * (target - theta)
        reached = sign * statistic.value(tried)
        if not reached > value - MIN_SHARE_OF_PROMISE * size * max(promised, 0.0):  # also where it is not defined
            return tried, reached, True
        size /= 2.0
    return theta, value, False


def _proven(
    least: Callable[[Floats], Extreme], statistic: SmoothStatistic, sign: float, value: float, shortfall: float
) -> float:
    """Return a limit beyond which no likely distribution is: of a ratio, one with a proof."""
    out = 2.0 * shortfall
    for _ in range(MAX_DOUBLINGS):
        weights = statistic.level_set(sign * (value - out))
        if weights is None:
            return value - shortfall
        if least(sign * weights).limit >= 0.0:
            return value - out
        out *= 2.0
    return value - out
