"""Plots of differences, with Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.domains import Grid
from hubbub.rendering.palette import BLUE, GREY, INK, VERMILLION
from hubbub.rendering.picture_text import legible, names_beside, set_title, tell_missing_letters, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub.comparison.result import Comparison

MAX_BARS = 30
MAX_AXIS_LETTERS = 60  # of one line


def draw_comparison(comparison: Comparison, axes: Axes) -> None:
    """Draw differences as the chart of their domain shows them."""
    grid = comparison.domain.grid
    if grid is not None and comparison.has_all_values:
        _draw_map(comparison, grid, axes)
    elif comparison.domain.places is not None and comparison.has_all_values:
        _draw_line(comparison, axes)
    else:
        _draw_bars(comparison, axes)
    set_title(axes, comparison.sentence, fontsize="medium")
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
    axes.set_xlabel("value")
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
    axes.set_xlabel(_axis_title(comparison))


def _draw_map(comparison: Comparison, grid: Grid, axes: Axes) -> None:
    values, cells = np.full(grid.columns * grid.rows, np.nan), np.asarray(comparison.domain.labels)
    values[cells] = 100.0 * comparison.difference
    largest = max(float(np.nanmax(np.abs(values))), 1e-12)
    picture = axes.imshow(
        values.reshape(grid.rows, grid.columns), origin="lower", cmap="RdBu_r", vmin=-largest, vmax=largest
    )
    marked = cells[comparison.changed]
    axes.plot(marked % grid.columns, marked // grid.columns, "o", color=INK, markersize=3)
    axes.figure.colorbar(picture, ax=axes, label=_axis_title(comparison))
    axes.set_xticks([])
    axes.set_yticks([])
