"""What it costs to hold one statistic after the other, near a border and in the limit of many users: compiled loops.

Each population has a program as in `compiled_cone_programs`: least h'Mh/2 - s'h over h >= l with sum 0. A statistic is
c'h, summed over populations with a sign for each. With a price on it, the score s becomes s + u c, and the solution
moves along straight pieces as u grows: until a free value meets its limit, or a value leaves its limit. So the price at
which the statistic is 0 is found piece by piece, and so is the cost: over a piece from u to v on which the statistic
moves by V for each unit of the price, h'Mh/2 - s'h grows by V (v^2 - u^2) / 2.

All that changes along a piece is in a table T over the values. With F the free values and N the others,

    (h_F, g_N) = T (s_F, h_N),     g = M h + m,

where m is the multiplier of the sum. Freeing a value, or fixing it, exchanges one of the inputs with one of the
outputs. All statistics of a score start from one table, that of the program's solution.

Import this module inside the functions that need it: Numba takes long to load.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from hubbub.core.arrays import Floats
from hubbub.core.compiling import loop
from hubbub.solvers.compiled_cone_programs import FAST, PENALTY, Cone, Division, Solution, _invert, _settle, fast

MAX_PIECES = 6  # times the number of values
MIN_SLOPE = 1e-14  # below which a price does not move anything
MIN_PIVOT = 1e-12


class Tables(NamedTuple):
    """The solutions of all populations for one score: T, the distance of each value from its limit, which are free.

    The distance is that of h from its limit for free values, and that of the residual from 0 for the others.
    """

    entries: Floats  # populations by values by values
    rooms: Floats  # populations by values
    free: Any  # populations by values


@fast
def _write_table(cone: Cone, score: Floats, entries: Floats, rooms: Floats, free: Any) -> None:
    """Solve one program and write its table."""
    values = score.size
    division = Division(free.copy(), np.empty(values, np.int64), np.empty(values, np.int64), np.empty((values, values)))
    solution = Solution(np.empty(values), np.empty(values), np.zeros(values))
    for x in range(values):
        if not division.free[x]:
            solution.step[x] = cone.lower[x]
            if cone.lower[x] != 0.0:
                for y in range(values):
                    solution.fixed[y] += cone.lower[x] * cone.matrix[x, y]
    count = _invert(cone, division)
    rows = cone.equations.shape[0]  # not a plain 1, for which everything would be compiled anew
    count, _ = _settle(cone, division, count, score, rows, solution)
    members, inverse, equation = division.members, division.inverse, cone.equations[0]
    tilt, total = np.zeros(values), 1.0 / PENALTY
    for a in range(count):
        for b in range(count):
            tilt[members[a]] += inverse[a, b] * equation[members[b]]
        total += tilt[members[a]] * equation[members[a]]
    for x in range(values):
        for y in range(values):
            entries[x, y] = 0.0
    for a in range(count):
        for b in range(count):
            entries[members[a], members[b]] = inverse[a, b] - tilt[members[a]] * tilt[members[b]] / total
    pull = np.zeros(values)  # of the multiplier, for each value that is not free
    for y in range(values):
        if not division.free[y]:
            for a in range(count):
                x, moved = members[a], 0.0
                for b in range(count):
                    moved += cone.matrix[y, members[b]] * entries[members[b], x]
                entries[y, x] = moved + equation[y] * tilt[x] / total
                pull[y] += cone.matrix[y, x] * tilt[x] / total
    for y in range(values):
        if not division.free[y]:
            for x in range(values):
                if not division.free[x]:
                    moved = cone.matrix[y, x] - pull[y] * equation[x] - equation[y] * pull[x]
                    moved += equation[y] * equation[x] / total
                    for a in range(count):
                        # M_NF B M_FN, of which the left part is in the table, up to the multiplier's.
                        left = entries[y, members[a]] - equation[y] * tilt[members[a]] / total
                        moved -= left * cone.matrix[members[a], x]
                    entries[y, x] = moved
    for a in range(count):
        for y in range(values):
            if not division.free[y]:
                entries[members[a], y] = -entries[y, members[a]]
    for x in range(values):
        free[x] = division.free[x]
        rooms[x] = solution.step[x] - cone.lower[x] if free[x] else max(solution.rest[x], 0.0)


@fast
def _exchange(entries: Floats, value: int) -> None:
    """Free a value, or fix it."""
    values, scale = entries.shape[0], 1.0 / entries[value, value]
    row = np.empty(values)
    for y in range(values):
        row[y] = entries[value, y]
    for x in range(values):
        if x != value:
            share = entries[x, value] * scale
            if share != 0.0:
                for y in range(values):
                    entries[x, y] -= share * row[y]
            entries[x, value] = share
    for y in range(values):
        entries[value, y] = -row[y] * scale
    entries[value, value] = scale


@fast
def _move(entries: Floats, free: Any, weights: Floats, sign: float, move: Floats) -> float:
    """Write how the rooms move with the price, and return how the statistic does."""
    values, slope = weights.size, 0.0
    for x in range(values):
        move[x] = 0.0 if free[x] else -sign * weights[x]
    for x in range(values):
        if free[x] and weights[x] != 0.0:
            for y in range(values):
                move[y] += sign * weights[x] * entries[y, x]
    for x in range(values):
        if free[x]:
            slope += sign * weights[x] * move[x]
    return slope


@fast
def _held(start: Tables, scratch: Tables, bounded: Any, weights: Floats, signs: Floats, steps: Floats) -> float:
    """Return twice what holding the statistic at 0 costs; `steps` are the solutions h."""
    populations, values = start.rooms.shape
    missing = 0.0
    for g in range(populations):
        for x in range(values):
            scratch.rooms[g, x], scratch.free[g, x] = start.rooms[g, x], start.free[g, x]
            missing += signs[g] * weights[x] * steps[g, x]
    direction = -1.0 if missing > 0.0 else 1.0
    missing = abs(missing)
    changed = np.zeros(populations, dtype=np.bool_)
    move, slopes = np.empty((populations, values)), np.empty(populations)
    for g in range(populations):
        slopes[g] = _move(start.entries[g], scratch.free[g], weights, direction * signs[g], move[g])
    price, cost = 0.0, 0.0
    for _ in range(MAX_PIECES * values):
        slope = 0.0
        for g in range(populations):
            slope += slopes[g]
        length = missing / slope if slope > MIN_SLOPE else np.inf
        group, value = -1, -1
        for g in range(populations):
            for x in range(values):
                if bounded[g, x] and move[g, x] < -MIN_SLOPE:
                    own = max(scratch.rooms[g, x], 0.0) / -move[g, x]
                    if own < length:
                        length, group, value = own, g, x
        if length == np.inf:
            break
        cost += slope * ((price + length) ** 2 - price**2)
        if group < 0:
            break
        price += length
        missing -= length * slope
        for g in range(populations):
            for x in range(values):
                scratch.rooms[g, x] += length * move[g, x]
        if not changed[group]:
            for x in range(values):
                for y in range(values):
                    scratch.entries[group, x, y] = start.entries[group, x, y]
            changed[group] = True
        entries = scratch.entries[group]
        if abs(entries[value, value]) < MIN_PIVOT:  # the only free value: it cannot move
            scratch.rooms[group, value] = np.inf
            continue
        _exchange(entries, value)
        scratch.free[group, value] = not scratch.free[group, value]
        scratch.rooms[group, value] = 0.0
        slopes[group] = _move(entries, scratch.free[group], weights, direction * signs[group], move[group])
        move[group, value] = max(move[group, value], 0.0)  # less only by rounding
    return cost


@fast
def _hold_all(
    matrices: Floats, least: float, lower: Floats, bounded: Any, free: Any, scores: Floats, weights: Floats,
    signs: Floats, costs: Floats,
) -> None:  # fmt: skip
    """Write what holding each statistic costs, for one score of each population."""
    populations, values = scores.shape
    shape = (populations, values)
    start = Tables(np.empty((populations, values, values)), np.empty(shape), free.copy())
    scratch = Tables(np.empty((populations, values, values)), np.empty(shape), free.copy())
    steps, total = np.empty(shape), np.ones((1, values))
    for g in range(populations):
        cone = Cone(matrices[g], least, total, lower[g], bounded[g])
        _write_table(cone, scores[g], start.entries[g], start.rooms[g], start.free[g])
        for x in range(values):
            steps[g, x] = lower[g, x] + start.rooms[g, x] if start.free[g, x] else lower[g, x]
    for statistic in range(weights.shape[0]):
        costs[statistic] = _held(start, scratch, bounded, weights[statistic], signs, steps)


@loop(fastmath=FAST)
def hold(
    matrices: Floats, least: float, lower: Floats, bounded: Any, free: Any, scores: Floats, weights: Floats,
    signs: Floats, costs: Floats,
) -> None:  # fmt: skip
    """Write twice what holding each statistic at 0 costs to `costs` (scores by statistics).

    `matrices` is populations by values by values; `lower`, `bounded` and `free` (where programs start from) are
    populations by values, `scores` is draws by populations by values, `weights` is statistics by values, and `signs`
    has one number for each population.
    """
    for draw in prange(scores.shape[0]):
        _hold_all(matrices, least, lower, bounded, free, scores[draw], weights, signs, costs[draw])
