"""Support generation: solve on few values, price all of them, add those that would help.

At a maximum most values of a large domain have probability 0. A round solves the problem on some values to the
tolerance, then computes D for all with one gradient. Where none exceeds 1, the maximum of the few is that of all
(the gap says so); otherwise the values with the largest D join, and those that have lost their mass leave.
"""

from __future__ import annotations

import numpy as np

from hubbub.channels.base import CHUNK_ENTRIES
from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import finish
from hubbub.likelihood import Likelihood, Point
from hubbub.solvers.em_steps import accelerated_step, gap_rule
from hubbub.solvers.interior_point import InteriorPoint
from hubbub.solvers.loop import iterate
from hubbub.solvers.newton_systems import system_for

SMOOTHING = 15  # accelerated EM steps from which the first values are chosen
LOOSE = 0.02  # a round is solved to this share of the gap before it
FEWEST = 100  # values that may join in a round, however few are chosen
INNER = 60  # interior-point iterations in a round
GONE = 1e-11  # shares below which a value has lost its mass
LEAVING = 0.999  # ... and leaves if its D is smaller than this


class SupportGeneration:
    """One round at each call; the chosen values are remembered."""

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._chosen: Positions | None = None
        self._inner_tol = 0.0
        self.inner = 0  # interior-point iterations so far

    def __call__(self, point: Point) -> Point:
        """Return the maximum over the chosen values, or `point` itself where no further value would help."""
        chosen = self._chosen
        if chosen is None:
            for _ in range(SMOOTHING):
                point = accelerated_step(point)
            entering = chosen = self._first(point)
        else:
            entering = self._entering(point, chosen)
            if entering.size == 0 and self._inner_tol <= self._tol / 2:
                return point
            kept = chosen[(point.theta[chosen] > GONE) | (point.gradient[chosen] > LEAVING)]
            chosen = np.union1d(kept, entering)
        # Early rounds need not be exact: what they lack is little beside what other values would add.
        self._inner_tol = max(self._tol / 2, LOOSE * point.measured_gap if entering.size else 0.0)
        theta = np.zeros_like(point.theta)
        theta[chosen] = self._solve(point.likelihood, chosen, point.theta[chosen])
        self._chosen = chosen
        return point.likelihood.at(theta)

    def _first(self, point: Point) -> Positions:
        """Return the values that explain each pattern best, or peaks where values have neighbours."""
        channel = point.likelihood.channel
        peaks = np.union1d(channel.local_maxima(point.theta), channel.local_maxima(point.gradient))
        if peaks.size < channel.values / 2:
            return peaks
        best, value = np.full(channel.patterns, -1.0), np.zeros(channel.patterns, dtype=np.int64)
        step = max(1, CHUNK_ENTRIES // channel.patterns)
        for first in range(0, channel.values, step):
            some = np.arange(first, min(first + step, channel.values))
            weight = channel.rows(some) * point.theta[some, None]
            top = weight.argmax(axis=0)
            amount = weight[top, np.arange(channel.patterns)]
            better = amount > best
            best[better], value[better] = amount[better], some[top[better]]
        return np.unique(value)

    def _entering(self, point: Point, chosen: Positions) -> Positions:
        """Return the values that would help most: local maxima of D above 1, half as many as are chosen at most."""
        peaks = point.likelihood.channel.local_maxima(point.gradient)
        helping = peaks[point.gradient[peaks] > 1.0 + self._tol / 2]
        new = np.setdiff1d(helping, chosen)
        return new[np.argsort(point.gradient[new])[::-1][: max(FEWEST, chosen.size // 2)]]

    def _solve(self, likelihood: Likelihood, chosen: Positions, theta: Floats) -> Floats:
        part = likelihood.channel.part(chosen)
        few = Likelihood(part, likelihood.weights, likelihood.users)
        start = np.maximum(theta, 0.1 / chosen.size)
        run = iterate(few.at(start / start.sum()), InteriorPoint(system_for(part)), gap_rule(self._inner_tol), INNER)
        outcome = finish(run)
        self.inner += outcome.iterations
        return outcome.point.theta
