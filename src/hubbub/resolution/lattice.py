"""The lattice that parts of a line or a map are cut from: one row of values, or rows and columns of cells.

Fine domains are joined to blocks of equal sides first. The blocks depend on the size of the domain alone, not on the
reports, so that whatever holds for all rectangles of blocks holds for those that the reports suggest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.domains import Domain
from hubbub.domains.domain_shape import DomainShape

MAX_CUTS = 4_500_000  # ways to cut a rectangle, over all of them: as many are tried in each simulated division

Rectangle = tuple[int, int, int, int]  # first row, row after the last, first column, column after the last


@dataclass(frozen=True)
class Lattice:
    """Where each value lies: in which cell of `rows` x `columns`, row by row."""

    rows: int
    columns: int
    cell_of: Positions

    @classmethod
    def of(cls, domain: Domain) -> Lattice | None:
        """Return the lattice of a line or a map; None for values without places."""
        steps = DomainShape.of(domain).steps
        if steps is None:
            return None
        if steps.shape[1] == 1:  # one after the other, also across a gap between those that are kept
            order = np.argsort(np.argsort(steps[:, 0], kind="stable"))
            steps = np.stack([order, np.zeros_like(order)], axis=1)
        block = 1
        while _cuts(*(steps.max(axis=0) // block + 1)) > MAX_CUTS:
            block += 1
        column, row = (steps // block).T
        columns = int(column.max()) + 1
        return cls(int(row.max()) + 1, columns, row * columns + column)

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.rows * self.columns

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Which cells hold values, rows by columns: a map may keep some of its cells only."""
        return (np.bincount(self.cell_of, minlength=self.size) > 0).reshape(self.rows, self.columns)

    def sums(self, shares: Floats) -> Floats:
        """Return the shares of the cells from those of the values."""
        return np.bincount(self.cell_of, weights=shares, minlength=self.size).astype(np.float64)

    def covariance(self, matrix: Floats) -> Floats:
        """Return the covariance of the cells' shares from that of the values'."""
        if self.size == self.cell_of.size:
            order = np.argsort(self.cell_of)
            return matrix[np.ix_(order, order)]
        joined = np.zeros((self.size, matrix.shape[1]))
        np.add.at(joined, self.cell_of, matrix)
        covariance = np.zeros((self.size, self.size))
        np.add.at(covariance.T, self.cell_of, joined.T)
        return covariance

    def values_in(self, cells: Positions) -> Positions:
        """Return the positions of the values in some cells."""
        return np.flatnonzero(np.isin(self.cell_of, cells))

    def cells_in(self, rectangle: Rectangle) -> Positions:
        """Return the cells of a rectangle."""
        top, bottom, left, right = rectangle
        return (np.arange(top, bottom)[:, None] * self.columns + np.arange(left, right)).ravel()


def _cuts(columns: int, rows: int) -> int:
    """Return about how many ways there are to cut a rectangle of the lattice in two."""
    return columns * (columns + 1) // 2 * (rows * (rows + 1) // 2) * (columns + rows)
