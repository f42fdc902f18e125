"""Plots of trends, with Matplotlib."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.text import plural
from hubbub.intervals.linear_statistic import VALUE
from hubbub.rendering.palette import GREY, INK, PALETTE
from hubbub.rendering.picture_text import names_beside, set_title, tell_missing_letters
from hubbub.trends.time_smoothing import STEPS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub.trends.result import Trend

MAX_LINES = 6
MAX_TICKS = 12
MAX_PARTS_IN_LINE = 3  # of the explanation
MARKS = "osD^v*"  # one for each line, for those who do not see its colour


def draw_trend(trend: Trend, axes: Axes) -> None:
    """Draw each label as a line with its band; smoothed lines are drawn through the estimates."""
    shown = trend.most_changing(MAX_LINES).tolist()
    scale = 100.0 if trend.is_share else 1.0
    is_smoothed = not trend.smoothing.is_none
    words = names_beside([str(trend.labels[label]) for label in shown])
    names = words.texts
    for place, label in enumerate(shown):
        colour = PALETTE[place]
        low, high = scale * trend.band_low[:, label], scale * trend.band_high[:, label]
        line = scale * (trend.smoothed if is_smoothed else trend.estimate)[:, label]
        for own in _stretches(trend):
            axes.fill_between(trend.times[own], low[own], high[own], color=colour, alpha=0.15, linewidth=0)
            axes.plot(trend.times[own], line[own], color=colour, linewidth=1.5)
        axes.plot(
            trend.times,
            scale * trend.estimate[:, label],
            MARKS[place],
            color=colour,
            markersize=4,
            label=names[place],
        )
    _mark_changes(trend, axes)
    ticks = np.unique(np.linspace(0, len(trend.names) - 1, min(MAX_TICKS, len(trend.names))).round().astype(int))
    periods = names_beside([trend.names[place] for place in ticks.tolist()])
    is_turned = sum(map(len, periods.texts)) > 60
    turned = {"rotation": 30, "ha": "right"} if is_turned else {}
    axes.set_xticks(trend.times[ticks], periods.texts, **{**periods.style, **turned})
    axes.set_ylabel(f"share of {names[0]}, %" if trend.is_share and len(shown) == 1 else _unit(trend), **words.style)
    axes.set_xlabel(_explanation(trend, len(shown), is_smoothed=is_smoothed), fontsize="small", color=INK)
    if len(shown) > 1:
        legend = axes.legend(frameon=False, ncols=min(3, len(shown)), fontsize="small")
        for text in legend.get_texts():
            text.set(**words.style)
    set_title(axes, _title(trend), fontsize="medium")
    tell_missing_letters(axes)


def _stretches(trend: Trend) -> list[slice]:
    """Return the periods that a line connects: those between two changes if these are steps, and all otherwise."""
    ends = [trend.names.index(change.after) for change in trend.changes] if trend.smoothing.kind == STEPS else []
    return [slice(first, last) for first, last in pairwise([0, *ends, len(trend.names)])]


def _title(trend: Trend) -> str:
    """Return the sentence; of several changes only when they were."""
    if len(trend.changes) <= 1:
        return trend.sentence
    places = [f"{change.before} and {change.after}" for change in trend.changes]
    return f"{len(trend.changes)} changes: between {'; between '.join(places)}"


def _mark_changes(trend: Trend, axes: Axes) -> None:
    """Draw a line at the likeliest place of each change, and shade where else it may be."""
    when = dict(zip(trend.names, trend.times.tolist(), strict=True))
    for change in trend.changes:
        middle = 0.5 * (when[change.before] + when[change.after])
        axes.axvline(middle, color=INK, linewidth=1.0, linestyle="--")
        if (change.first, change.last) != (change.before, change.after):
            axes.axvspan(when[change.first], when[change.last], color=GREY, alpha=0.12, linewidth=0)


def _unit(trend: Trend) -> str:
    return "share, %" if trend.is_share else str(trend.labels[0])


def _explanation(trend: Trend, lines: int, *, is_smoothed: bool) -> str:
    """Return what the marks mean, and which values are left out."""
    parts = ["dots: estimates of each period", "bands hold for all periods at once"]
    if is_smoothed:
        parts.insert(1, "lines: smoothed")
    if trend.changes:
        is_open = any((change.first, change.last) != (change.before, change.after) for change in trend.changes)
        parts.append("dashed: changes" + (" (grey: where else each may be)" if is_open else ""))
    if lines < trend.labels.size and not (trend.kind == VALUE and trend.labels.size == 2):
        parts.append(f"the {lines} of {plural(trend.labels.size, trend.kind)} that change most")
    if len(parts) <= MAX_PARTS_IN_LINE:
        return "; ".join(parts)
    return f"{'; '.join(parts[:MAX_PARTS_IN_LINE])};\n{'; '.join(parts[MAX_PARTS_IN_LINE:])}"
