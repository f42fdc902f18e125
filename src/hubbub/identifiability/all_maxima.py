"""All maxima of the likelihood, not only the one that a solver happens to find.

L is strictly concave in f = theta G: f is the same at every maximum, and the maxima are the polytope

    { theta >= 0 :  theta G = f,  sum theta = 1 }.

The sum is one more pattern, with likelihood 1 for every value; [G 1] stands for both (see `rank`, also for the scaled
shares y in which all of this is computed).

**Which values can have mass at all.** Let f* be the maximum's f, f that of a distribution with gap g, q the patterns'
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

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.identifiability.rank import STILL, PatternMatrix, independent, simple, too_large, unit
from hubbub.likelihood import Likelihood, Point
from hubbub.rendering import upper_text
from hubbub.reports import Reports
from hubbub.solvers import maximise

MOST_PROGRAMMED = 5e6  # entries of all linear programs together, some twenty seconds
CLOSE = 1e-13  # the gap at which maxima are looked for...
DECIDED = 1e-8  # ...and the largest one at which it shows which values have mass
SURE = 1e-14  # the smallest gap that is believed: D itself is only known up to rounding
NOTHING = 1e-6  # a value's largest part in any pattern that is taken for 0, at a maximum known to the last digits
PRECISION = 1e-10  # to which linear programs are feasible and optimal: the smallest that HiGHS takes
FLAT = 10 * PRECISION  # what their rounding can make of 0
CLEAR = (1e-3, 1e-4, 1e-5)  # largest parts in any pattern that are no remnants of an interior point, tried in turn
SHARP = 1e-12  # the gap up to which a maximum counts as found again: what other values' D lose to rounding, and CLOSE
BLUR = 30.0  # how many times sqrt(gap) a remnant may amount to

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
    exact: bool = True  # are the ranges those of the maxima, or outer bounds?

    @classmethod
    def single(cls, theta: Floats) -> Maxima:
        """Return the one maximum that there is."""
        return cls(theta, theta, theta, unique=True, dimension=0)


def possible(point: Point) -> Positions:
    """Return the values that are not proven to have probability 0 in every maximum (see the module's docstring)."""
    likelihood = point.likelihood
    shares, sent = likelihood.shares, likelihood.sent
    gap = max(point.measured_gap * likelihood.users / likelihood.total, SURE)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = likelihood.channel.squares(
            np.divide(shares, point.fitted**2, out=np.zeros_like(shares), where=sent & (point.fitted > 0))
        )
        spread = np.sqrt(np.maximum(squares, 0.0))
        # max a <= sqrt(sum q a^2 / min q)
        margin = spread * (2.0 * math.sqrt(gap) + gap / math.sqrt(float(shares[sent].min())))
        return np.flatnonzero(~(point.gradient + margin < 1.0))


def solving(likelihood: Likelihood, tol: float) -> Generator[Progress, None, Point]:
    """Return the best point that the solvers find, from the middle."""
    start = np.full(likelihood.channel.values, 1.0 / likelihood.channel.values)
    run = maximise(likelihood, start, tol, solver=None, max_iter=None)
    while True:
        try:
            progress = next(run)
        except StopIteration as done:
            point: Point = done.value.outcome.point
            return point
        yield Progress(progress.iteration, progress.max_iter, "looking for the maximum")


def all_maxima(reports: Reports, point: Point) -> Run:
    """Return the set of all maxima, given one of them to within its gap."""
    likelihood, theta = point.likelihood, point.theta
    values = possible(point)
    alone = independent(reports, values, theta)
    if alone:
        return Maxima.single(theta)
    gap = point.measured_gap * likelihood.users / likelihood.total
    if alone is None or too_large(values.size, reports.weights.size):
        size = f"{values.size:,} values and {reports.weights.size:,} patterns"
        return _unknown(theta, values, f"Whether other distributions fit as well was not decided: {size} are too many.")
    if gap > DECIDED:
        return _unknown(
            theta, values, f"The maximum is known to a gap of {upper_text(gap)} only: too little to say what else."
        )
    theta, nothing = yield from _sharpened(point, values)
    return (yield from _among(likelihood, theta, values, nothing))


def _sharpened(point: Point, values: Positions) -> Generator[Progress, None, tuple[Floats, float]]:
    """Return a maximum to the last digits, if possible, and the largest part in any pattern that is still nothing.

    A value with D = 1 and no mass holds some sqrt(gap) where an interior point stops, and blurs all others by as
    much. The maximum is found again on the values alone that clearly have mass: the error is then of the order of the
    gap itself. If the gap over the whole domain is as small as before, what was left out was not needed.
    """
    likelihood, theta = point.likelihood, point.theta
    held = theta[values] * PatternMatrix.of(likelihood.channel, values, theta, likelihood.weights).peaks
    for clear in CLEAR:
        kept = values[held > clear]
        if kept.size == values.size:  # no remnants
            return theta, NOTHING
        few = Likelihood(likelihood.channel.part(kept), likelihood.weights, likelihood.users)
        if kept.size == 0 or not few.channel.forward(np.ones(kept.size))[likelihood.sent].all():
            continue  # some pattern needs a value that was left out
        part = yield from solving(few, CLOSE)
        again = np.zeros_like(theta)
        again[kept] = part.theta
        if likelihood.at(again).measured_gap <= SHARP:
            return again, NOTHING
    return theta, max(NOTHING, BLUR * math.sqrt(point.measured_gap))


def _unknown(theta: Floats, values: Positions, reason: str) -> Maxima:
    upper = np.zeros_like(theta)
    upper[values] = 1.0
    return Maxima(theta, np.zeros_like(theta), upper, unique=None, dimension=None, reason=reason, exact=False)


def _among(likelihood: Likelihood, theta: Floats, values: Positions, nothing: float) -> Run:
    """Return the maxima, given one of them and the values that can have mass."""
    table = PatternMatrix.of(likelihood.channel, values, theta, likelihood.weights)
    twins = table.twins()
    heads, group = np.unique(twins, return_inverse=True)
    sizes = np.bincount(group)
    merged = table.some(heads)
    held = np.bincount(group, weights=theta[values]) * merged.peaks
    bounds = yield from _ranges(merged, held)
    # Where ranges are not known, those that have mass at this one maximum stand for all that have any.
    positive = (bounds.held if bounds.outer else bounds.high) > nothing
    live = np.flatnonzero(positive)
    dimension = int((sizes[live] - 1).sum()) + live.size - merged.some(live).rank()
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
    found = Maxima(theta, lower, upper, unique, known, None, bounds.reason, exact=not bounds.reason)
    if dimension == 0:
        return found
    direction = np.zeros_like(theta)
    if sizes[group[widest]] > 1:
        direction[values[np.flatnonzero(group == group[widest])[:2]]] = 1.0, -1.0
    elif bounds.outer:
        direction[values[heads[live]]] = simple(merged.some(live).bases()[1]) / merged.peaks[live]
    else:
        direction[values[heads]] = bounds.between(int(group[widest])) / merged.peaks
    return replace(found, direction=unit(direction))


class _Ranges:
    """The polytope { y >= 0 : y B = held B }, and how far each y reaches in it."""

    def __init__(self, held: Floats, seen: Floats, free: Floats) -> None:
        self.held, self.seen, self.free = held, seen, free
        self.low, self.high = held.copy(), held.copy()
        self.moving = np.flatnonzero(np.abs(free).max(axis=1, initial=0.0) > STILL)
        self.outer = False  # are the ranges too large, because they would take too long?
        self.reason = ""

    def extreme(self, place: int, sign: float) -> Floats | None:
        """Return the point with the largest (sign 1) or smallest (sign -1) y at `place`."""
        if self.free.shape[1] == 1:
            along = self.free[:, 0] * math.copysign(1.0, sign * self.free[place, 0])
            falling = along < -STILL
            if not falling.any():
                return None
            step = float((self.held[falling] / -along[falling]).min())
            return np.maximum(self.held + step * along, 0.0)
        from scipy.optimize import linprog

        if self.free.shape[1] <= self.seen.shape[1]:  # in steps along the null directions, or in y itself
            cost, limits = -sign * self.free[place], (None, None)
            found = linprog(
                cost,
                A_ub=-self.free,
                b_ub=self.held,
                bounds=limits,
                method="highs",
                options={"primal_feasibility_tolerance": PRECISION, "dual_feasibility_tolerance": PRECISION},
            )
            return None if found.x is None else np.maximum(self.held + self.free @ found.x, 0.0)
        cost = np.zeros(self.held.size)
        cost[place] = -sign
        equal = self.seen.T @ self.held
        found = linprog(
            cost,
            A_eq=self.seen.T,
            b_eq=equal,
            bounds=(0.0, None),
            method="highs",
            options={"primal_feasibility_tolerance": PRECISION, "dual_feasibility_tolerance": PRECISION},
        )
        return None if found.x is None else np.asarray(found.x)

    def between(self, place: int) -> Floats:
        """Return the way from where y is smallest to where it is largest."""
        most, least = self.extreme(place, 1.0), self.extreme(place, -1.0)
        return self.free[:, 0] if most is None or least is None else most - least


def _ranges(table: PatternMatrix, held: Floats) -> Generator[Progress, None, _Ranges]:
    """Return the smallest and the largest y of each row, by a linear program each, or by a ratio for one direction."""
    ranges = _Ranges(held, *table.bases())
    moving, low, high = ranges.moving, ranges.low, ranges.high
    if moving.size * held.size * min(ranges.free.shape[1], ranges.seen.shape[1]) > MOST_PROGRAMMED:
        low[moving], high[moving], ranges.outer = 0.0, 1.0, True
        ranges.reason = f"The ranges of {moving.size:,} values are outer bounds: there are too many to compute each."
        return ranges
    failed = 0
    for sign in (1.0, -1.0):
        for done, place in enumerate(moving.tolist()):
            if sign < 0 and low[place] <= FLAT:
                continue  # a point where it is 0 has been seen on the way
            yield Progress(done + moving.size * (sign < 0), 2 * moving.size, "how far each value's share reaches")
            point = ranges.extreme(place, sign)
            if point is None:
                failed += 1
                low[place], high[place] = (low[place], 1.0) if sign > 0 else (0.0, high[place])
                continue
            np.minimum(low, point, out=low)
            np.maximum(high, point, out=high)
    low[low <= FLAT] = 0.0
    if failed:
        ranges.reason = f"{failed:,} of the ranges are outer bounds: their linear programs were not solved."
    return ranges
