"""A primal-dual interior point with Mehrotra's predictor and corrector.

Maximising the mean log-likelihood over distributions is the same as

    min  - sum_i q_i log f_i + sum_x theta_x     over theta >= 0,  f = theta G,

whose solution sums to 1 of itself. With nu_i the price of pattern i and z_x the slack of value x, its conditions are

    nu_i f_i = q_i,     theta_x z_x = 0,     G nu + z = 1,     theta, z >= 0:

two families of products and one linear equation, as in linear programming. Newton's method on them with
theta_x z_x = mu, mu falling to 0, needs some 10 to 20 iterations whatever the size. The elimination of all but
theta's step leaves one symmetric system (`systems`), with curvature nu/f and barrier z/theta.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError

from hubbub.arrays import Floats
from hubbub.likelihood import Point
from hubbub.solvers.steps import em_step
from hubbub.solvers.systems import System

CLOSE = 0.995  # how much of the way to the boundary a step may go
WARMING = 10  # EM updates to begin with: each costs less than a hundredth of an iteration
INSIDE = 0.01  # the mass that is spread evenly where the start is too close to the border
SLACK = 0.05  # the least slack to start from
CORRECTIONS = 3  # of the products that keep steps short, at most
LONG = 0.9  # steps that need no correction
AIM = 0.3  # how much farther a correction aims
GAIN = 0.1  # the share of that which makes it worth taking
SPREAD = 10.0  # products within this factor of the target are left alone
STUCK = 1e-9  # steps shorter than this lead nowhere


class InteriorPoint:
    """One iteration at each call; theta is handed over as a distribution, prices and slacks are remembered."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._total = 0.0  # what theta sums to: 1 at the maximum
        self._prices: Floats
        self._slacks: Floats

    def _begin(self, point: Point) -> Point:
        """Start where no value is dear: theta scaled so that all D are at most 1, prices and slacks to match."""
        for _ in range(WARMING):
            point = em_step(point)
        if point.theta.min() < INSIDE / point.theta.size:  # what is too close to the border would keep steps short
            point = point.likelihood.at((1.0 - INSIDE) * point.theta + INSIDE / point.theta.size)
        self._total = float(point.gradient.max())
        self._prices = point.likelihood.shares / self._fitted(point)
        self._slacks = np.maximum(1.0 - point.gradient / self._total, SLACK)
        return point

    def _fitted(self, point: Point) -> Floats:
        return np.where(point.likelihood.sent, point.fitted, 1.0) * self._total  # a pattern nobody sent has price 0

    def __call__(self, point: Point) -> Point:
        """Return the next iterate, or `point` itself where rounding allows none."""
        with np.errstate(all="ignore"):  # what overflows is a step that is not taken
            return self._next(point)

    def _next(self, point: Point) -> Point:
        if self._total == 0.0:
            point = self._begin(point)
        channel, shares = point.likelihood.channel, point.likelihood.shares
        theta, fitted = point.theta * self._total, self._fitted(point)
        prices, slacks = self._prices, self._slacks
        try:
            solve = self._system.factor(prices / fitted, slacks / theta)
        except (LinAlgError, ValueError):
            return point

        def directions(right: Floats, off_prices: Floats, off_slacks: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            """Return the steps of theta, f, prices and slacks, given what the products lack."""
            step = solve(right)
            seen = channel.forward(step)
            return step, seen, (off_prices - prices * seen) / fitted, (off_slacks - slacks * step) / theta

        base = point.gradient / self._total - 1.0  # G nu + z = 1 is kept, whatever nu and z are: they cancel
        off_prices, off_slacks = shares - prices * fitted, -theta * slacks
        step, seen, d_prices, d_slacks = directions(base, off_prices, off_slacks)
        primal, dual = _length(theta, step), min(_length(slacks, d_slacks), _length(prices, d_prices))
        centre = float(theta @ slacks) / theta.size
        if not centre > 0.0:  # both are as small as floats can be: nothing is left to do
            return point
        after = float((theta + primal * step) @ (slacks + dual * d_slacks)) / theta.size
        target = (after / centre) ** 3 * centre
        bent_prices, bent_slacks = d_prices * seen, step * d_slacks
        right = base - channel.backward(bent_prices / fitted) + (target - bent_slacks) / theta
        off_prices, off_slacks = off_prices - bent_prices, off_slacks + target - bent_slacks
        step, seen, d_prices, d_slacks = directions(right, off_prices, off_slacks)
        primal, dual = _length(theta, step), min(_length(slacks, d_slacks), _length(prices, d_prices))
        for _ in range(CORRECTIONS):
            if min(primal, dual) > LONG:
                break
            # Products far from the target keep steps short (Gondzio): aim a little farther and pull them in.
            reach = min(1.0, primal + AIM), min(1.0, dual + AIM)
            products = (theta + reach[0] * step) * (slacks + reach[1] * d_slacks)
            pull = np.maximum(np.clip(products, target / SPREAD, target * SPREAD) - products, -SPREAD * target)
            right, off_slacks = right + pull / theta, off_slacks + pull
            other = directions(right, off_prices, off_slacks)
            lengths = _length(theta, other[0]), min(_length(slacks, other[3]), _length(prices, other[2]))
            if sum(lengths) < primal + dual + GAIN * AIM:
                break
            (step, seen, d_prices, d_slacks), (primal, dual) = other, lengths
        primal, dual = _shortened(primal), _shortened(dual)
        moved = theta + primal * step
        total = float(moved.sum())
        if not np.isfinite(total) or not total > 0.0 or moved.min() <= 0.0 or max(primal, dual) < STUCK:
            return point
        self._prices, self._slacks = prices + dual * d_prices, slacks + dual * d_slacks
        self._total = total
        return point.likelihood.at(moved / total)


def _length(numbers: Floats, step: Floats) -> float:
    """Return how far to go until a number becomes 0, at most 1."""
    falling = step < 0
    if not falling.any():
        return 1.0
    return min(1.0, float((numbers[falling] / -step[falling]).min()))


def _shortened(length: float) -> float:
    return length if length == 1.0 else CLOSE * length
