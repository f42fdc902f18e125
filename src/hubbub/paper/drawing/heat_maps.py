"""Heat maps: the place itself with the cells where nobody is, and the map as each method recovers it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure as Page
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from scipy.ndimage import label

from hubbub.core.arrays import Array, Floats
from hubbub.core.text import plural
from hubbub.domains import Grid
from hubbub.paper.drawing.captions import measured_methods, number
from hubbub.paper.drawing.figure_sheet import (
    AXIS_LABEL_INCHES,
    COLOUR_BAR_INCHES,
    Handles,
    Sheet,
    head,
    head_height,
    panel_width,
)
from hubbub.paper.drawing.plot_style import COLOUR_MAP, SEAM_POINTS, look
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting
from hubbub.paper.wording import mechanism_name
from hubbub.rendering.palette import GREY, VERMILLION

SQUARE_ROOT_NOTE = "Colours follow the square root of the probability"
MAPS_PER_ROW = 4
MAP_MARGINS = {"left": 0.6, "between": 0.3, "right": COLOUR_BAR_INCHES + 0.1}  # inches around several maps
WHITE_PATCH = Patch(facecolor="white", edgecolor=GREY)


def draw_place(figure: Figure, results: Results) -> Page:
    """Draw the map of a place: with its empty cells in white and outlined, or with all cell lines."""
    place, grid = results.place, results.place.grid
    with_holes = bool(figure.options["holes"])
    empty = (place.counts == 0).reshape(grid.rows, grid.columns)
    legend: Handles = ()
    note = f"{grid.columns} x {grid.rows} cells of {grid.width:.3g} x {grid.height:.3g} {grid.unit}"
    if with_holes:
        outlined = Line2D([], [], color=VERMILLION, linewidth=1.8)
        legend = [(WHITE_PATCH, "nobody there"), (outlined, "outline of adjacent empty cells")]
        note = f"{place.holes} of {len(grid)} cells are empty, in {label(empty)[1]} sets of cells that share a side"
    top, tall = 0.1, _map_height(grid, panel_width(1, right=COLOUR_BAR_INCHES))
    height = top + tall + AXIS_LABEL_INCHES
    sheet = Sheet(figure, results, height=height, notes=[note, SQUARE_ROOT_NOTE], legend=legend)
    (axes,) = sheet.panels(1, 1, head=top, right=COLOUR_BAR_INCHES)
    shares = np.where(place.counts > 0, place.shares, np.nan) if with_holes else place.shares
    drawn = _draw_cells(axes, grid, shares, float(place.shares.max()), lines=not with_holes)
    if with_holes:
        _outline(axes, grid, empty)
    axes.set(xlabel=f"east ({grid.unit})", ylabel=f"north ({grid.unit})")
    sheet.scale(drawn, "share of all people in the cell")
    return sheet.page


def draw_maps(figure: Figure, results: Results) -> Page:
    """Draw the original and every method's answer in the first run, on one scale of colours."""
    (setting,) = figure.settings
    grid = results.place.grid
    methods = ("truth", *measured_methods(figure, results))
    shapes = {method: results.shape(figure, setting, method) for method in methods}
    rows = -(-len(methods) // MAPS_PER_ROW)
    top, tall = head_height(3), _map_height(grid, panel_width(MAPS_PER_ROW, **MAP_MARGINS))
    noise = f"Noise: {mechanism_name(setting.mechanism)}, epsilon {setting.epsilon:g} per {grid.unit}"
    sheet = Sheet(
        figure,
        results,
        height=rows * (top + tall + AXIS_LABEL_INCHES),
        notes=[noise, "Maps: the first run, on one scale", SQUARE_ROOT_NOTE],
        legend=[(WHITE_PATCH, "white: less than half a person, or nobody")],
    )
    panels = sheet.panels(rows, MAPS_PER_ROW, head=top, shared=True, **MAP_MARGINS)
    peak = max(float(shape.max()) for shape in shapes.values())
    half = 0.5 / (setting.users or results.place.users)
    drawn = None
    for axes, (method, shape) in zip(panels, shapes.items(), strict=False):
        seen = np.where(shape < half, np.nan, shape)
        drawn = _draw_cells(axes, grid, seen, peak)
        title, errors = "original", ("", "")
        if method != "truth":
            title, errors = look(method).label, _errors(figure, results, setting, method)
        head(axes, title, *errors, f"{int(np.isnan(seen).sum())} of {len(grid)} cells are white")
    for axes in panels[len(methods) :]:
        axes.set_visible(False)
    for axes in panels[::MAPS_PER_ROW]:
        axes.set_ylabel(f"north ({grid.unit})")
    for place, axes in enumerate(panels[: len(methods)]):
        if place + MAPS_PER_ROW >= len(methods):
            axes.set_xlabel(f"east ({grid.unit})")
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(min(4, int(tall / 0.3)), integer=True))
    sheet.scale(drawn, "probability of the cell")
    return sheet.page


