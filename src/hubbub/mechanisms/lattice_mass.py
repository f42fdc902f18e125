"""Masses of symmetric planar noise on the cells of an infinite lattice, and beyond a grid.

On a grid of C columns, an output in an inner column collects one column of the lattice, while one in the
first or last column also collects all columns beyond it: draws outside are remapped to the nearest cell. With
d the distance in columns from the true value, three kinds of strips are therefore enough:

    "cell d"        column d alone                        index d
    "from d on"     column d and all columns beyond it    index C + d
    "all"           every column (when C is 1)            index 2 C

and likewise for rows. `log_strips` gives the noise's mass on every strip of columns crossed with every
strip of rows, as a logarithm.

Sums over infinitely many cells are exact up to rounding, relative to each of them: column by column near the
grid, then over panels that double in length until the noise falls by exp(-16) over one of them. On a panel from N to
at most 2N the mass is a smooth function of the column, its nearest singularity three half-lengths away from
the panel's middle, so that a Gauss rule of 32 nodes (for sums over whole numbers or for integrals) leaves an error
below 1e-15 of the panel's mass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.client import NEGLIGIBLE_NATS
from hubbub.core.arrays import Floats, Positions

NEAR_CELLS = 64  # that are always summed one by one
PANEL_NODES = 32  # of a Gauss rule on one panel
MAX_PANEL_NATS = 16.0  # the largest exponent, epsilon times length, over one panel


@dataclass(frozen=True)
class QuadratureAxis:
    """Nodes and weights along one direction, from the true value outwards.

    `starts[d]` is the first node of cell d; the last entry is the first node beyond the single cells.
    """

    nodes: Floats
    weights: Floats
    starts: Positions

    @property
    def cells(self) -> int:
        """The number of single cells."""
        return self.starts.size - 1


def lattice_axis(cells: int, side: float, epsilon: float, beside: float) -> QuadratureAxis:
    """Return the axis for noise that lives on the lattice points: a sum over whole numbers.

    `beside` is how far the grid extends in the other direction.
    """
    single = max(cells, NEAR_CELLS)
    nodes, weights = [np.arange(single, dtype=np.float64)], [np.ones(single)]
    start, end = single, _end(cells * side, epsilon, beside) / side
    longest = max(1, int(MAX_PANEL_NATS / (epsilon * side)))
    while start < end:
        length = min(start, longest)
        node, weight = _sum_rule(length)
        nodes.append(start + node)
        weights.append(weight)
        start += length
    return QuadratureAxis(np.concatenate(nodes) * side, np.concatenate(weights), np.arange(cells + 1))


def continuous_axis(cells: int, side: float, epsilon: float, beside: float, aspect: float) -> QuadratureAxis:
    """Return the axis for noise with a density: an integral over cells of width `side` around whole multiples.

    `beside` is how far the grid extends in the other direction. `aspect` is the larger over the smaller side of a
    cell: long cells come close to the density's kink at the true value and need more nodes.
    """
    single = max(cells, 8)
    steep = min(math.ceil(epsilon * side / 2), 200)  # an exponential over the cell asks for that many more
    own = _integral_rule(min(20 * math.ceil(aspect), 400) + steep)
    near, far = _integral_rule(20 + steep), _integral_rule(10 + steep)
    nodes, weights, starts = [(own[0] + 1) / 4], [own[1] / 2], [0]  # by symmetry twice the half on the positive side
    for cell in range(1, single):
        if cell <= cells:
            starts.append(starts[-1] + nodes[-1].size)
        node, weight = near if cell < 8 else far
        nodes.append(cell + node / 2)
        weights.append(weight / 2)
    if single == cells:
        starts.append(starts[-1] + nodes[-1].size)
    start, end, longest = single - 0.5, _end(cells * side, epsilon, beside) / side, MAX_PANEL_NATS / (epsilon * side)
    node, weight = _integral_rule(PANEL_NODES)
    while start < end:
        length = min(start, longest)
        nodes.append(start + length * (node + 1) / 2)
        weights.append(weight * length / 2)
        start += length
    return QuadratureAxis(np.concatenate(nodes) * side, np.concatenate(weights) * side, np.array(starts))


def _end(grid: float, epsilon: float, beside: float) -> float:
    """Return how far to sum so that, even in the grid's far corner, the rest beyond is below exp(-45) of the sum.

    Seen from `beside` the noise falls more slowly: the distance, not the coordinate, must grow by 45 / epsilon.
    """
    distance = math.hypot(grid, beside) + NEGLIGIBLE_NATS / epsilon
    return math.sqrt(distance**2 - beside**2)


def log_cells(across: QuadratureAxis, along: QuadratureAxis, epsilon: float) -> Floats:
    """Return the log of the sum of exp(-epsilon r) over each cell, columns by rows.

    The last column and row hold everything beyond. Every cell is summed relative to its first node, so that
    cells at epsilon r = 10,000 are as exact as near ones.
    """
    columns = np.append(across.starts, across.nodes.size)
    lengths = np.diff(np.append(along.starts, along.nodes.size))
    table = np.zeros((across.starts.size, along.starts.size))
    first = np.hypot(across.nodes[across.starts][:, None], along.nodes[along.starts][None, :])
    chunk = max(1, 2_000_000 // along.nodes.size)
    for column in range(across.starts.size):
        reference = np.repeat(first[column], lengths)
        for start in range(columns[column], columns[column + 1], chunk):
            part = slice(start, min(start + chunk, columns[column + 1]))
            excess = np.hypot(across.nodes[part, None], along.nodes[None, :]) - reference
            heights = np.exp(-epsilon * excess) * along.weights
            table[column] += across.weights[part] @ np.add.reduceat(heights, along.starts, axis=1)
    logs: Floats = np.log(table) - epsilon * first
    return logs


def log_strips(cells: Floats) -> Floats:
    """Return the log mass on strips of columns crossed with strips of rows, from a table of cells."""
    return _log_strips(_log_strips(cells).T).T


def log_onwards(table: Floats) -> Floats:
    """Return the log of the sums "from d on" along the first axis: from far to near, small masses first."""
    return np.logaddexp.accumulate(table[::-1], axis=0)[::-1]


def _log_strips(table: Floats) -> Floats:
    onwards = log_onwards(table)
    everything = np.logaddexp(table[0], math.log(2) + onwards[1])
    return np.concatenate([table[:-1], onwards[:-1], everything[None]])


def log_runs(onwards: Floats, first: Positions, last: Positions, rows: Positions) -> Floats:
    """Return the log mass on runs of cells, columns `first` to `last` at `rows` steps, from the sums "from d on".

    Each run is measured from the side on which its sums are small, so that nothing cancels.
    """
    mirrored = last < 0
    near, far = np.where(mirrored, -last, first), np.where(mirrored, -first, last)
    beyond = onwards[np.maximum(far, 0) + 1, rows]
    before = onwards[np.maximum(near, 0), rows]
    beside = before + np.log(-np.expm1(np.minimum(beyond - before, -np.finfo(np.float64).tiny)))
    everything = np.logaddexp(onwards[0, rows], onwards[1, rows])
    other = onwards[np.maximum(1 - near, 0), rows]
    around = everything + np.log1p(-np.exp(beyond - everything) - np.where(near > 0, 0.0, np.exp(other - everything)))
    logs: Floats = np.where(near > 0, beside, around)
    return logs


def _integral_rule(count: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def _sum_rule(length: int) -> tuple[Floats, Floats]:
    """Return nodes and weights that sum polynomials up to degree 63 over 0 .. length - 1 exactly.

    The orthogonal polynomials of that discrete measure (Gram's) have a known recurrence; the nodes are the
    eigenvalues of its matrix.
    """
    from scipy.linalg import eigh_tridiagonal

    if length <= PANEL_NODES:
        return np.arange(length, dtype=np.float64), np.ones(length)
    order = np.arange(1, PANEL_NODES, dtype=np.float64)
    off = np.sqrt(order**2 * (length**2 - order**2) / (4 * (4 * order**2 - 1)))
    nodes, vectors = eigh_tridiagonal(np.full(PANEL_NODES, (length - 1) / 2), off)
    return nodes.astype(np.float64), length * vectors[0].astype(np.float64) ** 2
