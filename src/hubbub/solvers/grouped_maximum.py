"""The maximum of the likelihood over several distributions at once, whose likelihoods add up (`groups`).

As in `interior_point`, with a sum of 1 for each group and tau_g its price:

    nu_i f_i = q_i,     theta_x z_x = 0,     G nu + z = tau_g,     sum over g of theta = 1.

**Certificate.** For any theta' the concavity of the logarithm gives l(theta') - l(theta) <= log(theta' D) <= log of the
sum over groups of max D_x: the gap, 0 exactly at the maxima. With one group it is that of `likelihood`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.linalg import LinAlgError

from hubbub.core.arrays import Floats
from hubbub.likelihood import Likelihood, Point
from hubbub.solvers.groups import Groups
from hubbub.solvers.newton_systems import System

MAX_ITERATIONS = 100
WARMUP_UPDATES = 10  # of EM
SPREAD_MASS = 0.01  # of each group, spread evenly: a start too close to the border would keep steps short
MIN_START_SLACK = 0.05
BORDER_FRACTION = 0.99  # of the way to the border that a step may go


def grouped_maximum(likelihood: Likelihood, system: System, groups: Groups, tol: float) -> Point:
    """Return where the likelihood is largest, to a gap of `tol` or as far as rounding allows."""
    size = likelihood.channel.values
    point = likelihood.at(groups.normalised(np.ones(size)))
    for _ in range(WARMUP_UPDATES):
        point = likelihood.at(groups.normalised(point.theta * point.gradient))
    even = groups.normalised(np.ones(size))
    search = _GroupedSearch(likelihood.at((1.0 - SPREAD_MASS) * point.theta + SPREAD_MASS * even), system, groups)
    best, best_gap = search.point, grouped_gap(search.point, groups)
    with np.errstate(all="ignore"):  # a step that overflows is not taken
        for _ in range(MAX_ITERATIONS):
            if best_gap <= tol or not search.step():
                break
            gap = grouped_gap(search.point, groups)
            if gap < best_gap:
                best, best_gap = search.point, gap
    return best


def grouped_gap(point: Point, groups: Groups) -> float:
    """Return how far the mean log-likelihood may be below its maximum."""
    return max(0.0, math.log(float(groups.largest(point.gradient).sum())))


class _GroupedSearch:
    """Primal-dual iterations by Mehrotra's predictor and corrector."""

    def __init__(self, point: Point, system: System, groups: Groups) -> None:
        self.point, self._system, self._groups = point, system, groups
        self._prices = self._over_fitted(point.likelihood.shares)
        self._totals = groups.largest(point.gradient)
        self._slacks = np.maximum(groups.spread(self._totals, point.theta.size) - point.gradient, MIN_START_SLACK)

    def step(self) -> bool:
        """Take one step; return False if rounding has spoiled it."""
        try:
            return self._take(*self._direction())
        except (LinAlgError, ValueError):
            return False

    def _direction(self) -> tuple[Floats, Floats, Floats, Floats]:
        point, groups, prices, slacks = self.point, self._groups, self._prices, self._slacks
        channel, theta, q = point.likelihood.channel, point.theta, point.likelihood.shares
        solve = self._system.factor(self._over_fitted(prices), slacks / theta)
        even = np.stack([solve(border) for border in groups.borders(theta.size)])
        square = groups.sums(even)

        def towards(
            pull: Floats, off_prices: Floats, off_slacks: Floats
        ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
            plain = solve(pull)
            totals = np.linalg.solve(square, groups.sums(plain) + groups.sums(theta) - 1.0)
            d_theta = plain - totals @ even
            seen = channel.forward(d_theta)
            d_prices = self._over_fitted(off_prices - prices * seen)
            return (
                d_theta,
                seen,
                d_prices,
                (off_slacks - slacks * d_theta) / theta,
                np.asarray(totals, dtype=np.float64),
            )

        off_prices, off_slacks = q - prices * point.fitted, -theta * slacks
        d_theta, seen, d_prices, d_slacks, _ = towards(point.gradient, off_prices, off_slacks)
        primal, dual = self._lengths(d_theta, seen, d_prices, d_slacks)
        centre = float(theta @ slacks) / theta.size
        after = float((theta + primal * d_theta) @ (slacks + dual * d_slacks)) / theta.size
        target = (after / centre) ** 3 * centre
        bent_prices, bent_slacks = d_prices * seen, d_theta * d_slacks
        pull = point.gradient + (target - bent_slacks) / theta - channel.backward(self._over_fitted(bent_prices))
        d_theta, seen, d_prices, d_slacks, totals = towards(
            pull, off_prices - bent_prices, off_slacks + target - bent_slacks
        )
        self._next_lengths = self._lengths(d_theta, seen, d_prices, d_slacks, BORDER_FRACTION)
        return d_theta, d_prices, d_slacks, totals

    def _take(self, d_theta: Floats, d_prices: Floats, d_slacks: Floats, totals: Floats) -> bool:
        primal, dual = self._next_lengths
        theta = self.point.theta + primal * d_theta
        prices, slacks = self._prices + dual * d_prices, self._slacks + dual * d_slacks
        if not (np.isfinite(theta).all() and theta.min() > 0.0 and np.isfinite(prices).all() and slacks.min() > 0.0):
            return False
        self._prices, self._slacks = prices, slacks
        self._totals = self._totals + dual * (totals - self._totals)
        self.point = self.point.at(self._groups.normalised(theta))
        return True

    def _lengths(
        self, d_theta: Floats, seen: Floats, d_prices: Floats, d_slacks: Floats, fraction: float = 1.0
    ) -> tuple[float, float]:
        """Return how far the distributions and the prices can go until something becomes 0, at most 1."""
        primal = min(_step_length(self.point.theta, d_theta), _step_length(self.point.fitted, seen))
        dual = min(_step_length(self._slacks, d_slacks), _step_length(self._prices, d_prices))
        return min(1.0, fraction * primal), min(1.0, fraction * dual)

    def _over_fitted(self, numbers: Floats) -> Floats:
        """Divide by f; a pattern that nobody sent has price 0, even if it is impossible."""
        sent = self.point.likelihood.sent
        return np.divide(numbers, self.point.fitted, out=np.zeros_like(numbers), where=sent)


def _step_length(numbers: Floats, step: Floats) -> float:
    steepest = float(np.fmin.reduce(step / numbers))  # 0 / 0: a price that stays 0
    return math.inf if not steepest < 0.0 else -1.0 / steepest
