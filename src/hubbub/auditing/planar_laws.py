"""Planar geometric noise: the weights of displacements before anything is remapped.

The noise v has a probability proportional to W(v) = g(columns) g(rows) accepted(v), with g the axes' probabilities;
what it is divided by is the same for all values and leaves all ratios. Remapping to the grid is post-processing: each
probability of a remapped output is a sum over the same lattice cells for all values, and a ratio of sums is at most the
largest ratio of their terms.

Near the grid (outputs up to its own size beyond it) every ratio W(z - x) / W(z - x') of two of its values is compared.
Further out an argument takes over. `accepted` is exp(-rate |v|) over the axes' probabilities, rounded at the 128th
binary digit and nowhere before the 250th, however long v is; therefore log W(v) + rate |v| differs from log W(0) by
less than `EVEN` for all v, which is checked for every v near the grid. Two such displacements have
log W(v) - log W(v') <= rate (|v'| - |v|) + 2 EVEN <= rate |v - v'| + 2 EVEN, and v - v' is the way between two values.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub import client
from hubbub.auditing.exact_ratios import Pair, Worst, exact, number, outward, squared_length, worst
from hubbub.auditing.probability_tables import DISTANCE, MOST_CLOSE, MOST_COMPARED, ROUNDING, too_close
from hubbub.core.arrays import Floats
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress
from hubbub.domains import Grid
from hubbub.sampling import PlanarGeometricLaw

T = TypeVar("T", bound=np.generic)
EVEN = Fraction(1, 1 << 120)
PRECISION = 320  # bits


class Way(NamedTuple):
    """The way from one value to another, as columns and rows without their signs, and two values that have it."""

    columns: int
    rows: int
    value: int
    other: int


def of_rejected(law: PlanarGeometricLaw, grid: Grid, claim: float) -> Generator[Progress, None, Worst]:
    """Compare all displacements that one output can have from two values of the grid."""
    near = 2 * grid.columns, 2 * grid.rows  # outputs up to the grid's size beyond it are less than this away
    ways = _ways(grid)
    if 4 * near[0] * near[1] * len(ways) > MOST_COMPARED:
        raise _too_large(grid)
    table, even = yield from _weights(law, near)
    pairs = yield from _largest(table, grid, ways)
    found = worst(pairs, claim)
    if not found.holds:
        return found
    beyond = _beyond(law, grid, ways)
    if not even or beyond > claim:
        raise MechanismError(
            "nothing is known of outputs far from the grid",
            where="audit(mechanism)",
            got="weights of displacements that are not even enough",
            expected=f"exp(-epsilon d), each within 2^-{EVEN.denominator.bit_length() - 1} of itself",
            remedy="take the law that hubbub gives PlanarGeometric",
        )
    return replace(found, high=max(found.high, outward(beyond)))


def _too_large(grid: Grid) -> MechanismError:
    return MechanismError(
        "the grid is too large to compare all pairs of its cells",
        where="audit(mechanism)",
        got=f"{grid.columns:,} x {grid.rows:,} cells",
        expected=f"at most {MOST_COMPARED:,} comparisons",
        remedy="audit a smaller grid with the same cells and epsilon",
    )


def _ways(grid: Grid) -> list[Way]:
    """Return the ways between values, one for each length along both axes.

    The noise is the same to all sides: a mirrored way meets the mirrored displacements, with the same ratios.
    """
    if grid.cells is None:
        every = ((columns, rows) for rows in range(grid.rows) for columns in range(grid.columns))
        return [Way(*way, way[1] * grid.columns + way[0], 0) for way in every if any(way)]
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for position in range(len(grid) - 1):
        away = np.abs(grid.steps[position + 1 :] - grid.steps[position])
        distinct, first = np.unique(away, axis=0, return_index=True)
        for (columns, rows), place in zip(distinct.tolist(), first.tolist(), strict=True):
            found.setdefault((columns, rows), (position + 1 + place, position))
    return [Way(*way, *between) for way, between in found.items()]


class Weights(NamedTuple):
    """W(v) / W(0) for the displacements of a quarter, and the nearest floats to its logarithm."""

    exact: list[list[Fraction]]
    logs: Floats


def _weights(law: PlanarGeometricLaw, near: tuple[int, int]) -> Generator[Progress, None, tuple[Weights, bool]]:
    """Return the weights of displacements near the grid, and whether their logarithms are as even as they should be."""
    from flint import ctx

    axes = [client.axis_noise(law.epsilon, side) for side in law.sides]
    along = [
        [one.probability(steps) / one.probability(0) for steps in range(most)]
        for one, most in zip(axes, near, strict=True)
    ]
    rate = Fraction(law.epsilon) * client.EPSILON_SHRINK
    table, logs, even = [], np.empty(near), True
    for columns in range(near[0]):
        yield Progress(columns, near[0], "weighing displacements")
        chances = [client.acceptance_probability(law.epsilon, law.sides, columns, rows) for rows in range(near[1])]
        table.append([chance * along[0][columns] * along[1][rows] for rows, chance in enumerate(chances)])
        with ctx.workprec(PRECISION):
            for rows, weight in enumerate(table[-1]):
                log = number(weight).log()
                logs[columns, rows] = float(log.mid()) if weight else -np.inf
                length = number(squared_length(columns, rows, law.sides)).sqrt()
                even = even and bool(abs(log + number(rate) * length) <= number(EVEN))
    return Weights(table, logs), even


def _largest(table: Weights, grid: Grid, ways: list[Way]) -> Generator[Progress, None, list[Pair]]:
    """Return the comparisons near the grid whose rate may be the largest, each ratio at each distance once."""
    whole = table.logs[np.ix_(*(np.abs(np.arange(1 - most, most)) for most in table.logs.shape))]
    impossible = _impossible(whole, grid, ways)
    if impossible is not None:
        return [impossible]
    error = 2 * ROUNDING * (1 + float(np.abs(table.logs).max()))
    best, highs = 0.0, []
    for done, way in enumerate(ways):
        if done % 64 == 0:
            yield Progress(done, len(ways), "comparing all displacements")
        largest, apart = float(_differences(whole, way).max()), _length(way, grid)
        highs.append((largest + error) / apart * (1 + DISTANCE))
        best = max(best, (largest - error) / apart * (1 - DISTANCE))
    found: dict[tuple[int, int, Fraction], Pair] = {}
    count = 0
    for way, high in zip(ways, highs, strict=True):
        if high < best:
            continue
        close = np.argwhere(_differences(whole, way) >= best * _length(way, grid) * (1 - DISTANCE) - error)
        count += len(close)
        if count > MOST_CLOSE:
            raise too_close(count)
        squared = squared_length(way.columns, way.rows, grid.sides)
        for columns, rows in (close - np.array(table.logs.shape) + 1).tolist():
            first = table.exact[abs(columns)][abs(rows)]
            second = table.exact[abs(columns + way.columns)][abs(rows + way.rows)]
            key = first.numerator * second.denominator, first.denominator * second.numerator, squared
            if key not in found:
                found[key] = Pair(way.value, way.other, _output(grid, way, columns, rows), *key)
    return list(found.values())


def _impossible(whole: Floats, grid: Grid, ways: list[Way]) -> Pair | None:
    """Return two values and an output that only one of them can give, None where there are none."""
    possible = np.isfinite(whole)
    for way in ways:
        first, second = _both(possible, way)
        if (first & ~second).any():
            columns, rows = np.argwhere(first & ~second)[0] - np.array(whole.shape) // 2
            return Pair(way.value, way.other, _output(grid, way, columns, rows), 1, 0)
    return None


def _differences(whole: Floats, way: Way) -> Floats:
    """Return log W(v) - log W(v + way) for all v."""
    near, far = _both(whole, way)
    return near - far


def _both(whole: NDArray[T], way: Way) -> tuple[NDArray[T], NDArray[T]]:
    """Return what a table over displacements says of v and of v + way, for all v."""
    columns, rows = whole.shape
    return whole[: columns - way.columns, : rows - way.rows], whole[way.columns :, way.rows :]


def _length(way: Way, grid: Grid) -> float:
    return float(np.hypot(way.columns * grid.width, way.rows * grid.height))


def _output(grid: Grid, way: Way, columns: int, rows: int) -> str:
    """Return the lattice cell that is so far from `way.value`, and the way's length further from `way.other`."""
    signs = np.where(grid.steps[way.value] >= grid.steps[way.other], 1, -1)
    column, row = (grid.steps[way.value] + signs * np.array([columns, rows])).tolist()
    return f"column {column}, row {row} of the lattice"


def _beyond(law: PlanarGeometricLaw, grid: Grid, ways: list[Way]) -> Fraction:
    """Return what bounds the rate of every output, however far from the grid."""
    from flint import ctx

    with ctx.workprec(PRECISION):
        rate, most = number(Fraction(law.epsilon) * client.EPSILON_SHRINK), Fraction(0)
        for way in ways:
            drawn, meant = (
                number(squared_length(way.columns, way.rows, sides)).sqrt() for sides in (law.sides, grid.sides)
            )
            most = max(most, exact(((rate * drawn + number(2 * EVEN)) / meant).upper()))
    return most
