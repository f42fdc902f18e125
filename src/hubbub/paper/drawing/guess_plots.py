"""One person's value, guessed from many reports: how often the guess is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page
from matplotlib.lines import Line2D

from hubbub.core.arrays import Floats
from hubbub.paper.drawing.figure_sheet import Handles, Sheet, head, head_height, plain_ticks
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.paper.wording import mechanism_name
from hubbub.rendering.palette import BLUE, GREEN, INK, ORANGE

STANDARD_ERRORS = 1.96  # standard errors on each side: 95%
BOUND_STYLES = {
    "union": ("bound over pairs of values", ORANGE, (0, (5, 2)), "s"),
    "types": ("the paper's bound (method of types)", GREEN, (0, (1, 1.5)), "^"),
}


def draw_guesses(figure: Figure, results: Results) -> Page:
    """Draw a panel for each mechanism: simulated errors, and the bounds on them."""
    mechanisms = results.guesses(figure)
    values = int(figure.options["values"])
    each = int(figure.options["people"]) // values
    legend: Handles = [
        (_simulated([], []), "simulated, with its 95% interval"),
        *(
            (Line2D([], [], color=colour, linestyle=line, marker=marker, markersize=5), words)
            for words, colour, line, marker in BOUND_STYLES.values()
        ),
        (Line2D([], [], color=INK, linewidth=1.2), "1/2: two values that cannot be told apart"),
    ]
    sheet = Sheet(
        figure,
        results,
        height=4.3,
        notes=[
            f"{values} values, {each:,} simulated people with each; shown: the value guessed worst",
            "Bounds above 1 say nothing, and are drawn at 1",
            "Triangles pointing down: no error was seen; the probability is below this with 95% confidence",
        ],
        legend=legend,
        columns=4,
    )
    panels = sheet.panels(1, len(mechanisms), head=head_height(1), between=0.2, shared=True)
    low = min(_lowest(np.array(guesses["wrong"]), each) for guesses in mechanisms) / 1.5
    for axes, guesses in zip(panels, mechanisms, strict=True):
        _panel(axes, guesses, each, low)
    panels[0].set_ylabel("probability that the guess is wrong")
    return sheet.page


def interval(shares: Floats, people: int) -> tuple[Floats, Floats]:
    """Return Wilson's 95% interval of a share seen among some people: it has a width even where nothing was seen.

    >>> [end.round(4).tolist() for end in interval(np.array([0.0, 0.5]), 100)]
    [[0.0, 0.4038], [0.037, 0.5962]]
    """
    spread = STANDARD_ERRORS**2 / people
    centre = (shares + spread / 2) / (1 + spread)
    half = np.sqrt(spread * shares * (1 - shares) + spread**2 / 4) / (1 + spread)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def _lowest(wrong: Floats, people: int) -> float:
    """Return the lowest point that is drawn: the end of an interval, or the upper one where no error was seen."""
    below, above = interval(wrong, people)
    return float(np.where(wrong > 0, below, above).min())


def _panel(axes: Axes, guesses: Mapping[str, Any], each: int, low: float) -> None:
    reports = np.array(guesses["reports"])
    wrong = np.array(guesses["wrong"])
    for name, (_, colour, line, marker) in BOUND_STYLES.items():
        style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": marker, "markersize": 5}
        axes.plot(reports, np.minimum(guesses[name], 1.0), **style, zorder=3)
    twins = guesses["name"] == "twins"
    if twins:
        axes.axhline(0.5, color=INK, linewidth=1.2, zorder=1)
    seen = wrong > 0
    below, above = interval(wrong, each)
    reach = [(wrong - below)[seen], (above - wrong)[seen]]
    axes.errorbar(reports[seen], wrong[seen], yerr=reach, fmt="none", ecolor=BLUE, capsize=3, zorder=4)
    axes.add_line(_simulated(reports[seen], wrong[seen]))
    axes.plot(reports[~seen], above[~seen], linestyle="", marker="v", color=BLUE, markersize=8, zorder=5)
    axes.set(xscale="log", yscale="log", xlim=(reports[0] / 1.3, reports[-1] * 1.3), ylim=(low, 1.3))
    axes.set_xlabel("reports from the person (k)")
    plain_ticks(axes.xaxis, reports[0], reports[-1])
    plain_ticks(axes.yaxis, low, 1.0)
    axes.grid()
    beneath = "two values share each row: towards 1/2" if twins else "no two rows are alike: towards 0"
    head(axes, f"{mechanism_name(guesses['name'])}, epsilon {guesses['epsilon']:g}", beneath)


def _simulated(reports: Any, wrong: Any) -> Line2D:
    return Line2D(reports, wrong, color=BLUE, linestyle="", marker="o", markersize=6, zorder=5)
