"""What it costs to hold statistics at 0 near a border, each with limits of its own: compiled loops.

All programs are linear complementarity problems of one symmetric matrix Q: with w = v + Q z, find z >= 0 and w >= 0 of
which one is 0 for each value. Holding a statistic adds an unknown p without a sign, and an equation:

    w = v + Q z + p g,     0 = b + g'z + H p.

A *basis* S names the values whose w is 0. Programs of one score have much in common, so one of them is solved first,
with common limits; the others are reached from its basis by exchanging a few values. With K the inverse of Q over S, T
says how the basic numbers (z over S, w elsewhere) move if one of the others does:

    column of x in S:       K_x over S,               Q K_x elsewhere,
    column of x elsewhere:  -K Q_x over S,            Q_x - Q K Q_x elsewhere,

and the numbers of the values E that have changed sides since solve T_EE x_E = -y_E, a few equations. Columns are computed
when they are needed first, for all programs of the score. All violations change sides at once while that makes them
fewer, otherwise the last one alone, a rule that cannot go round in circles (Kim and Park, 2011; Murty, 1974).

Import this module inside the functions that need it: Numba takes long to load. Loops are written out, because each
expression over whole arrays takes a second or more to compile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from hubbub.core.arrays import Floats
from hubbub.core.compiling import loop
from hubbub.solvers.compiled_cone_programs import FAST, fast

MAX_PATIENCE = 3  # exchanges of all violations that make them no fewer
MAX_ROUNDS = 4  # of exchanges, times the number of values
ENDS_AT_A_TIME = 64  # whose numbers fit the processor's memory


class Problem(NamedTuple):
    """What all programs have in common: Q, the least z and the least w of each value, and which of both is a step."""

    matrix: Floats
    least_z: Floats
    least_w: Floats
    is_step: bool  # whether z is how far a probability is from its limit; otherwise w is


class Basis(NamedTuple):
    """The values of a basis, where each is in it (-1: it is not), K and Q over them, and columns that are known."""

    members: Any
    places: Any
    inverse: Floats
    rows: Floats  # of Q: members by values
    columns: Floats  # values by values, a row for each column
    is_known: Any
    least: Floats  # of each value's basic number...
    least_changed: Floats  # ...and of the other one, which is basic once the value has changed sides


@fast
def _count(is_basic: Any) -> int:
    total = 0
    for x in range(is_basic.size):
        total += is_basic[x]
    return total


@fast
def _rows(matrix: Floats, is_basic: Any) -> tuple[Any, Any, Floats, Floats]:
    """Return the members of a basis, their places, their rows of Q, and Q among them."""
    values, count = is_basic.size, _count(is_basic)
    members, places = np.empty(count, np.int64), np.full(values, -1)
    count = 0
    for x in range(values):
        if is_basic[x]:
            members[count], places[x] = x, count
            count += 1
    rows, block = np.empty((count, values)), np.empty((count, count))
    for a in range(count):
        for x in range(values):
            rows[a, x] = matrix[members[a], x]
        for b in range(count):
            block[a, b] = rows[a, members[b]]
    return members, places, rows, block


@fast
def _choose(violated: Any, count: int, fewest: int, patience: int) -> tuple[int, int]:
    """Keep all violations or the last alone; return the fewest so far and the patience that is left."""
    if count < fewest:
        return count, MAX_PATIENCE
    if patience > 0:
        return fewest, patience - 1
    has_one = False
    for x in range(violated.size - 1, -1, -1):
        if violated[x]:
            violated[x] = not has_one
            has_one = True
    return fewest, 0


@fast
def _settle_base(problem: Problem, v: Floats, is_basic: Any) -> bool:
    """Find the basis of the score's first program, from a guess; return False if it is not found."""
    values = v.size
    violated, fewest, patience = np.empty(values, np.bool_), values + 1, MAX_PATIENCE
    for _ in range(MAX_ROUNDS * values):
        members, places, rows, block = _rows(problem.matrix, is_basic)
        right = np.empty(members.size)
        for a in range(members.size):
            right[a] = -v[members[a]]
        z = np.linalg.solve(block, right)
        w = np.dot(z, rows)
        count = 0
        for x in range(values):
            number = z[places[x]] if is_basic[x] else v[x] + w[x]
            violated[x] = number < (problem.least_z[x] if is_basic[x] else problem.least_w[x])
            count += violated[x]
        if count == 0:
            return True
        fewest, patience = _choose(violated, count, fewest, patience)
        for x in range(values):
            if violated[x]:
                is_basic[x] = not is_basic[x]
    return False


