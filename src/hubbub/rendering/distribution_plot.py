"""Pictures of a distribution over its domain."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Bins, Domain, Grid, LineDomain, Subset
from hubbub.rendering.palette import BLUE, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 200


def draw_distribution(domain: Domain, probabilities: Floats, axes: Axes, *, top: float | None = None) -> None:
    """Draw a map for grids, a line for ordered values, bars for categories."""
    whole = domain.whole if isinstance(domain, Subset) else domain
    if isinstance(whole, Grid):
        _draw_map(whole, domain, probabilities, axes, top)
    elif isinstance(whole, LineDomain):
        kept = domain.positions if isinstance(domain, Subset) else np.arange(len(domain))
        centres, widths = _extents(whole)
        _draw_bars(centres[kept], probabilities, widths[kept], axes)
        axes.set_xlabel("value")
        axes.set_ylabel("probability of the bin" if isinstance(whole, Bins) else "probability")
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
    whole = domain.whole if isinstance(domain, Subset) else domain
    if isinstance(whole, Grid):
        return
    centres = np.arange(len(domain), dtype=np.float64)
    if isinstance(whole, LineDomain):
        centres = _extents(whole)[0][domain.positions if isinstance(domain, Subset) else np.arange(len(domain))]
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


def _extents(domain: LineDomain) -> tuple[Floats, Floats]:
    """Return the centre and the width of each bar: bins may differ in width."""
    widths = np.diff(domain.edges) if isinstance(domain, Bins) else np.ones(len(domain))
    return domain.places, widths


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
