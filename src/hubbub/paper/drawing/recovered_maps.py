"""The map as it is, and as each method recovers it, on one scale of colours."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Page
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from hubbub.paper.drawing.captions import measured_methods, mechanism_name, number, runs_text
from hubbub.paper.drawing.figure_sheet import (
    AXIS_LABEL_INCHES,
    COLOUR_BAR_INCHES,
    Sheet,
    head,
    head_height,
    panel_width,
)
from hubbub.paper.drawing.heat_maps import SQUARE_ROOT_NOTE, draw_cells, map_height, square_root_scale
from hubbub.paper.drawing.plot_style import look
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting
from hubbub.rendering.palette import GREY

MAPS_PER_ROW = 4
MAP_MARGINS = {"left": 0.6, "between": 0.3, "right": COLOUR_BAR_INCHES + 0.1}  # inches around the maps


def draw_maps(figure: Figure, results: Results) -> Page:
    """Draw the original and every method's answer in the first run."""
    (setting,) = figure.settings
    grid = results.place.grid
    methods = ("truth", *measured_methods(figure, results))
    shapes = {method: results.shape(figure, setting, method) for method in methods}
    rows = -(-len(methods) // MAPS_PER_ROW)
    top, tall = head_height(3), map_height(grid, panel_width(MAPS_PER_ROW, **MAP_MARGINS))
    kind, epsilon = setting.groups[0].mechanisms[0]
    sheet = Sheet(
        figure,
        results,
        height=rows * (top + tall + AXIS_LABEL_INCHES),
        notes=[
            f"Noise: {mechanism_name(kind)}, epsilon {epsilon:g} per {grid.unit}",
            "Maps: the first run, on one scale",
            SQUARE_ROOT_NOTE,
        ],
        legend=[(Patch(facecolor="white", edgecolor=GREY), "white: less than half a person, or nobody")],
    )
    panels = sheet.panels(rows, MAPS_PER_ROW, head=top, shared=True, **MAP_MARGINS)
    norm = square_root_scale(max(float(shape.max()) for shape in shapes.values()))
    half = 0.5 / (setting.users or results.place.users)
    drawn = None
    for axes, (method, shape) in zip(panels, shapes.items(), strict=False):
        seen = np.where(shape < half, np.nan, shape)
        drawn = draw_cells(axes, grid, seen, norm)
        white = f"{int(np.isnan(seen).sum())} of {len(grid)} cells are white"
        if method == "truth":
            head(axes, "original", "", "", white)
        else:
            head(axes, look(method).label, *_errors(figure, results, setting, method), white)
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


def _errors(figure: Figure, results: Results, setting: Setting, method: str) -> tuple[str, str]:
    """Return the distances of the drawn run, and the medians over all runs."""
    unit = results.place.grid.unit
    columns = {distance: results.column(figure, setting, method, distance) for distance in figure.distances}
    ends = {"tv": "", "emd": f" {unit}"}
    here = ", ".join(f"{name.upper()} {number(float(errors[0]))}{ends[name]}" for name, errors in columns.items())
    medians = ", ".join(f"{number(float(np.median(errors)))}{ends[name]}" for name, errors in columns.items())
    runs = len(next(iter(columns.values())))
    return here, f"median {medians} ({runs_text(runs)})"
