"""What it costs to hold statistics at 0 near a border, each with limits of its own: compiled loops.

All programs are linear complementarity problems of one symmetric matrix Q: with w = v + Q z, find z >= 0 and w >= 0 of
which one is 0 for each value. Holding a statistic adds an unknown p without a sign, and an equation:

    w = v + Q z + p g,     0 = b + g'z + H p.

A *basis* S names the values whose w is 0. Programs of one score have much in common, so one of them is solved first,
with common limits; the others are reached from its basis by exchanging a few values. With K the inverse of Q over S, T
says how the basic numbers (z over S, w elsewhere) move if one of the others does:

    column of x in S:       K_x over S,               Q K_x elsewhere,
    column of x elsewhere:  -K Q_x over S,            Q_x - Q K Q_x elsewhere,

and the numbers of the values E that have changed sides since solve T_EE x_E = -y_E, a few equations. Columns are
computed when they are needed first, for all programs of the score. The worst violations change sides at once; should
that go on for long, the worst alone does, and in the end the last one, a rule that cannot go round in circles (Murty,
1974).

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
from hubbub.solvers.compiled_cone_programs import FAST

MIN_SHARE_OF_WORST = 0.3  # of the worst violation, from which on others change sides with it
MAX_FULL_EXCHANGES = 6  # of all violations, in search of a first basis
MAX_BLOCK_EXCHANGES = 12  # of all that are like the worst; then one value at a time, the worst...
MAX_GREEDY_EXCHANGES = 2  # ...so many times the number of values, then the last one...
MAX_EXCHANGES = 20  # ...so many times the number of values
ENDS_AT_A_TIME = 64  # whose numbers fit the processor's memory


fast = partial(compiled, fastmath=FAST, error_model="numpy")  # no checks of divisors: what is not finite is seen later


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
        if is_basic[x]:
            total += 1
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
def _choose(values: Any, excess: Floats, turn: int, full_turns: int) -> int:
    """Put the violations that change sides first; return how many: all, those like the worst, the worst, or the last.

    `excess` is how many times the violation that is tolerated each is.
    """
    if turn < full_turns:
        return int(values.size)
    count, worst, last = 0, 0, 0
    for e in range(values.size):
        if excess[e] > excess[worst]:
            worst = e
        if values[e] > values[last]:
            last = e
    if turn >= MAX_BLOCK_EXCHANGES:
        values[0] = values[worst if turn < MAX_GREEDY_EXCHANGES * excess.size else last]
        return 1
    least = MIN_SHARE_OF_WORST * excess[worst]
    for e in range(values.size):
        if excess[e] >= least:
            values[count] = values[e]
            count += 1
    return count


@fast
def _find_basis(problem: Problem, v: Floats, is_basic: Any) -> bool:
    """Find the basis of the score's first program, from a guess; return False if it is not found."""
    count = v.size
    excess, violated = np.empty(count), np.empty(count, np.int64)
    for turn in range(MAX_EXCHANGES * count):
        members, places, rows, block = _rows(problem.matrix, is_basic)
        right = np.empty(members.size)
        for a in range(members.size):
            right[a] = -v[members[a]]
        z = np.linalg.solve(block, right)
        w = np.dot(z, rows)
        broken = 0
        for x in range(count):
            number = z[places[x]] if is_basic[x] else v[x] + w[x]
            least = problem.least_z[x] if is_basic[x] else problem.least_w[x]
            if number < least:
                violated[broken], excess[broken] = x, number / least
                broken += 1
        if broken == 0:
            return True
        # Equations of a whole basis take longer than exchanges: at first all violations change sides.
        chosen = _choose(violated[:broken], excess, turn, MAX_FULL_EXCHANGES)
        for e in range(chosen):
            is_basic[violated[e]] = not is_basic[violated[e]]
    return False


@fast
def _basis(problem: Problem, is_basic: Any) -> Basis:
    values = is_basic.size
    members, places, rows, block = _rows(problem.matrix, is_basic)
    least, least_changed = np.empty(values), np.empty(values)
    for x in range(values):
        least[x], least_changed[x] = problem.least_w[x], problem.least_z[x]
        if is_basic[x]:
            least[x], least_changed[x] = least_changed[x], least[x]
    inverse, columns = np.ascontiguousarray(np.linalg.inv(block)), np.empty((values, values))
    return Basis(members, places, inverse, rows, columns, np.zeros(values, np.bool_), least, least_changed)


