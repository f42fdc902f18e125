"""Heat maps of cells, and the outlines of sets of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import PowerNorm
from scipy.ndimage import label

from hubbub.core.arrays import Array, Floats
from hubbub.domains import Grid
from hubbub.paper.drawing.plot_style import COLOUR_MAP, SEAM_POINTS

SQUARE_ROOT_NOTE = "Colours follow the square root of the probability"


def square_root_scale(top: float) -> PowerNorm:
    """Return the colour scale of all maps: its square root keeps thin areas visible beside a dense centre."""
    return PowerNorm(0.5, vmin=0.0, vmax=top)


def draw_cells(axes: Axes, grid: Grid, values: Floats, norm: PowerNorm, *, lines: bool = False) -> Any:
    """Draw a map: cells that are NaN stay white, as do those that the grid does not have. Return what has a scale."""
    picture = np.full(grid.columns * grid.rows, np.nan)
    picture[grid.labels.astype(np.int64)] = values
    east, north = _borders(grid)
    drawn = axes.pcolormesh(
        east,
        north,
        np.ma.masked_invalid(picture.reshape(grid.rows, grid.columns)),
        cmap=COLOUR_MAP,
        norm=norm,
        edgecolors=(1.0, 1.0, 1.0, 0.45) if lines else "face",
        linewidth=0.5 if lines else SEAM_POINTS,
    )
    axes.set_aspect("equal", anchor="W")  # narrow maps stay under their titles
    for side in axes.spines.values():
        side.set_visible(True)
    return drawn


def map_height(grid: Grid, width: float) -> float:
    """Return how high a map of this width is, in the same unit; very long ones are drawn narrower instead."""
    return float(np.clip(width * grid.rows * grid.height / (grid.columns * grid.width), width / 4, 1.2 * width))


def cells_where(grid: Grid, wanted: Array) -> Array:
    """Return, for all rows and columns of a grid, whether the cell is there and wanted."""
    mask = np.zeros(grid.columns * grid.rows, dtype=bool)
    mask[grid.labels.astype(np.int64)] = wanted
    return mask.reshape(grid.rows, grid.columns)


def connected_sets(cells: Array) -> int:
    """Return the number of sets of cells that hang together, side by side.

    >>> connected_sets(np.array([[True, False], [False, True]]))
    2
    """
    return int(label(cells)[1])


def borders_of(cells: Array) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the borders between cells inside and outside, as pairs of corners (column, row).

    >>> borders_of(np.array([[True]]))
    [((0, 0), (0, 1)), ((1, 0), (1, 1)), ((0, 0), (1, 0)), ((0, 1), (1, 1))]
    """
    padded = np.pad(cells, 1).astype(np.int8)
    upright = np.argwhere(np.diff(padded, axis=1)[1:-1])  # row, and the column to the right of the border
    level = np.argwhere(np.diff(padded, axis=0)[:, 1:-1])
    return [((int(column), int(row)), (int(column), int(row) + 1)) for row, column in upright] + [
        ((int(column), int(row)), (int(column) + 1, int(row))) for row, column in level
    ]


def outline(axes: Axes, grid: Grid, cells: Array, colour: str) -> None:
    """Draw a line around every connected_sets set of cells, along their borders."""
    east, north = _borders(grid)
    lines = [[(east[column], north[row]) for column, row in border] for border in borders_of(cells)]
    axes.add_collection(LineCollection(lines, colors=colour, linewidths=1.8, capstyle="projecting", clip_on=False))


def _borders(grid: Grid) -> tuple[Floats, Floats]:
    east: Floats = np.arange(grid.columns + 1) * np.float64(grid.width)
    north: Floats = np.arange(grid.rows + 1) * np.float64(grid.height)
    return east, north
