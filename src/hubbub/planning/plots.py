"""Pictures of a plan: errors or users needed, one line for each way to report, with what the simulation leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.planning.number_format import told
from hubbub.planning.plan_tables import epsilon_cell
from hubbub.planning.question import (
    USERS,
    Question,
    equivalent,
    label_of,
    worst_needed,
    worst_settings,
)
from hubbub.planning.result import Needed, SettingResult
from hubbub.rendering.palette import INK, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "osD^vPX*"
LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
INSIDE = 4  # lines whose names fit into the picture...
LONG = 28  # ...if they are no longer than that
WIDE = 20.0  # ratio of numbers from which a logarithmic scale shows more
BAND = 0.18  # how dense a band of simulation error is


class Dot(NamedTuple):
    """One number of a picture, with its range."""

    across: float
    up: float
    low: float
    high: float
    guessed: bool  # extrapolated: drawn hollow


class PlotLine(NamedTuple):
    """The numbers of one way to report, and how they look."""

    dots: list[Dot]
    colour: int
    mark: int
    dashes: int


def draw_plan(question: Question, settings: Sequence[SettingResult], needed: Sequence[Needed], axes: Axes) -> None:
    """Draw users needed where these were looked for, otherwise errors against users or epsilon."""
    if question.looks_for == USERS:
        answers = worst_needed(needed)
        lines = _lines([(label_of(one), _of_needed(one)) for one in answers if one.value is not None])
        by_users, up = False, "users needed"
        title = f"{question.distance_name} of {question.target:g}{question.distance_unit}, {_by(question)}"
        missed = sum(one.value is None for one in answers)
        title += f"; out of reach for {missed}" if missed else ""
    else:
        worst = [one for one in worst_settings(settings, question) if question.spread(one) is not None]
        by_users = len({one.users for one in worst}) > 1
        lines = _against_users(question, worst) if by_users else _against_epsilon(question, worst)
        unit = f" ({question.distance_unit.strip()})" if question.distance_unit else ""
        up, title = f"{question.distance_name}{unit}: median study", f"errors to expect, {_by(question)}"
        title += "" if by_users or not worst else f", {worst[0].users:,} users"
    several = any(len({dot.across for dot in line.dots}) > 1 for line in lines.values())
    if by_users:
        _draw_lines(lines, axes, "users")
    elif several:
        _draw_lines(lines, axes, f"plain epsilon{_reach(question, [*settings, *needed])}")
    else:
        _draw_dots(lines, axes)
    _finish(question, axes, up, title, across=not (by_users or several))


def _by(question: Question) -> str:
    truth = question.truths[0] if len(question.truths) == 1 else f"worst of {len(question.truths)}"
    return f"by {question.method}, truth: {_clipped(truth)}"


def _lines(named: Sequence[tuple[str, Dot]]) -> dict[str, PlotLine]:
    lines: dict[str, PlotLine] = {}
    for name, dot in named:
        lines.setdefault(name, PlotLine([], *_look(len(lines)))).dots.append(dot)
    return lines


def _look(place: int) -> tuple[int, int, int]:
    return place, place, place // len(PALETTE)


def _against_epsilon(question: Question, worst: Sequence[SettingResult]) -> dict[str, PlotLine]:
    return _lines([(label_of(one), _of_setting(question, one, equivalent(one.privacy) or 0.0)) for one in worst])


def _against_users(question: Question, worst: Sequence[SettingResult]) -> dict[str, PlotLine]:
    """Return a line for each way to report and epsilon; where both vary, colours are epsilons and dashes are ways."""
    ways = list(dict.fromkeys(label_of(one) for one in worst))
    budgets = list(dict.fromkeys(equivalent(one.privacy) for one in worst))
    both = len({(label_of(one), equivalent(one.privacy)) for one in worst}) > len(ways) > 1
    lines: dict[str, PlotLine] = {}
    for one in worst:
        way, budget = ways.index(label_of(one)), budgets.index(equivalent(one.privacy))
        name = label_of(one) if len(budgets) == 1 else f"{label_of(one)}, ε {epsilon_cell(one)}"
        look = (budget, way, way) if both else _look(len(lines))
        lines.setdefault(name, PlotLine([], *look)).dots.append(_of_setting(question, one, float(one.users)))
    return lines


def _of_setting(question: Question, one: SettingResult, across: float) -> Dot:
    spread = question.spread(one)
    assert spread is not None  # noqa: S101  # those without one were left out
    return Dot(across, spread.median, spread.low, spread.high, one.extrapolated)


def _of_needed(one: Needed) -> Dot:
    value = one.value or 0.0
    low, high = value if one.low is None else one.low, value if one.high is None else one.high
    return Dot(equivalent(one.privacy) or 0.0, value, low, high, one.extrapolated)


def _draw_lines(lines: dict[str, PlotLine], axes: Axes, across: str) -> None:
    """Draw a line with its band for each way to report; colour, mark and dashes all tell them apart."""
    for name, line in lines.items():
        dots = sorted(line.dots)
        colour, mark = PALETTE[line.colour % len(PALETTE)], MARKS[line.mark % len(MARKS)]
        dashes = LINES[line.dashes % len(LINES)]
        places, ups = [dot.across for dot in dots], [dot.up for dot in dots]
        ends = [dot.low for dot in dots], [dot.high for dot in dots]
        axes.fill_between(places, *ends, color=colour, alpha=BAND, linewidth=0)
        axes.plot(places, ups, color=colour, linestyle=dashes, linewidth=1.6)
        for dot in dots:
            face = "white" if dot.guessed else colour
            axes.plot([dot.across], [dot.up], mark, color=colour, markerfacecolor=face)
        axes.plot([], [], color=colour, linestyle=dashes, marker=mark, label=name)
    axes.set_xscale("log")
    axes.set_xlabel(across)
    _plain_ticks(axes, [dot.across for line in lines.values() for dot in line.dots])
    beside = len(lines) > INSIDE or max(map(len, lines), default=0) > LONG
    place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if beside else {"loc": "best"}
    for text in axes.legend(frameon=False, fontsize="small", handlelength=3.6, **place).get_texts():
        text.set_parse_math(False)


def _plain_ticks(axes: Axes, numbers: Sequence[float]) -> None:
    """Label what was tried, as people write numbers, where there is room; the logarithmic scale does so elsewhere."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    tried = sorted(set(numbers))
    if 1 < len(tried) <= 8 and min(after / before for before, after in pairwise(tried)) > 1.25:
        axes.xaxis.set_major_locator(FixedLocator(tried))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: short(number)))


