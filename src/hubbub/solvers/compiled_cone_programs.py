"""Quadratic programs over a cone, one for each score, by exchanging one value at a time: compiled loops.

The program is: least h'Mh/2 - s'h over h >= l with e'h = 0. The values are divided into free ones, whose h solves the
equations M h + m e = s (m is the multiplier of e'h = 0), and the others, which are at their limits l. Given the inverse
of M over the free values, h follows, and the residual r = M h + m e - s of the others; the minimum is found when no
free h is below its limit and no residual is negative. Until then the value that violates this most changes sides, and
the inverse follows by an update of rank one (principal pivoting: Cottle, Pang and Stone, The Linear Complementarity
Problem, 1992). Should that go on for long, the first value that violates changes sides instead, a rule that cannot go
round in circles.

To hold w'h at 0, w is added to the score, times a price that moves until w'h is 0: h is piecewise linear in the price,
and where a piece ends one value changes sides.

Which values are free hardly differs from one program to the next, so each starts from what its score ended with before.
Import this module inside the functions that need it: Numba takes long to load.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from hubbub.core.arrays import Floats
from hubbub.core.compiling import compiled, loop

# The equation is imposed by a penalty: where it leaves a cone without an interior, its multiplier would grow without
# end. A multiplier of 30, rare for scores of variance 1, costs 30^2 / 2e6, which is negligible beside a deviance of 4.
PENALTY = 1e6
MAX_VIOLATION = 1e-7  # of a limit or a residual
MAX_GREEDY_EXCHANGES = 2  # times the number of values: then the rule that cannot go round in circles
MAX_EXCHANGES = 50  # times the number of values
MAX_KEPT_EXCHANGES = 200  # after which an inverse is computed anew, because rounding adds up
MAX_HELD = 1e-9  # of w'h
FAST = {"reassoc", "contract", "arcp", "nsz"}  # sums in any order, so that they are computed several terms at a time

fast = partial(compiled, fastmath=FAST)


class Cone(NamedTuple):
    """What all programs have in common: M, e, the limits, and which values have one."""

    matrix: Floats
    equation: Floats
    lower: Floats
    bounded: Any


class Division(NamedTuple):
    """The free values of one program: which, where each is in the inverse and which is there, and the inverse."""

    free: Any
    places: Any
    members: Any
    inverse: Floats


class Solution(NamedTuple):
    """h, the residuals, and M times the limits of the values that are there."""

    step: Floats
    rest: Floats
    fixed: Floats


@fast
def _enter(matrix: Floats, division: Division, count: int, value: int) -> int:
    """Free a value: the inverse gets one more row and column."""
    inverse, members = division.inverse, division.members
    column, row = np.empty(count), np.empty(count)
    for b in range(count):
        row[b] = matrix[value, members[b]]
    pivot = matrix[value, value]
    for a in range(count):
        total = 0.0
        for b in range(count):
            total += inverse[a, b] * row[b]
        column[a] = total
        pivot -= total * row[a]
    scale = 1.0 / pivot
    for a in range(count):
        factor = column[a] * scale
        for b in range(count):
            inverse[a, b] += factor * column[b]
        inverse[a, count] = -factor
        inverse[count, a] = -factor
    inverse[count, count] = scale
    members[count], division.places[value], division.free[value] = value, count, True
    return count + 1


@fast
def _leave(division: Division, count: int, value: int) -> int:
    """Put a value to its limit: the last of the free values takes its place in the inverse."""
    inverse, members, places = division.inverse, division.members, division.places
    place, last = places[value], count - 1
    if place != last:
        for a in range(count):
            inverse[a, place], inverse[a, last] = inverse[a, last], inverse[a, place]
        for a in range(count):
            inverse[place, a], inverse[last, a] = inverse[last, a], inverse[place, a]
        members[place] = members[last]
        places[members[place]] = place
    scale = 1.0 / inverse[last, last]
    for a in range(last):
        factor = inverse[a, last] * scale
        for b in range(last):
            inverse[a, b] -= factor * inverse[last, b]
    division.free[value] = False
    return last


@fast
def _solve_free(cone: Cone, division: Division, count: int, score: Floats, off: float, solution: Solution) -> None:
    """Write h of the free values and the residual of all values.

    `off` is what the values at their limits contribute to the equation. Its multiplier is m = P e'h, which is the
    solution of (1/P + e'Ae) m = e'A(s - fixed) + off: P itself, which is large, is in no matrix that is inverted.
    """
    matrix, equation, members, inverse = cone.matrix, cone.equation, division.members, division.inverse
    step, rest, fixed = solution.step, solution.rest, solution.fixed
    plain, tilt = np.empty(count), np.empty(count)
    right, row = np.empty(count), np.empty(count)
    for b in range(count):
        right[b], row[b] = score[members[b]] - fixed[members[b]], equation[members[b]]
    missing, stiffness = off, 1.0 / PENALTY
    for a in range(count):
        total, along = 0.0, 0.0
        for b in range(count):
            total += inverse[a, b] * right[b]
            along += inverse[a, b] * row[b]
        plain[a], tilt[a] = total, along
        missing += row[a] * total
        stiffness += row[a] * along
    multiplier = missing / stiffness
    for x in range(score.size):
        rest[x] = fixed[x] - score[x] + multiplier * equation[x]
    for a in range(count):
        own, length = members[a], plain[a] - multiplier * tilt[a]
        step[own] = length
        for x in range(score.size):
            rest[x] += length * matrix[own, x]


@fast
def _switch(cone: Cone, division: Division, count: int, value: int, solution: Solution) -> int:
    """Let a value change sides."""
    change = cone.lower[value]
    if division.free[value]:
        count = _leave(division, count, value)
        solution.step[value] = change
    else:
        count = _enter(cone.matrix, division, count, value)
        change = -change
    if change != 0.0:
        for x in range(solution.fixed.size):
            solution.fixed[x] += change * cone.matrix[value, x]
    return count


@fast
def _settle(cone: Cone, division: Division, count: int, score: Floats, solution: Solution) -> tuple[int, int]:
    """Exchange values until nothing is violated; return how many are free, and how many exchanges it took."""
    lower, free, places, inverse = cone.lower, division.free, division.places, division.inverse
    values, turn = score.size, 0
    for turn in range(MAX_EXCHANGES * values):
        off = 0.0
        for x in range(values):
            if not free[x]:
                off += cone.equation[x] * lower[x]
        _solve_free(cone, division, count, score, off, solution)
        worst, chosen = -MAX_VIOLATION, -1
        for x in range(values):
            if not cone.bounded[x]:
                continue
            own = places[x]
            violation = (solution.step[x] - lower[x]) / np.sqrt(inverse[own, own]) if free[x] else solution.rest[x]
            if violation < worst:
                worst, chosen = violation, x
                if turn >= MAX_GREEDY_EXCHANGES * values:
                    break
        if chosen < 0:
            break
        count = _switch(cone, division, count, chosen, solution)
    return count, turn


@fast
def _least(score: Floats, free: Any, solution: Solution) -> float:
    """Return h'Mh/2 - s'h, where M h + m e - s is the residual on the values at their limits, and 0 on the others."""
    total = 0.0
    for x in range(score.size):
        total -= score[x] * solution.step[x]
        if not free[x]:
            total += solution.rest[x] * solution.step[x]
    return 0.5 * total


@fast
def _hold(cone: Cone, division: Division, count: int, held: Floats, solution: Solution) -> None:
    """Move the price of w'h from 0 until w'h is 0."""
    free, step, rest, lower = division.free, solution.step, solution.rest, cone.lower
    values = held.size
    change = Solution(np.zeros(values), np.empty(values), np.zeros(values))  # of h and the residuals, with the price
    for _ in range(MAX_EXCHANGES * values):
        _solve_free(cone, division, count, held, 0.0, change)
        reached, rate = 0.0, 0.0
        for x in range(values):
            reached += held[x] * step[x]
            if free[x]:
                rate += held[x] * change.step[x]
        if abs(reached) < MAX_HELD:
            return
        sign = 1.0 if reached < 0.0 else -1.0
        length, chosen = abs(reached) / rate if rate > 0.0 else np.inf, -1
        for x in range(values):
            if not cone.bounded[x]:
                continue
            room, slope = (step[x] - lower[x], change.step[x]) if free[x] else (rest[x], change.rest[x])
            if sign * slope < 0.0:
                own = max(0.0, room) / (-sign * slope)
                if own < length:
                    length, chosen = own, x
        if length == np.inf:
            return
        for x in range(values):
            if free[x]:
                step[x] += sign * length * change.step[x]
            else:
                rest[x] += sign * length * change.rest[x]
        if chosen < 0:
            return
        if free[chosen]:
            rest[chosen] = 0.0
        count = _switch(cone, division, count, chosen, solution)


@fast
def _minimize(
    cone: Cone, score: Floats, held: Floats, free: Any, members: Any, inverse: Floats, exchanges: int
) -> tuple[int, float, float]:
    """Return the exchanges that are behind an inverse now, and the minima of one score without and with w'h held."""
    values = score.size
    keeps = inverse.size > 0
    is_known = keeps and 0 <= exchanges < MAX_KEPT_EXCHANGES
    own = inverse if keeps else np.empty((values, values))
    division = Division(np.zeros(values, np.bool_), np.empty(values, np.int64), members, own)
    solution = Solution(np.empty(values), np.empty(values), np.zeros(values))
    count = 0
    for x in range(values):
        if free[x] or not cone.bounded[x]:
            if is_known:
                division.free[x] = True
                count += 1
            else:
                count = _enter(cone.matrix, division, count, x)
        else:
            solution.step[x] = cone.lower[x]
            if cone.lower[x] != 0.0:
                for y in range(values):
                    solution.fixed[y] += cone.lower[x] * cone.matrix[x, y]
    if is_known:
        for place in range(count):
            division.places[members[place]] = place
    count, more = _settle(cone, division, count, score, solution)
    free[:] = division.free
    least = _least(score, division.free, solution)
    if held.size == 0:
        return more + (exchanges if is_known else 0), least, 0.0
    if keeps:  # what is held changes sides, too, but the next program starts without it
        division = Division(division.free, division.places, members.copy(), inverse.copy())
    _hold(cone, division, count, held, solution)
    return more + (exchanges if is_known else 0), least, _least(score, division.free, solution)


@loop(fastmath=FAST)
def solve(
    cone: Cone,
    scores: Floats,
    held: Floats,
    free: Any,
    members: Any,
    inverses: Floats,
    exchanges: Any,
    least: Floats,
) -> None:
    """Write each score's minimum to `least`, and with w'h held at 0 beside it if w is not empty.

    `free` holds the free values of each score to start from, and is left with those at the minimum. `inverses` holds
    the inverse for each score, over `members`, or nothing, after so many `exchanges` (-1: none yet).
    """
    # The body is a function of its own: Numba moves arrays that are made in a parallel loop out of it, and named tuples
    # that hold them then see what the last program left.
    for draw in prange(scores.shape[0]):
        exchanges[draw], least[draw, 0], least[draw, 1] = _minimize(
            cone, scores[draw], held, free[draw], members[draw], inverses[draw], exchanges[draw]
        )
