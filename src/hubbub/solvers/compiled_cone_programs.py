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
from typing import Any

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


@fast
def _enter(matrix: Floats, free: Any, places: Any, members: Any, inverse: Floats, count: int, value: int) -> int:
    """Free a value: the inverse gets one more row and column."""
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
    members[count], places[value], free[value] = value, count, True
    return count + 1


@fast
def _leave(free: Any, places: Any, members: Any, inverse: Floats, count: int, value: int) -> int:
    """Put a value to its limit: the last of the free values takes its place in the inverse."""
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
    free[value] = False
    return last


@fast
def _solution(
    matrix: Floats,
    equation: Floats,
    score: Floats,
    fixed: Floats,
    off: float,
    members: Any,
    inverse: Floats,
    count: int,
    step: Floats,
    rest: Floats,
) -> None:
    """Write h of the free values to `step`, and the residual of all values to `rest`.

    `fixed` is M times the limits, and `off` what they contribute to the equation. Its multiplier is m = P e'h, which is
    the solution of (1/P + e'Ae) m = e'A(s - fixed) + off: P itself, which is large, is in no matrix that is inverted.
    """
    values = score.size
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
    for x in range(values):
        rest[x] = fixed[x] - score[x] + multiplier * equation[x]
    for a in range(count):
        own, length = members[a], plain[a] - multiplier * tilt[a]
        step[own] = length
        for x in range(values):
            rest[x] += length * matrix[own, x]


@fast
def _switch(
    matrix: Floats,
    lower: Floats,
    fixed: Floats,
    step: Floats,
    free: Any,
    places: Any,
    members: Any,
    inverse: Floats,
    count: int,
    value: int,
) -> int:
    """Let a value change sides."""
    limit = lower[value]
    if free[value]:
        count = _leave(free, places, members, inverse, count, value)
        step[value] = limit
        sign = limit
    else:
        count = _enter(matrix, free, places, members, inverse, count, value)
        sign = -limit
    if sign != 0.0:
        for x in range(fixed.size):
            fixed[x] += sign * matrix[value, x]
    return count


@fast
def _settle(
    matrix: Floats,
    equation: Floats,
    score: Floats,
    lower: Floats,
    bounded: Any,
    fixed: Floats,
    step: Floats,
    rest: Floats,
    free: Any,
    places: Any,
    members: Any,
    inverse: Floats,
    count: int,
) -> tuple[int, int]:
    """Exchange values until nothing is violated; return how many are free, and how many exchanges it took."""
    values, turn = score.size, 0
    for turn in range(MAX_EXCHANGES * values):
        off = 0.0
        for x in range(values):
            if not free[x]:
                off += equation[x] * lower[x]
        _solution(matrix, equation, score, fixed, off, members, inverse, count, step, rest)
        worst, chosen = -MAX_VIOLATION, -1
        for x in range(values):
            if not bounded[x]:
                continue
            own = places[x]
            violation = (step[x] - lower[x]) / np.sqrt(inverse[own, own]) if free[x] else rest[x]
            if violation < worst:
                worst, chosen = violation, x
                if turn >= MAX_GREEDY_EXCHANGES * values:
                    break
        if chosen < 0:
            break
        count = _switch(matrix, lower, fixed, step, free, places, members, inverse, count, chosen)
    return count, turn


@fast
def _least(score: Floats, step: Floats, rest: Floats, free: Any) -> float:
    """Return h'Mh/2 - s'h, where M h - s is `rest` on the values at their limits, and 0 on the others."""
    total = 0.0
    for x in range(score.size):
        total -= score[x] * step[x]
        if not free[x]:
            total += rest[x] * step[x]
    return 0.5 * total


@fast
def _hold(
    matrix: Floats,
    equation: Floats,
    held: Floats,
    lower: Floats,
    bounded: Any,
    fixed: Floats,
    step: Floats,
    rest: Floats,
    free: Any,
    places: Any,
    members: Any,
    inverse: Floats,
    count: int,
) -> None:
    """Move the price of w'h from 0 until w'h is 0."""
    values = held.size
    slope, bend = np.zeros(values), np.empty(values)  # of the step and of the residual, with the price
    nothing = np.zeros(values)
    for _ in range(MAX_EXCHANGES * values):
        _solution(matrix, equation, held, nothing, 0.0, members, inverse, count, slope, bend)
        reached, rate = 0.0, 0.0
        for x in range(values):
            reached += held[x] * step[x]
            if free[x]:
                rate += held[x] * slope[x]
        if abs(reached) < MAX_HELD:
            return
        sign = 1.0 if reached < 0.0 else -1.0
        length, chosen = abs(reached) / rate if rate > 0.0 else np.inf, -1
        for x in range(values):
            if not bounded[x]:
                continue
            room, change = (step[x] - lower[x], slope[x]) if free[x] else (rest[x], bend[x])
            if sign * change < 0.0:
                own = max(0.0, room) / (-sign * change)
                if own < length:
                    length, chosen = own, x
        if length == np.inf:
            return
        for x in range(values):
            if free[x]:
                step[x] += sign * length * slope[x]
            else:
                rest[x] += sign * length * bend[x]
        if chosen < 0:
            return
        if free[chosen]:
            rest[chosen] = 0.0
        count = _switch(matrix, lower, fixed, step, free, places, members, inverse, count, chosen)


@loop(fastmath=FAST)
def solve(
    matrix: Floats,
    equation: Floats,
    scores: Floats,
    lower: Floats,
    bounded: Any,
    held: Floats,
    free: Any,
    least: Floats,
    inverses: Floats,
    members: Any,
    exchanges: Any,
) -> None:
    """Write each score's minimum to `least`, and with w'h held at 0 beside it if w is not empty.

    `free` holds the free values of each score to start from, and is left with those at the minimum. `inverses` holds
    the inverse for each score, over `members`, if there is memory for them, after so many `exchanges` (-1: none yet).
    """
    draws, values = scores.shape
    keeps = inverses.shape[0] > 0
    for draw in prange(draws):
        inverse = inverses[draw] if keeps else np.empty((values, values))
        inside, places = members[draw], np.empty(values, np.int64)
        own = np.zeros(values, np.bool_)
        step, rest, fixed = np.empty(values), np.empty(values), np.zeros(values)
        count, turns = 0, 0
        is_known = keeps and 0 <= exchanges[draw] < MAX_KEPT_EXCHANGES
        if is_known:
            turns = exchanges[draw]
        for x in range(values):
            if free[draw, x] or not bounded[x]:
                if is_known:
                    own[x] = True
                    count += 1
                else:
                    count = _enter(matrix, own, places, inside, inverse, count, x)
            else:
                step[x] = lower[x]
                if lower[x] != 0.0:
                    for y in range(values):
                        fixed[y] += lower[x] * matrix[x, y]
        if is_known:
            for place in range(count):
                places[inside[place]] = place
        score = scores[draw]
        count, more = _settle(
            matrix, equation, score, lower, bounded, fixed, step, rest, own, places, inside, inverse, count
        )
        exchanges[draw] = turns + more
        for x in range(values):
            free[draw, x] = own[x]
        least[draw, 0] = _least(score, step, rest, own)
        if held.size:
            if keeps:
                inside, inverse = inside.copy(), inverse.copy()
            _hold(matrix, equation, held, lower, bounded, fixed, step, rest, own, places, inside, inverse, count)
            least[draw, 1] = _least(score, step, rest, own)
