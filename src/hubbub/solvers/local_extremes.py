"""The extremes of a linear statistic where many users leave few distributions likely: one curvature for all of them.

Among likely distributions the second derivative of the mean log-likelihood l hardly changes. So with J the information
at the maximum, the model around some theta

    l(theta) + D (theta' - theta) - (theta' - theta)' J (theta' - theta) / 2

is nearly l itself. Its lowest statistic subject to the bound b is found by exchanging values between those that are
free and those that are 0: with F the free values and P the inverse of J over them among steps with sum 0, theta' is the
model's maximum over F minus u P c, and the model there is its maximum minus u^2 c'Pc / 2, from which u, the inverse of
the bound's price, follows. The model is then put around that theta', and so on. D is computed anew each time, so the
limit is the certified one of `profile_extremes`, and the search ends when it is tight. Where it does not get there (few
users, flat directions) the answer is None, and the interior point is asked.

All searches begin with the values that are free at the maximum, and exchange few. So one table says how theta over the
free values, and what is left of the derivatives elsewhere, move with each exchange: that of `compiled_pivots`, with J
bordered by the equation of the sum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.likelihood import Point
from hubbub.solvers.profile_extremes import (
    MAX_EXPONENT,
    MAX_MISSING_SLACK,
    MAX_RELATIVE_SLACK,
    MIN_RELATIVE_RANGE,
    ROUNDING,
    Extreme,
    Proof,
    height,
)

Flags = NDArray[np.bool_]

MAX_MODELS = 10
MAX_EXCHANGES = 40
MAX_PATIENCE = 3  # exchanges of all violations that make them no fewer
MIN_FREE_SHARE = 1e-3  # of an even share, from which on a value is free at first
MAX_VIOLATION = 1e-9  # of a share, or of a derivative relative to its mean
RIDGE = 1e-10  # relative to the largest entry of the diagonal
MIN_SQUARE = 1e-20  # of c'Pc, below which the statistic is the same for all free values


class _Solution(NamedTuple):
    """Where the model's statistic is least, the inverse price u, and the values that have changed sides."""

    theta: Floats
    inverse_price: float
    is_changed: Flags


class _PivotTable:
    """How basic numbers move if values change sides: theta over the free values, what is left of D elsewhere."""

    def __init__(self, matrix: Floats, is_free: Flags) -> None:
        free, rest = np.flatnonzero(is_free), np.flatnonzero(~is_free)
        self.is_free = is_free
        self._free, self._across = free, matrix[np.ix_(free, rest)]
        self._rest = rest
        self._inverse = np.linalg.inv(matrix[np.ix_(free, free)])
        self.entries = np.empty_like(matrix)  # a row for each value that changes sides
        pulled = self._inverse @ self._across
        self.entries[np.ix_(free, free)], self.entries[np.ix_(free, rest)] = self._inverse, pulled
        self.entries[np.ix_(rest, free)] = -pulled.T
        self.entries[np.ix_(rest, rest)] = matrix[np.ix_(rest, rest)] - self._across.T @ pulled

    def numbers(self, given: Floats) -> Floats:
        """Return the basic numbers for each row of w - Q z."""
        numbers = given.copy()
        own = -given[:, self._free] @ self._inverse
        numbers[:, self._free] = own
        numbers[:, self._rest] += own @ self._across
        return numbers

    def exchanged(self, numbers: Floats, is_changed: Flags) -> Floats:
        """Return the numbers that are basic once some values have changed sides."""
        changed = np.flatnonzero(is_changed)
        if changed.size == 0:
            return numbers
        moves = self.entries[changed]
        steps = np.linalg.solve(moves[:, changed].T, -numbers[:, changed].T).T
        moved = numbers + steps @ moves
        moved[:, changed] = steps
        return np.asarray(moved)


