"""The picture of regions: each in the colour of its share, with its outline and its name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.text import plural
from hubbub.polygons.coordinate_systems import grid_sides
from hubbub.rendering import picture_title
from hubbub.rendering.palette import PALE
from hubbub.rendering.picture_text import legible, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub.polygons.result import RegionShares

MAX_NAMED_REGIONS = 40  # whose names have room
MAX_NAME_LETTERS = 18  # of one line


def draw_regions(shares: RegionShares, axes: Axes) -> None:
    """Draw all regions near the grid."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import PathPatch

    regions, grid = shares.regions, shares.regions.grid
    estimates = np.array([row.estimate for row in shares.rows])
    colours = ScalarMappable(PowerNorm(0.5, vmin=0.0, vmax=float(np.nanmax(estimates))), "cividis")
    for rings, share in zip(regions.outlines, estimates, strict=True):
        if rings:
            face = PALE if math.isnan(share) else colours.to_rgba(share)
            axes.add_patch(PathPatch(_path(rings), facecolor=face, edgecolor="white", linewidth=1.0))
    _write_names(shares, axes, colours)
    west, south, east, north = grid_sides(grid)
    axes.set_xlim(west, east)
    axes.set_ylim(south, north)
    if grid.box is None:
        axes.set_aspect("equal")
        axes.set_xlabel(f"east ({grid.unit})")
        axes.set_ylabel(f"north ({grid.unit})")
    else:
        axes.set_aspect(1.0 / math.cos(math.radians((south + north) / 2.0)))
        axes.set_xlabel("longitude")
        axes.set_ylabel("latitude")
        axes.ticklabel_format(useOffset=False)
    title = picture_title(users=shares.users, level=shares.level, more=plural(len(shares), "region"))
    axes.set_title(title, fontsize="medium")
    if axes.figure is not None:
        axes.figure.colorbar(colours, ax=axes, label="share of the people", shrink=0.8)


def _path(rings: tuple[Floats, ...]) -> Any:
    """Return rings as one path; holes stay open, because they run the other way round."""
    from matplotlib.path import Path

    return Path.make_compound_path(*(Path(ring, closed=True) for ring in rings))


def _write_names(shares: RegionShares, axes: Axes, colours: Any) -> None:
    """Write name, share and interval into each region."""
    if len(shares) > MAX_NAMED_REGIONS:
        return
    import shapely

    west, south, east, north = grid_sides(shares.regions.grid)
    view = shapely.box(west, south, east, north)
    for polygon, row in zip(shares.regions.polygons, shares.rows, strict=True):
        seen = shapely.intersection(polygon, view)
        if seen.is_empty or not row.is_known:
            continue
        place = seen.representative_point()
        (name,), style = legible([wrapped(row.name, MAX_NAME_LETTERS, most=3)])
        red, green, blue, _ = colours.to_rgba(row.estimate)
        ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "black"
        text = f"{name}\n{100.0 * row.estimate:.1f}%\n{100.0 * row.low:.1f} to {100.0 * row.high:.1f}%"
        axes.text(place.x, place.y, text, color=ink, ha="center", va="center", fontsize="x-small", **style)
