"""Geometry for grids: boxes on the map, and the nearest of a set of cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.client import EARTH_RADIUS_KM, RELATIVE_TIE
from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, as_real
from hubbub.core.errors import DomainError, shorten

BOX_SIDES = ("south", "west", "north", "east")
HALF_GLOBE = 180.0  # degrees of longitude
MAX_LATITUDE, MAX_LONGITUDE = 90.0, 360.0
MAX_STEPS = 2.0**52  # cells of tiny boxes: beyond, floats no longer tell neighbours apart


@dataclass(frozen=True)
class Box:
    """A box on the map, in degrees."""

    south: float
    west: float
    north: float
    east: float

    @classmethod
    def checked(cls, *, south: float, west: float, north: float, east: float) -> Box:
        """Return the box, or say which side is wrong."""
        sides = dict(zip(BOX_SIDES, (south, west, north, east), strict=True))
        for name, side in sides.items():
            limit = 90 if name in ("south", "north") else 180
            if not abs(as_real(side)) <= limit:
                expected = f"degrees from -{limit} to {limit}"
                remedy = "give decimal degrees, negative for south and west"
                raise validation.wrong(side, name, "Grid.over", expected, remedy=remedy, error=DomainError)
        for low, high in (("south", "north"), ("west", "east")):
            if not sides[low] < sides[high]:
                what, expected = f"{low} must be below {high}", f"{low} < {high}"
                got = f"{low}={sides[low]}, {high}={sides[high]}"
                remedy = "swap the two (a box across the 180th meridian is not supported)"
                raise DomainError(what, where="Grid.over", got=got, expected=expected, remedy=remedy)
        return cls(float(south), float(west), float(north), float(east))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in kilometres, equirectangular at the middle latitude."""
        middle = math.radians((self.south + self.north) / 2)
        degree = math.radians(EARTH_RADIUS_KM)
        return (self.east - self.west) * degree * math.cos(middle), (self.north - self.south) * degree

    def steps(
        self, latitude: object, longitude: object, columns: int, rows: int, *, beyond: bool = False
    ) -> tuple[Positions, Positions]:
        """Return column and row of each point; a point outside the box is an error.

        With `beyond`, points may lie anywhere on the map (see `lattice`).
        """
        lat, lon = _points(latitude, longitude)
        if beyond:
            good, what = self.are_places(lat, lon), "a point is not a place on the map"
            expected = "latitudes from -90 to 90, longitudes from -360 to 360"
            remedy = "latitude comes first; leave out what has no position"
        else:
            good = (lon >= self.west) & (lon <= self.east) & (lat >= self.south) & (lat <= self.north)
            what = "a point is outside the box"
            expected = f"latitude {self.south} to {self.north}, longitude {self.west} to {self.east}"
            remedy = (
                "latitude comes first; for a true value use a larger box, or deliberately leave that person out; a "
                "noisy report belongs to the nearest cell, and leaving it out biases the estimate: outside='nearest'"
            )
        if not good.all():
            position = int(np.argmin(good.ravel()))
            where = f"Grid.locate, position {position}"
            got = f"latitude {lat.ravel()[position]}, longitude {lon.ravel()[position]}"
            raise DomainError(what, where=where, got=got, expected=expected, remedy=remedy)
        return self.lattice(lat, lon, columns, rows)

    @staticmethod
    def are_places(latitude: Floats, longitude: Floats) -> NDArray[np.bool_]:
        """Return which points are somewhere on the map; longitudes may go once around it."""
        return (np.abs(latitude) <= MAX_LATITUDE) & (np.abs(longitude) <= MAX_LONGITUDE)

    def lattice(self, latitude: Floats, longitude: Floats, columns: int, rows: int) -> tuple[Positions, Positions]:
        """Return column and row of places, on the infinite lattice that continues the box's cells on all sides.

        A cell holds its southern and its western side, and the last row and column hold their outer side, too.
        Longitudes more than half the globe from the box's middle are counted from the other side, so that noise across
        the 180th meridian stays on its side.
        """
        middle = (self.west + self.east) / 2
        around = np.abs(longitude - middle) > HALF_GLOBE
        if around.any():  # elsewhere no digit changes
            moved = middle + np.remainder(longitude - middle + HALF_GLOBE, 2 * HALF_GLOBE) - HALF_GLOBE
            longitude = np.where(around, moved, longitude)
        across, along = self.east - self.west, self.north - self.south
        return (
            on_last_side(np.floor((longitude - self.west) / across * columns), longitude <= self.east, columns),
            on_last_side(np.floor((latitude - self.south) / along * rows), latitude <= self.north, rows),
        )


def _points(latitude: object, longitude: object) -> tuple[Floats, Floats]:
    try:
        if any(np.asarray(degrees).dtype.kind == "b" for degrees in (latitude, longitude)):
            raise TypeError  # truth values are not numbers
        lat, lon = np.broadcast_arrays(np.asarray(latitude, dtype=np.float64), np.asarray(longitude, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise DomainError(
            "latitudes and longitudes do not match",
            where="Grid.locate(latitude, longitude)",
            got=f"{shorten(latitude)} and {shorten(longitude)}",
            expected="two lists of numbers of the same length",
            remedy="pass one longitude for each latitude",
        ) from None
    return lat, lon


def on_last_side(lattice: Floats, before_end: NDArray[np.bool_], count: int) -> Positions:
    """Return steps along one side of a lattice as whole numbers; the last of `count` cells includes its outer side."""
    steps: Positions = np.clip(lattice, -MAX_STEPS, MAX_STEPS).astype(np.int64)
    return np.where(before_end, np.minimum(steps, count - 1), np.maximum(steps, count))


def nearest(kept: Positions, points: Positions, sides: tuple[float, float]) -> Positions:
    """Return for each lattice point the index of the nearest kept cell; ties go to the lowest index.

    `kept` lists column and row of the cells, ordered by row and then column. Within one column the nearest
    kept cell depends on the point's row alone, so that each point is compared with one cell per column.
    """
    columns = np.unique(kept[:, 0])
    rows, row_of_point = np.unique(points[:, 1], return_inverse=True)
    candidates = np.empty((rows.size, columns.size), dtype=np.int64)
    for number, column in enumerate(columns):
        members = np.flatnonzero(kept[:, 0] == column)
        candidates[:, number] = members[_nearest_sorted(kept[members, 1], rows)]
    rise = (kept[candidates, 1] - rows[:, None]) * sides[1]
    chosen = np.empty(len(points), dtype=np.int64)
    step = max(1, 4_000_000 // columns.size)
    for first in range(0, len(points), step):
        mine = row_of_point.ravel()[first : first + step]
        run = (columns[None, :] - points[first : first + step, :1]) * sides[0]
        distance = np.hypot(run, rise[mine])
        tied = distance <= distance.min(axis=1, keepdims=True) * (1 + RELATIVE_TIE)
        chosen[first : first + step] = np.where(tied, candidates[mine], len(kept)).min(axis=1)
    return chosen


def _nearest_sorted(kept: Positions, rows: Positions) -> Positions:
    """Return the index of the nearest of the increasing numbers `kept` to each row; ties go to the lower."""
    above = np.minimum(np.searchsorted(kept, rows), kept.size - 1)
    below = np.maximum(above - 1, 0)
    return np.where(np.abs(rows - kept[below]) <= np.abs(kept[above] - rows), below, above)
