"""Noise on a map: on the cells of an infinite lattice, or continuous; remapped to the nearest cell."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.arrays import Array, Codes, Floats, Positions
from hubbub.channels import Channel, Lattice, Picked
from hubbub.channels.shift import shifted
from hubbub.channels.window import strips
from hubbub.domains import Grid
from hubbub.errors import MechanismError, shorten
from hubbub.mechanisms import lattice
from hubbub.mechanisms.base import InDomain, too_many_outputs
from hubbub.mechanisms.checks import check_domain, check_epsilon
from hubbub.mechanisms.outputs import OutputSpace, Pairs, index_codes
from hubbub.sampling import Source

NEEDS_GRID = "use Grid(columns, rows, cell=) or Grid.over(...); on a line there are Geometric and Laplace"
QUICK_TABLE = 250_000  # displacements for which a table is quicker than rejection
MOST_TABLE = 20_000_000
MOST_REMAPPED = 50_000_000  # lattice cells whose nearest cell is looked up, for grids with missing cells
MOST_OUTPUTS = 100_000


class Planar(InDomain):
    """What planar mechanisms share: a symmetric noise on the lattice, remapped to the grid's nearest cell."""

    domain: Grid
    metric: ClassVar[bool] = True

    def _check(self) -> None:
        name = type(self).__name__
        check_domain(self.domain, Grid, name, NEEDS_GRID)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, name))

    def _check_window(self) -> None:
        """Say that epsilon is too small for missing cells now, not after the reports are in."""
        if self.domain.cells is not None:
            self._window()

    @abstractmethod
    def _log_cells(self, columns: int, rows: int) -> Floats:
        """Return the log of the noise's mass, up to a constant, on cells 0 .. columns, 0 .. rows away and beyond."""

    @abstractmethod
    def _noise(self, count: int, source: Source) -> Positions:
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
        channel = shifted(
            kept.shape[0],
            self._log_tops(distinct, kept),
            lambda some: self._window_cells(distinct[some]),
            lambda some: self._lattice(distinct[some], kept),
            lambda some: self.log_columns(distinct[some], among),
        )
        return channel if len(distinct) == len(codes) and (np.diff(back) == 1).all() else Picked(channel, back)

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

        _, found = cKDTree(kept * np.array(self.domain.sides)).query(places * np.array(self.domain.sides))
        nearest: Positions = kept[found]
        return nearest

    def _window_cells(self, codes: Codes) -> float:  # noqa: ARG002
        """Return how many cells a convolution for these outputs has to hold."""
        grid = self.domain
        if grid.cells is None:
            return float(grid.columns) * grid.rows
        return math.prod(float(side.size) for side in self._window())

    def _lattice(self, codes: Codes, kept: Positions) -> Lattice:
        """Return the lattice of the values kept and of these outputs."""
        grid = self.domain
        if grid.cells is None:
            values = kept[:, 1] * grid.columns + kept[:, 0]
            return Lattice(grid.columns, grid.rows, self._log_strips, True, values, codes, None, codes.size)
        columns, rows = self._window()
        cells, owners = self._owned(codes)
        values = (kept[:, 1] - rows[0]) * columns.size + kept[:, 0] - columns[0]
        log_table = self._log_noise(columns.size, rows.size)
        return Lattice(columns.size, rows.size, log_table, False, values, cells, owners, codes.size)

    def _owned(self, codes: Codes) -> tuple[Positions, Positions]:
        """Return the cells of the window that are remapped to these outputs, and which of them each belongs to."""
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
        reach = [math.ceil(lattice.REACH / (self.epsilon * side)) for side in grid.sides]
        if (grid.columns + 2 * reach[0]) * (grid.rows + 2 * reach[1]) > MOST_REMAPPED:
            raise MechanismError(
                "epsilon is too small for a grid with missing cells",
                where=f"{type(self).__name__}(epsilon=)",
                got=f"epsilon {self.epsilon:g} with cells of {grid.width:g} x {grid.height:g} {grid.unit}",
                expected=f"noise that reaches at most {MOST_REMAPPED:,} cells",
                remedy="keep all cells (cells=None), use larger cells, or a larger epsilon",
            )
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

    def draw(self, positions: Positions, source: Source) -> Codes:
        """Add noise on the infinite lattice, then remap to the nearest cell."""
        moved = self.domain.steps[positions] + self._noise(positions.size, source)
        return self.domain.nearest(moved[:, 0], moved[:, 1])


