"""Quadratic programs over a cone, one for each score, by exchanging one value at a time: compiled loops.

The program is: least h'Mh/2 - s'h over h >= l with e'h = 0, for one or two rows e. The values are divided into free
ones, whose h solves the equations M h + m e = s (m is the multiplier of e'h = 0), and the others, which are at their
limits l. Given the inverse of M over the free values, h follows, and the residual r = M h + m e - s of the others; the
minimum is found when no free h is below its limit and no residual is negative. Until then the value that violates this
most changes sides, and the inverse follows by an update of rank one (principal pivoting: Cottle, Pang and Stone, The
Linear Complementarity Problem, 1992). Should that go on for long, the first value that violates changes sides instead,
a rule that cannot go round in circles.

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

# Equations are imposed by a penalty: where they leave a cone without an interior, multipliers would grow without end.
# A multiplier of 1,000, rare for scores of variance 1, costs 1000^2 / 2e10, which is negligible beside a deviance of 4.
PENALTY = 1e10
MAX_VIOLATION = 1e-8  # of a limit or a residual
MAX_GREEDY_EXCHANGES = 2  # times the number of values: then the rule that cannot go round in circles
MAX_EXCHANGES = 20  # times the number of values
MAX_RESIDUAL = 1e-6  # of the free values' equations, beyond which the inverse is computed anew...
MAX_KEPT_EXCHANGES = 200  # ...and after so many exchanges in any case
FAST = {"reassoc", "contract", "arcp", "nsz"}  # sums in any order, so that they are computed several terms at a time

fast = partial(compiled, fastmath=FAST)


class Cone(NamedTuple):
    """What all programs have in common: M and its least eigenvalue, the rows e, the limits, which values have one."""

    matrix: Floats
    least: float
    equations: Floats
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
def _enter(cone: Cone, division: Division, count: int, value: int) -> int:
    """Free a value: the inverse gets one more row and column."""
    matrix, inverse, members = cone.matrix, division.inverse, division.members
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
    scale = 1.0 / max(pivot, cone.least)  # it is less only by rounding
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
def _invert(cone: Cone, division: Division) -> int:
    """Compute the inverse over all values that are free, anew: updates add up rounding."""
    count = 0
    for value in range(division.free.size):
        if division.free[value]:
            division.members[count], division.places[value] = value, count
            count += 1
    block = np.empty((count, count))
    for a in range(count):
        for b in range(count):
            block[a, b] = cone.matrix[division.members[a], division.members[b]]
    division.inverse[:count, :count] = np.linalg.inv(block)
    return count


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
def _solve_free(cone: Cone, division: Division, count: int, score: Floats, rows: int, solution: Solution) -> None:
    """Write h of the free values and the residual of all values.

    The multipliers are m = P e'h, which is the solution of (1/P + e'Ae) m = e'A(s - fixed) + e'(limits): P itself,
    which is large, is in no matrix that is inverted. Without a second row its multiplier is 0.
    """
    matrix, equations, members, inverse = cone.matrix, cone.equations, division.members, division.inverse
    step, rest, fixed = solution.step, solution.rest, solution.fixed
    plain, right = np.empty(count), np.empty(count)
    tilt, other_tilt = np.empty(count), np.empty(count)
    row, other_row = np.empty(count), np.zeros(count)
    missing, other_missing = 0.0, 0.0
    for b in range(count):
        right[b], row[b] = score[members[b]] - fixed[members[b]], equations[0, members[b]]
        if rows > 1:
            other_row[b] = equations[1, members[b]]
    for x in range(score.size):
        if not division.free[x]:
            missing += equations[0, x] * cone.lower[x]
            if rows > 1:
                other_missing += equations[1, x] * cone.lower[x]
    first, second, cross = 1.0 / PENALTY, 1.0 / PENALTY, 0.0
    for a in range(count):
        total, along, other_along = 0.0, 0.0, 0.0
        for b in range(count):
            total += inverse[a, b] * right[b]
            along += inverse[a, b] * row[b]
            other_along += inverse[a, b] * other_row[b]
        plain[a], tilt[a], other_tilt[a] = total, along, other_along
        missing += row[a] * total
        other_missing += other_row[a] * total
        first += row[a] * along
        second += other_row[a] * other_along
        cross += row[a] * other_along
    share = cross / first
    two = (other_missing - share * missing) / max(second - share * cross, 1.0 / PENALTY)  # less only by rounding
    one = (missing - cross * two) / first
    for x in range(score.size):
        rest[x] = fixed[x] - score[x] + one * equations[0, x]
    if rows > 1:
        for x in range(score.size):
            rest[x] += two * equations[1, x]
    for a in range(count):
        value, length = members[a], plain[a] - one * tilt[a] - two * other_tilt[a]
        step[value] = length
        for x in range(score.size):
            rest[x] += length * matrix[value, x]


@fast
def _switch(cone: Cone, division: Division, count: int, value: int, solution: Solution) -> int:
    """Let a value change sides."""
    change, place = cone.lower[value], division.places[value]
    if division.free[value]:
        if division.inverse[place, place] > 0.0:
            count = _leave(division, count, value)
        else:  # rounding has spoilt it
            division.free[value] = False
            count = _invert(cone, division)
        solution.step[value] = change
    else:
        count = _enter(cone, division, count, value)
        change = -change
    if change != 0.0:
        for x in range(solution.fixed.size):
            solution.fixed[x] += change * cone.matrix[value, x]
    return count


@fast
def _settle(
    cone: Cone, division: Division, count: int, score: Floats, rows: int, solution: Solution
) -> tuple[int, int]:
    """Exchange values until nothing is violated; return how many are free, and how many exchanges it took."""
    lower, free, places, inverse = cone.lower, division.free, division.places, division.inverse
    values, turn, is_fresh = score.size, 0, False
    for turn in range(MAX_EXCHANGES * values):
        _solve_free(cone, division, count, score, rows, solution)
        worst, chosen, is_off = -MAX_VIOLATION, -1, False
        for x in range(values):
            violation = solution.rest[x]
            if free[x]:
                own = inverse[places[x], places[x]]
                if not is_fresh and not (abs(violation) < MAX_RESIDUAL and own > 0.0):
                    is_off = True
                    break
                violation = (solution.step[x] - lower[x]) / np.sqrt(own)
            if cone.bounded[x] and violation < worst:
                worst, chosen = violation, x
                if turn >= MAX_GREEDY_EXCHANGES * values:
                    break
        is_fresh = is_off
        if is_off:
            count = _invert(cone, division)
        elif chosen < 0:
            break
        else:
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
def _minimize(
    cone: Cone, score: Floats, free: Any, members: Any, inverse: Floats, exchanges: int
) -> tuple[int, float, float]:
    """Return the exchanges that are behind an inverse now, and the minima of one score with one row and with two."""
    values = score.size
    keeps = inverse.size > 0
    own = inverse if keeps else np.empty((values, values))
    division = Division(free | ~cone.bounded, np.empty(values, np.int64), members, own)
    # A value that has lost its limit since then is free, but not in the inverse.
    is_known = keeps and 0 <= exchanges < MAX_KEPT_EXCHANGES and (division.free == free).all()
    solution = Solution(np.empty(values), np.empty(values), np.zeros(values))
    for x in range(values):
        if not division.free[x]:
            solution.step[x] = cone.lower[x]
            if cone.lower[x] != 0.0:
                for y in range(values):
                    solution.fixed[y] += cone.lower[x] * cone.matrix[x, y]
    if is_known:
        count = int(division.free.sum())
        for place in range(count):
            division.places[members[place]] = place
    else:
        count = _invert(cone, division)
    count, more = _settle(cone, division, count, score, 1, solution)
    exchanges = exchanges + more if is_known else more
    free[:] = division.free
    least = _least(score, division.free, solution)
    if cone.equations.shape[0] == 1:
        return exchanges, least, least
    if keeps:  # with the second row others are free, but the next program starts without it
        division = Division(division.free, division.places, members.copy(), inverse.copy())
    _settle(cone, division, count, score, 2, solution)
    return exchanges, least, _least(score, division.free, solution)


@loop(fastmath=FAST)
def solve(
    cone: Cone,
    scores: Floats,
    free: Any,
    members: Any,
    inverses: Floats,
    exchanges: Any,
    least: Floats,
) -> None:
    """Write each score's minimum with the first row to `least`, and with both rows beside it.

    `free` holds the free values of each score to start from, and is left with those at the minimum. `inverses` holds
    the inverse for each score, over `members`, or nothing, after so many `exchanges` (-1: none yet).
    """
    # The body is a function of its own: Numba moves arrays that are made in a parallel loop out of it, and named tuples
    # that hold them then see what the last program left.
    for draw in prange(scores.shape[0]):
        exchanges[draw], least[draw, 0], least[draw, 1] = _minimize(
            cone, scores[draw], free[draw], members[draw], inverses[draw], exchanges[draw]
        )
