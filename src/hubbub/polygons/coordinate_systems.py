"""From the coordinates of a file to those of the grid: degrees, or its own unit where it has no place on the map.

GeoJSON has longitude and latitude. An older form of it, and tables of other libraries, may name another system, from
which pyproj converts. Where none is named and no region is anywhere near the grid, the usual mistakes are tried, so
that the message can say which one it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import RegionsError, shorten
from hubbub.domains import Grid

MAX_LONGITUDE, MAX_LATITUDE = 180.0, 90.0
E7 = 1e7  # degrees times this, as whole numbers: what phones export
# What names of longitude and latitude on WGS 84 contain, in this order, whatever else their authority says.
DEGREES_ON_WGS84 = ("CRS84", "EPSG::4326", "EPSG:4326", "OGC:1.3:CRS84")
REPROJECT = "convert the file with ogr2ogr -t_srs EPSG:4326 regions.geojson ORIGINAL, or QGIS (export, EPSG:4326)"


class _Mistake(NamedTuple):
    """What people do to coordinates, and how to undo it."""

    what: str
    undone: Callable[[Floats], Floats]  # of bounds: least x and y, largest x and y
    remedy: str


MISTAKES = (
    _Mistake(
        "latitude and longitude are swapped",
        lambda bounds: bounds[:, [1, 0, 3, 2]],
        "write [longitude, latitude]: in GeoJSON, longitude comes first",
    ),
    _Mistake("coordinates are in radians", np.degrees, "convert them to degrees: times 180, divided by pi"),
    _Mistake(
        "coordinates are whole numbers, ten million for a degree (E7)",
        lambda bounds: bounds / E7,
        "divide them by 10,000,000",
    ),
    _Mistake(
        "longitudes run from 0 to 360",
        lambda bounds: bounds - [MAX_LONGITUDE * 2, 0.0, MAX_LONGITUDE * 2, 0.0],
        "subtract 360 from those above 180",
    ),
    _Mistake(
        "longitudes have the wrong sign",
        lambda bounds: bounds[:, [2, 1, 0, 3]] * [-1.0, 1.0, -1.0, 1.0],
        "write longitudes west of Greenwich as negative numbers",
    ),
)


def to_coordinates_of_grid(polygons: list[Any], grid: Grid, system: object, source: str) -> tuple[list[Any], str]:
    """Return the polygons in the grid's coordinates, and a note where they were converted."""
    name = _system_name(system, source)
    if name is None or (isinstance(name, str) and any(part in name for part in DEGREES_ON_WGS84)):
        return polygons, ""
    if grid.box is None:
        raise RegionsError(
            "the regions have a place on the map, the grid has none",
            where=source,
            got=f"coordinates in {shorten(name)}",
            expected=f"x and y in {grid.unit}, from the grid's south-west corner",
            remedy="build the grid with Grid.over(south=, west=, north=, east=, ...)",
        )
    return _converted(polygons, name, source)


def _system_name(system: object, source: str) -> object | None:
    """Return the coordinate system that a source names; None if it names none."""
    if not isinstance(system, Mapping):
        return system
    properties = system.get("properties")
    name = properties.get("name") if isinstance(properties, Mapping) else None
    if isinstance(name, str):
        return name
    raise RegionsError(
        "the coordinate system of the file has no name",
        where=f"{source}, crs",
        got=shorten(dict(system)),
        expected='{"type": "name", "properties": {"name": "EPSG:25832"}}, or no crs for longitude and latitude',
        remedy=REPROJECT,
    )


def _converted(polygons: list[Any], name: object, source: str) -> tuple[list[Any], str]:
    import shapely
    from pyproj import CRS, Transformer
    from pyproj.exceptions import ProjError

    try:
        system = CRS.from_user_input(name)
        if system.equals(CRS.from_epsg(4326), ignore_axis_order=True):
            return polygons, ""
        transformer = Transformer.from_crs(system, "EPSG:4326", always_xy=True)
        converted = list(shapely.transform(polygons, transformer.transform, interleaved=False))
        is_finite = all(np.isfinite(shapely.bounds(polygon)).all() for polygon in converted)
    except ProjError as error:
        raise _not_converted(name, source, str(error).splitlines()[0]) from None
    if not is_finite or not shapely.is_valid(converted).all():
        raise _not_converted(name, source, "some points have no longitude and latitude")
    return converted, f"Coordinates were converted from {system.name}."


def _not_converted(name: object, source: str, reason: str) -> RegionsError:
    return RegionsError(
        "the coordinates cannot be converted",
        where=f"{source}, crs",
        got=f"{shorten(name)}: {reason}",
        expected="a coordinate system that pyproj knows, such as EPSG:25832, or no crs for longitude and latitude",
        remedy=REPROJECT,
    )


def check_near_grid(bounds: Floats, unconverted: Floats, grid: Grid, source: str) -> None:
    """Refuse regions none of which touches the grid, or whose coordinates are no degrees; say what the mistake is.

    `bounds` has a row for each region: least x and y, largest x and y; `unconverted` are those in the file.
    """
    sides = grid_sides(grid)
    on_map = grid.box is not None
    if _is_near(bounds, sides) and not (on_map and _is_off_globe(bounds)):
        return
    least, largest = bounds[:, :2].min(axis=0), bounds[:, 2:].max(axis=0)
    parts = {
        "where": source,
        "got": f"x from {least[0]:.8g} to {largest[0]:.8g}, y from {least[1]:.8g} to {largest[1]:.8g}",
        "expected": f"x from {sides[0]:.8g} to {sides[2]:.8g}, y from {sides[1]:.8g} to {sides[3]:.8g}, the grid, "
        + ("in degrees" if on_map else f"in {grid.unit} from its south-west corner"),
    }
    if _is_near(unconverted, sides) and not _is_near(bounds, sides):
        what = "coordinates are degrees already, not in the coordinate system that the file names"
        raise RegionsError(what, **parts, remedy="remove crs from the file")
    for mistake in MISTAKES if on_map else ():
        undone = mistake.undone(bounds)
        if _is_near(undone, sides) and not _is_off_globe(undone):
            raise RegionsError(mistake.what, **parts, remedy=mistake.remedy)
    if on_map and _is_off_globe(bounds):
        what = "coordinates are not degrees: they are projected, and the file does not say how"
        raise RegionsError(what, **parts, remedy=REPROJECT)
    remedy = "check that study and regions are about the same place"
    raise RegionsError("no region touches the grid", **parts, remedy=remedy)


def grid_sides(grid: Grid) -> tuple[float, float, float, float]:
    """Return least x and y, largest x and y of the grid, in the coordinates of its regions."""
    if grid.box is None:
        return 0.0, 0.0, grid.columns * grid.width, grid.rows * grid.height
    return grid.box.west, grid.box.south, grid.box.east, grid.box.north


def _is_near(bounds: Floats, sides: tuple[float, float, float, float]) -> bool:
    """Whether some region has points in common with the grid, as far as bounds tell."""
    west, south, east, north = sides
    touches = (bounds[:, 0] < east) & (bounds[:, 2] > west) & (bounds[:, 1] < north) & (bounds[:, 3] > south)
    return bool(touches.any())


def _is_off_globe(bounds: Floats) -> bool:
    return bool((np.abs(bounds[:, [0, 2]]) > MAX_LONGITUDE).any() or (np.abs(bounds[:, [1, 3]]) > MAX_LATITUDE).any())
