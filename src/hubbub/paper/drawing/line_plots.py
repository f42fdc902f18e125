"""Distributions on a line: the truth, and what each method makes of the reports."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hubbub.core.arrays import Floats
from hubbub.core.text import plural
from hubbub.paper.drawing.captions import measured_methods, median_text, number, setting_caption
from hubbub.paper.drawing.figure_sheet import Sheet, head, head_height
from hubbub.paper.drawing.plot_style import SMALL_POINTS, look
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting
from hubbub.rendering.palette import BLACK, INK, PALE

HEADROOM = 1.08  # above the highest value, as a factor
MAX_PEAK_RATIO = 1.9  # estimates that reach higher than this many times the truth and EM are cut off
MAX_MARKED_VALUES = 30  # values up to which each gets a marker


def draw_shapes(figure: Figure, results: Results) -> Page:
    """Draw a row of panels for each truth, one for each method."""
    methods = measured_methods(figure, results)
    sheet = Sheet(
        figure,
        results,
        height=3.7 * len(figure.settings),
        notes=["Drawn: the first run. In brackets: from 5% to 95% of the runs"],
        legend=[
            (Patch(facecolor=PALE, edgecolor=INK), "truth: the frequencies of the drawn inputs"),
            (Line2D([], [], color=BLACK), "estimate, each method in its colour"),
        ],
        columns=4,
    )
    rows, columns = len(figure.settings), len(methods)
    panels = sheet.panels(rows, columns, head=0.28 + head_height(3), between=0.2, under=0.65, shared=True)
    for row, setting in enumerate(figure.settings):
        own = panels[row * columns : (row + 1) * columns]
        sheet.heading(row, rows, setting_caption(setting, results.place).replace("\n", "; "))
        truth = results.shape(figure, setting, "truth")
        estimates = {method: results.shape(figure, setting, method) for method in methods}
        top = _top(truth, estimates)
        for axes, (method, estimate) in zip(own, estimates.items(), strict=True):
            _panel(axes, truth, estimate, method, top)
            _name(axes, figure, results, setting, method)
        own[0].set(ylim=(0.0, top), ylabel="probability")
        for axes in own:
            axes.set_xlabel("value")
    return sheet.page


def _top(truth: Floats, estimates: dict[str, Floats]) -> float:
    """Return where the row's axis ends: all of it, unless spikes would flatten the truth and EM."""
    calm = max([truth.max(), *(shape.max() for method, shape in estimates.items() if method.startswith("em "))])
    peak = max([truth.max(), *(shape.max() for shape in estimates.values())])
    return float(HEADROOM * peak if peak <= MAX_PEAK_RATIO * calm else MAX_PEAK_RATIO * calm)


def _panel(axes: Axes, truth: Floats, estimate: Floats, method: str, top: float) -> None:
    values = np.arange(len(truth))
    own = look(method)
    axes.fill_between(values, truth, step="mid", facecolor=PALE, edgecolor=INK, linewidth=0.6)
    few = len(values) <= MAX_MARKED_VALUES
    width, shape = (1.1, own.marker) if few else (1.3, "")
    axes.plot(values, estimate, color=own.colour, linewidth=width, marker=shape, markersize=5.5)
    axes.set_xlim(-0.5, len(values) - 0.5)
    axes.grid(axis="y")
    high = np.flatnonzero(estimate > top)
    if high.size:  # clipped to the panel, a spike would look as if it ended there
        right = np.median(high) < len(values) / 2  # words go where the spikes are not
        axes.plot(high, np.full(high.size, 0.98 * top), linestyle="", marker="^", color=own.colour, markersize=6)
        axes.text(
            0.98 if right else 0.02,
            0.95,
            f"{high.size} cut off,\nup to {number(float(estimate.max()))}",
            transform=axes.transAxes,
            ha="right" if right else "left",
            va="top",
            fontsize=SMALL_POINTS,
            color=INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        )


def _name(axes: Axes, figure: Figure, results: Results, setting: Setting, method: str) -> None:
    errors = results.column(figure, setting, method, "tv")
    this_run, runs = f"TV {number(float(errors[0]))} in this run", f"of {plural(len(errors), 'run')}"
    head(axes, look(method).label, this_run, median_text(errors), runs)
