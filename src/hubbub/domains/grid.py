"""Cells of a map."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.client import MAX_LENGTH, MIN_LENGTH
from hubbub.core import validation
from hubbub.core.arrays import Array, Floats, Positions, as_integer, as_integers, as_real, frozen
from hubbub.core.errors import DomainError, shorten
from hubbub.core.text import plural
from hubbub.domains.base import Domain, check_size
from hubbub.domains.geometry import BOX_SIDES, Box, nearest, on_last_side
from hubbub.domains.place_text import PlaceTexts, range_text


@dataclass(frozen=True)
class Grid(Domain):
    """A grid of `columns` x `rows` cells; the values are the cell numbers.

    Cells are numbered row by row from 0 in the south-west corner, so that cell ``row * columns + column``
    is `column` steps to the east and `row` steps to the north. Distances are Euclidean between centres.

    Parameters
    ----------
    columns, rows
        The number of cells from west to east, and from south to north.
    cell
        The side of a square cell, or a pair (width, height), in `unit`.
    unit
        The unit of length.
    cells
        The numbers of the cells to keep (land, say); None for all. Noise that leaves the kept cells is remapped to the
        nearest kept one; at equal distance, to the one with the lowest number.
    box
        The place on the map; `Grid.over` sets it.

    Raises
    ------
    DomainError
        If the grid has fewer than two cells, a side is not positive, or a kept cell is not on the grid.

    Examples
    --------
    >>> import hubbub as hb
    >>> grid = hb.Grid(24, 16, cell=0.5)
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
        for name, count in (("columns", columns), ("rows", rows)):
            where = f"Grid({name}=)"
            number = as_integer(count, DomainError, where=where, expected="a whole number")
            if number < 1:
                what, remedy = f"a grid needs 1 or more {name}", f"give the number of {name}"
                raise DomainError(what, where=where, got=number, expected="1 or more", remedy=remedy)
            object.__setattr__(self, name, number)
        object.__setattr__(self, "sides", _sides(cell))
        if not isinstance(unit, str) or not unit:
            raise validation.wrong(unit, "unit", "Grid", "the name of a unit", default="'km'", error=DomainError)
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

        Parameters
        ----------
        south, west, north, east
            The sides of the box, in decimal degrees. The box must not cross the 180th meridian.
        columns, rows
            The number of cells from west to east, and from south to north.
        cells
            The numbers of the cells to keep; None for all.

        Returns
        -------
        Grid
            A grid that knows its place on the map.

        Raises
        ------
        DomainError
            If the box is not one on the map, or the grid cannot be built.

        Examples
        --------
        >>> import hubbub as hb
        >>> box = {"south": 37.7228, "west": -122.5153, "north": 37.7946, "east": -122.3789}
        >>> city = hb.Grid.over(**box, columns=24, rows=16)
        >>> city.locate(37.75, -122.45)
        np.int64(155)
        """
        box = Box.checked(south=south, west=west, north=north, east=east)
        checked = cls(columns, rows)  # before the two numbers divide anything
        width, height = box.size
        cell = width / checked.columns, height / checked.rows
        return cls(checked.columns, checked.rows, cell, "km", cells, box=box)

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
        # The farthest pair uses the outermost kept cells of some row: the first and the last, as cells are in order.
        _, starts = np.unique(self.steps[:, 1], return_index=True)
        ends = self.steps[np.concatenate([starts, np.append(starts[1:], len(self)) - 1])]
        apart = (ends[:, None, :] - ends[None, :, :]) * np.array(self.sides)
        lengths = np.hypot(apart[..., 0], apart[..., 1])
        # math.hypot rounds better than NumPy's: a device finds the same number, and shares a budget alike.
        return max(math.hypot(*pair) for pair in apart[lengths > lengths.max() * (1.0 - 1e-12)].tolist())

    @property
    def grid(self) -> Grid:
        """The grid itself."""
        return self

    @property
    def coordinates(self) -> Floats:
        """The centres of the cells: to the east and to the north of the centre of cell 0."""
        centres: Floats = self.steps * np.array(self.sides)
        return centres

    @cached_property
    def place_texts(self) -> PlaceTexts | None:
        """Latitudes and longitudes in words, of the middles of rows and columns and of their edges; None off the map.

        They have as many decimals as it takes to tell a cell from its neighbours, so that a title lies in its cell.
        """
        return None if self.box is None else PlaceTexts.of(self.box, self.columns, self.rows)

    def title(self, position: int) -> str:
        """Return the place of the cell's middle on the map; of grids without one, the cell's number, column and row.

        Examples
        --------
        >>> import hubbub as hb
        >>> box = {"south": 37.7228, "west": -122.5153, "north": 37.7946, "east": -122.3789}
        >>> city = hb.Grid.over(**box, columns=24, rows=16)
        >>> city.title(155), hb.Grid(24, 16).title(155)
        ('37.752° N, 122.450° W', '155: column 11, row 6')
        """
        column, row = self.steps[position].tolist()
        if self.place_texts is not None:
            return f"{self.place_texts.latitudes[row]}, {self.place_texts.longitudes[column]}"
        return f"{self.labels[position]}: column {column}, row {row}"

    def area_title(self, positions: Positions) -> str:
        """Return how many cells these are, and within which latitudes and longitudes, or columns and rows."""
        columns, rows = self.steps[positions].T
        (west, east), (south, north) = ((int(steps.min()), int(steps.max())) for steps in (columns, rows))
        texts = self.place_texts
        if texts is None:
            return f"{plural(positions.size, 'cell')}: {_span('column', west, east)}, {_span('row', south, north)}"
        latitudes = range_text(texts.latitude_edges[south], texts.latitude_edges[north + 1])
        longitudes = range_text(texts.longitude_edges[west], texts.longitude_edges[east + 1])
        return f"{plural(positions.size, 'cell')} within {latitudes}, {longitudes}"

    def cell(self, column: int, row: int) -> int:
        """Return the number of the cell `column` steps east and `row` steps north of cell 0.

        Parameters
        ----------
        column, row
            Whole numbers, counted from 0 in the south-west.

        Returns
        -------
        int
            The cell's number.

        Raises
        ------
        DomainError
            If there is no such cell, or it is not kept.
        """
        where, got = "Grid.cell(column, row)", f"column {column}, row {row}"
        steps = [as_integer(step, DomainError, where=where, expected="whole numbers") for step in (column, row)]
        number = steps[1] * self.columns + steps[0]
        if not (0 <= steps[0] < self.columns and 0 <= steps[1] < self.rows):
            expected = f"columns 0 to {self.columns - 1}, rows 0 to {self.rows - 1}"
            remedy = "count columns from the west and rows from the south, from 0"
            raise DomainError("no such cell", where=where, got=got, expected=expected, remedy=remedy)
        if self.find(number) < 0:
            got, expected = f"{got}: cell {number}", self.describe()
            remedy = "choose a cell that is kept, or build the grid with this cell among Grid(cells=)"
            raise DomainError("the cell is not kept", where=where, got=got, expected=expected, remedy=remedy)
        return number

    def locate(self, latitude: object, longitude: object, *, outside: str = "error") -> Positions:
        """Return the cells of points on the map (only for `Grid.over`).

        Parameters
        ----------
        latitude, longitude
            Decimal degrees: two lists of the same length, or two numbers.
        outside
            What happens to points that lie in no kept cell. With "error", for people's true values, they
            are refused: the study does not know such places. With "nearest", for noisy reports, they belong to the
            nearest kept cell, to which planar mechanisms remap whatever their noise carries away; to leave them out
            instead would bias the estimate.

        Returns
        -------
        numpy.ndarray
            The numbers of the cells.

        Raises
        ------
        DomainError
            If the grid has no place on the map, or a point has no cell.

        Examples
        --------
        >>> import hubbub as hb
        >>> box = {"south": 37.7228, "west": -122.5153, "north": 37.7946, "east": -122.3789}
        >>> city = hb.Grid.over(**box, columns=24, rows=16)
        >>> city.locate([37.75, 38.0], [-122.45, -122.45], outside="nearest")
        array([155, 371])
        """
        if outside not in ("error", "nearest"):
            expected = "'error' (for true values) or 'nearest' (for noisy reports)"
            raise validation.wrong(outside, "outside", "Grid.locate", expected, default="'error'", error=DomainError)
        if self.box is None:
            what, where = "this grid has no place on the map", "Grid.locate(latitude, longitude)"
            remedy = "build it with Grid.over(south=, west=, north=, east=, ...)"
            raise DomainError(what, where=where, got=repr(self), expected="a grid made by Grid.over", remedy=remedy)
        if outside == "nearest":
            column, row = self.box.steps(latitude, longitude, self.columns, self.rows, beyond=True)
            nearest_positions = self.nearest(column.ravel(), row.ravel()).reshape(column.shape)
            return self.labels[nearest_positions][()]
        column, row = self.box.steps(latitude, longitude, self.columns, self.rows)
        numbers = row * self.columns + column
        missing = self.find(numbers) < 0
        if missing.any():
            position = int(np.argmax(missing.ravel()))
            raise DomainError(
                "a point lies in a cell that is not kept",
                where=f"Grid.locate, position {position}",
                got=f"cell {numbers.ravel()[position]}",
                expected=self.describe(),
                remedy="for a true value keep the cell, or deliberately leave that person out; a noisy report belongs "
                "to the nearest kept cell, and leaving it out biases the estimate: outside='nearest'",
            )
        return numbers[()]

    def lattice(self, first: Floats, second: Floats, *, on_map: bool) -> tuple[Positions, Positions, NDArray[np.bool_]]:
        """Return column and row of points on the infinite lattice, and which points are places at all.

        Parameters
        ----------
        first, second
            Latitude and longitude, or x and y: how far to the east and to the north of the grid's south-western corner
            a point lies, in the grid's unit.
        on_map
            Whether they are latitude and longitude (only for `Grid.over`).

        Returns
        -------
        tuple
            Columns, rows, and what is a place. A cell holds its southern and its western side; the last row and column
            hold their outer side, too.
        """
        if on_map:
            assert self.box is not None  # noqa: S101  # callers ask `is_on_map`
            good = self.box.are_places(first, second)
        else:
            good = np.isfinite(first) & np.isfinite(second)
        if not good.all():
            first, second = np.where(good, first, 0.0), np.where(good, second, 0.0)
        if on_map and self.box is not None:
            return *self.box.lattice(first, second, self.columns, self.rows), good
        across = on_last_side(np.floor(first / self.width), first <= self.columns * self.width, self.columns)
        along = on_last_side(np.floor(second / self.height), second <= self.rows * self.height, self.rows)
        return across, along, good

    def nearest(self, columns: Positions, rows: Positions) -> Positions:
        """Return the position of the kept cell nearest to each cell of the infinite lattice.

        Parameters
        ----------
        columns, rows
            Where the cells of the lattice lie; negative, or beyond the last, outside the grid.
        """
        if self.cells is None:
            return np.clip(rows, 0, self.rows - 1) * self.columns + np.clip(columns, 0, self.columns - 1)
        return nearest(self.steps, np.stack([columns, rows], axis=1), self.sides)

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return the Euclidean distances between centres."""
        # From whole steps, so that equal displacements have equal distances to the last bit.
        apart = np.abs(self.steps[rows][:, None, :] - self.steps[columns][None, :, :])
        distances: Floats = np.hypot(apart[..., 0] * self.width, apart[..., 1] * self.height)
        return distances

    def squared_distance(self, first: int, second: int) -> Fraction:
        """Return the square of the distance between two centres, exactly."""
        columns, rows = (int(step) for step in self.steps[first] - self.steps[second])
        return (columns * Fraction(self.width)) ** 2 + (rows * Fraction(self.height)) ** 2

    @property
    def least_distance(self) -> float:
        """The shorter side of a cell."""
        return min(self.sides)

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        numbers = as_integers(values, DomainError, where="values", expected=self.describe())
        inside = (numbers >= 0) & (numbers < self.columns * self.rows)
        if self.cells is None:
            return np.where(inside, numbers, -1)
        position = np.minimum(np.searchsorted(self.labels, numbers), len(self) - 1)
        return np.where(self.labels[position] == numbers, position, -1)

    def _kept(self, cells: Iterable[int]) -> tuple[int, ...]:
        where = "Grid(cells=)"
        expected = "a flat list of cell numbers"
        remedy = "list the numbers of the cells to keep; numpy.flatnonzero(mask) gives them from a flat mask"
        numbers = as_integers(cells, DomainError, where=where, expected=expected, remedy=remedy)
        if numbers.ndim != 1:
            what = "cells must be a flat list"
            raise DomainError(what, where=where, got=shorten(cells), expected=expected, remedy=remedy)
        kept = np.unique(numbers)
        check_size(kept.size, where)
        if kept[0] < 0 or kept[-1] >= self.columns * self.rows:
            got = int(kept[0] if kept[0] < 0 else kept[-1])
            expected = f"cell numbers from 0 to {self.columns * self.rows - 1}"
            remedy = "number cells row by row from the south-west, from 0"
            raise DomainError("a kept cell is not on the grid", where=where, got=got, expected=expected, remedy=remedy)
        return tuple(kept.tolist())

    def fields(self) -> dict[str, Any]:
        """Return what defines the grid, as study files hold it: by its box on the map, if it has one."""
        fields: dict[str, Any] = {"columns": self.columns, "rows": self.rows}
        fields["cells"] = None if self.cells is None else list(self.cells)
        if self.box is None:
            return fields | {"cell": list(self.sides), "unit": self.unit}
        return fields | {side: getattr(self.box, side) for side in BOX_SIDES}

    @classmethod
    def constructor(cls, fields: Mapping[str, Any]) -> Callable[..., Grid]:
        """Return `Grid.over` where a side of the box is given, `Grid` otherwise."""
        return cls.over if set(BOX_SIDES) & set(fields) else cls

    def describe(self) -> str:
        """Return one line for messages."""
        kept = "" if self.cells is None else f", one of the {len(self.cells)} that are kept"
        return f"a cell number from 0 to {self.columns * self.rows - 1}{kept}"


def _span(name: str, first: int, last: int) -> str:
    return f"{name} {first}" if first == last else f"{name}s {first} to {last}"


def _sides(cell: object) -> tuple[float, float]:
    sides = [as_real(side) for side in (cell if isinstance(cell, tuple | list) else (cell, cell))]
    if len(sides) != 2 or not all(0 < side < math.inf for side in sides):
        expected, remedy = "a positive number, or a pair (width, height) of them", "give sides in the grid's unit"
        raise validation.wrong(cell, "cell", "Grid", expected, remedy=remedy, error=DomainError)
    if not all(MIN_LENGTH <= side <= MAX_LENGTH for side in sides):
        expected = f"sides from {MIN_LENGTH:g} to {MAX_LENGTH:g}: beyond, distances are no longer numbers"
        what, remedy = "a cell is too small or too large", "use another unit of length"
        raise DomainError(what, where="Grid(cell=)", got=shorten(cell), expected=expected, remedy=remedy)
    return sides[0], sides[1]