def borders_of(cells: Array) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the borders between cells inside and outside, as pairs of corners (column, row).

    >>> borders_of(np.array([[True]]))
    [((0, 0), (0, 1)), ((1, 0), (1, 1)), ((0, 0), (1, 0)), ((0, 1), (1, 1))]
    """
    padded = np.pad(cells, 1).astype(np.int8)
    upright = np.argwhere(np.diff(padded, axis=1)[1:-1]).tolist()  # row, and the column to the right of the border
    level = np.argwhere(np.diff(padded, axis=0)[:, 1:-1]).tolist()
    borders = [((column, row), (column, row + 1)) for row, column in upright]
    return borders + [((column, row), (column + 1, row)) for row, column in level]


def _errors(figure: Figure, results: Results, setting: Setting, method: str) -> tuple[str, str]:
    """Return the distances of the drawn run, and the medians over all runs."""
    units = {"tv": "", "emd": f" {results.place.grid.unit}"}
    columns = {distance: results.column(figure, setting, method, distance) for distance in figure.distances}
    here = ", ".join(f"{name.upper()} {number(float(errors[0]))}{units[name]}" for name, errors in columns.items())
    medians = ", ".join(f"{number(float(np.median(errors)))}{units[name]}" for name, errors in columns.items())
    return here, f"median {medians} ({plural(len(next(iter(columns.values()))), 'run')})"


def _draw_cells(axes: Axes, grid: Grid, values: Floats, top: float, *, lines: bool = False) -> Any:
    """Draw a map whose colours end at `top`; cells that are NaN stay white. Return what has a scale."""
    drawn = axes.pcolormesh(
        *_corners(grid),
        np.ma.masked_invalid(values.reshape(grid.rows, grid.columns)),
        cmap=COLOUR_MAP,
        norm=PowerNorm(0.5, vmin=0.0, vmax=top),  # the square root keeps thin areas visible beside a dense centre
        edgecolors=(1.0, 1.0, 1.0, 0.45) if lines else "face",
        linewidth=0.5 if lines else SEAM_POINTS,
    )
    axes.set_aspect("equal", anchor="W")  # narrow maps stay under their titles
    for side in axes.spines.values():
        side.set_visible(True)
    return drawn


def _map_height(grid: Grid, width: float) -> float:
    """Return how high a map of this width is, in the same unit; very long ones are drawn narrower instead."""
    return float(np.clip(width * grid.rows * grid.height / (grid.columns * grid.width), width / 4, 1.2 * width))


def _outline(axes: Axes, grid: Grid, cells: Array) -> None:
    """Draw a line around every connected set of cells, along their borders."""
    east, north = _corners(grid)
    lines = [[(east[column], north[row]) for column, row in border] for border in borders_of(cells)]
    axes.add_collection(LineCollection(lines, colors=VERMILLION, linewidths=1.8, capstyle="projecting", clip_on=False))


def _corners(grid: Grid) -> tuple[Floats, Floats]:
    """Return where the columns and the rows begin and end."""
    east: Floats = np.arange(grid.columns + 1) * np.float64(grid.width)
    north: Floats = np.arange(grid.rows + 1) * np.float64(grid.height)
    return east, north
