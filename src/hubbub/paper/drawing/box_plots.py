"""Errors over many runs as boxes: by method, and by what is varied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hubbub.core.arrays import Floats
from hubbub.paper.drawing.captions import distance_label, epsilon_label, measured_methods, truth_name
from hubbub.paper.drawing.figure_sheet import AXIS_LABEL_INCHES, Handles, Sheet, head, head_height, plain_ticks
from hubbub.paper.drawing.plot_style import look, marker
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.paper.settings import Group, Setting
from hubbub.paper.wording import mechanism_name
from hubbub.rendering.palette import BLACK

MIN_RUNS_OF_A_BOX = 5  # runs that make a box; fewer are drawn as points
MIN_LOG_SPAN = 5.0  # largest over smallest error, from which on the axis is logarithmic
GROUP_WIDTH = 0.84  # of the room between two marks on the axis, for the boxes of one setting
BOXES_NOTE = "Boxes: quartiles. Whiskers: 5% and 95%. Markers: medians; of fewer than 5 runs, each run"


def draw_boxes(figure: Figure, results: Results) -> Page:
    """Draw a panel for each truth or mechanism and each distance; in each, a group of boxes for each setting."""
    methods = measured_methods(figure, results)
    groups = _groups(figure)
    wide = len(groups) * len(figure.distances) <= 2  # few panels: each over the whole width
    rows, columns = (len(groups) * len(figure.distances), 1) if wide else (len(figure.distances), len(groups))
    legend = _legend(figure, methods)
    sheet = Sheet(figure, results, height=3.35 * rows, notes=[BOXES_NOTE], legend=legend, columns=len(legend))
    under = AXIS_LABEL_INCHES if wide else 0.8
    panels = iter(sheet.panels(rows, columns, head=head_height(0), left=0.8, between=0.85, under=under))
    for distance in figure.distances:
        errors = {
            setting: {method: results.column(figure, setting, method, distance) for method in methods}
            for setting in figure.settings
        }
        ends = _ends(column for by_method in errors.values() for column in by_method.values() if column.size)
        for settings in groups:
            axes = next(panels)
            title, varied, marks = _words(figure, settings, results)
            for place, setting in enumerate(settings):
                _draw_group(axes, figure, place, errors[setting])
            axes.set_xlim(-0.5, len(settings) - 0.5)
            axes.set_xticks(range(len(settings)), marks)
            axes.tick_params(axis="x", length=0)
            axes.grid(axis="y")
            _scale(axes, *ends)
            axes.set_ylabel(distance_label(distance, settings[0].truth, results.place))
            if wide or distance == figure.distances[-1]:
                axes.set_xlabel(varied)
            if distance == figure.distances[0] or not wide:
                head(axes, title)
    return sheet.page


def _groups(figure: Figure) -> list[list[Setting]]:
    """Return the settings that belong in one panel: of the same truth, and mechanism where each user has but one."""
    panels: dict[tuple[str, str], list[Setting]] = {}
    for setting in figure.settings:
        panels.setdefault((setting.truth.name, setting.mechanism if figure.plain else ""), []).append(setting)
    return list(panels.values())


def _words(figure: Figure, settings: list[Setting], results: Results) -> tuple[str, str, list[str]]:
    """Return a panel's title, what is varied in it, and the words under each group of boxes."""
    first = settings[0]
    title = truth_name(first.truth, results.place)
    kinds = dict.fromkeys(kind for setting in settings for group in setting.groups for kind, _ in group.mechanisms)
    unit = epsilon_label(next(iter(kinds)), first.truth, results.place)
    if not figure.plain:
        varied = f"{unit} of each report; a+b: two reports,\nby {' and '.join(map(mechanism_name, kinds))}"
        return title, varied, [",\n".join(map(_group_words, setting.groups)) for setting in settings]
    title = f"{mechanism_name(first.mechanism)}, {title}"
    if len({setting.users for setting in settings}) > 1:
        return title, f"users ({unit}: {first.epsilon:g})", [f"{setting.users:,}" for setting in settings]
    return title, unit, [f"{setting.epsilon:g}" for setting in settings]


def _group_words(group: Group) -> str:
    share = {1.0: "all", 0.5: "half"}.get(group.share, f"{100 * group.share:g}%")
    return f"{share} {'+'.join(f'{epsilon:g}' for _, epsilon in group.mechanisms)}"


def _ends(columns: Iterable[Floats]) -> tuple[float, float]:
    """Return the lowest and the highest end of a whisker in all panels of a distance: they share their axis."""
    whiskers: list[float] = []
    for errors in columns:
        whiskers += np.quantile(errors, (0.05, 0.95) if errors.size >= MIN_RUNS_OF_A_BOX else (0.0, 1.0)).tolist()
    return min(whiskers), max(whiskers)


def _draw_group(axes: Axes, figure: Figure, place: int, by_method: Mapping[str, Floats]) -> None:
    """Draw the boxes of one setting side by side."""
    if place % 2:
        axes.axvspan(place - 0.5, place + 0.5, color="#f4f4f4", zorder=0)
    width = GROUP_WIDTH / len(by_method)
    for rank, (method, errors) in enumerate(by_method.items()):
        if errors.size:
            _box(axes, place - GROUP_WIDTH / 2 + (rank + 0.5) * width, 0.8 * width, errors, method, figure)


def _scale(axes: Axes, low: float, high: float) -> None:
    if low > 0 and high > MIN_LOG_SPAN * low:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.3, high * 1.3)
        plain_ticks(axes.yaxis, low / 1.3, high * 1.3)
    else:
        axes.set_ylim(0.0, 1.08 * high)


def _box(axes: Axes, where: float, width: float, errors: Floats, method: str, figure: Figure) -> None:
    if len(errors) >= MIN_RUNS_OF_A_BOX:
        low, quarter, median, three, high = np.quantile(errors, (0.05, 0.25, 0.5, 0.75, 0.95))
        axes.bxp(
            [{"whislo": low, "q1": quarter, "med": median, "q3": three, "whishi": high, "fliers": []}],
            positions=[where],
            widths=width,
            patch_artist=True,
            showfliers=False,
            manage_ticks=False,
            boxprops=_fill(figure, method),
            medianprops={"color": BLACK, "linewidth": 1.2},
            whiskerprops={"color": BLACK, "linewidth": 0.8},
            capprops={"color": BLACK, "linewidth": 0.8},
        )
        errors = np.array([median])
    axes.plot(np.full(len(errors), where), errors, **_median(method))


def _median(method: str) -> dict[str, Any]:
    """Return how a median is marked: boxes of many users are so flat that their colour is hard to see."""
    return marker(look(method).marker, 6.5, look(method).colour, edge=0.8, zorder=5)


def _fill(figure: Figure, method: str) -> dict[str, Any]:
    """Return how a box is filled: lighter for methods that were tried on the first runs alone."""
    own = look(method)
    face: Any = own.light if figure.first_runs and method in figure.beyond else own.colour
    return {"facecolor": face, "edgecolor": BLACK, "linewidth": 0.7, "hatch": own.hatch}


def _legend(figure: Figure, methods: tuple[str, ...]) -> Handles:
    handles: list[tuple[Any, str]] = []
    for method in methods:
        words = look(method).label
        if figure.first_runs and method in figure.beyond:
            words += f" ({figure.first_runs})"
        handles.append(((Patch(**_fill(figure, method)), Line2D([], [], **_median(method))), words))
    return handles
