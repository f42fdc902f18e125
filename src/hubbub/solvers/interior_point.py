"""A primal-dual interior point with Mehrotra's predictor and corrector.

Maximising the mean log-likelihood over distributions is the same as

    min  - sum_i q_i log f_i + sum_x theta_x     over theta >= 0,  f = theta G,

whose solution sums to 1 without a constraint. With nu_i the price of pattern i and z_x the slack of value x, its
conditions are

    nu_i f_i = q_i,     theta_x z_x = 0,     G nu + z = 1,     theta, z >= 0:

two families of products and one linear equation, as in linear programming. Newton's method on them with
theta_x z_x = mu, mu falling to 0, needs some 10 to 20 iterations whatever the size. The elimination of all but
theta's step leaves one symmetric system (`newton_systems`), with curvature nu/f and barrier z/theta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from hubbub.core.arrays import Floats
from hubbub.likelihood import Point
from hubbub.solvers.em_steps import em_step
from hubbub.solvers.newton_systems import System

BORDER_FRACTION = 0.995  # of the way to the border that a step may go
WARMUP_UPDATES = 10  # of EM; together they cost less than an iteration
SPREAD_MASS = 0.01  # spread evenly over all values if the start is too close to the border
MIN_START_SLACK = 0.05
MAX_CORRECTIONS = 3  # of the products that keep steps short
LONG_STEP = 0.9  # a step this long needs no correction
CORRECTION_REACH = 0.3  # how much farther a correction aims
MIN_CORRECTION_GAIN = 0.1  # of that reach, for a correction to be taken
MAX_PRODUCT_FACTOR = 10.0  # products within this factor of the target are left alone
MIN_STEP = 1e-9  # shorter steps make no progress


class NewtonDirection(NamedTuple):
    """A direction in all unknowns, and how far each side can follow it until something becomes 0."""

    theta: Floats
    prices: Floats
    slacks: Floats
    primal: float
    dual: float


class InteriorPoint:
    """One iteration at each call; theta is passed as a distribution, prices and slacks are kept between calls."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._total = 0.0  # what theta sums to: 1 at the maximum
        self._prices: Floats
        self._slacks: Floats

    def __call__(self, point: Point) -> Point:
        """Return the next iterate, or `point` itself if rounding allows no further step."""
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0: a pattern that nobody sent and no value explains
            point = point if self._total else self._begin(point)
        try:
            with np.errstate(all="ignore"):  # a step that overflows is not taken
                return self._next(point)
        except (LinAlgError, ValueError, RuntimeError, ZeroDivisionError):  # rounding has spoiled the system
            return point

    def _begin(self, point: Point) -> Point:
        """Choose the start: theta scaled so that all D are at most 1, with prices and slacks to match."""
        for _ in range(WARMUP_UPDATES):
            point = em_step(point)
        if point.theta.min() < SPREAD_MASS / point.theta.size:  # a start too close to the border would keep steps short
            point = point.likelihood.at((1.0 - SPREAD_MASS) * point.theta + SPREAD_MASS / point.theta.size)
        self._total = float(point.gradient.max())
        self._prices = self._over_fitted(point.likelihood.shares.copy(), point)
        self._slacks = np.maximum(1.0 - point.gradient / self._total, MIN_START_SLACK)
        return point

    def _over_fitted(self, numbers: Floats, point: Point) -> Floats:
        """Divide by f in place, because there may be millions of patterns; f is the point's fitted times the total."""
        numbers /= point.fitted
        numbers /= self._total
        if not point.likelihood.all_sent:
            numbers[~point.likelihood.sent] = 0.0  # a pattern that nobody sent has price 0, even if it is impossible
        return numbers

    def _next(self, point: Point) -> Point:
        channel = point.likelihood.channel
        theta, prices, slacks = point.theta * self._total, self._prices, self._slacks
        centre = float(theta @ slacks) / theta.size
        if not centre > 0.0:  # both are as small as floats can be
            return point
        solve = self._system.factor(self._over_fitted(prices.copy(), point), slacks / theta)

        def towards(right: Floats, off_prices: Floats, off_slacks: Floats) -> tuple[NewtonDirection, Floats]:
            """Return the direction that brings the products to their targets, and its step of f."""
            step = solve(right)
            seen = channel.forward(step)
            d_prices = prices * seen
            np.subtract(off_prices, d_prices, out=d_prices)
            self._over_fitted(d_prices, point)
            d_slacks = (off_slacks - slacks * step) / theta
            dual = min(_step_length(slacks, d_slacks), _step_length(prices, d_prices))
            return NewtonDirection(step, d_prices, d_slacks, _step_length(theta, step), dual), seen

        # G nu + z = 1 holds after every full step, so that the current nu and z cancel from the right side.
        right = point.gradient / self._total - 1.0
        off_prices, off_slacks = prices * point.fitted, -theta * slacks
        off_prices *= self._total
        np.subtract(point.likelihood.shares, off_prices, out=off_prices)
        move, seen = towards(right, off_prices, off_slacks)
        after = float((theta + move.primal * move.theta) @ (slacks + move.dual * move.slacks)) / theta.size
        target = (after / centre) ** 3 * centre
        bent_prices, bent_slacks = np.multiply(move.prices, seen, out=seen), move.theta * move.slacks
        off_prices -= bent_prices
        off_slacks += target - bent_slacks
        right = right - channel.backward(self._over_fitted(bent_prices, point)) + (target - bent_slacks) / theta
        del move, seen, bent_prices
        move = towards(right, off_prices, off_slacks)[0]
        for _ in range(MAX_CORRECTIONS):
            if min(move.primal, move.dual) > LONG_STEP:
                break
            # Products far from the target keep steps short (Gondzio): aim a little farther and pull them back.
            ahead = theta + min(1.0, move.primal + CORRECTION_REACH) * move.theta
            products = ahead * (slacks + min(1.0, move.dual + CORRECTION_REACH) * move.slacks)
            pull = np.maximum(
                np.clip(products, target / MAX_PRODUCT_FACTOR, target * MAX_PRODUCT_FACTOR) - products,
                -MAX_PRODUCT_FACTOR * target,
            )
            right, off_slacks = right + pull / theta, off_slacks + pull
            corrected = towards(right, off_prices, off_slacks)[0]
            if corrected.primal + corrected.dual < move.primal + move.dual + MIN_CORRECTION_GAIN * CORRECTION_REACH:
                break
            move = corrected
        return self._taken(point, theta, move)

    def _taken(self, point: Point, theta: Floats, move: NewtonDirection) -> Point:
        """Go along a direction, not quite until something becomes 0."""
        primal, dual = (length if length == 1.0 else BORDER_FRACTION * length for length in (move.primal, move.dual))
        moved = theta + primal * move.theta
        total = float(moved.sum())
        if not np.isfinite(total) or not total > 0.0 or moved.min() <= 0.0 or max(primal, dual) < MIN_STEP:
            return point
        prices, slacks = self._prices + dual * move.prices, self._slacks + dual * move.slacks
        if np.array_equal(moved, theta) or not (np.isfinite(prices).all() and np.isfinite(slacks).all()):
            return point
        self._prices, self._slacks, self._total = prices, slacks, total
        return point.likelihood.at(moved / total)


def _step_length(numbers: Floats, step: Floats) -> float:
    """Return how far to go until a number becomes 0, at most 1."""
    steepest = float(np.fmin.reduce(step / numbers))  # 0 / 0: a price that stays 0
    return 1.0 if not steepest < -1.0 else -1.0 / steepest
