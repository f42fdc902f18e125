"""The base of planar mechanisms: noise on a lattice, remapped to the grid, with convolutions for large grids."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.channels import Channel, LatticeWindow, reindexed
from hubbub.channels.convolution import shift_invariant_channel
from hubbub.channels.lattice_window import strips
from hubbub.client import MAX_REMAPPED_CELLS, remapped_reach
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.core.errors import MechanismError
from hubbub.domains import Grid
from hubbub.mechanisms import lattice_mass as lattice
from hubbub.mechanisms.base import InDomainMechanism
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.mechanisms.parameters import check_domain, check_epsilon
from hubbub.sampling import RandomSource

GRID_REMEDY = "use Grid(columns, rows, cell=) or Grid.over(...); on a line there are Geometric and Laplace"


class PlanarMechanism(InDomainMechanism):
    """Base of the planar mechanisms: symmetric noise on the lattice, remapped to the grid's nearest cell."""

    domain: Grid
    metric: ClassVar[bool] = True

    def _check(self) -> None:
        name = type(self).__name__
        check_domain(self.domain, Grid, name, GRID_REMEDY)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, name))

    def _check_window(self) -> None:
        """Refuse an epsilon that is too small for missing cells now, not after the reports are in."""
        if self.domain.cells is not None:
            self._window()

    @abstractmethod
    def _log_cells(self, columns: int, rows: int) -> Floats:
        """Return the log of the noise's mass, up to a constant, on cells 0 .. columns, 0 .. rows away and beyond."""

    @abstractmethod
    def _noise(self, count: int, source: RandomSource) -> Positions:
        """Draw displacements: pairs of columns and rows."""

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the log of the mass of all lattice cells that are remapped to each output."""
        if self.domain.cells is not None:
            table = self._log_remapped
            return table[:, codes] if among is None else table[np.ix_(among, codes)]
        values = self.domain.steps if among is None else self.domain.steps[among]
        outputs = self.domain.steps[codes]
        logs: Floats = self._log_strips[
            strips(self.domain.columns)[values[:, None, 0], outputs[None, :, 0]],
            strips(self.domain.rows)[values[:, None, 1], outputs[None, :, 1]],
        ]
        return logs

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return a convolution where a matrix would be large."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        distinct, back = index_codes(codes)
        kept = self.domain.steps if among is None else self.domain.steps[among]
        channel = shift_invariant_channel(
            kept.shape[0],
            self._log_tops(distinct, kept),
            lambda some: self._window_cells(distinct[some]),
            lambda some: self._lattice(distinct[some], kept),
            lambda some: self.log_columns(distinct[some], among),
        )
        return reindexed(channel, back)

    def _log_tops(self, codes: Codes, kept: Positions) -> Floats:
        """Return the log-likelihood of each output at the nearest of the values kept (columns and rows)."""
        grid = self.domain
        nearest = self._nearest(grid.steps[codes], kept)
        if grid.cells is not None:
            cells, owners = self._owned(codes)
            columns, rows = self._window()
            row, column = np.divmod(cells, columns.size)
            away = np.abs(np.stack([columns[column], rows[row]], axis=1) - nearest[owners])
            logs = self._log_noise(columns.size, rows.size)[away[:, 0], away[:, 1]]
            return _add_up(owners, logs, len(codes))
        return np.asarray(
            self._log_strips[
                strips(grid.columns)[nearest[:, 0], grid.steps[codes, 0]],
                strips(grid.rows)[nearest[:, 1], grid.steps[codes, 1]],
            ]
        )

    def _nearest(self, places: Positions, kept: Positions) -> Positions:
        """Return the nearest of the cells kept to each place, all as columns and rows."""
        from scipy.spatial import cKDTree

        _, indices = cKDTree(kept * np.array(self.domain.sides)).query(places * np.array(self.domain.sides))
        nearest: Positions = kept[indices]
        return nearest

    def _window_cells(self, codes: Codes) -> float:  # noqa: ARG002
        """Return the number of cells in a convolution for these outputs."""
        grid = self.domain
        if grid.cells is None:
            return float(grid.columns) * grid.rows
        return math.prod(float(side.size) for side in self._window())

    def _lattice(self, codes: Codes, kept: Positions) -> LatticeWindow:
        """Return the lattice of the values kept and of these outputs."""
        grid = self.domain
        if grid.cells is None:
            values = kept[:, 1] * grid.columns + kept[:, 0]
            return LatticeWindow(grid.columns, grid.rows, self._log_strips, True, values, codes, None, codes.size)
        columns, rows = self._window()
        cells, owners = self._owned(codes)
        values = (kept[:, 1] - rows[0]) * columns.size + kept[:, 0] - columns[0]
        log_table = self._log_noise(columns.size, rows.size)
        return LatticeWindow(columns.size, rows.size, log_table, False, values, cells, owners, codes.size)

    def _owned(self, codes: Codes) -> tuple[Positions, Positions]:
        """Return the cells of the window that are remapped to these outputs, and the output of each cell."""
        owners = np.full(len(self.domain), -1)
        owners[codes] = np.arange(codes.size)
        owner = owners[self._remapped]
        cells = np.flatnonzero(owner >= 0)
        return cells, owner[cells]

    @cached_property
    def _remapped(self) -> Positions:
        """The kept cell nearest to each cell of the window that the noise reaches."""
        columns, rows = self._window()
        row, column = np.divmod(np.arange(rows.size * columns.size), columns.size)
        return self.domain.nearest(columns[column], rows[row])

    def _log_noise(self, columns: int, rows: int) -> Floats:
        """Return the log of the noise's probability on cells 0 .. columns - 1, 0 .. rows - 1 away."""
        total = lattice.log_strips(self._log_cells(1, 1))[-1, -1]
        return np.asarray(self._log_cells(columns, rows)[:columns, :rows] - total)

    @cached_property
    def _log_strips(self) -> Floats:
        table = lattice.log_strips(self._log_cells(self.domain.columns, self.domain.rows))
        table -= table[-1, -1]
        return table

    def _window(self) -> tuple[Positions, Positions]:
        """Return the columns and rows of the lattice that the noise reaches, for grids with missing cells."""
        grid = self.domain
        reach = [remapped_reach(self.epsilon, side) for side in grid.sides]
        if (grid.columns + 2 * reach[0]) * (grid.rows + 2 * reach[1]) > MAX_REMAPPED_CELLS:
            what, where = "epsilon is too small for a grid with missing cells", f"{type(self).__name__}(epsilon=)"
            got = f"epsilon {self.epsilon:g} with cells of {grid.width:g} x {grid.height:g} {grid.unit}"
            expected = f"noise that reaches at most {MAX_REMAPPED_CELLS:,} cells"
            remedy = "keep all cells (cells=None), use larger cells, or a larger epsilon"
            raise MechanismError(what, where=where, got=got, expected=expected, remedy=remedy)
        return np.arange(-reach[0], grid.columns + reach[0]), np.arange(-reach[1], grid.rows + reach[1])

    @cached_property
    def _log_remapped(self) -> Floats:
        """P(z | x) on a grid with missing cells: every lattice cell within reach is sent to its nearest kept one."""
        from scipy.special import logsumexp

        grid = self.domain
        columns, rows = self._window()
        row, column = np.divmod(np.arange(rows.size * columns.size), columns.size)
        nearest = self._remapped
        # Nearest-cell regions are convex: along a row of the lattice each is one run of columns.
        starts = np.flatnonzero((column == 0) | (np.diff(nearest, prepend=-1) != 0))
        ends = np.append(starts[1:], nearest.size) - 1
        onwards = lattice.log_onwards(self._log_cells(int(columns[-1]) + 1, int(rows[-1]) + 1))
        table = np.empty((len(grid), len(grid)))
        for position, (own_column, own_row) in enumerate(grid.steps):
            away = np.abs(rows[row[starts]] - own_row)
            first, last = columns[column[starts]] - own_column, columns[column[ends]] - own_column
            table[position] = _add_up(nearest[starts], lattice.log_runs(onwards, first, last, away), len(grid))
        table -= np.asarray(logsumexp(table, axis=1, keepdims=True))
        return table

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Add noise on the infinite lattice, then remap to the nearest cell."""
        return self._remap(self.domain.steps[positions] + self._noise(positions.size, source))

    @property
    def sends_places(self) -> bool:
        """Outputs are cells of the lattice, remapped or not."""
        return True

    def codes_at(self, columns: Positions, rows: Positions) -> Codes:
        """Return the nearest cell to each cell of the lattice, as noise is remapped."""
        return self.domain.nearest(columns, rows)

    def _remap(self, places: Positions) -> Codes:
        """Return the nearest cell to each column and row."""
        return self.domain.nearest(places[:, 0], places[:, 1])


def _add_up(regions: Positions, logs: Floats, count: int) -> Floats:
    """Return the log of the sum of exp(logs) over each region."""
    top = np.full(count, -np.inf)
    np.maximum.at(top, regions, logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        sums: Floats = np.log(np.bincount(regions, weights=np.exp(logs - top[regions]), minlength=count)) + top
    return sums
