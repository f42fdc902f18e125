"""The exact epsilon of planar geometric noise, from the weights of displacements before remapping.

The noise v has a probability proportional to W(v) = g(columns) g(rows) a(v), with g the probabilities of the two axes
and a(v) the acceptance probability. The normalising constant is the same for all values and cancels in every ratio.
Remapping to the grid is post-processing: each probability of a remapped output is a sum over the same lattice cells
for all values, and a ratio of sums is at most the largest ratio of their terms.

Near the grid (outputs up to its own size beyond it) every ratio W(z - x) / W(z - x') of two of its values is compared.
Further out an argument takes over. a(v) is exp(-rate |v|) over the axes' probabilities, rounded at the 128th binary
digit and nowhere before the 250th, however long v is. Therefore log W(v) + rate |v| differs from log W(0) by less than
`MAX_LOG_DEVIATION` for all v, which is checked for every v near the grid. Two such displacements have
log W(v) - log W(v') <= rate (|v'| - |v|) + 2 MAX_LOG_DEVIATION <= rate |v - v'| + 2 MAX_LOG_DEVIATION, and v - v' is
the offset between two values.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from decimal import ROUND_CEILING
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub import client
from hubbub.auditing.exact_ratios import (
    EnclosedRate,
    OutputRatio,
    enclose_largest_rate,
    midpoint,
    squared_length,
    to_arb,
    to_decimal,
)
from hubbub.auditing.probability_tables import MAX_COMPARISONS, undecided_comparisons
from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress
from hubbub.domains import Grid
from hubbub.sampling import PlanarGeometricLaw

Entry = TypeVar("Entry", bound=np.generic)
MAX_LOG_DEVIATION = Fraction(1, 1 << 120)
PRECISION_BITS = 320


class Offset(NamedTuple):
    """The absolute offset of two values in columns and rows, and the positions of two values that have it."""

    columns: int
    rows: int
    value: int
    other: int


class DisplacementWeights(NamedTuple):
    """W(v) / W(0) for displacements v with both coordinates at least 0, and the nearest floats to its logarithm."""

    exact: list[list[Fraction]]
    logs: Floats


def enclose_planar_rate(law: PlanarGeometricLaw, grid: Grid, claim: float) -> Generator[Progress, None, EnclosedRate]:
    """Compare all displacements that one output can have from two values of the grid."""
    near = 2 * grid.columns, 2 * grid.rows  # outputs up to the grid's size beyond it are less than this away
    offsets = _value_offsets(grid)
    if 4 * near[0] * near[1] * len(offsets) > MAX_COMPARISONS:
        raise MechanismError(
            "the grid is too large to compare all pairs of its cells",
            where="audit(mechanism)",
            got=f"{grid.columns:,} x {grid.rows:,} cells",
            expected=f"at most {MAX_COMPARISONS:,} comparisons",
            remedy="audit a smaller grid with the same cells and epsilon",
        )
    weights, deviation_bounded = yield from _weights_near_grid(law, near)
    ratios = yield from _largest_ratios_near_grid(weights, grid, offsets)
    enclosed = enclose_largest_rate(ratios, claim)
    if not enclosed.holds:
        return enclosed
    far_rate = _largest_rate_far_from_grid(law, grid, offsets)
    if not deviation_bounded or far_rate > claim:
        raise MechanismError(
            "outputs far from the grid have no proven bound",
            where="audit(mechanism)",
            got="weights of displacements that deviate too far from exp(-epsilon d)",
            expected=f"exp(-epsilon d), each within 2^-{MAX_LOG_DEVIATION.denominator.bit_length() - 1} of itself",
            remedy="use the law that hubbub gives PlanarGeometric",
        )
    return replace(enclosed, high=max(enclosed.high, to_decimal(far_rate, ROUND_CEILING)))


def own_cell_ratio(law: PlanarGeometricLaw, grid: Grid, value: int, other: int) -> OutputRatio:
    """Return the ratio of two values for the first one's own cell, before remapping."""
    columns, rows = np.abs(grid.steps[value] - grid.steps[other]).tolist()
    far = client.acceptance_probability(law.epsilon, law.sides, columns, rows)
    for side, steps in zip(law.sides, (columns, rows), strict=True):
        noise = client.axis_noise(law.epsilon, side)
        far *= noise.probability(steps) / noise.probability(0)
    output = _lattice_output(grid, Offset(columns, rows, value, other), 0, 0)
    return OutputRatio(value, other, output, far.denominator, far.numerator)


def _value_offsets(grid: Grid) -> list[Offset]:
    """Return the absolute offsets between values, each once.

    The noise is symmetric: a mirrored offset meets the mirrored displacements, with the same ratios.
    """
    if grid.cells is None:
        lengths = ((columns, rows) for rows in range(grid.rows) for columns in range(grid.columns))
        return [Offset(*length, length[1] * grid.columns + length[0], 0) for length in lengths if any(length)]
    pairs: dict[tuple[int, int], tuple[int, int]] = {}
    for position in range(len(grid) - 1):
        lengths_from_here = np.abs(grid.steps[position + 1 :] - grid.steps[position])
        distinct, first = np.unique(lengths_from_here, axis=0, return_index=True)
        for (columns, rows), index in zip(distinct.tolist(), first.tolist(), strict=True):
            pairs.setdefault((columns, rows), (position + 1 + index, position))
    return [Offset(*length, *pair) for length, pair in pairs.items()]


