"""One end of a profile interval: the least value of a statistic, which moves out until its cutoff is its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.intervals.deviance_cutoff import DevianceSimulation
from hubbub.intervals.smooth_statistics import SmoothStatistic, least_smooth
from hubbub.solvers.profile_extremes import Extreme

MAX_SETTLED_GROWTH = 1.02  # a cutoff that grows by less than this factor is settled
AT_MINIMUM = 1e-9  # of the statistic's range: a limit as close to the statistic's minimum is at the minimum

Least = Callable[[Floats, float], Extreme]  # the least value of a linear statistic, given its weights and a cutoff


class _Trial(NamedTuple):
    """A cutoff that was used for an endpoint, and the one that belongs to it."""

    used: float
    own: float


def _crossing(before: _Trial, after: _Trial) -> float:
    """Return the cutoff that would be its own if the logarithm of one were linear in that of the other."""
    short, beyond = math.log(before.own / before.used), math.log(after.used / after.own)
    return float(before.used * (after.used / before.used) ** (short / (short + beyond)))


class MovingEnd:
    """The least value of a linear statistic."""

    def __init__(self, weights: Floats, cutoff: float, simulation: DevianceSimulation | None) -> None:
        self.weights, self.simulation = weights, simulation
        self.least_cutoff = self.cutoff = cutoff
        self.minimum, self.span = float(weights.min()), float(np.ptp(weights))
        self.face: Floats | None = weights  # a linear statistic that is least where this one has its minimum
        self.extreme: Extreme | None = None
        self.limit = self.minimum
        self.is_settled = False
        self._too_small: _Trial | None = None

    @property
    def is_known(self) -> bool:
        """Whether all distributions have the same value."""
        return self.span == 0.0

    @property
    def is_minimal(self) -> bool:
        """Whether the endpoint is the least value of any distribution."""
        return self.limit - self.minimum <= AT_MINIMUM * self.span

    def value(self, theta: Floats) -> float:
        """Return the statistic of a distribution."""
        return float(self.weights @ theta)

    def solve(self, least: Least) -> Extreme:
        """Return the least value with the present cutoff."""
        return least(self.weights, self.cutoff)

    def adjust_cutoff(self, own: float, *, is_coarse: bool) -> None:
        """Move the cutoff towards that of the distribution that attains the endpoint.

        Farther out that one is often smaller again: then the cutoff is looked for in between, as long as few draws
        decide. What all draws say only ever moves an endpoint outwards.
        """
        self.is_settled = own <= MAX_SETTLED_GROWTH * self.cutoff
        if not self.is_settled:
            self._too_small = _Trial(self.cutoff, own)
            self.cutoff = own
        elif is_coarse and own * MAX_SETTLED_GROWTH < self.cutoff and self._too_small is not None:
            self.cutoff, self.is_settled = _crossing(self._too_small, _Trial(self.cutoff, own)), False

    def put(self, extreme: Extreme) -> None:
        """Take over the result of a search."""
        self.extreme, self.limit = extreme, extreme.limit


class SmoothEnd(MovingEnd):
    """The least value of a smooth statistic times a sign; `weights` are its gradient where it was attained last."""

    def __init__(
        self,
        statistic: SmoothStatistic,
        sign: float,
        top: Floats,
        cutoff: float,
        simulation: DevianceSimulation | None,
    ) -> None:
        super().__init__(sign * statistic.gradient(top), cutoff, simulation)
        self._statistic, self._sign, self._top = statistic, sign, top
        self.minimum = self.limit = statistic.lowest if sign > 0.0 else -statistic.highest
        self.span = statistic.highest - statistic.lowest
        self.face = statistic.face(sign)

    @property
    def is_minimal(self) -> bool:
        """Whether the endpoint is the least value of any distribution."""
        return math.isfinite(self.span) and super().is_minimal

    def value(self, theta: Floats) -> float:
        """Return the statistic of a distribution, times the sign."""
        return self._sign * self._statistic.value(theta)

    def solve(self, least: Least) -> Extreme:
        """Return the least value with the present cutoff, from where the last search ended, or from other slopes."""
        begin = self._top if self.extreme is None or self.is_minimal else self.extreme.theta
        slopes = [self._sign * self._statistic.gradient(begin), *self._statistic.slopes(self._top, self._sign)]
        found = [
            least_smooth(lambda weights: least(weights, self.cutoff), self._statistic, self._sign, self._top, slope)
            for slope in slopes
        ]
        best = min(found, key=lambda each: each.extreme.limit)
        self.weights = best.weights
        return best.extreme
