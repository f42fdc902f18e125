"""The picture of a benchmark: mean errors with two standard errors, against users or side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hubbub.planning.answers import DISTANCE_NAMES
from hubbub.planning.plan_plot import axis_number
from hubbub.rendering.palette import PALETTE
from hubbub.rendering.picture_text import legible, names_beside, set_title, tell_missing_letters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub.benchmarking.result import BenchmarkCell

MARKERS = "osD^vPX*"
STANDARD_ERRORS = 2.0
MIN_ERROR = 1e-300
MAX_TICKS = 8
MAX_LINES, MAX_POINTS = 14, 40  # of one picture: the best ones


def draw_benchmark(cells: Sequence[BenchmarkCell], distance: str, unit: str | None, axes: Axes) -> None:
    """Draw a line for each mechanism, method and truth where there are several numbers of users, else a point."""
    shown = [cell for cell in cells if cell.measured(distance)]
    by_users = len({cell.users for cell in cells}) > 1
    name = DISTANCE_NAMES[distance] + (f" ({unit})" if distance == "emd" and unit not in (None, "unit") else "")
    truths = list(dict.fromkeys(cell.truth for cell in cells))
    lines: dict[str, list[BenchmarkCell]] = {}
    for cell in shown:
        lines.setdefault(_name(cell, several_truths=len(truths) > 1), []).append(cell)
    order = sorted(
        lines, key=lambda name: float(np.mean([math.log(max(cell.mean(distance), MIN_ERROR)) for cell in lines[name]]))
    )
    best = order[: MAX_LINES if by_users else MAX_POINTS]
    every = {_name(cell, several_truths=len(truths) > 1) for cell in cells}
    left_out = f"; the best {len(best)} of {len(every)}" if len(best) < len(every) else ""
    (_draw_lines if by_users else _draw_points)({name: lines[name] for name in best}, distance, axes)
    if by_users:
        axes.set_ylabel(f"mean {name}")
        axes.yaxis.set_major_formatter(axis_number)
    else:
        axes.set_xlabel(f"mean {name}")
        axes.xaxis.set_major_formatter(axis_number)
    title = f"mean errors with {STANDARD_ERRORS:g} standard errors"
    title += f", truth: {truths[0]}" if len(truths) == 1 else ""
    title += "" if by_users or not cells else f", {cells[0].users:,} users"
    set_title(axes, f"{title}{left_out}", fontsize="medium")
    tell_missing_letters(axes)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_lines(lines: dict[str, list[BenchmarkCell]], distance: str, axes: Axes) -> None:
    for number, (name, own) in enumerate(lines.items()):
        colour, marker = PALETTE[number % len(PALETTE)], MARKERS[number // len(PALETTE) % len(MARKERS)]
        x, y, half = (np.array(each) for each in zip(*(_point(cell, distance) for cell in own), strict=True))
        axes.fill_between(x, np.maximum(y - half, y / 10.0), y + half, color=colour, alpha=0.18, linewidth=0)
        axes.plot(x, y, marker=marker, color=colour, linewidth=1.6, label=legible([name]).texts[0])
    axes.set(xscale="log", yscale="log", xlabel="users")
    numbers = sorted({cell.users for own in lines.values() for cell in own})
    if len(numbers) <= MAX_TICKS:
        axes.set_xticks(numbers)
        axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(axis_number)
    axes.yaxis.set_minor_formatter(lambda number, _: axis_number(number) if f"{number:.0e}"[0] in "25" else "")
    axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _draw_points(lines: dict[str, list[BenchmarkCell]], distance: str, axes: Axes) -> None:
    ordered = [(name, cell) for name, (cell,) in reversed(lines.items())]
    for height, (_, cell) in enumerate(ordered):
        _, mean, half = _point(cell, distance)
        axes.hlines(height, mean - half, mean + half, color=PALETTE[0], linewidth=4, alpha=0.4)
        axes.plot([mean], [height], "o", color=PALETTE[0])
    names = names_beside([name for name, _ in ordered])
    axes.set_yticks(range(len(ordered)), names.texts, **names.style)
    axes.set_ylim(-0.7, max(len(ordered), 1) - 0.3)
    axes.grid(axis="x", color="#e4e4e4")
    means = [cell.mean(distance) for _, cell in ordered]
    if means and min(means) > 0.0 and max(means) > 20.0 * min(means):
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0.0)


def _point(cell: BenchmarkCell, distance: str) -> tuple[float, float, float]:
    """Return the number of users, the mean error, and two of its standard errors."""
    statistics = cell.statistics(distance)
    spread = statistics[f"{distance}_error"]
    return float(cell.users), cell.mean(distance), STANDARD_ERRORS * (0.0 if spread is None else spread)


def _name(cell: BenchmarkCell, *, several_truths: bool) -> str:
    return f"{cell.label}, {cell.truth}" if several_truths else cell.label
