"""Pictures of a distribution over its domain."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Domain, Grid
from hubbub.rendering.palette import BLUE, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 200


def draw_distribution(domain: Domain, probabilities: Floats, axes: Axes, *, top: float | None = None) -> None:
    """Draw a map for grids, a line for ordered values, bars for categories."""
    if domain.grid is not None:
        _draw_map(domain.grid, domain, probabilities, axes, top)
    elif domain.places is not None:
        bins = domain.intervals
        widths = np.ones(len(domain)) if bins is None else bins[:, 1] - bins[:, 0]  # bins may differ in width
        _draw_bars(domain.places, probabilities, widths, axes)
        axes.set_xlabel("value")
        axes.set_ylabel("probability" if bins is None else "probability of the bin")
    else:
        _draw_bars(np.arange(len(domain), dtype=np.float64), probabilities, np.full(len(domain), 0.8), axes)
        axes.set_ylabel("probability")
        if len(domain) <= 40:
            titles = [_short(str(label)) for label in domain.labels]
            axes.set_xticks(np.arange(len(domain)), titles, rotation=45, ha="right", parse_math=False)
        else:
            axes.set_xlabel(f"position among {len(domain):,} categories")


def draw_whiskers(domain: Domain, low: Floats, high: Floats, axes: Axes) -> None:
    """Draw an upright line from low to high over each bar; maps have no room for them."""
    if domain.chart == "map":
        return
    centres = np.arange(len(domain), dtype=np.float64) if domain.places is None else domain.places
    known = ~np.isnan(low)
    axes.vlines(centres[known], low[known], high[known], color=VERMILLION, linewidth=1.5, label="interval")
    axes.set_ylim(bottom=0.0, top=None)


def _draw_bars(centres: Floats, probabilities: Floats, widths: Floats, axes: Axes) -> None:
    """Draw bars; where they would be thinner than a pixel, upright lines, so that none is lost."""
    if len(centres) <= MOST_BARS:
        axes.bar(centres, probabilities, width=0.92 * widths, color=BLUE)
        return
    shown = probabilities > 0
    axes.vlines(centres[shown], 0.0, probabilities[shown], color=BLUE, linewidth=1.0)
    axes.set_xlim(centres[0] - widths[0], centres[-1] + widths[-1])
    axes.set_ylim(bottom=0.0)


def _short(label: str) -> str:
    return label if len(label) <= 24 else label[:23] + "…"


def _draw_map(grid: Grid, domain: Domain, probabilities: Floats, axes: Axes, top: float | None) -> None:
    # The square root of the colour scale keeps thin areas visible beside a dense centre.
    from matplotlib.colors import PowerNorm

    picture = np.full(grid.columns * grid.rows, np.nan)
    picture[domain.labels.astype(np.int64)] = probabilities
    size = (0.0, grid.columns * grid.width, 0.0, grid.rows * grid.height)
    norm = PowerNorm(0.5, vmin=0.0, vmax=float(probabilities.max()) if top is None else top)
    image = axes.imshow(
        picture.reshape(grid.rows, grid.columns),
        origin="lower",
        extent=size,
        cmap="cividis",
        norm=norm,
        interpolation="nearest",
    )
    axes.set_xlabel(f"east ({grid.unit})")
    axes.set_ylabel(f"north ({grid.unit})")
    if top is None and axes.figure is not None:
        axes.figure.colorbar(image, ax=axes, label="probability", shrink=0.8)


def picture_bytes(figure: Figure, ending: str, **options: Any) -> bytes:
    """Return a picture as the bytes of its file, in the form that its ending (``.png``, ``.svg``) says."""
    content = io.BytesIO()
    figure.savefig(content, format=ending.lower().removeprefix("."), **options)
    return content.getvalue()