@fast
def _basis(problem: Problem, is_basic: Any, columns: Floats) -> Basis:
    members, places, rows, block = _rows(problem.matrix, is_basic)
    least, least_changed = np.empty(is_basic.size), np.empty(is_basic.size)
    for x in range(is_basic.size):
        least[x], least_changed[x] = problem.least_w[x], problem.least_z[x]
        if is_basic[x]:
            least[x], least_changed[x] = least_changed[x], least[x]
    is_known = np.zeros(is_basic.size, np.bool_)
    return Basis(members, places, np.linalg.inv(block), rows, columns, is_known, least, least_changed)


@fast
def _basic_numbers(basis: Basis, given: Floats) -> Floats:
    """Return the basic numbers for each row v: -K v over the basis, v + Q z elsewhere."""
    members, count, size = basis.members, given.shape[0], basis.members.size
    own = np.empty((count, size))
    for e in range(count):
        for a in range(size):
            own[e, a] = -given[e, members[a]]
    z = np.dot(own, basis.inverse)
    numbers = np.dot(z, basis.rows)
    for e in range(count):
        for x in range(numbers.shape[1]):
            numbers[e, x] += given[e, x]
        for a in range(size):
            numbers[e, members[a]] = z[e, a]
    return numbers


@fast
def _learn(problem: Problem, basis: Basis, x: int) -> None:
    """Compute a column of T, unless it is known."""
    if basis.is_known[x]:
        return
    members, size, column = basis.members, basis.members.size, basis.columns[x]
    row = np.empty(size)
    if basis.places[x] >= 0:
        for a in range(size):
            row[a] = basis.inverse[basis.places[x], a]
        moved = np.dot(row, basis.rows)
        for y in range(column.size):
            column[y] = moved[y]
    else:
        for a in range(size):
            row[a] = -basis.rows[a, x]
        row = np.dot(row, basis.inverse)
        moved = np.dot(row, basis.rows)
        for y in range(column.size):
            column[y] = problem.matrix[x, y] + moved[y]
    for a in range(size):
        column[members[a]] = row[a]
    basis.is_known[x] = True


@fast
def _eliminate(square: Floats, right: Floats, size: int) -> bool:
    """Solve equations in place, with the largest pivot of each column; return False if one is 0."""
    for first in range(size):
        best = first
        for e in range(first + 1, size):
            if abs(square[e, first]) > abs(square[best, first]):
                best = e
        if best != first:
            for other in range(first, size):
                square[first, other], square[best, other] = square[best, other], square[first, other]
            right[first], right[best] = right[best], right[first]
        pivot = square[first, first]
        if pivot == 0.0:
            return False
        for e in range(first + 1, size):
            share = square[e, first] / pivot
            if share != 0.0:
                for other in range(first + 1, size):
                    square[e, other] -= share * square[first, other]
                right[e] -= share * right[first]
    for e in range(size - 1, -1, -1):
        for other in range(e + 1, size):
            right[e] -= square[e, other] * right[other]
        right[e] /= square[e, e]
    return True


class Held(NamedTuple):
    """A statistic that is held: how the basic numbers move with p, g and H, and b."""

    move: Floats
    weights: Floats
    square: float
    missing: float


@fast
def _equations(
    basis: Basis, start: Floats, changed: Any, held: Held, holds: bool, square: Floats, right: Floats
) -> None:
    """Write the equations of the values that have changed sides, and of the statistic if that is held."""
    count, members = changed.size, basis.members
    for e in range(count):
        for other in range(count):
            square[e, other] = basis.columns[changed[other], changed[e]]
        right[e] = -start[changed[e]]
    if holds:
        pull, missing = held.square, held.missing
        for a in range(members.size):
            pull += held.weights[members[a]] * held.move[members[a]]
            missing += held.weights[members[a]] * start[members[a]]
        square[count, count], right[count] = pull, -missing
        for e in range(count):
            x = changed[e]
            square[e, count] = held.move[x]
            square[count, e] = held.move[x] if basis.places[x] < 0 else -held.move[x]


