"""The picture of a plan: errors or users needed, one line for each candidate, with bands for the simulation's error."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.planning.answers import USERS, Answer, Needed, Question, SettingResult, label_of, plain_epsilon
from hubbub.planning.number_format import two_digits
from hubbub.planning.plan_tables import epsilon_cell
from hubbub.rendering.palette import INK, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "osD^vPX*"
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
MAX_LINES_INSIDE, MAX_NAME_INSIDE = 4, 28  # lines, and letters of a name, of a legend inside the picture
MAX_NAME_LETTERS = 36
MAX_TICKS, MIN_TICK_RATIO = 8, 1.25  # with more or closer numbers, not each of them has a tick
MIN_LOG_RATIO = 20.0  # of the largest to the smallest number on a logarithmic scale
BAND_OPACITY = 0.18


class PlotPoint(NamedTuple):
    """One number of the picture with its 95% interval."""

    x: float
    y: float
    low: float
    high: float
    extrapolated: bool  # drawn hollow


class PlotLine(NamedTuple):
    """The numbers of one candidate, and the indices of its colour, marker and dashes."""

    points: list[PlotPoint]
    colour: int
    marker: int
    dashes: int


def draw_plan(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed], axes: Axes) -> None:
    """Draw the users needed where these were searched for, otherwise errors against users or epsilon."""
    by_users = False
    if question.looks_for == USERS:
        lines = _lines([(label_of(need), _needed_point(need)) for need in needed if need.value is not None])
        answer_name = "users needed"
        title = f"{question.distance_name} of {question.target:g}{question.distance_unit}, {_conditions(question)}"
        missed = sum(need.value is None for need in needed)
        title += f"; out of reach for {missed}" if missed else ""
    else:
        by_users = len({setting.users for setting in settings}) > 1
        lines = _against_users(question, settings) if by_users else _against_epsilon(question, settings)
        unit = f" ({question.distance_unit.strip()})" if question.distance_unit else ""
        answer_name = f"{question.distance_name}{unit}: median study"
        title = f"errors to expect, {_conditions(question)}"
        title += "" if by_users or not settings else f", {settings[0].users:,} users"
    has_several_epsilons = any(len({point.x for point in line.points}) > 1 for line in lines.values())
    if by_users:
        _draw_lines(lines, axes, "users")
    elif has_several_epsilons:
        _draw_lines(lines, axes, f"plain epsilon{_reach(question, [*settings, *needed])}")
    else:
        _draw_points(lines, axes)
    _finish(question, axes, answer_name, title, horizontal=not (by_users or has_several_epsilons))


def _conditions(question: Question) -> str:
    truth = question.truths[0] if len(question.truths) == 1 else f"worst of {len(question.truths)}"
    return f"by {question.method}, truth: {_clipped(truth)}"


def _lines(named: Sequence[tuple[str, PlotPoint]]) -> dict[str, PlotLine]:
    lines: dict[str, PlotLine] = {}
    for name, point in named:
        lines.setdefault(name, PlotLine([], *_look(len(lines)))).points.append(point)
    return lines


def _look(number: int) -> tuple[int, int, int]:
    return number, number, number // len(PALETTE)


def _against_epsilon(question: Question, settings: Sequence[SettingResult]) -> dict[str, PlotLine]:
    return _lines([(label_of(each), _setting_point(question, each, plain_epsilon(each) or 0.0)) for each in settings])


def _against_users(question: Question, settings: Sequence[SettingResult]) -> dict[str, PlotLine]:
    """Return a line for each candidate and epsilon; where both vary, colour shows epsilon, and dashes the candidate."""
    labels = list(dict.fromkeys(label_of(setting) for setting in settings))
    epsilons = list(dict.fromkeys(plain_epsilon(setting) for setting in settings))
    both_vary = len({(label_of(each), plain_epsilon(each)) for each in settings}) > len(labels) > 1
    lines: dict[str, PlotLine] = {}
    for setting in settings:
        label, epsilon = label_of(setting), plain_epsilon(setting)
        name = label if len(epsilons) == 1 else f"{label}, ε {epsilon_cell(setting)}"
        number = labels.index(label)
        look = (epsilons.index(epsilon), number, number) if both_vary else _look(len(lines))
        point = _setting_point(question, setting, float(setting.users))
        lines.setdefault(name, PlotLine([], *look)).points.append(point)
    return lines


def _setting_point(question: Question, setting: SettingResult, x: float) -> PlotPoint:
    error = question.error(setting)
    return PlotPoint(x, error.median, error.low, error.high, setting.extrapolated)


def _needed_point(need: Needed) -> PlotPoint:
    return PlotPoint(plain_epsilon(need) or 0.0, *need.interval, need.extrapolated)


def _draw_lines(lines: dict[str, PlotLine], axes: Axes, x_name: str) -> None:
    """Draw a line with its band for each candidate; they differ in colour, marker and dashes."""
    for name, line in lines.items():
        points = sorted(line.points)
        colour, marker = PALETTE[line.colour % len(PALETTE)], MARKERS[line.marker % len(MARKERS)]
        dashes = DASHES[line.dashes % len(DASHES)]
        x = [point.x for point in points]
        ends = [point.low for point in points], [point.high for point in points]
        axes.fill_between(x, *ends, color=colour, alpha=BAND_OPACITY, linewidth=0)
        axes.plot(x, [point.y for point in points], color=colour, linestyle=dashes, linewidth=1.6)
        for point in points:
            face = "white" if point.extrapolated else colour
            axes.plot([point.x], [point.y], marker, color=colour, markerfacecolor=face)
        axes.plot([], [], color=colour, linestyle=dashes, marker=marker, label=name)
    axes.set_xscale("log")
    axes.set_xlabel(x_name)
    _plain_ticks(axes, [point.x for line in lines.values() for point in line.points])
    is_outside = len(lines) > MAX_LINES_INSIDE or max(map(len, lines), default=0) > MAX_NAME_INSIDE
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if is_outside else {"loc": "best"}
    for text in axes.legend(frameon=False, fontsize="small", handlelength=3.6, **place).get_texts():
        text.set_parse_math(False)


def _plain_ticks(axes: Axes, numbers: Sequence[float]) -> None:
    """Label the numbers that were simulated where there is room; otherwise the logarithmic scale chooses its own."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ticks = sorted(set(numbers))
    if 1 < len(ticks) <= MAX_TICKS and min(after / before for before, after in pairwise(ticks)) > MIN_TICK_RATIO:
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: axis_number(number)))


