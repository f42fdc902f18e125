"""The picture of a plan: errors or users needed, one line for each candidate, with bands for the simulation's error."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.planning.answers import EPSILON, GROUP_USERS, POWER, USERS, Answer, Needed, Question, SettingResult
from hubbub.planning.number_format import epsilon_cell, radius_text, two_digits
from hubbub.rendering.palette import INK, PALETTE
from hubbub.rendering.picture_text import legible, names_beside, set_title, tell_missing_letters

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
    """Draw the users needed or the power where these were searched for, otherwise errors against users or epsilon."""
    truth = question.truths[0] if len(question.truths) == 1 else f"worst of {len(question.truths)}"
    conditions = f"by {question.method}, truth: {_clipped(truth)}"
    by_users = False
    if question.looks_for in (USERS, GROUP_USERS):
        lines = _lines(question, [need for need in needed if need.value is not None], by_users=False)
        if question.looks_for == GROUP_USERS:
            answer_name, title = "users needed per group", f"{question.target_text}, truth: {_clipped(truth)}"
        else:
            answer_name = "users needed"
            title = f"{question.distance_name} of {question.target:g}{question.distance_unit}, {conditions}"
    elif question.looks_for == POWER:
        by_users = len(question.users) > 1
        lines = _lines(question, [need for need in needed if need.value is not None], by_users=by_users)
        answer_name = "power" if by_users else f"power with {question.users[0]:,} users per group"
        title = f"{question.target_text}, truth: {_clipped(truth)}"
    else:
        by_users = len({setting.users for setting in settings}) > 1
        lines = _lines(question, settings, by_users=by_users)
        unit = f" ({question.distance_unit.strip()})" if question.distance_unit else ""
        answer_name = f"{question.distance_name}{unit}: median study"
        title = f"errors to expect, {conditions}"
        title += "" if by_users or not settings else f", {settings[0].users:,} users"
    has_one_epsilon = not by_users and all(len({point.x for point in line.points}) == 1 for line in lines.values())
    if has_one_epsilon:
        _draw_points(lines, axes, largest_is_best=question.looks_for == POWER)
    else:
        users = "users per group" if question.looks_for == POWER else "users"
        _draw_lines(lines, axes, users if by_users else f"plain epsilon{_reach(question, [*settings, *needed])}")
    _draw_answer_axis(question, axes, "x" if has_one_epsilon else "y", answer_name)
    missed = sum(need.value is None for need in needed) if question.looks_for != EPSILON else 0
    title += f"; out of reach for {missed}" if missed else ""
    set_title(axes, title, fontsize="medium")
    tell_missing_letters(axes)
    axes.spines[["top", "right"]].set_visible(False)


def _lines(question: Question, answers: Sequence[Answer], *, by_users: bool) -> dict[str, PlotLine]:
    """Return a line for each candidate, by its name.

    Against users, each epsilon has a line of its own; where both vary, colour shows epsilon, and dashes the candidate.
    """
    labels = list(dict.fromkeys(answer.label for answer in answers))
    epsilons = list(dict.fromkeys(answer.spent.plain for answer in answers))
    both_vary = by_users and len({(answer.label, answer.spent.plain) for answer in answers}) > len(labels) > 1
    lines: dict[str, PlotLine] = {}
    for answer in answers:
        name, x = answer.label, answer.spent.plain or 0.0
        if by_users:
            name += f", ε {epsilon_cell(answer.spent)}" if len(epsilons) > 1 else ""
            x = float(answer.users or 0)
        number = len(lines)
        colour, marker, dashes = number, number, number // len(PALETTE)
        if both_vary:
            colour = epsilons.index(answer.spent.plain)
            marker = dashes = labels.index(answer.label)
        point = PlotPoint(x, *question.compared(answer), answer.extrapolated)
        lines.setdefault(name, PlotLine([], colour, marker, dashes)).points.append(point)
    return lines


def _draw_lines(lines: dict[str, PlotLine], axes: Axes, x_name: str) -> None:
    """Draw a line with its band for each candidate; they differ in colour, marker and dashes."""
    for name, line in lines.items():
        points = sorted(point for point in line.points if point.x > 0)
        colour, marker = PALETTE[line.colour % len(PALETTE)], MARKERS[line.marker % len(MARKERS)]
        dashes = DASHES[line.dashes % len(DASHES)]
        if not points:  # an unbounded epsilon has no place on the scale
            axes.axhline(line.points[0].y, color=colour, linestyle=dashes, linewidth=1.6, label=f"{name}, unbounded")
            continue
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
    # The numbers that were simulated are labelled where there is room.
    ticks = sorted({point.x for line in lines.values() for point in line.points if point.x > 0})
    if 1 < len(ticks) <= MAX_TICKS and min(after / before for before, after in pairwise(ticks)) > MIN_TICK_RATIO:
        axes.set_xticks(ticks)
        axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(axis_number)
    is_outside = len(lines) > MAX_LINES_INSIDE or max(map(len, lines), default=0) > MAX_NAME_INSIDE
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if is_outside else {"loc": "best"}
    for text in axes.legend(frameon=False, fontsize="small", handlelength=3.6, **place).get_texts():
        (name,), style = legible([text.get_text()])
        text.set(text=name, **style)


def axis_number(number: float, _position: float = 0) -> str:
    """Return a number for an axis; matplotlib also passes the position of the tick.

    >>> axis_number(10_000), axis_number(2_500_000), axis_number(0.05), axis_number(3000)
    ('10k', '2.5M', '0.05', '3k')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _draw_points(lines: dict[str, PlotLine], axes: Axes, *, largest_is_best: bool) -> None:
    """Draw one point for each candidate, best on top, with a whisker for its interval."""
    every = ((name, each) for name, line in lines.items() for each in line.points)
    points = sorted(every, key=lambda pair: pair[1].y, reverse=not largest_is_best)
    for height, (_, point) in enumerate(points):
        face = "white" if point.extrapolated else PALETTE[0]
        axes.hlines(height, point.low, point.high, color=PALETTE[0], linewidth=4, alpha=0.4)
        axes.plot([point.y], [height], "o", color=PALETTE[0], markerfacecolor=face)
        text, above = two_digits(point.y), (0, 8)
        axes.annotate(text, (point.y, height), xytext=above, textcoords="offset points", ha="center", fontsize="small")
    names = names_beside([name for name, _ in points])
    axes.set_yticks(range(len(points)), names.texts, **names.style)
    axes.set_ylim(-0.7, len(points) - 0.3)
    axes.grid(axis="x", color="#e4e4e4")


