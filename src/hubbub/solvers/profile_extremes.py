"""The extremes of a linear statistic over all distributions that are likely enough, by an interior point.

With l the mean log-likelihood and b a bound below its maximum,

    min  c theta     over theta >= 0,  sum theta = 1,  l(theta) >= b

is convex. With lambda the price of the bound, tau that of the sum, nu_i those of the patterns and z_x the slacks of the
values, its conditions are

    nu_i f_i = lambda q_i,   theta_x z_x = 0,   G nu + z + tau = c,   sum theta = 1,   l(theta) - b = r,   lambda r = 0.

Newton's method on them, with products theta_x z_x and lambda r that fall to 0, leaves one symmetric system
(`newton_systems`, as for the maximum itself) with two borders: D for the bound, 1 for the sum. The room r keeps the
borders apart where no probability is 0 and D is parallel to 1 at the maximum.

**Certificate.** For any distribution theta with D = D(theta), any lambda >= 0 and every theta' with l(theta') >= b, the
concavity of the logarithm gives theta' D >= exp(l(theta') - l(theta)) >= exp(b - l(theta)) = rho, so that

    c theta' >= theta' (c - lambda D) + lambda rho >= min_x (c_x - lambda D_x) + lambda rho:

a limit that no likely distribution can cross, however well or badly the iteration went. This limit is the result; the
best statistic of a likely distribution met on the way says how tight it is. Log-likelihoods are compared as sums of
log(f_i / f_i at the maximum), because the difference of two totals over a billion users would lose too many digits, and
the limit is moved outwards by the most that rounding can do.

**Groups.** Theta may consist of several distributions, one after the other, whose likelihoods add up: honest users and
fakes (`intervals.robust_region`). Each group then has its own sum of 1, its own price tau_g and its own border, and the
limit is the sum of the groups' smallest c_x - lambda D_x, plus lambda rho.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from hubbub.core.arrays import Floats
from hubbub.likelihood import Likelihood, Point
from hubbub.solvers.groups import ONE_GROUP, Groups
from hubbub.solvers.newton_systems import Solve, System

MAX_ITERATIONS = 60
MAX_RELATIVE_SLACK = 1e-3  # between limit and attained value, relative to their distance from the maximum's own value
MIN_RELATIVE_RANGE = 1e-12  # of the statistic's range: a value this close to its end is at its end
BORDER_FRACTION = 0.99  # of the way to the border that a step may go
START_SIZES = (0.2, 2.0, 20.0)  # of the first products, relative to the slack: small ones are quick, not sure
START_BORDER_FRACTION = 0.5  # of the way to the border that the start may be moved
ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of D and rho: sums of positive numbers, each with a few roundings
MAX_EXPONENT = 0.5  # of b - l(theta), beyond which rho is not informative
MAX_MISSING_SLACK = 1e-3  # of the slack, that a distribution may lack and still count as likely


class Extreme(NamedTuple):
    """The smallest value of a statistic among likely distributions."""

    limit: float  # certified: no likely distribution has less
    attained: float  # by some likely distribution
    theta: Floats  # the distribution the iteration ended with
    iterations: int
    proof: Proof | None = None  # what the limit follows from; None if it is the end of the statistic's range


class Proof(NamedTuple):
    """A distribution and a price of the likelihood, from which a limit follows (see the module's docstring)."""

    theta: Floats
    price: float


class _ProfileDirection(NamedTuple):
    """A direction in all unknowns."""

    theta: Floats
    fitted: Floats
    prices: Floats
    slacks: Floats
    price: float
    totals: Floats
    room: float


class Region:
    """All distributions whose mean log-likelihood is close to that of the maximum."""

    def __init__(self, top: Point, system: System, groups: Groups = ONE_GROUP) -> None:
        self.top, self.groups = top, groups
        self.likelihood: Likelihood = top.likelihood
        self._system = system

    def least(self, weights: Floats, slack: float) -> Extreme:
        """Return the smallest `weights` @ theta where the mean log-likelihood is at most `slack` below the maximum."""
        shifted = weights - self.groups.spread(self.groups.least(weights), weights.size)
        lowest, span = float(self.groups.least(weights).sum()), float(shifted.max())
        own = float(weights @ self.top.theta)
        # The maximum itself has the smallest value possible, or all distributions have the same, up to rounding.
        if span == 0.0 or own - lowest <= MIN_RELATIVE_RANGE * span:
            return Extreme(lowest, own, self.top.theta, 0)
        c, middle = shifted / span, (own - lowest) / span
        extreme = Extreme(0.0, middle, self.top.theta, 0)
        with np.errstate(all="ignore"):  # a step that overflows is not taken
            for size in START_SIZES:
                extreme = _ProfileSearch(self, c, slack, size).run(extreme)
                if extreme.attained - extreme.limit <= MAX_RELATIVE_SLACK * (middle - extreme.limit):
                    break
        limit, attained = float(extreme.limit), float(extreme.attained)
        proof = None if extreme.proof is None else extreme.proof._replace(price=span * extreme.proof.price)
        return Extreme(lowest + span * limit, lowest + span * attained, extreme.theta, extreme.iterations, proof)

    def start(self, slack: float) -> tuple[Floats, Floats]:
        """Return theta and slacks near the maximum with equal products that together cost about `slack`."""
        even = slack / self.top.theta.size
        levels = self.groups.spread(self.groups.sums(self.top.theta * self.top.gradient), self.top.theta.size)
        lean = self.top.theta - (levels - self.top.gradient)
        root = np.hypot(lean, 2.0 * math.sqrt(even))
        theta = np.where(lean > 0, 0.5 * (root + lean), 2.0 * even / (root - lean))  # neither form cancels
        return self.groups.normalised(theta), even / theta


class _ProfileSearch:
    """One run: c is the statistic, scaled to a range from 0 to 1."""

    def __init__(self, region: Region, c: Floats, slack: float, size: float) -> None:
        self.system, self.top, self.likelihood, self.groups = (
            region._system,
            region.top,
            region.likelihood,
            region.groups,
        )
        self.channel, self.q, self.sent = self.likelihood.channel, self.likelihood.shares, self.likelihood.sent
        self.c, self.slack, self.bound = c, slack, -slack
        theta, slacks = region.start(size * slack)
        self._at(self.likelihood.at(theta))
        # For a quadratic likelihood lambda = sqrt(variance / (2 slack)), with the variance of c theta for one user.
        solve = self.system.factor(self._over_fitted(self._over_fitted(self.q)), slacks / theta)
        even, tilt = self._even(solve), solve(c)
        balance = np.linalg.solve(self.groups.sums(even), self.groups.sums(tilt))  # sums of the move back to 0
        variance = float(c @ tilt) - float(c @ even.T @ balance)
        self.price = math.sqrt(max(variance, MIN_RELATIVE_RANGE) / (2.0 * slack))
        # At the maximum D and 1 are parallel if no probability is 0, and the two borders would be one: the start is
        # moved towards the solution for a quadratic likelihood.
        move = (balance @ even - tilt) / self.price
        theta = self.groups.normalised(theta + min(1.0, START_BORDER_FRACTION * _step_length(theta, move)) * move)
        self._at(self.likelihood.at(theta))
        self.totals = self.groups.sums(theta * (c - self.price * self.gradient))  # tau, as at the solution
        self.slacks, self.prices = self.price * slacks, self.price * self._over_fitted(self.q)
        self.room = max(self.value - self.bound, MAX_MISSING_SLACK * slack)

    def _even(self, solve: Solve) -> Floats:
        """Return the step that one unit of each group's price makes: a row for each group."""
        return np.stack([solve(border) for border in self.groups.borders(self.c.size)])

    def _at(self, point: Point) -> None:
        self.point, self.theta, self.fitted, self.gradient = point, point.theta, point.fitted, point.gradient
        self.value = height(point, self.top)

    def run(self, before: Extreme) -> Extreme:
        """Iterate until the certificate is tight or rounding allows no more; never return worse than `before`."""
        own = float(self.c @ self.top.theta)
        limit, attained, theta, turns, proof = before
        for turn in range(MAX_ITERATIONS):
            turns = before.iterations + turn
            rho = math.exp(min(self.bound - self.value, MAX_EXPONENT))
            outer = float(self.groups.least(self.c - self.price * self.gradient).sum()) + self.price * rho
            if outer - ROUNDING * self.price > limit:
                limit, proof = outer - ROUNDING * self.price, Proof(self.theta, self.price)
            reached = float(self.c @ self.theta)
            if self.value >= self.bound - MAX_MISSING_SLACK * self.slack:
                attained, theta = min(attained, reached), self.theta
            if attained - limit <= MAX_RELATIVE_SLACK * (own - limit) or not self._step():
                break
        return Extreme(limit, attained, theta, turns, proof)

    def _step(self) -> bool:
        """Take one step; return False if rounding has spoiled it."""
        theta, fitted, prices, slacks, q = self.theta, self.fitted, self.prices, self.slacks, self.q
        try:
            solve = self.system.factor(self._over_fitted(prices), slacks / theta)
            even, steep = self._even(solve), solve(self.gradient)
            square = np.empty((len(even) + 1, len(even) + 1))
            square[0, 0] = float(self.gradient @ steep) + self.room / self.price
            square[0, 1:], square[1:, 0], square[1:, 1:] = (
                even @ self.gradient,
                self.groups.sums(steep),
                (self.groups.sums(even)),
            )

            def towards(
                right: Floats, off_prices: Floats, off_slacks: Floats, off_value: float, off_room: float
            ) -> _ProfileDirection:
                plain = solve(right)
                short = off_value + self.room + off_room / self.price - float(self.gradient @ plain)
                missing = 1.0 - self.groups.sums(theta) - self.groups.sums(plain)
                solution = np.linalg.solve(square, np.concatenate([[short], missing]))
                d_price, d_totals = float(solution[0]), solution[1:]
                d_theta = plain + d_price * steep + d_totals @ even
                seen = self.channel.forward(d_theta)
                d_prices = self._over_fitted(off_prices + q * d_price - prices * seen)
                return _ProfileDirection(
                    d_theta,
                    seen,
                    d_prices,
                    (off_slacks - slacks * d_theta) / theta,
                    d_price,
                    d_totals,
                    (off_room - self.room * d_price) / self.price,
                )

            right = self.price * self.gradient + self.groups.spread(self.totals, theta.size) - self.c
            off_prices, off_slacks = self.price * q - prices * fitted, -theta * slacks
            off_value = self.bound - self.value
            off_room = -self.price * self.room
            move = towards(right, off_prices, off_slacks, off_value, off_room)
            primal, dual = (min(1.0, length) for length in self._lengths(move))
            centre = (float(theta @ slacks) + self.price * self.room) / (theta.size + 1)
            after = float((theta + primal * move.theta) @ (slacks + dual * move.slacks))
            after += (self.room + primal * move.room) * (self.price + dual * move.price)
            after /= theta.size + 1
            target = (after / centre) ** 3 * centre
            bent_prices, bent_slacks = move.prices * move.fitted, move.theta * move.slacks
            relative = self._over_fitted(move.fitted)
            bend = 0.5 * float(q @ (relative * relative))  # what the logarithms lose to second order
            right += (target - bent_slacks) / theta - self.channel.backward(self._over_fitted(bent_prices))
            move = towards(
                right,
                off_prices - bent_prices,
                off_slacks + target - bent_slacks,
                off_value + min(bend, self.slack),
                off_room + target - move.price * move.room,
            )
        except (LinAlgError, ValueError):
            return False
        return self._take(move)

    def _take(self, move: _ProfileDirection) -> bool:
        primal, dual = (min(1.0, BORDER_FRACTION * length) for length in self._lengths(move))
        theta = self.theta + primal * move.theta
        price = self.price + dual * move.price
        if not (np.isfinite(theta).all() and theta.min() > 0.0 and math.isfinite(price)):
            return False
        self.prices, self.slacks = self.prices + dual * move.prices, self.slacks + dual * move.slacks
        self.price, self.totals = price, self.totals + dual * move.totals
        self.room += primal * move.room
        self._at(self.likelihood.at(self.groups.normalised(theta)))
        return True

    def _lengths(self, move: _ProfileDirection) -> tuple[float, float]:
        """Return how far the distribution and the prices can go until something becomes 0."""
        falling = math.inf if move.price >= 0.0 else -self.price / move.price
        closing = math.inf if move.room >= 0.0 else -self.room / move.room
        primal = min(_step_length(self.theta, move.theta), _step_length(self.fitted, move.fitted), closing)
        return primal, min(_step_length(self.slacks, move.slacks), _step_length(self.prices, move.prices), falling)

    def _over_fitted(self, numbers: Floats) -> Floats:
        """Divide by f; a pattern that nobody sent has price 0, even if it is impossible."""
        return np.divide(numbers, self.fitted, out=np.zeros_like(numbers), where=self.sent)


def height(point: Point, top: Point) -> float:
    """Return by how much the mean log-likelihood exceeds that of `top`."""
    likelihood, sent = point.likelihood, point.likelihood.sent
    if point.underflow is not None or top.underflow is not None:
        return (point.log_likelihood - top.log_likelihood) / likelihood.total
    change = (point.fitted[sent] - top.fitted[sent]) / top.fitted[sent]
    return float(likelihood.shares[sent] @ np.log1p(change))


def _step_length(numbers: Floats, step: Floats) -> float:
    steepest = float(np.fmin.reduce(step / numbers))  # 0 / 0: a price that stays 0
    return math.inf if not steepest < 0.0 else -1.0 / steepest
