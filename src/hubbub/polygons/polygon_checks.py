"""Geometries of GeoJSON as polygons of shapely, refused where an area would depend on how a mistake is read.

Libraries repair in silence: they close rings, and give a polygon that crosses itself some area. Shares would follow
from the repair, so people make it, and see what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import RegionsError, shorten
from hubbub.polygons.geojson_reading import Feature

MIN_RING_POINTS = 4  # a triangle, with its first point again at the end
FIX_GEOMETRIES = 'repair it with "Fix geometries" in QGIS or shapely.make_valid, and look at what comes out'


def parse_polygons(feature: Feature) -> tuple[Any, bool]:
    """Return the polygons of a feature, flat, as one geometry; and whether any point had a height."""
    import shapely

    geometry, where = feature.geometry, feature.where
    if geometry is None:
        raise _error("a region has no geometry", where, "null", "leave the feature out, or give it its polygon")
    parts, has_height = [], False
    for number, rings in enumerate(_polygons(geometry, where)):
        place = f"{where}, polygon {number}"
        if not isinstance(rings, list | tuple) or not rings:
            raise _error("a polygon is empty", place, shorten(rings), "leave it out, or give it its rings")
        points = [_ring(ring, f"{place}, ring {index}") for index, ring in enumerate(rings)]
        has_height = has_height or any(len(ring[0]) > 2 for ring in rings)
        parts.append(shapely.Polygon(points[0], points[1:]))
    whole = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
    if not shapely.is_valid(whole):
        reason = shapely.is_valid_reason(whole)
        what = "a polygon crosses itself" if "self-intersection" in reason.lower() else "a polygon is not valid"
        raise _error(what, where, reason, FIX_GEOMETRIES, "rings that neither cross nor touch along a line")
    return whole, has_height


def _polygons(geometry: object, where: str) -> list[Any]:
    """Return the coordinates of all polygons of a geometry."""
    if not isinstance(geometry, Mapping):
        raise _error("a geometry is none", where, shorten(geometry), "write its type and its coordinates")
    kind = geometry.get("type")
    members = geometry.get("geometries" if kind == "GeometryCollection" else "coordinates")
    members = list(members) if isinstance(members, list | tuple) else []
    if kind == "GeometryCollection":
        found = [part for member in members for part in _polygons(member, where)]
    elif kind == "Polygon":
        found = [members] if members else []
    elif kind == "MultiPolygon":
        found = members
    elif kind in ("Point", "MultiPoint", "LineString", "MultiLineString"):
        remedy = "leave it out; what lies along a line or around a point needs a buffer, and you know how wide"
        raise _error("a region is no area", where, f"a {kind}", remedy)
    else:
        raise _error("a geometry is of no known type", where, shorten(kind), "write Polygon or MultiPolygon")
    if not found:
        raise _error("a region is empty", where, f"a {kind} without polygons", "leave it out, or give it its polygon")
    return found


def _ring(ring: object, where: str) -> Floats:
    """Return the points of a closed ring."""
    points = _points(ring)
    if points is None:
        expected = "a list of [longitude, latitude], each a number"
        raise _error("the coordinates of a ring are not numbers", where, shorten(ring), "write two numbers", expected)
    if not np.isfinite(points).all():
        place = int(np.argmin(np.isfinite(points).all(axis=1)))
        remedy = "leave the point out"
        raise _error("a coordinate is not finite", f"{where}, point {place}", shorten(points[place].tolist()), remedy)
    if len(points) < MIN_RING_POINTS:
        got, expected = f"{len(points)} points", f"{MIN_RING_POINTS} or more, the first one again at the end"
        raise _error("a ring has too few points", where, got, "leave it out, or complete it", expected)
    if not np.array_equal(points[0], points[-1]):
        got = f"from {points[0].tolist()} to {points[-1].tolist()}"
        remedy = "write the first point again at the end; if points are missing, get the whole file"
        raise _error("a ring is not closed", where, got, remedy, "the same point first and last")
    return points


def _points(ring: object) -> Floats | None:
    """Return the first two numbers of each point; None if something is no number."""
    if not isinstance(ring, Sequence) or not all(isinstance(point, Sequence) and len(point) >= 2 for point in ring):
        return None
    flat = [number for point in ring for number in point[:2]]
    if any(isinstance(number, bool) or not isinstance(number, int | float | np.number) for number in flat):
        return None
    try:
        return np.array(flat, dtype=np.float64).reshape(-1, 2)
    except OverflowError:
        return None


def _error(
    what: str, where: str, got: str, remedy: str, expected: str = "a Polygon or a MultiPolygon with an area"
) -> RegionsError:
    return RegionsError(what, where=where, got=got, expected=expected, remedy=remedy)