def short(number: float) -> str:
    """Return a number for an axis.

    >>> short(10_000), short(2_500_000), short(0.05), short(1.5), short(3000)
    ('10k', '2.5M', '0.05', '1.5', '3k')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def _draw_dots(lines: dict[str, PlotLine], axes: Axes) -> None:
    """Draw one dot for each way to report, best on top, with a whisker for what the simulation leaves open."""
    dots = sorted(((name, dot) for name, line in lines.items() for dot in line.dots), key=lambda pair: -pair[1].up)
    for place, (_, dot) in enumerate(dots):
        axes.hlines(place, dot.low, dot.high, color=PALETTE[0], linewidth=4, alpha=0.4)
        axes.plot([dot.up], [place], "o", color=PALETTE[0], markerfacecolor="white" if dot.guessed else PALETTE[0])
        axes.annotate(
            told(dot.up), (dot.up, place), xytext=(0, 8), textcoords="offset points", ha="center", fontsize="small"
        )
    axes.set_yticks(range(len(dots)), [_clipped(name) for name, _ in dots], parse_math=False)
    axes.set_ylim(-0.7, len(dots) - 0.3)
    axes.grid(axis="x", color="#e4e4e4")


def _clipped(name: str) -> str:
    return name if len(name) <= 36 else name[:35] + "…"


def _finish(question: Question, axes: Axes, up: str, title: str, *, across: bool) -> None:
    """Set scale, target and names of the axis that holds the answer."""
    from matplotlib.ticker import FuncFormatter

    axis = axes.xaxis if across else axes.yaxis
    data = [
        float(one) for line in axes.lines for one in np.atleast_1d(line.get_xdata() if across else line.get_ydata())
    ]
    wide = not across or (data and max(data) > WIDE * min(data))
    if wide and data and min(data) > 0:
        (axes.set_xscale if across else axes.set_yscale)("log")
        axis.set_minor_formatter(FuncFormatter(lambda number, _: short(number) if f"{number:.0e}"[0] in "25" else ""))
    else:  # a median of 0 has no place on a logarithmic scale
        top = axes.dataLim.x1 if across else axes.dataLim.y1
        (axes.set_xlim if across else axes.set_ylim)(0.0, 1.08 * top if 0.0 < top < np.inf else 1.0)
    axis.set_major_formatter(FuncFormatter(lambda number, _: short(number)))
    if question.target is not None and question.looks_for != USERS:
        (axes.axvline if across else axes.axhline)(question.target, color=INK, linewidth=1.0, linestyle=(0, (2, 2)))
        at = (question.target, 1.0) if across else (1.0, question.target)
        axes.annotate(
            f"target {question.target:g}",
            at,
            xycoords=("data", "axes fraction") if across else ("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize="small",
            color=INK,
        )
    (axes.set_xlabel if across else axes.set_ylabel)(up)
    axes.set_title(title, parse_math=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _reach(question: Question, found: Sequence[SettingResult | Needed]) -> str:
    """Say over which distance epsilon per unit was counted, where it was."""
    for one in found:
        if one.privacy is not None and one.privacy.per_unit is not None and one.privacy.radius is not None:
            unit = "" if one.privacy.unit in (None, "unit") else f" {one.privacy.unit}"
            return f" ({'within' if question.radius is not None else 'over'} {one.privacy.radius:.3g}{unit})"
    return ""
