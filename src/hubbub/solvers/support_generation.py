"""Support generation: solve on a few values, price all of them, add those that would improve the likelihood.

At a maximum most values of a large domain have probability 0. A round solves the problem on some values to the
tolerance, then computes D for all values with one gradient. If none exceeds 1, the maximum over the few is that over
all (the gap proves it); otherwise the values with the largest D join, and those that have lost their mass leave.
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

WARMUP_STEPS = 15  # of accelerated EM, from which the first values are chosen
INNER_GAP_SHARE = 0.02  # of the previous gap, to which a round is solved
MIN_ENTERING_VALUES = 100  # that may join in a round, however few are chosen
MAX_INNER_ITERATIONS = 60  # of the interior point in a round
MAX_LOST_SHARE = 1e-11  # up to which a value has lost its mass
MAX_LEAVING_GRADIENT = 0.999  # ...and leaves if its D is no larger than this


class SupportGeneration:
    """One round at each call; the chosen values are kept between calls."""

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._chosen: Positions | None = None
        self._inner_tol = 0.0
        self.inner = 0  # interior-point iterations so far

    def __call__(self, point: Point) -> Point:
        """Return the maximum over the chosen values, or `point` itself if no further value would help."""
        chosen = self._chosen
        if chosen is None:
            for _ in range(WARMUP_STEPS):
                point = accelerated_step(point)
            entering = chosen = self._first(point)
        else:
            entering = self._entering(point, chosen)
            if entering.size == 0 and self._inner_tol <= self._tol / 2:
                return point
            kept = chosen[(point.theta[chosen] > MAX_LOST_SHARE) | (point.gradient[chosen] > MAX_LEAVING_GRADIENT)]
            chosen = np.union1d(kept, entering)
        # Early rounds need not be exact: their error is small compared with what other values will add.
        self._inner_tol = max(self._tol / 2, INNER_GAP_SHARE * point.measured_gap if entering.size else 0.0)
        theta = np.zeros_like(point.theta)
        theta[chosen] = self._solve(point.likelihood, chosen, point.theta[chosen])
        self._chosen = chosen
        return point.likelihood.at(theta)

    def _first(self, point: Point) -> Positions:
        """Return the peaks if values have neighbours, otherwise the value that explains each pattern best."""
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
        """Return the values that would help most: the largest local maxima of D above 1, not too many at once."""
        peaks = point.likelihood.channel.local_maxima(point.gradient)
        helping = peaks[point.gradient[peaks] > 1.0 + self._tol / 2]
        new = np.setdiff1d(helping, chosen)
        return new[np.argsort(point.gradient[new])[::-1][: max(MIN_ENTERING_VALUES, chosen.size // 2)]]

    def _solve(self, likelihood: Likelihood, chosen: Positions, theta: Floats) -> Floats:
        part = likelihood.channel.part(chosen)
        few = Likelihood(part, likelihood.weights, likelihood.users)
        start = np.maximum(theta, 0.1 / chosen.size)
        run = iterate(
            few.at(start / start.sum()),
            InteriorPoint(system_for(part)),
            gap_rule(self._inner_tol),
            MAX_INNER_ITERATIONS,
        )
        outcome = finish(run)
        self.inner += outcome.iterations
        return outcome.point.theta
