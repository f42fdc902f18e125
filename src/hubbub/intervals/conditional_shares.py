"""Ratios of linear statistics: shares and means among those who have given values of some attributes.

With A = w B, w the weights and B the indicator of the given values, the statistic is r = A theta / B theta. That r is
the true value is one linear hypothesis, (A - r B) theta = 0. So the confidence set of r is that of all r for which 0 is
in the interval of the linear statistic A - r B, its own simulated cutoff included; it is an interval, because A theta
/ B theta is quasi-linear. If nobody may have the given values, every r is possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, frozen
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.smooth_statistics import SmoothStatistic


@dataclass(frozen=True, eq=False)
class ConditionalShare(SmoothStatistic):
    """The weighted sum of some values, among those with given values: sum of w B theta over sum of B theta."""

    weights: Floats  # w, of which only those at the given values count
    among: Floats  # B: 1 for the given values, 0 for others
    title: str
    is_share: bool = True

    @classmethod
    def of(cls, statistic: Statistic, among: Floats, given: str) -> ConditionalShare:
        """Return a linear statistic among the given values."""
        return cls(statistic.weights, frozen(among), f"{statistic.title}, given {given}", statistic.is_share)

    @property
    def lowest(self) -> float:
        """The least weight of a given value."""
        return float(self.weights[self.among > 0.0].min())

    @property
    def highest(self) -> float:
        """The largest weight of a given value."""
        return float(self.weights[self.among > 0.0].max())

    def value(self, theta: Floats) -> float:
        """Return the ratio; not a number where nobody has the given values."""
        below = float(self.among @ theta)
        return float((self.weights * self.among) @ theta) / below if below > 0.0 else math.nan

    def gradient(self, theta: Floats) -> Floats:
        """Return (A - r B) / B theta."""
        below = float(self.among @ theta)
        if not below > 0.0:
            return np.full(theta.size, math.nan)
        return np.asarray((self.weights - self.value(theta)) * self.among / below)

    def face(self, sign: float) -> Floats:
        """Return the share, among the given values, of those without the least (largest) weight, each by its excess."""
        least = self.lowest if sign > 0.0 else -self.highest
        return np.asarray((sign * self.weights - least) * self.among)

    def level_set(self, value: float) -> Floats:
        """Return A - r B."""
        return np.asarray((self.weights - value) * self.among)
