"""Whether the places of a source can lie on the study's map: columns in another order, unit or projection.

Single rows may lie anywhere, as noise carries them far. Where nearly all of the first rows do, and another reading of
the same numbers brings most of them to the map, the source is refused as a whole, with that reading as the reason:
rejecting or remapping a million rows one by one would hide it. Nothing is converted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import IntakeError, shorten
from hubbub.core.text import plural
from hubbub.domains import Grid
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.number_columns import floats_of
from hubbub.intake.study import Study

CHECKED_ROWS = 10_000  # at the start of a source
NEAR_SHARE, EXPLAINED_SHARE = 0.01, 0.5  # below the first a source is suspect, above the second a reading explains it
NEAR_DIAMETERS, NEAR_NOISE = 3.0, 20.0  # how far from the map is near: in its diameters, plus this over epsilon
MIN_SPREAD = 0.01  # of the grid's size: a small enough unit brings anything near, but then to one spot
WEB_MERCATOR_METRES = 6_378_137.0  # the radius of its sphere
MIN_PROJECTED = 1_000.0  # numbers beyond are no degrees, whatever their unit
DEGREES_TEXT = re.compile(  # 37°46'N, 37:46:12, N 37 46.5, 37.75 N
    r"\s*(?:[NSEWO]\s*\d|[+-]?\d+(?:\.\d+)?\s*[°ºd:]|[+-]?\d+(?:\.\d+)?\s*[NSEWO]\s*$)", re.IGNORECASE
)

Points = tuple[Floats, Floats]


class Reading(NamedTuple):
    """Another meaning of two columns of numbers: what it says, what to do, and the places that it gives."""

    what: str
    remedy: str
    places: Callable[[Floats, Floats], Points]


DEGREE_READINGS = (
    Reading(
        "latitude and longitude are swapped",
        "exchange the two columns, or name them: --lat-column {1} --lon-column {0}",
        lambda lat, lon: (lon, lat),
    ),
    Reading(
        "the coordinates are in radians",
        "multiply both columns by 180 / pi: decimal degrees are expected",
        lambda lat, lon: (np.degrees(lat), np.degrees(lon)),
    ),
    Reading(
        "the coordinates are degrees times ten million (E7)",
        "divide both columns by 10,000,000",
        lambda lat, lon: (lat / 1e7, lon / 1e7),
    ),
    Reading(
        "the coordinates are degrees times a million (E6)",
        "divide both columns by 1,000,000",
        lambda lat, lon: (lat / 1e6, lon / 1e6),
    ),
    Reading(
        "longitudes count from 0 to 360",
        "subtract 360 from longitudes above 180",
        lambda lat, lon: (lat, lon - 360.0),
    ),
    Reading(
        "longitudes lack their sign",
        "write western longitudes as negative numbers",
        lambda lat, lon: (lat, -lon),
    ),
    Reading(
        "latitudes lack their sign",
        "write southern latitudes as negative numbers",
        lambda lat, lon: (-lat, lon),
    ),
    Reading(
        "the coordinates are metres of the Web Mercator projection (EPSG:3857), y before x",
        "convert them to degrees (EPSG:4326), with pyproj for example",
        lambda lat, lon: _from_mercator(lon, lat),
    ),
    Reading(
        "the coordinates are metres of the Web Mercator projection (EPSG:3857), x before y",
        "convert them to degrees (EPSG:4326), with pyproj for example; latitude comes first",
        lambda lat, lon: _from_mercator(lat, lon),
    ),
)
DISTANCES = {  # by the grid's unit: other units, and what they measure in it
    "km": {"metres": 1e-3, "feet": 0.3048e-3, "miles": 1.609344},
    "m": {"kilometres": 1e3, "feet": 0.3048, "miles": 1609.344},
}


class PlaceCheck:
    """Looks at the first places of a source."""

    def __init__(self, study: Study, source: Source) -> None:
        self._study, self._source, self._roles = study, source, source.columns.place
        self._points: list[Points] = []
        self._texts: list[str] = []  # entries that are no numbers
        self._left = CHECKED_ROWS if self._roles is not None else 0

    def look(self, rows: Rows) -> None:
        """Look at some rows; refuse the source once enough of them show that it is wrong as a whole."""
        if self._left <= 0 or rows.parsed == 0 or self._roles is None:
            return
        columns = [rows.columns[role].slice(0, self._left) for role in self._roles]
        (first, first_wrong), (second, second_wrong) = (floats_of(column, trim=True) for column in columns)
        good = np.isfinite(first) & np.isfinite(second)
        self._points.append((first[good], second[good]))
        for column, wrong in zip(columns, (first_wrong, second_wrong), strict=True):
            if wrong is not None and len(self._texts) < CHECKED_ROWS:
                self._texts += [str(column[row].as_py()) for row in np.flatnonzero(wrong).tolist()]
        self._left -= good.size
        if self._left <= 0:
            self.finish()

    def finish(self) -> None:
        """Refuse the source if what was seen of it is far from the map, or is no decimal number."""
        points, texts = self._points, self._texts
        self._points, self._texts, self._left = [], [], 0
        if self._roles is None or not points:
            return
        first, second = (np.concatenate(part) for part in zip(*points, strict=True))
        written = [text for text in texts if DEGREES_TEXT.match(text)]
        if len(written) > 2 * EXPLAINED_SHARE * max(1, first.size):
            raise self._refused(
                "the coordinates are written in degrees and minutes, or with letters",
                shorten(written[0]),
                "write decimal degrees, negative in the south and in the west: 37.75, -122.45",
            )
        grid = self._study.domain.grid
        if first.size == 0 or grid is None:
            return
        size = math.hypot(grid.columns * grid.width, grid.rows * grid.height)
        reach = NEAR_DIAMETERS * size + _noise(self._study)
        if _near(grid, self._roles, first, second, reach) >= NEAR_SHARE:
            return
        medians = ", ".join(
            f"{role} around {np.median(numbers):.7g}"
            for role, numbers in zip(self._roles, (first, second), strict=True)
        )
        got = f"{medians} ({plural(first.size, 'row')})"
        for reading, roles in _readings(self._roles, grid):
            places = reading.places(first, second)
            if _near(grid, roles, *places, reach) > EXPLAINED_SHARE and _spread(roles, *places) > MIN_SPREAD * size:
                raise self._refused(
                    reading.what, got, reading.remedy.format(*map(self._source.columns.name_of, self._roles))
                )
        projected = self._roles[0] == "lat" and min(np.median(np.abs(first)), np.median(np.abs(second))) > MIN_PROJECTED
        raise self._refused(
            "the coordinates look projected, not like degrees"
            if projected
            else "the places lie far from the study's map",
            got,
            "convert them to latitude and longitude in decimal degrees (EPSG:4326), with pyproj for example"
            if projected
            else "check that the reports belong to this study, and the order and unit of the two columns",
        )

    def _refused(self, what: str, got: str, remedy: str) -> IntakeError:
        columns, grid = self._source.columns, self._study.domain.grid
        names = " and ".join(columns.name_of(role) for role in self._roles or ())
        expected = "" if grid is None else _expected(grid, self._roles or ("", ""))
        where = f"{self._source.name}, columns {names}"
        return refusal("wrong-coordinates", what, where=where, got=got, expected=expected, remedy=remedy)


def _readings(roles: tuple[str, str], grid: Grid) -> Iterator[tuple[Reading, tuple[str, str]]]:
    """Yield the other meanings that two columns may have, and the roles that they then have."""
    if roles[0] == "lat":
        yield from ((reading, roles) for reading in DEGREE_READINGS)
        return
    if grid.box is not None:
        remedy = "name them as what they are: --lat-column {1} --lon-column {0}"
        yield Reading("the columns x and y hold longitudes and latitudes", remedy, lambda x, y: (y, x)), ("lat", "lon")
        remedy = "name them as what they are: --lat-column {0} --lon-column {1}"
        yield Reading("the columns x and y hold latitudes and longitudes", remedy, lambda x, y: (x, y)), ("lat", "lon")
    for unit, factor in DISTANCES.get(grid.unit, {}).items():
        scaled = Reading(
            f"the distances are in {unit}",
            f"write them in {grid.unit}: multiply both columns by {factor:g}",
            lambda x, y, factor=factor: (factor * x, factor * y),  # type: ignore[misc]
        )
        yield scaled, roles


def _near(grid: Grid, roles: tuple[str, str], first: Floats, second: Floats, reach: float) -> float:
    """Return the share of points within `reach` of the grid's box, in the grid's unit; longitudes are not wrapped."""
    if roles[0] == "lat":
        box = grid.box
        assert box is not None  # noqa: S101  # latitudes are read on maps only
        good = np.abs(first) <= 90.0
        rows = (first - box.south) / (box.north - box.south) * grid.rows
        columns = (second - box.west) / (box.east - box.west) * grid.columns
    else:
        good, columns, rows = np.isfinite(first), first / grid.width, second / grid.height
    east = np.maximum(np.maximum(-columns, columns - grid.columns), 0.0) * grid.width
    north = np.maximum(np.maximum(-rows, rows - grid.rows), 0.0) * grid.height
    return float(np.mean(good & (np.hypot(east, north) <= reach)))


def _spread(roles: tuple[str, str], first: Floats, second: Floats) -> float:
    """Return how far distances spread; places in degrees count as spread, as no reading of these shrinks any number."""
    return math.inf if roles[0] == "lat" or first.size == 1 else float(np.hypot(np.std(first), np.std(second)))


def _noise(study: Study) -> float:
    """Return how far the noise of the study's mechanisms may carry a place, all but surely."""
    metric = [
        mechanism.epsilon for mechanism in study.mechanisms.values() if mechanism.metric and mechanism.epsilon > 0
    ]
    return NEAR_NOISE / min(metric) if metric else 0.0


def _from_mercator(x: Floats, y: Floats) -> Points:
    latitude = np.degrees(np.arctan(np.sinh(np.clip(y / WEB_MERCATOR_METRES, -10.0, 10.0))))
    return latitude, np.degrees(x / WEB_MERCATOR_METRES)


def _expected(grid: Grid, roles: tuple[str, str]) -> str:
    if roles[0] == "lat" and grid.box is not None:
        box = grid.box
        return (
            f"places on or around the map: latitude {box.south:g} to {box.north:g}, longitude {box.west:g} to "
            f"{box.east:g}, in decimal degrees"
        )
    width, height = grid.columns * grid.width, grid.rows * grid.height
    return (
        f"places on or around the grid: x from 0 to {width:g}, y from 0 to {height:g} {grid.unit}, from its "
        "south-western corner"
    )
