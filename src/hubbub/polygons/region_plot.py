"""The picture of regions: each in the colour of its share, with its outline and its name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.text import percent, plural
from hubbub.polygons.coordinate_systems import grid_sides
from hubbub.rendering import picture_title
from hubbub.rendering.map_axes import label_map
from hubbub.rendering.palette import BLACK, INK, PALE
from hubbub.rendering.picture_text import legible, set_title, tell_missing_letters, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from hubbub.domains import Grid
    from hubbub.polygons.result import RegionShare, RegionShares

MAX_NAMED_REGIONS = 40  # whose names have room
MAX_NAME_LETTERS = 18  # of one line
MIN_NAME_INSIDE = 0.8  # of what is written about a region: less would seem to be about its neighbours
PAPER = {"facecolor": (1.0, 1.0, 1.0, 0.78), "edgecolor": "none", "boxstyle": "round,pad=0.15"}  # behind names


def draw_regions(shares: RegionShares, axes: Axes) -> None:
    """Draw all regions near the grid, in its unit from its south-west corner."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import PowerNorm
    from matplotlib.patches import PathPatch

    regions, grid = shares.regions, shares.regions.grid
    estimates = np.array([row.estimate for row in shares.rows])
    colours = ScalarMappable(PowerNorm(0.5, vmin=0.0, vmax=float(np.nanmax(estimates))), "cividis")
    for rings, share in zip(regions.outlines, estimates, strict=True):
        if rings:
            path = _path([_in_units(ring, grid) for ring in rings])
            face = PALE if math.isnan(share) else colours.to_rgba(share)
            axes.add_patch(PathPatch(path, facecolor=face, edgecolor=INK, linewidth=0.8))
    axes.set_xlim(0.0, grid.columns * grid.width)
    axes.set_ylim(0.0, grid.rows * grid.height)
    axes.set_aspect("equal")
    label_map(grid, axes)
    title = picture_title(users=shares.users, level=shares.level, more=plural(len(shares), "region"))
    set_title(axes, title, fontsize="medium")
    if axes.figure is not None:
        axes.figure.colorbar(colours, ax=axes, label="share of the people", shrink=0.8)
    if len(shares) <= MAX_NAMED_REGIONS:
        _write_names(shares, axes)
    tell_missing_letters(axes)


def _in_units(points: Floats, grid: Grid) -> Floats:
    """Return points of regions in the grid's unit, from its south-west corner."""
    west, south, east, north = grid_sides(grid)
    across = (points[:, 0] - west) / (east - west) * grid.columns * grid.width
    along = (points[:, 1] - south) / (north - south) * grid.rows * grid.height
    return np.stack([across, along], axis=1)


def _path(rings: list[Floats]) -> Any:
    """Return rings as one path; holes stay open, because they run the other way round."""
    from matplotlib.path import Path

    return Path.make_compound_path(*(Path(ring, closed=True) for ring in rings))


def _write_names(shares: RegionShares, axes: Axes) -> None:
    """Write name, share and interval into each region, the largest first, as far as they fit."""
    import shapely

    grid = shares.regions.grid
    view = shapely.box(0.0, 0.0, grid.columns * grid.width, grid.rows * grid.height)
    seen = [
        shapely.intersection(shapely.transform(polygon, lambda points: _in_units(points, grid)), view)
        for polygon in shares.regions.polygons
    ]
    taken: list[Any] = []
    axes.figure.canvas.figure.draw_without_rendering()  # only then is known how large letters are on the map
    for number in np.argsort(-shapely.area(seen), kind="stable").tolist():
        row, polygon = shares.rows[number], seen[number]
        if polygon.is_empty or not row.is_known:
            continue
        largest = max(shapely.get_parts(polygon).tolist(), key=shapely.area)
        middle = shapely.get_point(shapely.maximum_inscribed_circle(largest, tolerance=min(grid.sides) / 20), 0)
        for words in _wordings(row):
            (text,), style = legible([words])
            written = axes.text(
                middle.x, middle.y, text, color=BLACK, ha="center", va="center", fontsize="x-small", bbox=PAPER, **style
            )
            room = _room(written, axes)
            if room.intersection(polygon).area >= MIN_NAME_INSIDE * room.area and not any(map(room.intersects, taken)):
                taken.append(room)
                break
            written.remove()


def _wordings(row: RegionShare) -> tuple[str, ...]:
    """Return what may be written about a region, the longest first."""
    name = wrapped(row.name, MAX_NAME_LETTERS, most=3)
    share = f"{name}\n{percent(row.estimate)}"
    return f"{share}\n{percent(row.low)} to {percent(row.high)}", share, name


def _room(written: Text, axes: Axes) -> Any:
    """Return the room that a text takes on the map."""
    import shapely

    corners = axes.transData.inverted().transform(written.get_window_extent().get_points())
    return shapely.box(*corners.ravel())