def _weights_near_grid(
    law: PlanarGeometricLaw, near: tuple[int, int]
) -> Generator[Progress, None, tuple[DisplacementWeights, bool]]:
    """Return the weights of displacements near the grid, and whether their logarithms deviate as little as claimed."""
    from flint import ctx

    axes = [client.axis_noise(law.epsilon, side) for side in law.sides]
    along = [
        [noise.probability(steps) / noise.probability(0) for steps in range(limit)]
        for noise, limit in zip(axes, near, strict=True)
    ]
    rate = Fraction(law.epsilon) * client.EPSILON_SHRINK
    exact, logs, deviation_bounded = [], np.empty(near), True
    for columns in range(near[0]):
        yield Progress(columns, near[0], "weighing displacements")
        chances = [client.acceptance_probability(law.epsilon, law.sides, columns, rows) for rows in range(near[1])]
        exact.append([chance * along[0][columns] * along[1][rows] for rows, chance in enumerate(chances)])
        with ctx.workprec(PRECISION_BITS):
            for rows, weight in enumerate(exact[-1]):
                log = to_arb(weight).log()
                logs[columns, rows] = float(log.mid()) if weight else -np.inf
                length = to_arb(squared_length(columns, rows, law.sides)).sqrt()
                deviation = abs(log + to_arb(rate) * length)
                deviation_bounded = deviation_bounded and bool(deviation <= to_arb(MAX_LOG_DEVIATION))
    return DisplacementWeights(exact, logs), deviation_bounded


def _largest_ratios_near_grid(
    weights: DisplacementWeights, grid: Grid, offsets: list[Offset]
) -> Generator[Progress, None, list[OutputRatio]]:
    """Return the ratios near the grid whose rate may be the largest, each ratio at each distance once."""
    logs = weights.logs[np.ix_(*(np.abs(np.arange(1 - limit, limit)) for limit in weights.logs.shape))]
    impossible = _infinite_ratio(logs, grid, offsets)
    if impossible is not None:
        return [impossible]

    def distances(number: int) -> Floats:
        offset = offsets[number]
        return np.hypot([offset.columns * grid.width], [offset.rows * grid.height])

    def log_ratios(number: int, _: Positions | slice) -> Floats:
        near, far = _shifted_pair(logs, offsets[number])
        return (near - far).reshape(1, -1)

    undecided = yield from undecided_comparisons(
        len(offsets), distances, log_ratios, largest_log=float(np.abs(weights.logs).max())
    )
    ratios: dict[tuple[int, int, Fraction], OutputRatio] = {}
    for number, _, displacements in undecided:
        offset = offsets[number]
        squared = squared_length(offset.columns, offset.rows, grid.sides)
        places = np.stack(np.unravel_index(displacements, _shifted_pair(logs, offset)[0].shape), axis=1)
        for columns, rows in (places - np.array(weights.logs.shape) + 1).tolist():
            first = weights.exact[abs(columns)][abs(rows)]
            second = weights.exact[abs(columns + offset.columns)][abs(rows + offset.rows)]
            key = first.numerator * second.denominator, first.denominator * second.numerator, squared
            if key not in ratios:
                output = _lattice_output(grid, offset, columns, rows)
                ratios[key] = OutputRatio(offset.value, offset.other, output, *key)
    return list(ratios.values())


def _infinite_ratio(logs: Floats, grid: Grid, offsets: list[Offset]) -> OutputRatio | None:
    """Return two values and an output that only one of them can have; None if there are none."""
    possible = np.isfinite(logs)
    for offset in offsets:
        first, second = _shifted_pair(possible, offset)
        if (first & ~second).any():
            columns, rows = np.argwhere(first & ~second)[0] - np.array(logs.shape) // 2
            return OutputRatio(offset.value, offset.other, _lattice_output(grid, offset, columns, rows), 1, 0)
    return None


def _shifted_pair(table: NDArray[Entry], offset: Offset) -> tuple[NDArray[Entry], NDArray[Entry]]:
    """Return the entries at v and at v + offset, for all v."""
    columns, rows = table.shape
    return table[: columns - offset.columns, : rows - offset.rows], table[offset.columns :, offset.rows :]


def _lattice_output(grid: Grid, offset: Offset, columns: int, rows: int) -> str:
    """Return the lattice cell at this displacement from `offset.value`, on the side away from `offset.other`."""
    signs = np.where(grid.steps[offset.value] >= grid.steps[offset.other], 1, -1)
    column, row = (grid.steps[offset.value] + signs * np.array([columns, rows])).tolist()
    return f"column {column}, row {row} of the lattice"


def _largest_rate_far_from_grid(law: PlanarGeometricLaw, grid: Grid, offsets: list[Offset]) -> Fraction:
    """Return an upper bound of the rate of every output, however far from the grid."""
    from flint import ctx

    with ctx.workprec(PRECISION_BITS):
        rate, largest = to_arb(Fraction(law.epsilon) * client.EPSILON_SHRINK), Fraction(0)
        for offset in offsets:
            drawn, claimed = (
                to_arb(squared_length(offset.columns, offset.rows, sides)).sqrt() for sides in (law.sides, grid.sides)
            )
            largest = max(largest, midpoint(((rate * drawn + to_arb(2 * MAX_LOG_DEVIATION)) / claimed).upper()))
    return largest
