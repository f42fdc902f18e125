"""Plots of a division, with Matplotlib: what is told is coloured, the rest is grey."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Domain, Grid
from hubbub.rendering.distribution_plot import label_line
from hubbub.rendering.map_axes import label_map
from hubbub.rendering.palette import BLUE, GREY, INK, PALE, VERMILLION
from hubbub.rendering.picture_text import (
    MAP_TITLE_LETTERS,
    TITLE_LETTERS,
    names_below,
    set_title,
    tell_missing_letters,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from hubbub.resolution.result import Resolution


def draw_parts(resolution: Resolution, axes: Axes) -> None:
    """Draw the parts as the chart of their domain shows them."""
    grid = resolution.domain.grid
    if grid is not None:
        _draw_areas(resolution, grid, axes)
    elif resolution.domain.places is not None:
        _draw_ranges(resolution, axes)
    else:
        _draw_groups(resolution, axes)
    set_title(axes, resolution.summary(), width=TITLE_LETTERS if grid is None else MAP_TITLE_LETTERS, fontsize="medium")
    tell_missing_letters(axes)


def _draw_ranges(resolution: Resolution, axes: Axes) -> None:
    """Draw a step for each range: its share for each unit of length, with the band of its interval."""
    edges = _edges(resolution.domain)
    for part in resolution.parts:
        left, right = edges[part.positions[0]], edges[part.positions[-1] + 1]
        colour = BLUE if part.told else GREY
        low, share, high = (number / (right - left) for number in (part.low, part.estimate, part.high))
        axes.fill_between(
            [left, right], low, high, color=colour, alpha=0.25, linewidth=0, hatch=None if part.told else "//"
        )
        axes.hlines(share, left, right, color=colour, linewidth=2)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0.0)
    label_line(resolution.domain, axes)
    axes.set_ylabel("probability for each unit")


def _edges(domain: Domain) -> Floats:
    """Return where values end and the next ones begin."""
    intervals, places = domain.intervals, domain.places
    assert places is not None  # noqa: S101  # a line has places
    if intervals is not None:
        return np.append(intervals[:, 0], intervals[-1, 1])
    middles = (places[1:] + places[:-1]) / 2.0
    first, last = (0.5, 0.5) if places.size == 1 else (middles[0] - places[0], places[-1] - middles[-1])
    return np.concatenate([[places[0] - first], middles, [places[-1] + last]])


def _draw_areas(resolution: Resolution, grid: Grid, axes: Axes) -> None:
    """Draw each area in the colour of its density, and outline it; the rest is grey."""
    from matplotlib.colors import PowerNorm

    density, part_of = np.full(grid.columns * grid.rows, np.nan), np.full(grid.columns * grid.rows, -1)
    for number, part in enumerate(resolution.parts):
        cells = part.values.astype(np.int64)
        part_of[cells] = number
        if part.told:
            density[cells] = part.estimate / cells.size
    shape = grid.rows, grid.columns
    extent = (0.0, grid.columns * grid.width, 0.0, grid.rows * grid.height)
    kept = np.where(part_of >= 0, 0.0, np.nan).reshape(shape)
    axes.imshow(kept, origin="lower", extent=extent, cmap=_one_colour(PALE), interpolation="nearest")
    top = float(np.nanmax(density)) if resolution.told else 1.0
    norm = PowerNorm(0.5, vmin=0.0, vmax=top)
    image = axes.imshow(
        density.reshape(shape), origin="lower", extent=extent, cmap="cividis", norm=norm, interpolation="nearest"
    )
    _outline(part_of.reshape(shape), grid, axes)
    label_map(grid, axes)
    if resolution.told and axes.figure is not None:
        rest = "" if all(part.told for part in resolution.parts) else " (grey: rest)"
        axes.figure.colorbar(image, ax=axes, label=f"probability for each cell{rest}", shrink=0.8)


def _one_colour(colour: str) -> Colormap:
    from matplotlib.colors import ListedColormap

    return ListedColormap([colour])


def _outline(part_of: Floats, grid: Grid, axes: Axes) -> None:
    """Draw a line wherever neighbours belong to different parts."""
    from matplotlib.collections import LineCollection

    width, height = grid.width, grid.height
    rows, columns = np.nonzero(part_of[:, 1:] != part_of[:, :-1])
    lines = [
        [((x + 1) * width, y * height), ((x + 1) * width, (y + 1) * height)] for y, x in zip(rows, columns, strict=True)
    ]
    rows, columns = np.nonzero(part_of[1:] != part_of[:-1])
    lines += [
        [(x * width, (y + 1) * height), ((x + 1) * width, (y + 1) * height)] for y, x in zip(rows, columns, strict=True)
    ]
    axes.add_collection(LineCollection(lines, colors=INK, linewidths=1.0))


def _draw_groups(resolution: Resolution, axes: Axes) -> None:
    """Draw a bar for each group, with its interval."""
    places = np.arange(len(resolution.parts))
    colours = [BLUE if part.told else PALE for part in resolution.parts]
    axes.bar(places, [part.estimate for part in resolution.parts], width=0.74, color=colours)
    lows, highs = ([getattr(part, end) for part in resolution.parts] for end in ("low", "high"))
    axes.vlines(places, lows, highs, color=VERMILLION, linewidth=1.5)
    names = names_below([part.title for part in resolution.parts])
    axes.set_xticks(places, names.texts, **names.style)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("probability")
