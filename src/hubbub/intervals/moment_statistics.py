"""Variance and correlation of numeric attributes as smooth statistics, in all or among those with given values.

With B the group, x the numbers, m and V their mean and variance in it, and u, v standardised numbers,

    grad V = B ((x - m)^2 - V) / B theta,        grad r = B (u v - r (u^2 + v^2) / 2) / B theta.

V is the least E (x - t)^2 over t, so its largest value over likely distributions is min over t of the largest
E (x - t)^2 (the linear statistic's tangent at the solution), and its least value the least one over both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.intervals.smooth_statistics import SmoothStatistic

MIN_SPREAD = 1e-14  # of a variance, relative to the squared range: less is rounding


@dataclass(frozen=True, eq=False)
class Variance(SmoothStatistic):
    """The variance of numbers."""

    numbers: Floats
    among: Floats | None
    title: str

    @property
    def _group(self) -> Floats:
        return np.ones(self.numbers.size) if self.among is None else self.among

    @property
    def lowest(self) -> float:
        """No variance is negative."""
        return 0.0

    @property
    def highest(self) -> float:
        """That of halves at both ends of the range."""
        return float(np.ptp(self.numbers[self._group > 0.0]) / 2.0) ** 2

    def value(self, theta: Floats) -> float:
        """Return the variance; not a number where the group is empty."""
        inside = self._group * theta
        total = float(inside.sum())
        if not total > 0.0:
            return math.nan
        mean = float(inside @ self.numbers) / total
        return float(inside @ (self.numbers - mean) ** 2) / total

    def gradient(self, theta: Floats) -> Floats:
        """Return B ((x - m)^2 - V) / B theta."""
        inside = self._group * theta
        total = float(inside.sum())
        if not total > 0.0:
            return np.full(theta.size, math.nan)
        squares = (self.numbers - float(inside @ self.numbers) / total) ** 2
        return np.asarray(self._group * (squares - float(inside @ squares) / total) / total)


@dataclass(frozen=True, eq=False)
class Correlation(SmoothStatistic):
    """The correlation of two numbers."""

    first: Floats
    second: Floats
    among: Floats | None
    title: str

    @property
    def lowest(self) -> float:
        """A falling line."""
        return -1.0

    @property
    def highest(self) -> float:
        """A rising line."""
        return 1.0

    def value(self, theta: Floats) -> float:
        """Return the correlation; not a number where the group is empty or one of the numbers is the same for all."""
        inside, one, other = self._standardised(theta)
        return float(inside @ (one * other))

    def gradient(self, theta: Floats) -> Floats:
        """Return B (u v - r (u^2 + v^2) / 2) / B theta."""
        inside, one, other = self._standardised(theta)
        slopes = one * other - float(inside @ (one * other)) * (one**2 + other**2) / 2.0
        if self.among is None or np.isnan(slopes).any():
            return np.asarray(slopes)
        return np.asarray(self.among * slopes / float(self.among @ theta))

    def _standardised(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the shares in the group, and both numbers with mean 0 and variance 1."""
        inside = theta if self.among is None else self.among * theta
        total = float(inside.sum())
        if not total > 0.0:
            nothing = np.full(theta.size, math.nan)
            return nothing, nothing, nothing
        inside = inside / total
        standardised = []
        for numbers in (self.first, self.second):
            apart = numbers - float(inside @ numbers)
            spread = float(inside @ apart**2)
            known = spread > MIN_SPREAD * float(np.ptp(numbers)) ** 2
            standardised.append(apart / math.sqrt(spread) if known else np.full(theta.size, math.nan))
        return inside, standardised[0], standardised[1]
