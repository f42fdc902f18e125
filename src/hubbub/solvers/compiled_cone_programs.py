"""Quadratic programs over a cone, one for each score, by exchanging one value at a time: compiled loops.

The program is: least h'Mh/2 - s'h over h >= l with e'h = 0, for a few rows e. The values are divided into free
ones, whose h solves the equations M h + m e = s (m is the multiplier of e'h = 0), and the others, which are at their
limits l. Given the inverse of M over the free values, h follows, and the residual r = M h + m e - s of the others; the
minimum is found when no free h is below its limit and no residual is negative. Until then the value that violates this
most changes sides, and the inverse follows by an update of rank one (principal pivoting: Cottle, Pang and Stone, The
Linear Complementarity Problem, 1992). Should that go on for long, the first value that violates changes sides instead,
a rule that cannot go round in circles.

Which values are free hardly differs from one program to the next, so each starts from what its score ended with before.
Import this module inside the functions that need it: Numba takes long to load. Loops are written out, because each
expression over whole arrays takes a second or more to compile.
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
    inverse = np.linalg.inv(block)
    for a in range(count):
        for b in range(count):
            division.inverse[a, b] = inverse[a, b]
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
def _solve_small(square: Floats, right: Floats) -> None:
    """Solve a few equations in place; diagonals that eliminations leave are less than 1/P only by rounding."""
    size = right.size
    for first in range(size):
        for e in range(first + 1, size):
            share = square[e, first] / square[first, first]
            for other in range(first + 1, size):
                square[e, other] -= share * square[first, other]
            right[e] -= share * right[first]
            square[e, e] = max(square[e, e], 1.0 / PENALTY)
    for e in range(size - 1, -1, -1):
        for other in range(e + 1, size):
            right[e] -= square[e, other] * right[other]
        right[e] /= square[e, e]


@fast
def _solve_free(cone: Cone, division: Division, count: int, score: Floats, rows: int, solution: Solution) -> None:
    """Write h of the free values and the residual of all values.

    The multipliers are m = P E h, which is the solution of (1/P + E A E') m = E A (s - fixed) + E (limits): P itself,
    which is large, is in no matrix that is inverted.
    """
    matrix, equations, members, inverse = cone.matrix, cone.equations, division.members, division.inverse
    step, rest, fixed = solution.step, solution.rest, solution.fixed
    plain, right, row = np.empty(count), np.empty(count), np.empty(count)
    tilts, square, multipliers = np.empty((rows, count)), np.zeros((rows, rows)), np.zeros(rows)
    for b in range(count):
        right[b] = score[members[b]] - fixed[members[b]]
    for x in range(score.size):
        if not division.free[x] and cone.lower[x] != 0.0:
            for e in range(rows):
                multipliers[e] += equations[e, x] * cone.lower[x]
    for a in range(count):
        total = 0.0
        for b in range(count):
            total += inverse[a, b] * right[b]
        plain[a] = total
    for e in range(rows):
        for b in range(count):
            row[b] = equations[e, members[b]]
        for a in range(count):
            total = 0.0
            for b in range(count):
                total += inverse[a, b] * row[b]
            tilts[e, a] = total
        for a in range(count):
            multipliers[e] += row[a] * plain[a]
        for other in range(e + 1):
            total = 0.0
            for a in range(count):
                total += row[a] * tilts[other, a]
            square[e, other] = square[other, e] = total
        square[e, e] += 1.0 / PENALTY
    _solve_small(square, multipliers)
    for x in range(score.size):
        rest[x] = fixed[x] - score[x]
    for e in range(rows):
        for x in range(score.size):
            rest[x] += multipliers[e] * equations[e, x]
    for a in range(count):
        value, length = members[a], plain[a]
        for e in range(rows):
            length -= multipliers[e] * tilts[e, a]
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
    cone: Cone, score: Floats, free: Any, members: Any, inverse: Floats, exchanges: int, held: int
) -> tuple[int, float, float]:
    """Return the exchanges that are behind an inverse now, and the minima of one score without and with held rows."""
    values = score.size
    keeps = inverse.size > 0
    own = inverse if keeps else np.empty((values, values))
    division = Division(np.empty(values, np.bool_), np.empty(values, np.int64), members, own)
    is_known, count = keeps and 0 <= exchanges < MAX_KEPT_EXCHANGES, 0
    for x in range(values):
        division.free[x] = free[x] or not cone.bounded[x]
        count += division.free[x]
        # A value that has lost its limit since then is free, but not in the inverse.
        is_known = is_known and division.free[x] == free[x]
    solution = Solution(np.empty(values), np.empty(values), np.zeros(values))
    for x in range(values):
        if not division.free[x]:
            solution.step[x] = cone.lower[x]
            if cone.lower[x] != 0.0:
                for y in range(values):
                    solution.fixed[y] += cone.lower[x] * cone.matrix[x, y]
    if is_known:
        for place in range(count):
            division.places[members[place]] = place
    else:
        count = _invert(cone, division)
    rows = cone.equations.shape[0]
    count, more = _settle(cone, division, count, score, rows - held, solution)
    exchanges = exchanges + more if is_known else more
    for x in range(values):
        free[x] = division.free[x]
    least = _least(score, division.free, solution)
    if held == 0:
        return exchanges, least, least
    if keeps:  # with the last rows others are free, but the next program starts without them
        division = Division(division.free, division.places, members.copy(), inverse.copy())
    _settle(cone, division, count, score, rows, solution)
    return exchanges, least, _least(score, division.free, solution)


@loop(fastmath=FAST)
def solve(
    cone: Cone,
    scores: Floats,
    free: Any,
    members: Any,
    inverses: Floats,
    exchanges: Any,
    held: int,
    least: Floats,
) -> None:
    """Write each score's minimum to `least`: without the last `held` rows, and with all rows beside it.

    `free` holds the free values of each score to start from, and is left with those at the minimum. `inverses` holds
    the inverse for each score, over `members`, or nothing, after so many `exchanges` (-1: none yet).
    """
    # The body is a function of its own: Numba moves arrays that are made in a parallel loop out of it, and named tuples
    # that hold them then see what the last program left.
    for draw in prange(scores.shape[0]):
        exchanges[draw], least[draw, 0], least[draw, 1] = _minimize(
            cone, scores[draw], free[draw], members[draw], inverses[draw], exchanges[draw], held
        )
