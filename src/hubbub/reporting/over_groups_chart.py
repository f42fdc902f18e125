"""Numbers over groups in their order: one line for each series, with an interval at each group.

Nothing here is about shares: a series is a number with an interval for each of some names, which may be periods.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.rendering.palette import PALETTE
from hubbub.reporting.chart_scale import ChartScale
from hubbub.reporting.visible_text import visible

HEIGHT, TOP, RIGHT = 260.0, 12.0, 16.0  # of the drawing, in pixels at its natural size: the plane, and around it
LETTER_WIDTH = 7.4  # of an average letter
MAX_NAME_LETTERS = 18
MIN_WIDTH, GOOD_WIDTH, MAX_WIDTH = 360.0, 620.0, 960.0
MIN_GROUP_WIDTH, MAX_GROUP_WIDTH, SERIES_WIDTH = 64.0, 130.0, 10.0  # for a group; between series at one group
CAP = 3.0  # half of the bar at the end of an interval
SLANT = 0.75  # letters of slanted names rise by this part of their length
MARKS = (
    "M{x} {y}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M{x} {y}m-3.6 -3.6h7.2v7.2h-7.2z",
    "M{x} {y}m0 -4.6l4.4 7.6h-8.8z",
    "M{x} {y}m0 -4.8l4.8 4.8l-4.8 4.8l-4.8 -4.8z",
    "M{x} {y}m0 4.6l4.4 -7.6h-8.8z",
    "M{x} {y}m-4.4 -1.6h2.8v-2.8h3.2v2.8h2.8v3.2h-2.8v2.8h-3.2v-2.8h-2.8z",
)
DASHES = ("none", "6 3", "2 3", "8 3 2 3", "10 4", "4 2")  # what colours tell apart, marks and dashes do, too
MAX_SERIES = len(MARKS)


class Series(NamedTuple):
    """A number of each group, with its interval (NaN: not computed)."""

    title: str
    estimate: Floats
    low: Floats
    high: Floats


class DrawnSeries(NamedTuple):
    """A series as paths."""

    title: str
    colour: str
    dash: str
    line: str
    intervals: str
    marks: str
    key: str  # its mark alone, for the legend: around (0, 0)


class AxisText(NamedTuple):
    """A text of an axis, and its place in pixels."""

    place: float
    text: str
    full: str


class OverGroupsChart(NamedTuple):
    """The whole chart, in pixels at its natural size."""

    width: float
    height: float
    left: float
    bottom: float  # of the plane
    right: float
    has_slanted_names: bool
    names: list[AxisText]
    ticks: list[AxisText]
    series: list[DrawnSeries]


def over_groups_chart(names: Sequence[str], series: Sequence[Series], scale: ChartScale) -> OverGroupsChart:
    """Draw at most six series over groups in their order."""
    texts = [_shorten(visible(name)) for name in names]
    longest = max(letter_widths(text) for text in texts) * LETTER_WIDTH
    ticks = scale.ticks
    left = 14.0 + LETTER_WIDTH * max(len(tick.text) for tick in ticks)
    room = max(MIN_GROUP_WIDTH, min(MAX_GROUP_WIDTH, GOOD_WIDTH / len(names)), SERIES_WIDTH * (len(series) + 2))
    width = min(MAX_WIDTH, max(MIN_WIDTH, left + RIGHT + room * len(names)))
    step = (width - left - RIGHT) / len(names)
    is_slanted = longest > step - 6.0
    below = 14.0 + (SLANT * longest if is_slanted else 12.0)
    if is_slanted:  # the first name must not begin left of the drawing
        left = max(left, SLANT * longest - step / 2.0 + 8.0)
        step = (width - left - RIGHT) / len(names)
    middles = left + step * (np.arange(len(names)) + 0.5)
    bottom = TOP + HEIGHT
    spread = min(SERIES_WIDTH, 0.6 * step / max(1, len(series)))
    drawn = []
    for place, own in enumerate(series):
        x = np.round(middles + spread * (place - (len(series) - 1) / 2.0), 1)
        centre, low, high = (
            np.round(bottom - HEIGHT * scale.place(each) / 100.0, 1) for each in (own.estimate, own.low, own.high)
        )
        drawn.append(_draw(own.title, place, x, centre, low, high))
    return OverGroupsChart(
        width,
        round(bottom + below, 1),
        round(left, 1),
        bottom,
        width - RIGHT,
        is_slanted,
        [
            AxisText(round(float(x), 1), text, visible(name))
            for x, text, name in zip(middles, texts, names, strict=True)
        ],
        [AxisText(round(bottom - HEIGHT * tick.place / 100.0, 1), tick.text, tick.text) for tick in ticks],
        drawn,
    )


def _draw(title: str, place: int, x: Floats, centre: Floats, low: Floats, high: Floats) -> DrawnSeries:
    known = np.isfinite(low) & np.isfinite(high)
    whiskers = "".join(
        f"M{across:g} {down:g}V{up:g}M{across - CAP:g} {down:g}h{2 * CAP:g}M{across - CAP:g} {up:g}h{2 * CAP:g}"
        for across, down, up in zip(x[known], low[known], high[known], strict=True)
    )
    mark = MARKS[place % MAX_SERIES]
    line = "M" + "L".join(f"{across:g} {down:g}" for across, down in zip(x, centre, strict=True))
    marks = "".join(mark.format(x=f"{across:g}", y=f"{down:g}") for across, down in zip(x, centre, strict=True))
    colour, dash = PALETTE[place % MAX_SERIES], DASHES[place % MAX_SERIES]
    return DrawnSeries(title, colour, dash, line, whiskers, marks, mark.format(x=0, y=0))


def letter_widths(text: str) -> float:
    """Return how many average letters wide a text is: letters of East Asia, and pictures, are twice as wide.

    >>> letter_widths("north"), letter_widths("東京")
    (5.0, 4.0)
    """
    return float(sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text))


def _shorten(name: str) -> str:
    """Return as much of a name as the axis has room for."""
    if letter_widths(name) <= MAX_NAME_LETTERS:
        return name
    kept, width = "", 1.0
    for letter in name:
        width += letter_widths(letter)
        if width > MAX_NAME_LETTERS:
            break
        kept += letter
    return f"{kept}…"
