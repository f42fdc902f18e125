"""Cells of a map."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hubbub.client import MAX_LENGTH, MIN_LENGTH
from hubbub.core.arrays import Array, Floats, Positions, as_integer, as_integers, as_real, frozen
from hubbub.core.errors import DomainError, shorten
from hubbub.domains.base import Domain, check_size
from hubbub.domains.geometry import Box, nearest


@dataclass(frozen=True)
class Grid(Domain):
    """A grid of `columns` x `rows` cells; the values are the cell numbers.

    Cells are numbered row by row from 0 in the south-west corner, so that cell ``row * columns + column``
    lies `column` steps to the east and `row` steps to the north. Distances are Euclidean between centres,
    in `unit`. `cell` is the side of a square cell, or a pair (width, height).

    `cells` keeps some cells only (land, say): noise that leaves the kept cells is remapped to the nearest
    kept one, at equal distance to the one with the lowest number.

    >>> grid = Grid(24, 16, cell=0.5)
    >>> grid.cell(column=1, row=2)
    49
    >>> grid.distances()[0, grid.cell(3, 4)]
    np.float64(2.5)
    """

    columns: int
    rows: int
    sides: tuple[float, float]
    unit_: str
    cells: tuple[int, ...] | None
    box: Box | None = field(default=None)

    def __init__(
        self,
        columns: int,
        rows: int,
        cell: float | tuple[float, float] = 0.5,
        unit: str = "km",
        cells: Iterable[int] | None = None,
        *,
        box: Box | None = None,
    ) -> None:
        for name, given in (("columns", columns), ("rows", rows)):
            number = as_integer(given, DomainError, where=f"Grid({name}=)", expected="a whole number")
            if number < 1:
                raise DomainError(
                    f"a grid needs at least one of its {name}",
                    where=f"Grid({name}=)",
                    got=number,
                    expected="1 or more",
                    remedy=f"give the number of {name}",
                )
            object.__setattr__(self, name, number)
        object.__setattr__(self, "sides", _sides(cell))
        if not isinstance(unit, str) or not unit:
            raise DomainError(
                "the unit is not a text",
                where="Grid(unit=)",
                got=shorten(unit),
                expected="the name of a unit of length",
                remedy="leave it out for 'km'",
            )
        object.__setattr__(self, "unit_", unit)
        object.__setattr__(self, "box", box)
        check_size(self.columns * self.rows, f"Grid({self.columns}, {self.rows})")
        object.__setattr__(self, "cells", None if cells is None else self._kept(cells))

    @classmethod
    def over(
        cls,
        *,
        south: float,
        west: float,
        north: float,
        east: float,
        columns: int,
        rows: int,
        cells: Iterable[int] | None = None,
    ) -> Grid:
        """Return a grid over a box on the map, measured in kilometres.

        The map is the equirectangular one at the box's middle latitude on a sphere of radius 6371.0088 km;
        cells may come out slightly off square, and mechanisms use the true distances.

        >>> city = Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=24, rows=16)
        >>> city.locate(37.75, -122.45)
        np.int64(155)
        """
        box = Box.checked(south=south, west=west, north=north, east=east)
        plain = cls(columns, rows)  # checks the two numbers before they divide anything
        width, height = box.size
        return cls(plain.columns, plain.rows, (width / plain.columns, height / plain.rows), "km", cells, box=box)

    def __repr__(self) -> str:
        kept = "" if self.cells is None else f", cells=<{len(self.cells)} kept>"
        place = "" if self.box is None else f", over {self.box}"
        return f"Grid({self.columns}, {self.rows}, cell={self.sides}, unit={self.unit!r}{kept}{place})"

    def __len__(self) -> int:
        return self.columns * self.rows if self.cells is None else len(self.cells)

    @property
    def width(self) -> float:
        """The side of a cell from west to east."""
        return self.sides[0]

    @property
    def height(self) -> float:
        """The side of a cell from south to north."""
        return self.sides[1]

    @property
    def unit(self) -> str:
        """The unit of the cell's sides."""
        return self.unit_

    @cached_property
    def labels(self) -> Array:
        """The numbers of the cells that are kept, increasing."""
        if self.cells is None:
            return frozen(np.arange(self.columns * self.rows, dtype=np.int64))
        return frozen(np.array(self.cells, dtype=np.int64))

    @cached_property
    def steps(self) -> Positions:
        """Column and row of each cell, one line per value."""
        return frozen(np.stack([self.labels % self.columns, self.labels // self.columns], axis=1))

    @cached_property
    def diameter(self) -> float:
        """The largest distance between two kept centres."""
        if self.cells is None:
            return math.hypot((self.columns - 1) * self.width, (self.rows - 1) * self.height)
        # The farthest pair uses the outermost kept cells of some row; there are at most two in each.
        columns, rows = self.steps.T
        first = np.full(self.rows, self.columns)
        last = np.full(self.rows, -1)
        np.minimum.at(first, rows, columns)
        np.maximum.at(last, rows, columns)
        present = np.flatnonzero(last >= 0)
        ends = np.concatenate([np.stack([first[present], present], 1), np.stack([last[present], present], 1)])
        apart = (ends[:, None, :] - ends[None, :, :]) * np.array(self.sides)
        return float(np.hypot(apart[..., 0], apart[..., 1]).max())

    def title(self, position: int) -> str:
        """Return the cell's number, column and row."""
        column, row = self.steps[position]
        return f"{self.labels[position]}: column {column}, row {row}"

    def cell(self, column: int, row: int) -> int:
        """Return the number of the cell at `column` steps east and `row` steps north of cell 0."""
        where = "Grid.cell(column, row)"
        steps = [as_integer(step, DomainError, where=where, expected="whole numbers") for step in (column, row)]
        number = steps[1] * self.columns + steps[0]
        if not (0 <= steps[0] < self.columns and 0 <= steps[1] < self.rows):
            raise DomainError(
                "no such cell",
                where=where,
                got=f"column {column}, row {row}",
                expected=f"columns 0 to {self.columns - 1}, rows 0 to {self.rows - 1}",
                remedy="count columns from the west and rows from the south, from 0",
            )
        if self.find(number) < 0:
            raise DomainError(
                "the cell is not kept",
                where=where,
                got=f"column {column}, row {row}: cell {number}",
                expected=self.describe(),
                remedy="choose a cell that is kept, or build the grid with this cell among Grid(cells=)",
            )
        return number

    def locate(self, latitude: object, longitude: object, *, outside: str = "error") -> Positions:
        """Return the numbers of the cells in which points on the map lie (only for `Grid.over`).

        `outside` says what happens to points that lie in no kept cell. With "error", for people's true values, they
        are refused: the study does not know such places. With "nearest", for noisy reports, they belong to the
        nearest kept cell, to which planar mechanisms remap whatever their noise carries away; to leave them out
        instead would bias the estimate.

        >>> city = Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=24, rows=16)
        >>> city.locate([37.75, 38.0], [-122.45, -122.45], outside="nearest")
        array([155, 371])
        """
        if outside not in ("error", "nearest"):
            raise DomainError(
                "outside must be 'error' or 'nearest'",
                where="Grid.locate(outside=)",
                got=shorten(outside),
                expected="'error' for true values, 'nearest' for noisy reports",
                remedy="leave it out for true values",
            )
        if self.box is None:
            raise DomainError(
                "this grid has no place on the map",
                where="Grid.locate(latitude, longitude)",
                got=repr(self),
                expected="a grid made by Grid.over",
                remedy="build it with Grid.over(south=, west=, north=, east=, ...)",
            )
        if outside == "nearest":
            column, row = self.box.lattice_steps(latitude, longitude, self.columns, self.rows)
            nearest_positions = self.nearest(column.ravel(), row.ravel()).reshape(column.shape)
            return self.labels[nearest_positions][()]
        column, row = self.box.steps(latitude, longitude, self.columns, self.rows)
        numbers = row * self.columns + column
        missing = self.find(numbers) < 0
        if missing.any():
            place = int(np.argmax(missing.ravel()))
            raise DomainError(
                "a point lies in a cell that is not kept",
                where=f"Grid.locate, position {place}",
                got=f"cell {numbers.ravel()[place]}",
                expected=self.describe(),
                remedy="for a true value keep the cell, or leave that person out knowingly; a noisy report belongs to "
                "the nearest kept cell, and leaving it out biases the estimate: outside='nearest'",
            )
        return numbers[()]

    def nearest(self, columns: Positions, rows: Positions) -> Positions:
        """Return the position of the kept cell nearest to each cell of the infinite lattice."""
        if self.cells is None:
            return np.clip(rows, 0, self.rows - 1) * self.columns + np.clip(columns, 0, self.columns - 1)
        return nearest(self.steps, np.stack([columns, rows], axis=1), self.sides)

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return the Euclidean distances between centres."""
        # From whole steps, so that equal displacements have equal distances to the last bit.
        apart = np.abs(self.steps[rows][:, None, :] - self.steps[columns][None, :, :])
        distances: Floats = np.hypot(apart[..., 0] * self.width, apart[..., 1] * self.height)
        return distances

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        numbers = as_integers(values, DomainError, where="values", expected=self.describe())
        inside = (numbers >= 0) & (numbers < self.columns * self.rows)
        if self.cells is None:
            return np.where(inside, numbers, -1)
        place = np.minimum(np.searchsorted(self.labels, numbers), len(self) - 1)
        return np.where(self.labels[place] == numbers, place, -1)

    def _kept(self, cells: Iterable[int]) -> tuple[int, ...]:
        where = "Grid(cells=)"
        expected = "a flat list of cell numbers"
        remedy = "list the numbers of the cells to keep; numpy.flatnonzero(mask) gives them from a flat mask"
        numbers = as_integers(cells, DomainError, where=where, expected=expected, remedy=remedy)
        if numbers.ndim != 1:
            raise DomainError(
                "cells are not a flat list", where=where, got=shorten(cells), expected=expected, remedy=remedy
            )
        kept = np.unique(numbers)
        check_size(kept.size, where)
        if kept[0] < 0 or kept[-1] >= self.columns * self.rows:
            raise DomainError(
                "a kept cell is not on the grid",
                where=where,
                got=int(kept[0] if kept[0] < 0 else kept[-1]),
                expected=f"cell numbers from 0 to {self.columns * self.rows - 1}",
                remedy="number cells row by row from the south-west, from 0",
            )
        return tuple(kept.tolist())

    def describe(self) -> str:
        """One line for messages."""
        kept = "" if self.cells is None else f", one of the {len(self.cells)} that are kept"
        return f"a cell number from 0 to {self.columns * self.rows - 1}{kept}"


def _sides(cell: object) -> tuple[float, float]:
    sides = [as_real(side) for side in (cell if isinstance(cell, tuple | list) else (cell, cell))]
    if len(sides) != 2 or not all(0 < side < math.inf for side in sides):
        raise DomainError(
            "a cell needs a positive side",
            where="Grid(cell=)",
            got=shorten(cell),
            expected="a positive number, or a pair (width, height) of them",
            remedy="give the side in the grid's unit",
        )
    if not all(MIN_LENGTH <= side <= MAX_LENGTH for side in sides):
        raise DomainError(
            "a cell is too small or too large",
            where="Grid(cell=)",
            got=shorten(cell),
            expected=f"sides from {MIN_LENGTH:g} to {MAX_LENGTH:g}: beyond, distances are no longer numbers",
            remedy="use another unit of length",
        )
    return sides[0], sides[1]
