"""A grid over a box: nearly square cells of a round size."""

from __future__ import annotations

import math
from typing import NamedTuple

from hubbub.client import EARTH_RADIUS_KM
from hubbub.core.errors import SettingError, shorten
from hubbub.domains.geometry import Box

FEWEST_CELLS, AIMED_CELLS, MOST_CELLS = 200, 450, 1000  # fine enough for a map, and quick to estimate with intervals
ROUND_DIGITS = (1.0, 2.0, 2.5, 5.0)  # areas of neighbouring sizes differ by less than MOST_CELLS / FEWEST_CELLS
DEGREE_DECIMALS = 5  # a metre
MAX_SIDE_CELLS = 10_000


class SuggestedGrid(NamedTuple):
    """A box and its cells; `cell` is the side of a cell in kilometres, across and along."""

    box: Box
    columns: int
    rows: int

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell, in kilometres."""
        width, height = self.box.size
        return width / self.columns, height / self.rows


def suggest_grid(
    box: Box, *, cell: float | None = None, columns: int | None = None, rows: int | None = None
) -> SuggestedGrid:
    """Return a grid that holds a box: cells of `cell` kilometres, so many columns and rows, or a round size.

    With a size, the box grows on all sides until it holds whole cells. With columns or rows it stays as it is.
    """
    for name, number in (("columns", columns), ("rows", rows)):
        if number is not None and not 1 <= number <= MAX_SIDE_CELLS:
            raise _wrong(f"--{name}", number, f"a whole number from 1 to {MAX_SIDE_CELLS:,}")
    width, height = box.size
    if columns is not None or rows is not None:
        if cell is not None:
            raise _wrong("--cell", cell, "a size, or a number of columns and rows")
        side = width / columns if columns is not None else height / (rows or 1)
        return SuggestedGrid(
            _rounded(box), columns or max(1, round(width / side)), rows or max(1, round(height / side))
        )
    if cell is not None and not (0 < cell < math.inf and max(width, height) / cell <= MAX_SIDE_CELLS):
        raise _wrong("--cell", cell, f"kilometres, at least {max(width, height) / MAX_SIDE_CELLS:.2g} for this area")
    side = _round_size(width, height) if cell is None else cell
    across, along = _cells(width, side), _cells(height, side)
    degree = math.radians(EARTH_RADIUS_KM)
    middle = (box.south + box.north) / 2.0
    half_height = along * side / degree / 2.0
    half_width = across * side / (degree * math.cos(math.radians(middle))) / 2.0
    centre = (box.west + box.east) / 2.0
    return SuggestedGrid(
        _rounded(Box(middle - half_height, centre - half_width, middle + half_height, centre + half_width)),
        across,
        along,
    )


def _cells(length: float, side: float) -> int:
    """Return how many cells cover a length; rounding to metres does not add one."""
    return max(1, math.ceil(length / side - 1e-3))


def _round_size(width: float, height: float) -> float:
    """Return the round size with the number of cells that is nearest to the one we aim at."""
    power = math.floor(math.log10(math.sqrt(width * height)))
    sizes = [digit * 10.0**exponent for exponent in range(power - 4, power + 2) for digit in ROUND_DIGITS]

    def distance(size: float) -> tuple[bool, float]:
        cells = _cells(width, size) * _cells(height, size)
        return not FEWEST_CELLS <= cells <= MOST_CELLS, abs(math.log(cells / AIMED_CELLS))

    return min(sizes, key=distance)


def _rounded(box: Box) -> Box:
    """Return a box in digits that people read, no smaller than before."""
    scale = 10.0**DEGREE_DECIMALS
    south, west = (math.floor(side * scale) / scale for side in (box.south, box.west))
    north, east = (math.ceil(side * scale) / scale for side in (box.north, box.east))
    return Box(max(-90.0, south), max(-180.0, west), min(90.0, north), min(180.0, east))


def _wrong(option: str, got: object, expected: str) -> SettingError:
    what, where = f"{option} does not fit", f"hubbub new grid {option}"
    remedy = "leave it out for cells of a round size"
    return SettingError(what, where=where, got=shorten(got), expected=expected, remedy=remedy)
