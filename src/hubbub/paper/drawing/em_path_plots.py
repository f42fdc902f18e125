"""EM's error after each number of updates, and where rules would have stopped it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page
from matplotlib.lines import Line2D

from hubbub.paper.drawing.captions import setting_caption
from hubbub.paper.drawing.figure_sheet import Handles, Sheet, head, head_height, plain_ticks
from hubbub.paper.drawing.plot_style import look, marker
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting
from hubbub.rendering.palette import BLUE, ORANGE, SKY

PANELS_PER_ROW = 3
BEST_ITERATE = marker("*", 15, ORANGE, edge=0.8, zorder=4)


def draw_paths(figure: Figure, results: Results) -> Page:
    """Draw a panel for each setting; a free place after the last one holds the legend."""
    rows = -(-len(figure.settings) // PANELS_PER_ROW)
    free = rows * PANELS_PER_ROW - len(figure.settings)
    legend = _legend(figure, results)
    sheet = Sheet(
        figure,
        results,
        height=3.3 * rows,
        notes=["Stops, lines and the best iterate: medians over the runs"],
        legend=() if free else legend,
        columns=5,
    )
    panels = sheet.panels(rows, PANELS_PER_ROW, head=head_height(1), left=0.8, between=0.8)
    for axes, setting in zip(panels, figure.settings, strict=False):
        _panel(axes, figure, results, setting)
    for axes in panels[len(figure.settings) :]:
        axes.set_axis_off()
    if free:
        panels[-free].legend(*zip(*legend, strict=True), loc="center left", labelspacing=0.75, handlelength=2.6)
    return sheet.page


def _panel(axes: Axes, figure: Figure, results: Results, setting: Setting) -> None:
    path = results.path(figure, setting)
    updates, errors = np.array(path["updates"]), np.array(path["tv"])
    axes.plot(updates, errors.T, color=SKY, linewidth=0.7, alpha=0.8, zorder=2)
    axes.plot(updates, np.median(errors, axis=0), color=BLUE, linewidth=2.2, zorder=3)
    heights = [errors.min(), errors.max()]
    last = updates[-1]
    for method in setting.beyond:
        own = results.column(figure, setting, method, "tv")
        if own.size:
            axes.axhline(float(np.median(own)), **_line(method))
            heights.append(np.median(own))
    for method, stop in path["stops"].items():
        where = float(np.median(stop["iterations"]))
        axes.plot([where], [np.median(stop["tv"])], **_stop(method))
        last = max(last, where)
    best = errors.argmin(axis=1)
    axes.plot([np.median(updates[best])], [np.median(errors.min(axis=1))], **BEST_ITERATE)
    low, high = min(heights) / 1.25, max(heights) * 1.15
    axes.set(xscale="log", yscale="log", xlim=(1, last * 1.3), ylim=(low, high))
    axes.set(xlabel="EM updates", ylabel="total variation")
    plain_ticks(axes.yaxis, low, high)
    decades = 10 ** np.arange(int(np.log10(last)) + 1)
    axes.set_xticks(decades, [f"{decade:,}" for decade in decades])
    axes.minorticks_off()
    axes.grid()
    head(axes, *setting_caption(setting, results.place).split("\n"))


def _line(method: str) -> dict[str, Any]:
    own = look(method)
    return {"color": own.colour, "linestyle": own.line, "linewidth": 2.0, "zorder": 2.5}


def _stop(method: str) -> dict[str, Any]:
    return marker(look(method).marker, 8, "white", edge=1.3, zorder=5)


def _legend(figure: Figure, results: Results) -> Handles:
    stops = list(dict.fromkeys(stop for setting in figure.settings for stop in results.path(figure, setting)["stops"]))
    return [
        (Line2D([], [], color=SKY, linewidth=0.9), "EM, each run"),
        (Line2D([], [], color=BLUE, linewidth=2.2), "EM, median of the runs"),
        *((Line2D([], [], **_stop(stop)), f"where delta {stop.removeprefix('em ')} stops") for stop in stops),
        (Line2D([], [], **BEST_ITERATE), "the best iterate (knowing the truth)"),
        *((Line2D([], [], **_line(method)), look(method).label) for method in figure.beyond),
    ]
