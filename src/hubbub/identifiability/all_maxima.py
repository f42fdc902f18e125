"""The set of all maxima of the likelihood, not only the one that a solver happens to find.

L is strictly concave in f = theta G: f is the same at every maximum, and the maxima are the polytope

    { theta >= 0 :  theta G = f,  sum theta = 1 }.

The sum counts as one more pattern, with likelihood 1 for every value; [G 1] stands for both (see `rank`, also for the
scaled shares y in which all of this is computed).

**Which values can have mass.** Let f* be the maximum's f, f that of a distribution with gap g, q the patterns'
shares, s_i = f_i / f*_i and a_i = g_xi / f_i. Optimality of f* gives sum q s <= 1, the gap - sum q log s <= g, hence

    sum q (sqrt(s) - 1)^2  <=  sum q (s - 1 - log s)  <=  g,
    D*_x  =  sum q a s  =  D_x - 2 sum q a (1 - sqrt(s)) + sum q a (1 - sqrt(s))^2
         <=  D_x + 2 sqrt(g sum q a^2) + g max a.

A value for which this is below 1 has probability 0 in every maximum.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress, map_steps
from hubbub.identifiability.rank import (
    MAX_ZERO_ENTRY,
    PatternMatrix,
    has_full_rank,
    is_too_large,
    sparse_direction,
    unit_exchange,
)
from hubbub.likelihood import Likelihood, Point
from hubbub.rendering import upper_text
from hubbub.reports import Reports
from hubbub.solvers import likeliest_point

MAX_PROGRAM_ENTRIES = 5e6  # of all linear programs together, some twenty seconds
MAX_GAP_SEARCHED = 1e-13  # the gap to which maxima are solved...
MAX_GAP_DECIDED = 1e-8  # ...and the largest one that shows which values have mass
MIN_GAP_BELIEVED = 1e-14  # D itself is only known up to rounding
MAX_ZERO_PART = 1e-6  # a value's largest part in any pattern that counts as 0, at a maximum known to the last digits
PROGRAM_TOLERANCE = 1e-10  # to which linear programs are feasible and optimal: the smallest that HiGHS takes
MAX_ZERO_OF_PROGRAM = 10 * PROGRAM_TOLERANCE  # what their rounding can make of 0
MIN_PARTS_WITH_MASS = (1e-3, 1e-4, 1e-5)  # largest parts in a pattern that are no solver remnants, tried in turn
MAX_GAP_CONFIRMED = 1e-12  # the gap up to which a maximum is found again: rounding of other values' D, and the search
REMNANT_FACTOR = 30.0  # how many times sqrt(gap) a remnant may amount to

Run = Generator[Progress, None, "Maxima"]


@dataclass(frozen=True)
class Maxima:
    """The set of all maxima: one of them, each value's range, whether it is the only one, and the set's dimension.

    None stands for what is not known.
    """

    theta: Floats
    lower: Floats
    upper: Floats
    unique: bool | None
    dimension: int | None
    direction: Floats | None = None  # from one maximum to another
    reason: str = ""  # why something is not known, or not exact
    exact: bool = True  # whether the ranges are those of the maxima, or outer bounds

    @classmethod
    def single(cls, theta: Floats) -> Maxima:
        """Return the set with one maximum."""
        return cls(theta, theta, theta, unique=True, dimension=0)


def possible_values(point: Point) -> Positions:
    """Return the values that are not proven to have probability 0 in every maximum (see the module's docstring)."""
    likelihood = point.likelihood
    shares, sent = likelihood.shares, likelihood.sent
    gap = max(point.measured_gap * likelihood.users / likelihood.total, MIN_GAP_BELIEVED)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = likelihood.channel.squares(
            np.divide(shares, point.fitted**2, out=np.zeros_like(shares), where=sent & (point.fitted > 0))
        )
        spread = np.sqrt(np.maximum(squares, 0.0))
        # max a <= sqrt(sum q a^2 / min q)
        margin = spread * (2.0 * math.sqrt(gap) + gap / math.sqrt(float(shares[sent].min())))
        return np.flatnonzero(~(point.gradient + margin < 1.0))


def find_maximum(likelihood: Likelihood, tol: float) -> Generator[Progress, None, Point]:
    """Return the likeliest point, with progress that says what is searched."""
    run = likeliest_point.steps(likelihood, tol)
    return (
        yield from map_steps(run, lambda step: Progress(step.iteration, step.max_iter, "searching for the maximum"))
    )


def all_maxima(reports: Reports, point: Point) -> Run:
    """Return the set of all maxima, given one of them to within its gap."""
    likelihood, theta = point.likelihood, point.theta
    values = possible_values(point)
    is_unique = has_full_rank(reports, values, theta)
    if is_unique:
        return Maxima.single(theta)
    gap = point.measured_gap * likelihood.users / likelihood.total
    if is_unique is None or is_too_large(values.size, reports.weights.size):
        return undecided(theta, values, reports.weights.size)
    if gap > MAX_GAP_DECIDED:
        return _unknown(
            theta, values, f"Other maxima were not searched: this one is known only to a gap of {upper_text(gap)}."
        )
    theta, max_zero = yield from _sharpen(point, values)
    return (yield from _maxima_around(likelihood, theta, values, max_zero))


def _sharpen(point: Point, values: Positions) -> Generator[Progress, None, tuple[Floats, float]]:
    """Return a maximum to the last digits, if possible, and the largest part in any pattern that counts as 0.

    A value with D = 1 and no mass keeps some sqrt(gap) when an interior point stops, and blurs all others by as much.
    The maximum is solved again over only the values that clearly have mass: the error is then of the order of the gap
    itself. If the gap over the whole domain is as small as before, the other values were not needed.
    """
    likelihood, theta = point.likelihood, point.theta
    held = theta[values] * PatternMatrix.of(likelihood.channel, values, theta, likelihood.weights).peaks
    for min_part in MIN_PARTS_WITH_MASS:
        kept = values[held > min_part]
        if kept.size == values.size:  # no remnants
            return theta, MAX_ZERO_PART
        reduced = Likelihood(likelihood.channel.part(kept), likelihood.weights, likelihood.users)
        if kept.size == 0 or not reduced.channel.forward(np.ones(kept.size))[likelihood.sent].all():
            continue  # some pattern needs one of the other values
        maximum = yield from find_maximum(reduced, MAX_GAP_SEARCHED)
        sharp = np.zeros_like(theta)
        sharp[kept] = maximum.theta
        if likelihood.at(sharp).measured_gap <= MAX_GAP_CONFIRMED:
            return sharp, MAX_ZERO_PART
    return theta, max(MAX_ZERO_PART, REMNANT_FACTOR * math.sqrt(point.measured_gap))


def undecided(theta: Floats, values: Positions, patterns: int) -> Maxima:
    """Return what is known where values and patterns are too many."""
    size = f"{values.size:,} values and {patterns:,} patterns"
    return _unknown(
        theta, values, f"Whether other distributions fit equally well was not decided: {size} are too many."
    )


def _unknown(theta: Floats, values: Positions, reason: str) -> Maxima:
    upper = np.zeros_like(theta)
    upper[values] = 1.0
    return Maxima(theta, np.zeros_like(theta), upper, unique=None, dimension=None, reason=reason, exact=False)


def _maxima_around(likelihood: Likelihood, theta: Floats, values: Positions, max_zero: float) -> Run:
    """Return the maxima, given one of them and the values that can have mass."""
    table = PatternMatrix.of(likelihood.channel, values, theta, likelihood.weights)
    heads, group = np.unique(table.first_equal_rows(), return_inverse=True)  # values with equal rows are merged
    sizes = np.bincount(group)
    merged = table.take(heads)
    held = np.bincount(group, weights=theta[values]) * merged.peaks
    bounds = yield from _ranges(merged, held)
    # If ranges are not known, the values with mass at this one maximum stand for all that have any.
    positive = (bounds.held if bounds.outer else bounds.high) > max_zero
    live = np.flatnonzero(positive)
    dimension = int((sizes[live] - 1).sum()) + live.size - merged.take(live).rank()
    if bounds.outer and not positive.all():
        unique, known = None if dimension == 0 else False, None
    else:
        unique, known = dimension == 0, dimension
    if unique:
        return Maxima.single(theta)
    lower, upper = np.zeros_like(theta), np.zeros_like(theta)
    upper[values] = np.clip((bounds.high / merged.peaks)[group], 0.0, 1.0)
    lower[values] = np.clip(np.where(sizes[group] > 1, 0.0, (bounds.low / merged.peaks)[group]), 0.0, upper[values])
    widest = int(np.argmax(upper[values] - lower[values]))
    maxima = Maxima(theta, lower, upper, unique, known, None, bounds.reason, exact=not bounds.reason)
    if dimension == 0:
        return maxima
    direction = np.zeros_like(theta)
    if sizes[group[widest]] > 1:
        direction[values[np.flatnonzero(group == group[widest])[:2]]] = 1.0, -1.0
    elif bounds.outer:
        direction[values[heads[live]]] = sparse_direction(merged.take(live).bases()[1]) / merged.peaks[live]
    else:
        direction[values[heads]] = bounds.between(int(group[widest])) / merged.peaks
    return replace(maxima, direction=unit_exchange(direction))


class _Ranges:
    """The polytope { y >= 0 : y B = held B }, and the range of each y in it."""

    def __init__(self, held: Floats, seen: Floats, free: Floats) -> None:
        self.held, self.seen, self.free = held, seen, free
        self.low, self.high = held.copy(), held.copy()
        self.moving = np.flatnonzero(np.abs(free).max(axis=1, initial=0.0) > MAX_ZERO_ENTRY)
        self.outer = False  # whether the ranges are outer bounds, because exact ones would take too long
        self.reason = ""

    def extreme(self, position: int, sign: float) -> Floats | None:
        """Return the point with the largest (sign 1) or smallest (sign -1) y at `position`."""
        if self.free.shape[1] == 1:
            along = self.free[:, 0] * math.copysign(1.0, sign * self.free[position, 0])
            falling = along < -MAX_ZERO_ENTRY
            if not falling.any():
                return None
            step = float((self.held[falling] / -along[falling]).min())
            return np.maximum(self.held + step * along, 0.0)
        if self.free.shape[1] <= self.seen.shape[1]:  # in steps along the null directions, or in y itself
            steps = _linear_program(-sign * self.free[position], (None, None), A_ub=-self.free, b_ub=self.held)
            return None if steps is None else np.maximum(self.held + self.free @ steps, 0.0)
        cost = np.zeros(self.held.size)
        cost[position] = -sign
        return _linear_program(cost, (0.0, None), A_eq=self.seen.T, b_eq=self.seen.T @ self.held)

    def between(self, position: int) -> Floats:
        """Return the difference between the points with the largest and the smallest y at `position`."""
        most, least = self.extreme(position, 1.0), self.extreme(position, -1.0)
        return self.free[:, 0] if most is None or least is None else most - least


def _linear_program(cost: Floats, bounds: tuple[float | None, None], **constraints: Any) -> Floats | None:
    """Return a point with the least cost; None if the solver found none."""
    from scipy.optimize import linprog

    program = linprog(
        cost,
        bounds=bounds,
        method="highs",
        options={"primal_feasibility_tolerance": PROGRAM_TOLERANCE, "dual_feasibility_tolerance": PROGRAM_TOLERANCE},
        **constraints,
    )
    return None if program.x is None else np.asarray(program.x)


def _ranges(table: PatternMatrix, held: Floats) -> Generator[Progress, None, _Ranges]:
    """Return the smallest and the largest y of each row, by linear programs, or by ratios along a single direction."""
    ranges = _Ranges(held, *table.bases())
    moving, low, high = ranges.moving, ranges.low, ranges.high
    if moving.size * held.size * min(ranges.free.shape[1], ranges.seen.shape[1]) > MAX_PROGRAM_ENTRIES:
        low[moving], high[moving], ranges.outer = 0.0, 1.0, True
        ranges.reason = f"The ranges of {moving.size:,} values are outer bounds: there are too many to compute each."
        return ranges
    failed = 0
    for sign in (1.0, -1.0):
        for done, position in enumerate(moving.tolist()):
            if sign < 0 and low[position] <= MAX_ZERO_OF_PROGRAM:
                continue  # a point where it is 0 was found on the way
            yield Progress(done + moving.size * (sign < 0), 2 * moving.size, "computing the range of each share")
            point = ranges.extreme(position, sign)
            if point is None:
                failed += 1
                low[position], high[position] = (low[position], 1.0) if sign > 0 else (0.0, high[position])
                continue
            np.minimum(low, point, out=low)
            np.maximum(high, point, out=high)
    low[low <= MAX_ZERO_OF_PROGRAM] = 0.0
    if failed:
        ranges.reason = f"{failed:,} of the ranges are outer bounds: their linear programs were not solved."
    return ranges