@dataclass(frozen=True)
class PlanarGeometric(Planar):
    """The planar geometric mechanism on the lattice of cell centres (the paper's appendix).

    On the infinite lattice, with d the Euclidean distance between centres::

        P(z | x) = lambda exp(-epsilon d(x, z)),   1 / lambda = sum over the lattice of exp(-epsilon d(0, z))

    `truncated` (the default) remaps each draw to the nearest cell of the grid; with ``truncated=False``
    outputs are pairs (column, row) anywhere on the lattice. Remapping is post-processing.

    Guarantee: epsilon times the distance (geo-indistinguishability); epsilon is per unit of the grid's distances.

    >>> PlanarGeometric(Grid(2, 2, cell=1.0), epsilon=1.0).matrix()[0].round(4)
    array([0.4547, 0.2116, 0.2116, 0.1221])
    """

    domain: Grid
    epsilon: float
    truncated: bool = True

    def __post_init__(self) -> None:
        self._check()
        if self.truncated:
            self._check_window()
        if not isinstance(self.truncated, bool):
            raise MechanismError(
                "truncated is neither true nor false",
                where="PlanarGeometric(truncated=)",
                got=shorten(self.truncated),
                expected="True (remap to the grid) or False (all of the lattice)",
                remedy="leave it out for True",
            )

    @cached_property
    def log_lambda(self) -> float:
        """The log of the normalising factor."""
        return -float(lattice.log_strips(self._log_cells(1, 1))[-1, -1])

    @property
    def outputs(self) -> Array | None:
        """The cells of the grid; untruncated, the pairs around it (all but 1e-14 of the probability).

        None where these are too many.
        """
        if self.truncated:
            return self.domain.labels
        if self._pairs > MOST_OUTPUTS:
            return None
        columns = np.arange(-self._reach[0], self.domain.columns + self._reach[0])
        rows = np.arange(-self._reach[1], self.domain.rows + self._reach[1])
        return np.stack(np.meshgrid(columns, rows, indexing="ij"), axis=-1).reshape(-1, 2)

    @cached_property
    def output_space(self) -> OutputSpace:
        """The cells of the grid; untruncated, any pair of column and row."""
        return super().output_space if self.truncated else Pairs("PlanarGeometric")

    def matrix(self) -> Floats:
        """P(z | x) for `outputs`."""
        if self.truncated:
            return super().matrix()
        outputs = self.outputs
        if outputs is None:
            raise too_many_outputs("PlanarGeometric", f"{self._pairs:,}")
        return np.exp(self.log_columns(outputs))

    @property
    def _reach(self) -> tuple[int, int]:
        """How many columns and rows beyond the grid all but a negligible part of the probability lies."""
        width, height = self.domain.sides
        return math.ceil(36.0 / (self.epsilon * width)), math.ceil(36.0 / (self.epsilon * height))

    @property
    def _pairs(self) -> int:
        """How many pairs lie within reach."""
        return (self.domain.columns + 2 * self._reach[0]) * (self.domain.rows + 2 * self._reach[1])

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Untruncated, log lambda - epsilon d(x, z)."""
        if self.truncated:
            return super().log_columns(codes, among)
        values = self.domain.steps if among is None else self.domain.steps[among]
        apart = (values[:, None, :] - codes[None, :, :]).astype(np.float64)
        return self.log_lambda - self.epsilon * np.hypot(
            apart[..., 0] * self.domain.width, apart[..., 1] * self.domain.height
        )

    def _log_tops(self, codes: Codes, kept: Positions) -> Floats:
        """Untruncated, log lambda - epsilon d to the nearest value."""
        if self.truncated:
            return super()._log_tops(codes, kept)
        apart = (codes - self._nearest(codes, kept)).astype(np.float64) * np.array(self.domain.sides)
        tops: Floats = self.log_lambda - self.epsilon * np.hypot(apart[:, 0], apart[:, 1])
        return tops

    def _window_cells(self, codes: Codes) -> float:
        """Untruncated, a window around the grid and all outputs."""
        if self.truncated:
            return super()._window_cells(codes)
        first, last = self._corners(codes)
        return float((last - first + 1).prod(dtype=np.float64))

    def _corners(self, codes: Codes) -> tuple[Positions, Positions]:
        """Return the first and the last column and row of a window around the grid and all outputs."""
        last = np.array([self.domain.columns - 1, self.domain.rows - 1])
        return np.minimum(codes.min(axis=0), 0), np.maximum(codes.max(axis=0), last)

    def _lattice(self, codes: Codes, kept: Positions) -> Lattice:
        """Untruncated, cells of that window."""
        if self.truncated:
            return super()._lattice(codes, kept)
        grid = self.domain
        first, last = self._corners(codes)
        columns, rows = (last - first + 1).tolist()
        values, cells = ((places[:, 1] - first[1]) * columns + places[:, 0] - first[0] for places in (kept, codes))
        apart = np.hypot(np.arange(columns)[:, None] * grid.width, np.arange(rows)[None, :] * grid.height)
        log_table = self.log_lambda - self.epsilon * apart
        return Lattice(columns, rows, log_table, False, values, cells, None, len(codes))

    def draw(self, positions: Positions, source: Source) -> Codes:
        """Add noise on the infinite lattice; truncated, remap to the nearest cell."""
        if self.truncated:
            return super().draw(positions, source)
        return self.domain.steps[positions] + self._noise(positions.size, source)

    def _log_cells(self, columns: int, rows: int) -> Floats:
        width, height = self.domain.sides
        across = lattice.lattice_axis(columns, width, self.epsilon, rows * height)
        along = lattice.lattice_axis(rows, height, self.epsilon, columns * width)
        return lattice.log_cells(across, along, self.epsilon)

    def _noise(self, count: int, source: Source) -> Positions:
        reach = [math.ceil(lattice.REACH / (self.epsilon * side)) + 1 for side in self.domain.sides]
        size, wasted = reach[0] * reach[1], self.epsilon * math.hypot(*self.domain.sides) / 2
        if size <= QUICK_TABLE or (wasted > 5 and size <= MOST_TABLE):
            return self._from_table(count, source, reach[0], reach[1])
        if wasted > 5:  # not one rejected draw in a hundred would be accepted
            raise MechanismError(
                "cells are too long for this epsilon",
                where="PlanarGeometric.privatize",
                got=f"cells of {self.domain.width:g} x {self.domain.height:g} {self.domain.unit}",
                expected="sides that differ less",
                remedy="split the cells along their longer side",
            )
        return self._by_rejection(count, source)

    def _from_table(self, count: int, source: Source, columns: int, rows: int) -> Positions:
        """Invert the sums over a quarter of the lattice, then draw the signs."""
        column, row = np.indices((columns, rows))
        mass = np.exp(-self.epsilon * np.hypot(column * self.domain.width, row * self.domain.height))
        mass *= np.where(column > 0, 2, 1) * np.where(row > 0, 2, 1)
        sums = np.cumsum(mass.ravel())
        place = np.searchsorted(sums / sums[-1], source.uniforms(count), side="right")
        quarter = np.stack([place // rows, place % rows], axis=1)
        signs = source.words(count)
        return quarter * np.where(np.stack([signs & np.uint64(1), signs & np.uint64(2)], axis=1) > 0, 1, -1)

    def _by_rejection(self, count: int, source: Source) -> Positions:
        """Round planar Laplace draws to the lattice and accept with what turns exp(-eps |point|) into exp(-eps d)."""
        sides = np.array(self.domain.sides)
        slack = np.hypot(*sides) / 2  # a point is at most this far from its cell's centre
        drawn = np.empty((count, 2), dtype=np.int64)
        missing = np.arange(count)
        while missing.size:
            points = planar_laplace(self.epsilon, missing.size, source)
            cells = np.rint(points / sides)
            centres = cells * sides
            excess = np.hypot(*centres.T) - np.hypot(*points.T) + slack
            accepted = source.uniforms(missing.size) < np.exp(-self.epsilon * excess)
            drawn[missing[accepted]] = cells[accepted].astype(np.int64)
            missing = missing[~accepted]
        return drawn


@dataclass(frozen=True)
class PlanarLaplace(Planar):
    """Continuous planar Laplace noise around a cell's centre, remapped to the nearest cell.

    The noise has density epsilon^2 / (2 pi) exp(-epsilon d) at distance d. P(z | x) is its integral over the
    cell z; a point outside the grid counts for the nearest cell. Where `Grid(cells=)` keeps some cells only,
    a point falls into a cell of the infinite lattice first, and that cell is remapped to the nearest kept one.
    Remapping is post-processing.

    Guarantee: epsilon times the distance (geo-indistinguishability); epsilon is per unit of the grid's distances.

    >>> PlanarLaplace(Grid(2, 2, cell=1.0), epsilon=1.0).matrix()[0].round(4)
    array([0.4254, 0.2226, 0.2226, 0.1294])
    """

    domain: Grid
    epsilon: float

    def __post_init__(self) -> None:
        self._check()
        self._check_window()

    def _log_cells(self, columns: int, rows: int) -> Floats:
        width, height = self.domain.sides
        aspect = max(width / height, height / width)
        across = lattice.continuous_axis(columns, width, self.epsilon, rows * height, aspect)
        along = lattice.continuous_axis(rows, height, self.epsilon, columns * width, aspect)
        table = lattice.log_cells(across, along, self.epsilon) + math.log(self.epsilon**2 / (2 * math.pi))
        table[0, 0] = math.log(self._own_cell(width / 2, height / 2))
        return table

    def _own_cell(self, half_width: float, half_height: float) -> float:
        """Return the mass on the true cell, in polar form: the density's kink at its centre then does not matter."""
        from scipy.special import gammainc

        nodes, weights = np.polynomial.legendre.leggauss(200)
        corner = math.atan2(half_height, half_width)
        total = 0.0
        for start, end, side, towards in (
            (0.0, corner, half_width, np.cos),
            (corner, math.pi / 2, half_height, np.sin),
        ):
            angle = start + (end - start) * (nodes + 1) / 2
            # Within radius r the noise has mass 1 - (1 + epsilon r) exp(-epsilon r) = gammainc(2, epsilon r).
            total += (end - start) / 2 * float(weights @ gammainc(2, self.epsilon * side / towards(angle)))
        return total * 2 / math.pi

    def _noise(self, count: int, source: Source) -> Positions:
        points = planar_laplace(self.epsilon, count, source)
        cells: Positions = np.rint(points / np.array(self.domain.sides)).astype(np.int64)
        return cells


def _add_up(regions: Positions, logs: Floats, count: int) -> Floats:
    """Return the log of the sum of exp(logs) over each region."""
    top = np.full(count, -np.inf)
    np.maximum.at(top, regions, logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        sums: Floats = np.log(np.bincount(regions, weights=np.exp(logs - top[regions]), minlength=count)) + top
    return sums


def planar_laplace(epsilon: float, count: int, source: Source) -> Floats:
    """Draw points with density epsilon^2 / (2 pi) exp(-epsilon d): a radius with a gamma law, any direction."""
    radius = -(np.log(source.positive_uniforms(count)) + np.log(source.positive_uniforms(count))) / epsilon
    angle = 2 * math.pi * source.uniforms(count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