def _clipped(name: str) -> str:
    return name if len(name) <= MAX_NAME_LETTERS else name[: MAX_NAME_LETTERS - 1] + "…"


def _draw_answer_axis(question: Question, axes: Axes, side: str, name: str) -> None:
    """Set the scale, target and name of the axis that shows the answer, "x" or "y"."""
    axis = axes.xaxis if side == "x" else axes.yaxis
    per_line = [np.atleast_1d(line.get_xdata() if side == "x" else line.get_ydata()) for line in axes.lines]
    data = [float(number) for numbers in per_line for number in numbers]
    is_wide = side == "y" or (data and max(data) > MIN_LOG_RATIO * min(data))
    if is_wide and data and min(data) > 0:
        axes.set(**{f"{side}scale": "log"})
        axis.set_minor_formatter(lambda number, _: axis_number(number) if f"{number:.0e}"[0] in "25" else "")
    else:  # a median of 0 has no place on a logarithmic scale
        top = axes.dataLim.x1 if side == "x" else axes.dataLim.y1
        axes.set(**{f"{side}lim": (0.0, 1.08 * top if 0.0 < top < np.inf else 1.0)})
    if question.looks_for == POWER:
        axes.set(**{f"{side}scale": "linear", f"{side}lim": (0.0, 1.05)})
    axis.set_major_formatter(axis_number)
    axes.set(**{f"{side}label": name})
    if question.target is None or question.looks_for == USERS:
        return
    line, at = (axes.axvline, (question.target, 1.0)) if side == "x" else (axes.axhline, (1.0, question.target))
    line(question.target, color=INK, linewidth=1.0, linestyle=(0, (2, 2)))
    coordinates = ("data", "axes fraction") if side == "x" else ("axes fraction", "data")
    text: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": "small", "color": INK}
    axes.annotate(f"target {question.target:g}", at, xycoords=coordinates, **text)


def _reach(question: Question, answers: Sequence[Answer]) -> str:
    """Return the distance over which epsilon per unit counts as plain epsilon, where there is one."""
    radii = [radius_text(answer.spent) for answer in answers if answer.spent.per_unit is not None]
    return f" ({'within' if question.radius is not None else 'over'} {radii[0]})" if radii else ""
