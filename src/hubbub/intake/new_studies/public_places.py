"""The box around public places: points of a table with latitudes and longitudes, or the shapes of a GeoJSON file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import IntakeError, restated, shorten
from hubbub.core.text import listed
from hubbub.domains.geometry import Box
from hubbub.intake.privatizing.value_positions import BadRowError, read_all_numbers
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source, check_counted
from hubbub.intake.sources.column_names import USUAL_NAMES, coordinate_candidates
from hubbub.intake.sources.file_source import check_file, file_errors
from hubbub.intake.sources.source_lookup import table_source

GEOJSON_EXTENSIONS = (".geojson", ".json")
CENTRAL_SHARE = 0.99  # of the points: what lies farther from them than half of their spread is left out
MAX_GEOJSON_BYTES = 1 << 28
E7 = 1e7  # some programs store degrees as whole numbers, times this


class PlacesBox(NamedTuple):
    """The box that holds public places, and what was found."""

    box: Box
    found: str  # such as "1,204 points of stops.csv"
    left_out: int  # points far away from the others


def box_of_places(path: Path) -> PlacesBox:
    """Return the box around the places of a file."""
    check_file(path)
    is_geojson = path.suffix.lower() in GEOJSON_EXTENSIONS
    latitudes, longitudes = _shape_corners(path) if is_geojson else _table_points(table_source(str(path)))
    _check_degrees(latitudes, longitudes, str(path))
    kept = np.ones(latitudes.size, dtype=bool)
    if not is_geojson:
        kept = _near_the_others(latitudes) & _near_the_others(longitudes)
    south, north = float(latitudes[kept].min()), float(latitudes[kept].max())
    west, east = float(longitudes[kept].min()), float(longitudes[kept].max())
    if not (south < north and west < east):
        raise _unfit(
            "all places are on one line, or in one point",
            path,
            f"{south:g}, {west:g} to {north:g}, {east:g}",
            "places on all sides of the area",
            "add places at its borders, or write the box by hand",
        )
    found = f"the shapes of {path.name}" if is_geojson else f"{latitudes.size:,} points of {path.name}"
    return PlacesBox(Box(south, west, north, east), found, int((~kept).sum()))


def _near_the_others(degrees: Floats) -> np.ndarray:
    """Return which points lie in the central part, or no farther from it than half of its length."""
    tail = (1.0 - CENTRAL_SHARE) / 2.0
    low, high = np.quantile(degrees, [tail, 1.0 - tail])
    reach = (high - low) / 2.0
    return np.asarray((degrees >= low - reach) & (degrees <= high + reach))


def _check_degrees(latitudes: Floats, longitudes: Floats, where: str) -> None:
    """Refuse what are no degrees, with what they may be instead."""
    if not (latitudes.size and np.isfinite(latitudes).all() and np.isfinite(longitudes).all()):
        raise _unfit(
            "there are no places", where, f"{latitudes.size:,} points", "at least two places", "check the file"
        )
    south, north = float(latitudes.min()), float(latitudes.max())
    west, east = float(longitudes.min()), float(longitudes.max())
    got = f"latitude {south:g} to {north:g}, longitude {west:g} to {east:g}"
    expected = "latitude from -90 to 90 and longitude from -180 to 180, in degrees"
    size = max(-south, north, -west, east)
    if max(-south, north) > 90 or max(-west, east) > 180:
        if max(-south, north) <= 180 and max(-west, east) <= 90:
            remedy = "swap the two columns: latitude is the distance from the equator"
        elif size > 1e6 and size <= 180 * E7 and _whole(latitudes) and _whole(longitudes):
            remedy = "divide by ten million: these seem to be degrees times 10^7"
        else:
            remedy = "convert projected coordinates (metres) to WGS 84 degrees, EPSG:4326"
        raise _unfit("these are no degrees", where, got, expected, remedy)
    if east - west > 180:
        raise _unfit(
            "the places lie on both sides of the 180th meridian, or all over the world",
            where,
            got,
            "an area on one side of the 180th meridian",
            "keep the places of one side",
        )


def _whole(numbers: Floats) -> bool:
    return bool((numbers == np.floor(numbers)).all())


# -- tables ---------------------------------------------------------------------------------------------------------


def _table_points(source: Source) -> tuple[Floats, Floats]:
    """Return the latitudes and longitudes of a table's rows; the first row that cannot be read is an error."""
    names = _coordinate_columns(source)
    parts: list[list[Floats]] = []
    for rows in source.rows(names):
        check_counted(source, rows)
        try:
            if rows.faults:
                place, fault = rows.faults[0]
                raise restated(fault.error, IntakeError, where=source.where(place))
            if rows.parsed:
                parts.append(read_all_numbers({name: rows.columns[name] for name in names}))
        except BadRowError as bad:
            place = int(rows.place(np.array([bad.row]))[0])
            where = f"{source.where(place)}, column {bad.fault.column}"
            raise restated(bad.fault.error, IntakeError, where=where) from None
    latitudes, longitudes = (np.concatenate(each) for each in zip(*parts, strict=True)) if parts else (np.empty(0),) * 2
    return latitudes, longitudes