def axis_number(number: float) -> str:
    """Return a number for an axis.

    >>> axis_number(10_000), axis_number(2_500_000), axis_number(0.05), axis_number(3000)
    ('10k', '2.5M', '0.05', '3k')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _draw_points(lines: dict[str, PlotLine], axes: Axes) -> None:
    """Draw one point for each candidate, best on top, with a whisker for its interval."""
    points = sorted(((name, each) for name, line in lines.items() for each in line.points), key=lambda pair: -pair[1].y)
    for height, (_, point) in enumerate(points):
        face = "white" if point.extrapolated else PALETTE[0]
        axes.hlines(height, point.low, point.high, color=PALETTE[0], linewidth=4, alpha=0.4)
        axes.plot([point.y], [height], "o", color=PALETTE[0], markerfacecolor=face)
        text, above = two_digits(point.y), (0, 8)
        axes.annotate(text, (point.y, height), xytext=above, textcoords="offset points", ha="center", fontsize="small")
    axes.set_yticks(range(len(points)), [_clipped(name) for name, _ in points], parse_math=False)
    axes.set_ylim(-0.7, len(points) - 0.3)
    axes.grid(axis="x", color="#e4e4e4")


def _clipped(name: str) -> str:
    return name if len(name) <= MAX_NAME_LETTERS else name[: MAX_NAME_LETTERS - 1] + "…"


def _finish(question: Question, axes: Axes, answer_name: str, title: str, *, horizontal: bool) -> None:
    """Set the scale, target and name of the axis that shows the answer."""
    from matplotlib.ticker import FuncFormatter

    axis = axes.xaxis if horizontal else axes.yaxis
    per_line = [np.atleast_1d(line.get_xdata() if horizontal else line.get_ydata()) for line in axes.lines]
    data = [float(number) for numbers in per_line for number in numbers]
    is_wide = not horizontal or (data and max(data) > MIN_LOG_RATIO * min(data))
    if is_wide and data and min(data) > 0:
        (axes.set_xscale if horizontal else axes.set_yscale)("log")
        axis.set_minor_formatter(
            FuncFormatter(lambda number, _: axis_number(number) if f"{number:.0e}"[0] in "25" else "")
        )
    else:  # a median of 0 has no place on a logarithmic scale
        top = axes.dataLim.x1 if horizontal else axes.dataLim.y1
        (axes.set_xlim if horizontal else axes.set_ylim)(0.0, 1.08 * top if 0.0 < top < np.inf else 1.0)
    axis.set_major_formatter(FuncFormatter(lambda number, _: axis_number(number)))
    if question.target is not None and question.looks_for != USERS:
        (axes.axvline if horizontal else axes.axhline)(question.target, color=INK, linewidth=1.0, linestyle=(0, (2, 2)))
        at = (question.target, 1.0) if horizontal else (1.0, question.target)
        axes.annotate(
            f"target {question.target:g}",
            at,
            xycoords=("data", "axes fraction") if horizontal else ("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize="small",
            color=INK,
        )
    (axes.set_xlabel if horizontal else axes.set_ylabel)(answer_name)
    axes.set_title(title, parse_math=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _reach(question: Question, answers: Sequence[Answer]) -> str:
    """Return the distance over which epsilon per unit counts as plain epsilon, where there is one."""
    for answer in answers:
        privacy = answer.privacy
        if privacy is not None and privacy.per_unit is not None and privacy.radius is not None:
            unit = "" if privacy.unit in (None, "unit") else f" {privacy.unit}"
            return f" ({'within' if question.radius is not None else 'over'} {privacy.radius:.3g}{unit})"
    return ""
