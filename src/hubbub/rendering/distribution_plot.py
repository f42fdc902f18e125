"""Plots of a distribution over its domain, with Matplotlib."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.domains import Domain, Grid
from hubbub.rendering.map_axes import label_map
from hubbub.rendering.margins import MARGIN_TEXTS, UNKNOWN_MARGIN
from hubbub.rendering.palette import BLUE, GREY, PALE, RAMP, VERMILLION
from hubbub.rendering.picture_text import names_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_BARS = 200  # more would be thinner than a pixel
MAX_NAMED_BARS = 40


def draw_distribution(
    domain: Domain,
    probabilities: Floats,
    axes: Axes,
    *,
    top: float | None = None,
    opacity: Floats | None = None,
    label: str = "probability",
) -> None:
    """Draw a map for grids, and bars for other domains.

    On a map, `top` is the end of the colour scale, `opacity` is that of each cell, and `label` names the colours.
    """
    if domain.grid is not None:
        _draw_map(domain.grid, domain, probabilities, axes, top, opacity, label)
        return
    centres, widths = _bar_extents(domain)
    _draw_bars(centres, probabilities, widths, axes)
    axes.set_ylabel("probability" if domain.intervals is None else "probability of the bin")
    if domain.places is not None:
        label_line(domain, axes)
    elif len(domain) <= MAX_NAMED_BARS:
        names = names_below([str(label) for label in domain.labels])
        axes.set_xticks(np.arange(len(domain)), names.texts, **names.style)
    else:
        axes.set_xlabel(f"position among {len(domain):,} categories")


def label_line(domain: Domain, axes: Axes) -> None:
    """Label the axis of values on a line: between whole numbers there is no value, and so no tick."""
    axes.set_xlabel("value")
    if domain.intervals is None:
        axes.locator_params(axis="x", integer=True)


def draw_whiskers(domain: Domain, low: Floats, high: Floats, axes: Axes) -> None:
    """Draw a vertical line from low to high over each bar; maps have no room for them."""
    if domain.chart == "map":
        return
    centres, _ = _bar_extents(domain)
    known = ~np.isnan(low)
    axes.vlines(centres[known], low[known], high[known], color=VERMILLION, linewidth=1.5, label="interval")
    axes.set_ylim(bottom=0.0, top=None)


def _bar_extents(domain: Domain) -> tuple[Floats, Floats]:
    """Return the centre and the width of each bar; bins may differ in width."""
    if domain.places is None:
        return np.arange(len(domain), dtype=np.float64), np.full(len(domain), 0.8)
    bins = domain.intervals
    return domain.places, np.ones(len(domain)) if bins is None else bins[:, 1] - bins[:, 0]


def _draw_bars(centres: Floats, probabilities: Floats, widths: Floats, axes: Axes) -> None:
    """Draw bars, or vertical lines if bars would be thinner than a pixel, so that none is lost."""
    if len(centres) <= MAX_BARS:
        axes.bar(centres, probabilities, width=0.92 * widths, color=BLUE)
        return
    shown = probabilities != 0
    axes.vlines(centres[shown], 0.0, probabilities[shown], color=BLUE, linewidth=1.0)
    axes.set_xlim(centres[0] - widths[0], centres[-1] + widths[-1])
    if not (probabilities < 0).any():  # of an inversion, which may be
        axes.set_ylim(bottom=0.0)


def draw_marks(domain: Domain, probabilities: Floats, axes: Axes, label: str) -> None:
    """Draw a mark at each value's probability, over its bar; of thin bars on a line, one line through all."""
    centres, widths = _bar_extents(domain)
    if domain.places is not None and len(domain) > MAX_NAMED_BARS:  # marks would look like dust
        axes.step(centres, probabilities, where="mid", color="black", linewidth=1.2, label=label)
        return
    axes.hlines(
        probabilities, centres - 0.46 * widths, centres + 0.46 * widths, color="black", linewidth=1.5, label=label
    )


def _draw_map(
    grid: Grid,
    domain: Domain,
    probabilities: Floats,
    axes: Axes,
    top: float | None,
    opacity: Floats | None,
    label: str,
) -> None:
    # The square root of the colour scale keeps sparse areas visible beside a dense centre.
    from matplotlib.colors import PowerNorm

    def on_grid(numbers: Floats) -> Floats:
        cells = np.full(grid.columns * grid.rows, np.nan)
        cells[domain.labels.astype(np.int64)] = numbers
        return cells.reshape(grid.rows, grid.columns)

    least = min(0.0, float(np.nanmin(probabilities)))  # below 0 for an inversion, and not one colour for all of these
    norm = PowerNorm(0.5, vmin=least, vmax=float(np.nanmax(probabilities)) if top is None else top)
    image = axes.imshow(
        on_grid(probabilities),
        origin="lower",
        extent=(0.0, grid.columns * grid.width, 0.0, grid.rows * grid.height),
        cmap="cividis",
        norm=norm,
        interpolation="nearest",
        alpha=None if opacity is None else np.nan_to_num(on_grid(opacity)),
    )
    label_map(grid, axes)
    if top is None and axes.figure is not None:
        axes.figure.colorbar(image, ax=axes, label=label, shrink=0.8)


def draw_margins(domain: Domain, classes: Positions, axes: Axes) -> None:
    """Draw a map of how sure the shares are, by the classes of `margins`; cells without an interval are hatched."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    grid = domain.grid
    assert grid is not None  # noqa: S101  # only maps have this view
    cells = np.full(grid.columns * grid.rows, np.nan)
    cells[domain.labels.astype(np.int64)] = classes
    sheet, count = cells.reshape(grid.rows, grid.columns), len(MARGIN_TEXTS)
    colours = ListedColormap([RAMP[round(step * (len(RAMP) - 1) / (count - 1))] for step in range(count)])
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    edges = np.arange(grid.columns + 1) * grid.width, np.arange(grid.rows + 1) * grid.height
    unknown = np.ma.masked_where(sheet != UNKNOWN_MARGIN, sheet)
    axes.pcolor(*edges, unknown, cmap=ListedColormap([PALE]), hatch="//", edgecolor=GREY, linewidth=0)
    image = axes.imshow(
        np.ma.masked_where(~(sheet >= 0), sheet),
        origin="lower",
        extent=(0.0, edges[0][-1], 0.0, edges[1][-1]),
        cmap=colours,
        norm=norm,
        interpolation="nearest",
    )
    label_map(grid, axes)
    if axes.figure is not None:
        bar = axes.figure.colorbar(image, ax=axes, label="margin, relative to the share", shrink=0.8)
        bar.set_ticks(np.arange(count).tolist(), labels=MARGIN_TEXTS)


def picture_bytes(figure: Figure, suffix: str, **options: Any) -> bytes:
    """Return the bytes of a picture file in the format of its suffix (``.png``, ``.svg``)."""
    content = io.BytesIO()
    figure.savefig(content, format=suffix.lower().removeprefix("."), **options)
    return content.getvalue()
