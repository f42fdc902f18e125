"""Plots of differences, with Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.domains import Grid
from hubbub.rendering.distribution_plot import label_line
from hubbub.rendering.map_axes import label_map
from hubbub.rendering.palette import BLUE, GREY, INK, VERMILLION
from hubbub.rendering.picture_text import (
    MAP_TITLE_LETTERS,
    TITLE_LETTERS,
    legible,
    names_beside,
    set_title,
    tell_missing_letters,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub.comparison.result import Comparison

MAX_BARS = 30
MAX_AXIS_LETTERS = 60  # of one line


def draw_comparison(comparison: Comparison, axes: Axes) -> None:
    """Draw differences as the chart of their domain shows them."""
    grid = comparison.domain.grid if comparison.has_all_values else None
    if grid is not None:
        _draw_map(comparison, grid, axes)
    elif comparison.domain.places is not None and comparison.has_all_values:
        _draw_line(comparison, axes)
    else:
        _draw_bars(comparison, axes)
    set_title(
        axes, comparison.sentence, width=MAP_TITLE_LETTERS if grid is not None else TITLE_LETTERS, fontsize="medium"
    )
    tell_missing_letters(axes)


def _axis_title(comparison: Comparison) -> str:
    first, second = comparison.names
    unit = ", percentage points" if comparison.is_share else ""
    return wrapped(legible([f"{second} minus {first}{unit}"]).texts[0], MAX_AXIS_LETTERS)


def _draw_line(comparison: Comparison, axes: Axes) -> None:
    places = comparison.domain.places
    assert places is not None  # noqa: S101  # a line has places
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.fill_between(
        places, 100.0 * comparison.low, 100.0 * comparison.high, color=BLUE, alpha=0.25, linewidth=0, step="mid"
    )
    axes.step(places, 100.0 * comparison.difference, color=BLUE, where="mid")
    marked = comparison.changed
    axes.plot(places[marked], 100.0 * comparison.difference[marked], "o", color=VERMILLION, label="changed")
    if marked.any():
        axes.legend(frameon=False)
    label_line(comparison.domain, axes)
    axes.set_ylabel(_axis_title(comparison))


def _draw_bars(comparison: Comparison, axes: Axes) -> None:
    shown = comparison.largest(MAX_BARS)[::-1]
    rows, scale = np.arange(shown.size), 100.0 if comparison.is_share else 1.0
    axes.axvline(0.0, color=INK, linewidth=0.8)
    for row, place in zip(rows.tolist(), shown.tolist(), strict=True):
        colour = VERMILLION if comparison.changed[place] else GREY
        axes.hlines(row, scale * comparison.low[place], scale * comparison.high[place], color=colour, linewidth=2)
        axes.plot(scale * comparison.difference[place], row, "o", color=colour)
    names = names_beside([str(comparison.labels[place]) for place in shown.tolist()])
    axes.set_yticks(rows, names.texts, **names.style)
    axes.set_ylim(-0.7, shown.size - 0.3)
    axes.set_xlabel(_axis_title(comparison))


def _draw_map(comparison: Comparison, grid: Grid, axes: Axes) -> None:
    values, cells = np.full(grid.columns * grid.rows, np.nan), np.asarray(comparison.domain.labels)
    values[cells] = 100.0 * comparison.difference
    largest = max(float(np.nanmax(np.abs(values))), 1e-12)
    picture = axes.imshow(
        values.reshape(grid.rows, grid.columns),
        origin="lower",
        extent=(0.0, grid.columns * grid.width, 0.0, grid.rows * grid.height),
        cmap="RdBu_r",
        vmin=-largest,
        vmax=largest,
        interpolation="nearest",
    )
    marked = cells[comparison.changed]
    across, along = marked % grid.columns + 0.5, marked // grid.columns + 0.5
    axes.plot(across * grid.width, along * grid.height, "o", color=INK, markersize=3, label="changed")
    if marked.size:
        axes.legend(loc="upper right", fontsize="small")
    axes.figure.colorbar(picture, ax=axes, label=_axis_title(comparison), shrink=0.8)
    label_map(grid, axes)