@fast
def _basic_numbers(basis: Basis, given: Floats) -> Floats:
    """Return the basic numbers for each row v: -K v over the basis, v + Q z elsewhere."""
    members, count, size = basis.members, given.shape[0], basis.members.size
    own = np.empty((count, size))
    for e in range(count):
        for a in range(size):
            own[e, a] = -given[e, members[a]]
    z = np.dot(own, basis.inverse)
    numbers: Floats = np.dot(z, basis.rows)
    for e in range(count):
        for x in range(numbers.shape[1]):
            numbers[e, x] += given[e, x]
        for a in range(size):
            numbers[e, members[a]] = z[e, a]
    return numbers


@fast
def _learn(problem: Problem, basis: Basis, wanted: Any) -> None:
    """Compute columns of T, unless they are known."""
    members, size, values, count = basis.members, basis.members.size, basis.is_known.size, 0
    for e in range(wanted.size):
        if not basis.is_known[wanted[e]]:
            basis.is_known[wanted[e]] = True
            wanted[count] = wanted[e]
            count += 1
    if count == 0:
        return
    inside, outside, across = np.empty((count, size)), 0, np.empty((count, size))
    for e in range(count):
        x = wanted[e]
        if basis.places[x] >= 0:
            for a in range(size):
                inside[e, a] = basis.inverse[basis.places[x], a]
        else:
            for a in range(size):
                across[outside, a] = -basis.rows[a, x]
            outside += 1
    if outside > 0:
        pulled = np.dot(across[:outside], basis.inverse)
        outside = 0
        for e in range(count):
            if basis.places[wanted[e]] < 0:
                for a in range(size):
                    inside[e, a] = pulled[outside, a]
                outside += 1
    moved = np.dot(inside, basis.rows)
    for e in range(count):
        x = wanted[e]
        column = basis.columns[x]
        for y in range(values):
            column[y] = moved[e, y]
        if basis.places[x] < 0:
            for y in range(values):
                column[y] += problem.matrix[x, y]
        for a in range(size):
            column[members[a]] = inside[e, a]


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


class Changes(NamedTuple):
    """The values that have changed sides since the basis, where each is in that list (-1: it is not), how many."""

    values: Any
    places: Any
    count: Any


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
    problem: Problem, basis: Basis, start: Floats, v: Floats, changes: Changes, held: Held, holds: bool, enough: float
) -> float:
    """Exchange values until nothing is violated; return v'z + b p, with the sign that makes it a cost.

    `changes` are left as those of the solution. A program with a statistic ends early if its cost is known to be below
    `enough`; NaN if no solution is found.
    """
    values, sign, members = v.size, 1.0 if problem.is_step else -1.0, basis.members
    excess, violated, numbers = np.empty(values), np.empty(values, np.int64), np.empty(values)
    for turn in range(MAX_EXCHANGES * values):
        count = changes.count[0]
        changed, size = changes.values[:count], count + holds
        _learn(problem, basis, changed.copy())
        square, right = np.empty((size, size)), np.empty(size)
        _equations(basis, start, changed, held, holds, square, right)
        if not _eliminate(square, right, size):
            break
        for x in range(values):
            numbers[x] = start[x]
        for e in range(count):
            column = basis.columns[changed[e]]
            for x in range(values):
                numbers[x] += right[e] * column[x]
        cost = 0.0
        if holds:
            cost = right[count] * held.missing
            for x in range(values):
                numbers[x] += right[count] * held.move[x]
        broken, is_possible = 0, True
        for e in range(count):
            x = changed[e]
            numbers[x] = 0.0
            is_z = basis.places[x] < 0
            if is_z:
                cost += v[x] * right[e]
            if right[e] < basis.least_changed[x]:
                violated[broken], excess[broken] = x, right[e] / basis.least_changed[x]
                broken += 1
                is_possible = is_possible and is_z != problem.is_step
        below = 0
        for x in range(values):
            below += numbers[x] < basis.least[x]
        for a in range(members.size):
            cost += v[members[a]] * numbers[members[a]]
        cost *= sign
        if broken + below == 0:
            return cost
        if not np.isfinite(cost):
            break
        if below > 0:
            for x in range(values):
                if numbers[x] < basis.least[x]:
                    violated[broken], excess[broken] = x, numbers[x] / basis.least[x]
                    broken += 1
                    is_possible = is_possible and (basis.places[x] >= 0) != problem.is_step
        if is_possible and cost < enough:
            return cost
        chosen = _choose(violated[:broken], excess, turn, 0)
        for e in range(chosen):
            _change(changes, violated[e])
    return np.nan