class LocalRegion:
    """All distributions close to a maximum, by its information."""

    def __init__(self, top: Point, information: Floats) -> None:
        self.top, size = top, len(information)
        largest = float(information.diagonal().max())
        self._information = information + RIDGE * largest * np.eye(size)
        total = np.full((1, size), largest)  # the equation of the sum, on the scale of the information
        bordered = np.block([[self._information, total.T], [total, np.zeros((1, 1))]])
        self._largest = largest
        self._table = _PivotTable(bordered, np.append(top.theta > MIN_FREE_SHARE / size, True))

    def least(self, weights: Floats, slack: float) -> Extreme | None:
        """Return the smallest `weights` @ theta where the mean log-likelihood is at most `slack` below the maximum."""
        lowest, span, own = float(weights.min()), float(np.ptp(weights)), float(weights @ self.top.theta)
        if span == 0.0 or own - lowest <= MIN_RELATIVE_RANGE * span:
            return Extreme(lowest, own, self.top.theta, 0)
        c, middle = (weights - lowest) / span, (own - lowest) / span
        point, is_changed, is_barred = self.top, np.zeros(c.size, dtype=np.bool_), np.zeros(c.size, dtype=np.bool_)
        limit, attained, proof = 0.0, middle, None
        for turn in range(1, MAX_MODELS + 1):
            solution = self._solve(c, point, height(point, self.top) + slack, is_changed, is_barred)
            if solution is None:
                return None
            is_changed, point = solution.is_changed, self.top.at(solution.theta)
            if point.underflow is not None:
                return None
            above, reached = height(point, self.top), float(c @ point.theta)
            if above >= -slack - MAX_MISSING_SLACK * slack:
                attained = min(attained, reached)
                if reached <= MIN_RELATIVE_RANGE:
                    return Extreme(lowest, lowest + span * reached, point.theta, turn)
            if solution.inverse_price > 0.0:
                price = 1.0 / solution.inverse_price
                rho = math.exp(min(-slack - above, MAX_EXPONENT))
                outer = float((c - price * point.gradient).min()) + price * (rho - ROUNDING)
                if outer > limit:
                    limit, proof = outer, Proof(point.theta, span * price)
            if attained - limit <= MAX_RELATIVE_SLACK * (middle - limit):
                return Extreme(lowest + span * limit, lowest + span * attained, point.theta, turn, proof)
        return None

    def likeliest(self, allowed: Flags, max_gap: float, largest: float) -> Point | None:
        """Return the likeliest distribution over some values, up to a gap in nats per user.

        If all of them are less likely than the maximum by more than `largest` nats per user, any of them; None if none
        is found.
        """
        point, is_barred = self.top, ~allowed
        is_changed = is_barred & self._table.is_free[:-1]
        for _ in range(MAX_MODELS):
            solution = self._solve(None, point, 0.0, is_changed, is_barred)
            if solution is None:
                return None
            is_changed, point = solution.is_changed, self.top.at(solution.theta)
            if point.underflow is not None:
                return None
            gap = math.log(float(point.gradient[allowed].max()))
            if gap <= max_gap or height(point, self.top) + gap < -largest:
                return point
        return None

    def _solve(
        self, c: Floats | None, point: Point, room: float, is_changed: Flags, is_barred: Flags
    ) -> _Solution | None:
        """Return the solution of the model around a point that is `room` above the bound; None if it is not found.

        Without a statistic it is where the model is largest. Values that are barred stay at 0.
        """
        information, theta, gradient, size = self._information, point.theta, point.gradient, point.theta.size
        given = np.zeros((2, size + 1))
        given[0, :size], given[0, size] = -gradient - information @ theta, -self._largest
        given[1, :size] = 0.0 if c is None else c
        start, is_free = self._table.numbers(given), self._table.is_free[:-1]
        fewest, patience = size + 1, MAX_PATIENCE
        for _ in range(MAX_EXCHANGES):
            try:
                numbers = self._table.exchanged(start, np.append(is_changed, False))[:, :size]
            except np.linalg.LinAlgError:
                return None
            free_now = is_free ^ is_changed
            inverse_price = 0.0
            if c is not None:
                inverse_price = self._inverse_price(c, np.where(free_now, numbers, 0.0), point, room)
            now = numbers[0] + inverse_price * numbers[1]
            violated = (now < -MAX_VIOLATION) & ~is_barred
            count = int(np.count_nonzero(violated))
            if count == 0:
                found = np.where(free_now, np.maximum(now, 0.0), 0.0)
                total = float(found.sum())
                return _Solution(found / total, inverse_price, is_changed) if total > 0.0 else None
            if count < fewest:
                fewest, patience = count, MAX_PATIENCE
            elif patience > 0:
                patience -= 1
            else:
                last = int(np.flatnonzero(violated)[-1])
                violated = np.zeros_like(violated)
                violated[last] = True
            is_changed = is_changed ^ violated
        return None

    def _inverse_price(self, c: Floats, moves: Floats, point: Point, room: float) -> float:
        """Return u: theta' = moves[0] + u moves[1] has the bound's likelihood in the model; 0 if none has."""
        square = -float(c @ moves[1])
        if not square > MIN_SQUARE:
            return 0.0
        away = moves[0] - point.theta
        best = room + float(point.gradient @ away) - 0.5 * float(away @ self._information @ away)
        return math.sqrt(max(0.0, 2.0 * best / square))