@fast
def _settle(
    problem: Problem, basis: Basis, start: Floats, v: Floats, is_changed: Any, held: Held, holds: bool, enough: float
) -> float:
    """Exchange values until nothing is violated; return v'z + b p, with the sign that makes it a cost.

    `is_changed` names the values that have changed sides since the basis, and is left with those of the solution. A
    program with a statistic ends early if its cost is known to be below `enough`; NaN if no solution is found.
    """
    values, sign, members = v.size, 1.0 if problem.is_step else -1.0, basis.members
    violated, numbers, changed = np.empty(values, np.bool_), np.empty(values), np.empty(values, np.int64)
    fewest, patience = values + 1, MAX_PATIENCE
    for _ in range(MAX_ROUNDS * values):
        count = 0
        for x in range(values):
            if is_changed[x]:
                _learn(problem, basis, x)
                changed[count] = x
                count += 1
        size = count + holds
        square, right = np.empty((size, size)), np.empty(size)
        _equations(basis, start, changed[:count], held, holds, square, right)
        if not _eliminate(square, right, size):
            break
        for x in range(values):
            numbers[x] = start[x]
        for e in range(count):
            for x in range(values):
                numbers[x] += right[e] * basis.columns[changed[e], x]
        cost = 0.0
        if holds:
            cost = right[count] * held.missing
            for x in range(values):
                numbers[x] += right[count] * held.move[x]
        broken = 0
        for e in range(count):
            numbers[changed[e]] = 0.0
            broken += right[e] < basis.least_changed[changed[e]]
            if basis.places[changed[e]] < 0:
                cost += v[changed[e]] * right[e]
        for x in range(values):
            broken += numbers[x] < basis.least[x]
        for a in range(members.size):
            cost += v[members[a]] * numbers[members[a]]
        cost *= sign
        if broken == 0:
            return cost
        if not np.isfinite(cost):
            break
        is_possible = True
        for x in range(values):
            violated[x] = numbers[x] < basis.least[x]
        for e in range(count):
            violated[changed[e]] = right[e] < basis.least_changed[changed[e]]
        for x in range(values):
            if violated[x]:
                is_possible = is_possible and ((basis.places[x] >= 0) != is_changed[x]) != problem.is_step
        if is_possible and cost < enough:
            return cost
        fewest, patience = _choose(violated, broken, fewest, patience)
        for x in range(values):
            if violated[x]:
                is_changed[x] = not is_changed[x]
    return np.nan


@fast
def _hold_all(
    problem: Problem, first: Floats, own: Floats, limits: Floats, weights: Floats, squares: Floats, missing: Floats,
    enough: Floats, is_basic: Any, costs: Floats,
) -> None:  # fmt: skip
    """Write the costs of all statistics for one score; NaN for those that are not found."""
    values, ends = own.size, limits.shape[0]
    for e in range(ends):
        costs[e] = np.nan
    if not _settle_base(problem, first, is_basic):
        return
    basis = _basis(problem, is_basic, np.empty((values, values)))
    begin, both = np.empty((1, values)), np.empty((2 * ENDS_AT_A_TIME, values))
    for x in range(values):
        begin[0, x] = own[x]
    begun = _basic_numbers(basis, begin)[0]
    v, start, is_changed = np.empty(values), np.empty(values), np.empty(values, np.bool_)
    for base in range(0, ends, ENDS_AT_A_TIME):
        some = min(ENDS_AT_A_TIME, ends - base)
        for e in range(some):
            for x in range(values):
                both[e, x], both[some + e, x] = limits[base + e, x], weights[base + e, x]
        numbers = _basic_numbers(basis, both[: 2 * some])
        for e in range(some):
            for x in range(values):
                v[x], start[x], is_changed[x] = own[x] + limits[base + e, x], begun[x] + numbers[e, x], False
            held = Held(numbers[some + e], weights[base + e], squares[base + e], missing[base + e])
            free = _settle(problem, basis, start, v, is_changed, held, False, -np.inf)
            cost = _settle(problem, basis, start, v, is_changed, held, True, enough[base + e] + free)
            costs[base + e] = cost - free


@loop(fastmath=FAST)
def hold(
    problem: Problem, first: Floats, own: Floats, limits: Floats, weights: Floats, squares: Floats, missing: Floats,
    enough: Floats, is_basic: Any, costs: Floats,
) -> None:  # fmt: skip
    """Write twice what holding each statistic costs to `costs` (scores by statistics); NaN where it is not found.

    v of a program is that of its score (a row of `own`) plus that of its statistic (a row of `limits`); `first` is v of
    each score's first program. `weights` (statistics by values) and `squares` are g and H, `missing` (scores by
    statistics) is b. Costs that are below `enough` need not be exact. `is_basic` (scores by values) holds the basis
    to begin with, and is left with that of the first program.
    """
    for draw in prange(own.shape[0]):
        _hold_all(
            problem, first[draw], own[draw], limits, weights, squares, missing[draw], enough, is_basic[draw], costs[draw]
        )