@fast
def _change(changes: Changes, value: int) -> None:
    """Let a value change sides."""
    place, count = changes.places[value], changes.count[0]
    if place < 0:
        changes.values[count], changes.places[value] = value, count
        changes.count[0] += 1
        return
    last = changes.values[count - 1]
    changes.values[place], changes.places[last] = last, place
    changes.places[value] = -1
    changes.count[0] -= 1


class Programs(NamedTuple):
    """Statistics, each with limits of its own: what the limits add to v.

    `which` says which row of `weights` (g), and which entry of `squares` (H), is that of a statistic; it ascends. Costs
    below `enough` need not be exact.
    """

    limits: Floats
    which: Any
    weights: Floats
    squares: Floats
    enough: Floats


@fast
def _learn_violated(problem: Problem, basis: Basis, starts: Floats) -> None:
    """Compute the columns of all values that are violated at first, in one product."""
    wanted, count = np.empty(starts.shape[1], np.int64), 0
    for x in range(starts.shape[1]):
        for e in range(starts.shape[0]):
            if starts[e, x] < basis.least[x]:
                wanted[count] = x
                count += 1
                break
    _learn(problem, basis, wanted[:count])


@fast
def _hold_all(
    problem: Problem, programs: Programs, first: Floats, own: Floats, missing: Floats, is_basic: Any, is_found: bool,
    costs: Floats,
) -> bool:  # fmt: skip
    """Write the costs of all statistics for one score, NaN for those that are not found; return if there is a basis."""
    values, ends = own.size, costs.size
    for e in range(ends):
        costs[e] = np.nan
    if not (is_found or _find_basis(problem, first, is_basic)):
        return False
    if ends == 0:
        return True
    basis, found = _basis(problem, is_basic), np.zeros(2)
    changes = Changes(np.empty(values, np.int64), np.full(values, -1), np.zeros(1, np.int64))
    given = np.empty((2 * ENDS_AT_A_TIME, values))
    for base in range(0, ends, ENDS_AT_A_TIME):
        some, lowest = min(ENDS_AT_A_TIME, ends - base), programs.which[base]
        rows = some + programs.which[base + some - 1] - lowest + 1
        for x in range(values):
            for e in range(some):
                given[e, x] = own[x] + programs.limits[base + e, x]
            for e in range(some, rows):
                given[e, x] = programs.weights[lowest + e - some, x]
        numbers = _basic_numbers(basis, given[:rows])
        _learn_violated(problem, basis, numbers[:some])
        for e in range(some):
            number = programs.which[base + e]
            move, weights = numbers[some + number - lowest], programs.weights[number]
            held = Held(move, weights, programs.squares[number], missing[base + e])
            while changes.count[0] > 0:
                _change(changes, changes.values[0])
            for step in range(2):  # without the statistic, then with it; one call, because each is compiled apart
                enough = programs.enough[base + e] + found[0] if step else -np.inf
                found[step] = _settle(problem, basis, numbers[e], given[e], changes, held, step == 1, enough)
            costs[base + e] = found[1] - found[0]
    return True


@loop(fastmath=FAST, error_model="numpy")
def hold(
    problem: Problem, programs: Programs, first: Floats, own: Floats, missing: Floats, is_basic: Any, is_found: Any,
    costs: Floats,
) -> None:  # fmt: skip
    """Write twice what holding each statistic costs to `costs` (scores by statistics); NaN where it is not found.

    v of a program is that of its score (a row of `own`) plus that of its limits; `first` is v of each score's first
    program. `missing` (scores by statistics) is b. `is_basic` (scores by values) holds the basis to begin with, and is
    left with that of the first program; `is_found` says for which scores it is that already.
    """
    for draw in prange(own.shape[0]):
        is_found[draw] = _hold_all(
            problem, programs, first[draw], own[draw], missing[draw], is_basic[draw], is_found[draw], costs[draw]
        )
