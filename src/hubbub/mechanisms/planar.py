"""Noise on a map: on the cells of an infinite lattice, or continuous; remapped to the nearest cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from hubbub.channels import LatticeWindow
from hubbub.client import EPSILON_SHRINK, MAX_INTEGRALS, remapped_reach
from hubbub.core import validation
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.core.errors import MechanismError
from hubbub.domains import Grid
from hubbub.mechanisms import lattice_mass as lattice
from hubbub.mechanisms.base import matrix_too_wide
from hubbub.mechanisms.output_spaces import OutputSpace, PairOutputs
from hubbub.mechanisms.parameters import check_exact, check_reach
from hubbub.mechanisms.planar_base import PlanarMechanism
from hubbub.sampling import PlanarGeometricLaw, PlanarTableLaw, RandomSource

MAX_QUICK_DISPLACEMENTS = 250_000  # up to which a table is quicker than rejection
MAX_TABLE_DISPLACEMENTS = 20_000_000
MAX_LISTED_PAIRS = 100_000


@dataclass(frozen=True)
class PlanarGeometric(PlanarMechanism):
    """The planar geometric mechanism on the lattice of cell centres (the paper's appendix).

    On the infinite lattice, with d the Euclidean distance between centres::

        P(z | x) = lambda exp(-epsilon d(x, z)),   1 / lambda = sum over the lattice of exp(-epsilon d(0, z))

    Each draw is remapped to the nearest cell of the grid, which is post-processing; with ``truncated=False``
    outputs are pairs (column, row) anywhere on the lattice.

    Guarantee: epsilon times the distance (geo-indistinguishability); epsilon is per unit of the grid's distances.

    Parameters
    ----------
    domain
        The cells of a map: `Grid`.
    epsilon
        Epsilon per unit of the grid, positive: smaller is more private.
    truncated
        Whether draws are remapped to the nearest cell of the grid.

    Raises
    ------
    MechanismError
        If the domain is not a `Grid`, epsilon is not between 1e-12 and 500, or the noise reaches too far for a grid
        with missing cells.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.PlanarGeometric(hb.Grid(2, 2, cell=1.0), epsilon=1.0).matrix()[0].round(4)
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
            raise validation.wrong(
                self.truncated,
                "truncated",
                "PlanarGeometric",
                "True (remap to the grid) or False (all of the lattice)",
                default="True",
                error=MechanismError,
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
        if self._pairs > MAX_LISTED_PAIRS:
            return None
        columns = np.arange(-self._reach[0], self.domain.columns + self._reach[0])
        rows = np.arange(-self._reach[1], self.domain.rows + self._reach[1])
        return np.stack(np.meshgrid(columns, rows, indexing="ij"), axis=-1).reshape(-1, 2)

    @cached_property
    def output_space(self) -> OutputSpace:
        """The cells of the grid; untruncated, any pair of column and row."""
        return super().output_space if self.truncated else PairOutputs("PlanarGeometric")

    def matrix(self) -> Floats:
        """Return P(z | x) for `outputs`.

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        MechanismError
            If draws are not remapped, and reach too many cells.
        ReportsError
            If the matrix does not fit in memory.
        """
        if self.truncated:
            return super().matrix()
        outputs = self.outputs
        if outputs is None:
            raise matrix_too_wide("PlanarGeometric", f"{self._pairs:,}")
        return np.exp(self.log_columns(outputs))

    @property
    def _reach(self) -> tuple[int, int]:
        """How many columns and rows beyond the grid `outputs` reach: all but a negligible part of the probability."""
        width, height = self.domain.sides
        return math.ceil(36.0 / (self.epsilon * width)), math.ceil(36.0 / (self.epsilon * height))

    @property
    def _pairs(self) -> int:
        """The number of pairs within reach."""
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

    def _lattice(self, codes: Codes, kept: Positions) -> LatticeWindow:
        """Untruncated, cells of that window."""
        if self.truncated:
            return super()._lattice(codes, kept)
        grid = self.domain
        first, last = self._corners(codes)
        columns, rows = (last - first + 1).tolist()
        values, cells = ((places[:, 1] - first[1]) * columns + places[:, 0] - first[0] for places in (kept, codes))
        apart = np.hypot(np.arange(columns)[:, None] * grid.width, np.arange(rows)[None, :] * grid.height)
        log_table = self.log_lambda - self.epsilon * apart
        return LatticeWindow(columns, rows, log_table, False, values, cells, None, len(codes))

    @cached_property
    def law(self) -> PlanarGeometricLaw:
        """Noise in whole numbers, anywhere on the lattice; truncated, remapped."""
        grid = self.domain
        check_reach(self.epsilon * min(grid.sides), "PlanarGeometric")
        check_exact(self.epsilon * min(grid.sides), self.epsilon * max(grid.sides), "PlanarGeometric")
        return PlanarGeometricLaw(self.epsilon, grid.sides, grid.steps, self._remap if self.truncated else np.asarray)

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Add noise on the infinite lattice; truncated, remap to the nearest cell."""
        if self.truncated:
            return super().draw(positions, source)
        return self.domain.steps[positions] + self._noise(positions.size, source)

    def codes_at(self, columns: Positions, rows: Positions) -> Codes:
        """Untruncated, the cells of the lattice themselves."""
        return super().codes_at(columns, rows) if self.truncated else np.stack([columns, rows], axis=1)

    def _log_cells(self, columns: int, rows: int) -> Floats:
        width, height = self.domain.sides
        across = lattice.lattice_axis(columns, width, self.epsilon, rows * height)
        along = lattice.lattice_axis(rows, height, self.epsilon, columns * width)
        return lattice.log_cells(across, along, self.epsilon)

    def _noise(self, count: int, source: RandomSource) -> Positions:
        reach = [remapped_reach(self.epsilon, side) + 1 for side in self.domain.sides]
        size, wasted = reach[0] * reach[1], self.epsilon * math.hypot(*self.domain.sides) / 2
        if size <= MAX_QUICK_DISPLACEMENTS or (wasted > 5 and size <= MAX_TABLE_DISPLACEMENTS):
            return self._from_table(count, source, reach[0], reach[1])
        if wasted > 5:  # not one rejected draw in a hundred would be accepted
            raise MechanismError(
                "the cells are too elongated for this epsilon",
                where="PlanarGeometric.privatize",
                got=f"cells of {self.domain.width:g} x {self.domain.height:g} {self.domain.unit}",
                expected="sides that differ less",
                remedy="split the cells along their longer side",
            )
        return self._by_rejection(count, source)

    def _from_table(self, count: int, source: RandomSource, columns: int, rows: int) -> Positions:
        """Invert the sums over a quarter of the lattice, then draw the signs."""
        column, row = np.indices((columns, rows))
        mass = np.exp(-self.epsilon * np.hypot(column * self.domain.width, row * self.domain.height))
        mass *= np.where(column > 0, 2, 1) * np.where(row > 0, 2, 1)
        sums = np.cumsum(mass.ravel())
        place = np.searchsorted(sums / sums[-1], source.uniforms(count), side="right")
        quarter = np.stack([place // rows, place % rows], axis=1)
        signs = source.words(count)
        return quarter * np.where(np.stack([signs & np.uint64(1), signs & np.uint64(2)], axis=1) > 0, 1, -1)

    def _by_rejection(self, count: int, source: RandomSource) -> Positions:
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
class PlanarLaplace(PlanarMechanism):
    """Continuous planar Laplace noise around a cell's centre, remapped to the nearest cell.

    The noise has density epsilon^2 / (2 pi) exp(-epsilon d) at distance d. P(z | x) is its integral over the
    cell z; a point outside the grid counts for the nearest cell. Where `Grid(cells=)` keeps some cells only,
    a point falls into a cell of the infinite lattice first, and that cell is remapped to the nearest kept one.
    Remapping is post-processing.

    Guarantee: epsilon times the distance (geo-indistinguishability); epsilon is per unit of the grid's distances.

    Parameters
    ----------
    domain
        The cells of a map: `Grid`.
    epsilon
        Epsilon per unit of the grid, positive: smaller is more private.

    Raises
    ------
    MechanismError
        If the domain is not a `Grid`, epsilon is not between 1e-12 and 500, or the noise reaches too far for a grid
        with missing cells.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.PlanarLaplace(hb.Grid(2, 2, cell=1.0), epsilon=1.0).matrix()[0].round(4)
    array([0.4254, 0.2226, 0.2226, 0.1294])
    """

    domain: Grid
    epsilon: float

    def __post_init__(self) -> None:
        self._check()
        self._check_window()

    @cached_property
    def law(self) -> PlanarTableLaw:
        """A table of rigorous integrals, clamped to the grid; with cells missing, to the window of the noise."""
        from hubbub.sampling.planar_laplace_law import planar_laplace_quarter

        grid = self.domain
        check_reach(self.epsilon * min(grid.sides), "PlanarLaplace")  # masses are right to 2^-100: enough from there on
        farthest = max(grid.diameter, *grid.sides)  # a single column has a width, and no distance across
        check_exact(self.epsilon * min(grid.sides), self.epsilon * farthest, "PlanarLaplace")
        columns, rows = (np.arange(grid.columns), np.arange(grid.rows)) if grid.cells is None else self._window()
        most = int(columns[-1]) + 1, int(rows[-1]) + 1  # whatever goes so far leaves the window
        if most[0] * most[1] > MAX_INTEGRALS:
            raise MechanismError(
                "the noise reaches too many cells for exact integrals",
                where="PlanarLaplace.privatize",
                got=f"{most[0]:,} x {most[1]:,} displacements",
                expected=f"at most {MAX_INTEGRALS:,}",
                remedy="use PlanarGeometric, larger cells or all cells of the grid; to simulate, pass rng=",
            )
        quarter = planar_laplace_quarter(
            *most, (Fraction(grid.width), Fraction(grid.height)), Fraction(self.epsilon) * EPSILON_SHRINK
        )
        window = np.array([columns[0], rows[0]]), np.array([columns[-1], rows[-1]])
        return PlanarTableLaw(quarter.width, quarter.masses, grid.steps, window, self._remap)

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

    def _noise(self, count: int, source: RandomSource) -> Positions:
        points = planar_laplace(self.epsilon, count, source)
        cells: Positions = np.rint(points / np.array(self.domain.sides)).astype(np.int64)
        return cells


def planar_laplace(epsilon: float, count: int, source: RandomSource) -> Floats:
    """Draw points with density epsilon^2 / (2 pi) exp(-epsilon d): a radius with a gamma law, any direction."""
    radius = -(np.log(source.positive_uniforms(count)) + np.log(source.positive_uniforms(count))) / epsilon
    angle = 2 * math.pi * source.uniforms(count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
