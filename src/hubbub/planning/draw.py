"""Pictures of a plan: errors or users needed, one line for each way to report, with what the simulation leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from hubbub.planning.found import Needed, Setting
from hubbub.planning.question import (
    USERS,
    Question,
    equivalent,
    label_of,
    worst_needed,
    worst_settings,
)
from hubbub.planning.rows import epsilon_cell
from hubbub.render.palette import INK, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "osD^vPX*"
LINES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
INSIDE = 4  # lines whose names fit into the picture
BAND = 0.18  # how dense a band of simulation error is


class Dot(NamedTuple):
    """One number of a picture, with its range."""

    across: float
    up: float
    low: float
    high: float
    guessed: bool  # extrapolated: drawn hollow


def draw_plan(question: Question, settings: Sequence[Setting], needed: Sequence[Needed], axes: Axes) -> None:
    """Draw users needed where these were looked for, otherwise errors against users or epsilon."""
    if question.looks_for == USERS:
        answers = [one for one in worst_needed(needed) if one.value is not None]
        lines = {label: [_of_needed(one) for one in own] for label, own in _by_label(answers).items()}
        up, title = "users needed", f"{question.distance_name} of {question.target:g}{question.distance_unit}"
        missed = len(worst_needed(needed)) - len(answers)
        if missed:
            title += f"; out of reach for {missed}"
    else:
        worst = [one for one in worst_settings(settings, question) if question.spread(one) is not None]
        by_users = len({one.users for one in worst}) > 1
        lines = _error_lines(question, worst, by_users)
        unit = f" ({question.distance_unit.strip()})" if question.distance_unit else ""
        up = f"{question.distance_name}{unit}: median study"
        title = f"errors to expect, by {question.method}"
        if by_users:
            _draw_lines(lines, axes, "users")
        elif worst:
            title += f", {worst[0].users:,} users"
    if question.looks_for == USERS or not by_users:
        if any(len({dot.across for dot in dots}) > 1 for dots in lines.values()):
            _draw_lines(lines, axes, f"plain epsilon{_reach(question, [*settings, *needed])}")
        else:
            _draw_dots(lines, axes)
            _finish(question, axes, up, title, across=True)
            return
    _finish(question, axes, up, title, across=False)


def _error_lines(question: Question, worst: Sequence[Setting], by_users: bool) -> dict[str, list[Dot]]:
    if not by_users:
        return {label: [_of_setting(question, one, False) for one in own] for label, own in _by_label(worst).items()}
    several = any(len({one.epsilon for one in own}) > 1 for own in _by_label(worst).values())
    lines: dict[str, list[Dot]] = {}
    for one in worst:
        name = f"{label_of(one)}, ε {epsilon_cell(one)}" if several else label_of(one)
        lines.setdefault(name, []).append(_of_setting(question, one, True))
    return lines


def _by_label(found: Sequence[Setting] | Sequence[Needed]) -> dict[str, list[Setting | Needed]]:
    named: dict[str, list[Setting | Needed]] = {}
    for one in found:
        named.setdefault(label_of(one), []).append(one)
    return named


def _of_setting(question: Question, one: Setting | Needed, by_users: bool) -> Dot:
    assert isinstance(one, Setting)  # noqa: S101
    spread = question.spread(one)
    assert spread is not None  # noqa: S101  # those without one were left out
    across = float(one.users) if by_users else equivalent(one.privacy) or 0.0
    return Dot(across, spread.median, spread.low, spread.high, one.extrapolated)


def _of_needed(one: Setting | Needed) -> Dot:
    assert isinstance(one, Needed)  # noqa: S101
    value = one.value or 0.0
    low, high = value if one.low is None else one.low, value if one.high is None else one.high
    return Dot(equivalent(one.privacy) or 0.0, value, low, high, one.extrapolated)


def _draw_lines(lines: dict[str, list[Dot]], axes: Axes, across: str) -> None:
    """Draw a line with its band for each way to report; colour, mark and dashes all tell them apart."""
    for place, (name, dots) in enumerate(lines.items()):
        dots = sorted(dots)
        colour, mark = PALETTE[place % len(PALETTE)], MARKS[place % len(MARKS)]
        places, ups = [dot.across for dot in dots], [dot.up for dot in dots]
        axes.fill_between(
            places, [dot.low for dot in dots], [dot.high for dot in dots], color=colour, alpha=BAND, linewidth=0
        )
        axes.plot(places, ups, color=colour, linestyle=LINES[place // len(PALETTE) % len(LINES)], linewidth=1.6)
        for guessed in (False, True):
            own = [dot for dot in dots if dot.guessed is guessed]
            face = "white" if guessed else colour
            axes.plot([dot.across for dot in own], [dot.up for dot in own], mark, color=colour, markerfacecolor=face)
        axes.plot([], [], color=colour, linestyle=LINES[place // len(PALETTE) % len(LINES)], marker=mark, label=name)
    axes.set_xscale("log")
    axes.set_xlabel(across)
    _plain_ticks(axes, [dot.across for dots in lines.values() for dot in dots])
    if any(len(dots) for dots in lines.values()):
        beside = len(lines) > INSIDE or max(map(len, lines)) > 28
        legend = axes.legend(
            frameon=False,
            fontsize="small",
            **({"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if beside else {"loc": "best"}),
        )
        for text in legend.get_texts():
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


def _draw_dots(lines: dict[str, list[Dot]], axes: Axes) -> None:
    """Draw one dot for each way to report, best on top, with a whisker for what the simulation leaves open."""
    dots = sorted(((name, dot) for name, own in lines.items() for dot in own), key=lambda pair: -pair[1].up)
    for place, (_, dot) in enumerate(dots):
        colour = PALETTE[0]
        axes.hlines(place, dot.low, dot.high, color=colour, linewidth=4, alpha=0.4)
        axes.plot([dot.up], [place], "o", color=colour, markerfacecolor="white" if dot.guessed else colour)
    axes.set_yticks(range(len(dots)), [_clipped(name) for name, _ in dots], parse_math=False)
    axes.set_ylim(-0.7, len(dots) - 0.3)
    axes.grid(axis="x", color="#e4e4e4")


def _clipped(name: str) -> str:
    return name if len(name) <= 32 else name[:31] + "…"


def _finish(question: Question, axes: Axes, up: str, title: str, *, across: bool) -> None:
    """Set scale, target and names of the axis that holds the answer."""
    from matplotlib.ticker import FuncFormatter

    axis = axes.xaxis if across else axes.yaxis
    heights = [line.get_xdata() if across else line.get_ydata() for line in axes.lines]
    positive = all(float(one) > 0 for some in heights for one in some)  # type: ignore[union-attr, arg-type]
    (axes.set_xscale if across else axes.set_yscale)("log" if positive else "linear")
    axis.set_major_formatter(FuncFormatter(lambda number, _: short(number)))
    axis.set_minor_formatter(FuncFormatter(lambda number, _: short(number) if f"{number:.0e}"[0] in "25" else ""))
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


def _reach(question: Question, found: Sequence[Setting | Needed]) -> str:
    """Say over which distance epsilon per unit was counted, where it was."""
    for one in found:
        if one.privacy is not None and one.privacy.per_unit is not None and one.privacy.radius is not None:
            unit = "" if one.privacy.unit in (None, "unit") else f" {one.privacy.unit}"
            return f" ({'within' if question.radius is not None else 'over'} {one.privacy.radius:.3g}{unit})"
    return ""