def _coordinate_columns(source: Source) -> list[str]:
    """Return the names of the columns of latitudes and of longitudes: lat, Longitude, stop_lat, ..."""
    header, chosen = source.header(), []
    for role, words in USUAL_NAMES.items():
        found = coordinate_candidates(header, role)
        if len(found) != 1:
            raise refusal(
                "repeated-column" if found else "no-column",
                f"{'several columns' if found else 'no column'} may hold the {words[-1]}",
                where=source.name,
                got=listed([shorten(name) for name in found]) if found else f"columns {shorten(header, 200)}",
                expected=f"one column called {listed(words, word='or')}",
                remedy="rename the columns",
            )
        chosen += found
    return chosen


# -- GeoJSON --------------------------------------------------------------------------------------------------------


def _shape_corners(path: Path) -> tuple[Floats, Floats]:
    """Return latitudes and longitudes of all corners of the shapes in a GeoJSON file."""
    with file_errors(path):
        content = path.read_bytes() if path.stat().st_size <= MAX_GEOJSON_BYTES else b""
    try:
        document = json.loads(content.decode("utf-8-sig"))
        corners = np.array(list(_positions(document)), dtype=np.float64).reshape(-1, 2)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _unfit(
            "the file is not GeoJSON",
            path,
            shorten(str(error), 100),
            "a GeoJSON file of shapes or points",
            "export it again as GeoJSON in WGS 84 degrees",
        ) from None
    return corners[:, 1], corners[:, 0]


def _positions(part: Any) -> Iterator[tuple[float, float]]:
    """Yield longitude and latitude of each position in a GeoJSON object."""
    kind = part["type"]
    if kind == "FeatureCollection":
        for feature in part["features"]:
            yield from _positions(feature)
    elif kind == "Feature":
        if part["geometry"] is not None:
            yield from _positions(part["geometry"])
    elif kind == "GeometryCollection":
        for geometry in part["geometries"]:
            yield from _positions(geometry)
    else:
        yield from _flat(part["coordinates"])


def _flat(coordinates: Any) -> Iterator[tuple[float, float]]:
    if coordinates and isinstance(coordinates[0], int | float):
        longitude, latitude = float(coordinates[0]), float(coordinates[1])
        if not (math.isfinite(longitude) and math.isfinite(latitude)):
            raise ValueError("a coordinate is not a finite number")
        yield longitude, latitude
    else:
        for inner in coordinates:
            yield from _flat(inner)


def _unfit(what: str, where: object, got: str, expected: str, remedy: str) -> IntakeError:
    return IntakeError(what, where=str(where), got=got, expected=expected, remedy=remedy)
