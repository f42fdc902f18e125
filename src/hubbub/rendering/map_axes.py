"""The sides of a map drawn with Matplotlib: degrees, a scale bar and north where it has a place on the map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Grid
from hubbub.domains.place_text import latitude_text, longitude_text
from hubbub.rendering.palette import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

POINTS_PER_INCH = 72.0
MAX_TICKS = 4
MAX_SCALE_SHARE = 0.25  # of the map's width that the scale bar takes
FURNITURE_POINTS = 28.0  # from the map down to the scale bar: below the degrees


def label_map(grid: Grid, axes: Axes) -> None:
    """Label the sides of a map that is drawn in the grid's unit from its south-west corner.

    Where the grid has a place on the map, the sides have latitudes and longitudes, and a scale bar and an arrow to the
    north are below them; otherwise they say how far east and north.
    """
    if grid.box is None:
        axes.set_xlabel(f"east ({grid.unit})")
        axes.set_ylabel(f"north ({grid.unit})")
        return
    from matplotlib.transforms import ScaledTranslation

    box, width, height = grid.box, grid.columns * grid.width, grid.rows * grid.height
    degrees, decimals = _round_degrees(box.west, box.east)
    axes.set_xticks((degrees - box.west) / (box.east - box.west) * width, _texts(longitude_text, degrees, decimals))
    degrees, decimals = _round_degrees(box.south, box.north)
    axes.set_yticks((degrees - box.south) / (box.north - box.south) * height, _texts(latitude_text, degrees, decimals))
    below = ScaledTranslation(0.0, -FURNITURE_POINTS / POINTS_PER_INCH, axes.figure.dpi_scale_trans)
    _draw_scale(width, axes, axes.get_xaxis_transform() + below)
    axes.text(1.0, 0.0, "↑ N", transform=axes.transAxes + below, ha="right", va="center", color=INK, fontsize="small")


def round_step(span: float, most: int) -> float:
    """Return the smallest of 1, 2, 5, 10, 20 ... of which no more than `most` fit into a span.

    >>> round_step(0.1364, 5), round_step(12.0, 4)
    (0.05, 5.0)
    """
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= most)


def scale_length(width: float) -> tuple[float, str]:
    """Return the largest round length that takes no more than a quarter of a width in kilometres, and its name.

    >>> scale_length(12.0), scale_length(1.1)
    ((2.0, '2 km'), (0.2, '200 m'))
    """
    most = MAX_SCALE_SHARE * width
    power = 10.0 ** math.floor(math.log10(most))
    length = next(power * factor for factor in (5, 2, 1) if power * factor <= most)
    return length, f"{length:,.0f} km" if length >= 1 else f"{1000 * length:.3g} m"


def _round_degrees(first: float, last: float) -> tuple[Floats, int]:
    step = round_step(last - first, MAX_TICKS)
    numbers = np.arange(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1)
    return np.asarray(numbers * step, dtype=np.float64), max(0, -math.floor(math.log10(step) + 1e-9))


def _texts(text: Callable[[float, int], str], degrees: Floats, decimals: int) -> list[str]:
    return [text(each, decimals) for each in degrees.tolist()]


def _draw_scale(width: float, axes: Axes, place: Transform) -> None:
    """Draw the scale bar at the left end of the map; `place` has the map's unit across, and 0 below the degrees."""
    length, name = scale_length(width)
    axes.plot([0.0, length], [0.0, 0.0], "|-", color=INK, linewidth=1.5, transform=place, clip_on=False)
    axes.text(length, 0.0, f"  {name}", transform=place, ha="left", va="center", color=INK, fontsize="small")
