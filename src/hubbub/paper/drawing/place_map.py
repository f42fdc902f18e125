"""The place itself: where people are, and where nobody is."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Page
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hubbub.paper.drawing.figure_sheet import AXIS_LABEL_INCHES, COLOUR_BAR_INCHES, Handles, Sheet, panel_width
from hubbub.paper.drawing.heat_maps import (
    SQUARE_ROOT_NOTE,
    cells_where,
    connected_sets,
    draw_cells,
    map_height,
    outline,
    square_root_scale,
)
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.rendering.palette import GREY, VERMILLION


def draw_place(figure: Figure, results: Results) -> Page:
    """Draw the map of a place: with its empty cells in white and outlined, or with all cell lines."""
    place, grid = results.place, results.place.grid
    with_holes = bool(figure.options["holes"])
    empty = cells_where(grid, place.counts == 0)
    legend: Handles = (
        [
            (Patch(facecolor="white", edgecolor=GREY), "nobody there"),
            (Line2D([], [], color=VERMILLION, linewidth=1.8), "around empty cells that touch"),
        ]
        if with_holes
        else []
    )
    what = (
        f"{place.holes} of {len(grid)} cells are empty, in {connected_sets(empty)} sets of cells that share a side"
        if with_holes
        else f"{grid.columns} x {grid.rows} cells of {grid.width:.3g} x {grid.height:.3g} {grid.unit}"
    )
    width = panel_width(1, right=COLOUR_BAR_INCHES)
    top = 0.1
    sheet = Sheet(
        figure,
        results,
        height=top + map_height(grid, width) + AXIS_LABEL_INCHES,
        notes=[what, SQUARE_ROOT_NOTE],
        legend=legend,
    )
    (axes,) = sheet.panels(1, 1, head=top, right=COLOUR_BAR_INCHES)
    shares = np.where(place.counts > 0, place.shares, np.nan) if with_holes else place.shares
    drawn = draw_cells(axes, grid, shares, square_root_scale(float(place.shares.max())), lines=not with_holes)
    if with_holes:
        outline(axes, grid, empty, VERMILLION)
    axes.set_xlabel(f"east ({grid.unit})")
    axes.set_ylabel(f"north ({grid.unit})")
    sheet.scale(drawn, "share of all people in the cell")
    return sheet.page
