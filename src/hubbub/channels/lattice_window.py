"""A window of the lattice: where values and outputs are, and what outputs at its edges collect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, Positions


@dataclass(frozen=True)
class LatticeWindow:
    """A window of the lattice: which values, which outputs, and the likelihoods by displacement.

    `log_table[c, r]` is the log-likelihood c columns and r rows away. If outputs at the `edges` collect all draws
    beyond, C + d and R + d stand for "from d on" and 2 C, 2 R for "all" (see `mechanisms.lattice_mass`).
    """

    columns: int
    rows: int
    log_table: Floats
    edges: bool
    values: Positions  # the cell of each value, row by row from 0
    cells: Positions  # the cells of the patterns...
    owners: Positions | None  # ...and the pattern of each cell; None where every pattern has one
    patterns: int
    log_rows: Floats | None = None  # a factor of each value


def strips(size: int, *, edges: bool = True) -> Positions:
    """Return which strip an output (columns) collects for each true value (rows), along one direction."""
    value, output = np.indices((size, size))
    collected: Positions = np.abs(value - output)
    for place, strip in edges_of(size, edges):
        collected[:, place] = strip
    return collected


def edges_of(size: int, edges: bool) -> Sequence[tuple[int, Positions]]:
    """Return the outputs at the edges, each with the strip that it collects for every true value."""
    if not edges:
        return []
    if size == 1:
        return [(0, np.array([2]))]  # all there is
    away = np.arange(size)
    return [(0, size + away), (size - 1, size + away[::-1])]


def block_of(size: int, edge: bool) -> Positions:
    """Return where in a table the strips of inner outputs stand, or those of outputs at an edge."""
    if edge:
        return np.array([2]) if size == 1 else np.arange(size, 2 * size)
    return np.arange(size)
