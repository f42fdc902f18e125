"""Geometry for grids: boxes on the map, and the nearest of a set of cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.client import EARTH_RADIUS_KM, RELATIVE_TIE
from hubbub.core.arrays import Floats, Positions, as_real
from hubbub.core.errors import DomainError, shorten

FARTHEST_STEP = 2.0**52  # cells of tiny boxes: beyond, neighbours are one float


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
        sides = {"south": south, "west": west, "north": north, "east": east}
        for name, side in sides.items():
            limit = 90 if name in ("south", "north") else 180
            if not abs(as_real(side)) <= limit:
                raise DomainError(
                    f"{name} is not a place on the map",
                    where=f"Grid.over({name}=)",
                    got=shorten(side),
                    expected=f"degrees from -{limit} to {limit}",
                    remedy="give decimal degrees, negative for south and west",
                )
        for low, high in (("south", "north"), ("west", "east")):
            if not sides[low] < sides[high]:
                raise DomainError(
                    f"{low} is not below {high}",
                    where="Grid.over",
                    got=f"{low}={sides[low]}, {high}={sides[high]}",
                    expected=f"{low} < {high}",
                    remedy="swap the two (a box across the 180th meridian is not supported)",
                )
        return cls(float(south), float(west), float(north), float(east))

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in kilometres, equirectangular at the middle latitude."""
        middle = math.radians((self.south + self.north) / 2)
        degree = math.radians(EARTH_RADIUS_KM)
        return (self.east - self.west) * degree * math.cos(middle), (self.north - self.south) * degree

    def steps(self, latitude: object, longitude: object, columns: int, rows: int) -> tuple[Positions, Positions]:
        """Return column and row of each point; a point outside the box is an error."""
        lat, lon = _points(latitude, longitude)
        inside = (lat >= self.south) & (lat <= self.north) & (lon >= self.west) & (lon <= self.east)
        if not inside.all():
            place = int(np.argmin(inside.ravel()))
            raise DomainError(
                "a point lies outside the box",
                where=f"Grid.locate, position {place}",
                got=f"latitude {lat.ravel()[place]}, longitude {lon.ravel()[place]}",
                expected=f"latitude {self.south} to {self.north}, longitude {self.west} to {self.east}",
                remedy="latitude comes first; for a true value use a larger box, or leave that person out knowingly; "
                "a noisy report belongs to the nearest cell, and leaving it out biases the estimate: "
                "outside='nearest'",
            )
        return _steps(lon, self.west, self.east, columns), _steps(lat, self.south, self.north, rows)

    def lattice_steps(
        self, latitude: object, longitude: object, columns: int, rows: int
    ) -> tuple[Positions, Positions]:
        """Return column and row of each point on the infinite lattice that continues the box's cells on all sides.

        Longitudes count from the box's middle, so that noise across the 180th meridian stays on its side.
        """
        lat, lon = _points(latitude, longitude)
        somewhere = (np.abs(lat) <= 90) & (np.abs(lon) <= 360)
        if not somewhere.all():
            place = int(np.argmin(somewhere.ravel()))
            raise DomainError(
                "a point is not a place on the map",
                where=f"Grid.locate, position {place}",
                got=f"latitude {lat.ravel()[place]}, longitude {lon.ravel()[place]}",
                expected="latitudes from -90 to 90, longitudes from -360 to 360",
                remedy="latitude comes first; leave out what has no position",
            )
        middle = (self.west + self.east) / 2
        around = middle + np.remainder(lon - middle + 180, 360) - 180
        lon = np.where((lon >= self.west) & (lon <= self.east), lon, around)  # inside, no digit changes
        return _steps(lon, self.west, self.east, columns), _steps(lat, self.south, self.north, rows)


def _points(latitude: object, longitude: object) -> tuple[Floats, Floats]:
    try:
        if any(np.asarray(given).dtype.kind == "b" for given in (latitude, longitude)):
            raise TypeError  # truth values are no numbers
        lat, lon = np.broadcast_arrays(np.asarray(latitude, dtype=np.float64), np.asarray(longitude, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise DomainError(
            "latitudes and longitudes do not go together",
            where="Grid.locate(latitude, longitude)",
            got=f"{shorten(latitude)} and {shorten(longitude)}",
            expected="two lists of numbers of the same length",
            remedy="pass one longitude for each latitude",
        ) from None
    return lat, lon


def _steps(degrees: Floats, first: float, last: float, count: int) -> Positions:
    """Return in which of `count` cells between two sides each point lies; the last one includes its outer side."""
    lattice = np.clip(np.floor((degrees - first) / (last - first) * count), -FARTHEST_STEP, FARTHEST_STEP)
    steps: Positions = lattice.astype(np.int64)
    return np.where(degrees <= last, np.minimum(steps, count - 1), np.maximum(steps, count))


def nearest(kept: Positions, points: Positions, sides: tuple[float, float]) -> Positions:
    """Return for each lattice point the index of the nearest kept cell; ties go to the lowest index.

    `kept` lists column and row of the cells, ordered by row and then column. Within one column the nearest
    kept cell depends on the point's row alone, so that each point is compared with one cell per column.
    """
    columns = np.unique(kept[:, 0])
    rows, row_of_point = np.unique(points[:, 1], return_inverse=True)
    candidates = np.empty((rows.size, columns.size), dtype=np.int64)
    for place, column in enumerate(columns):
        members = np.flatnonzero(kept[:, 0] == column)
        candidates[:, place] = members[_nearest_sorted(kept[members, 1], rows)]
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
    """Return the place of the nearest of the increasing numbers `kept` to each row; ties go to the lower."""
    above = np.minimum(np.searchsorted(kept, rows), kept.size - 1)
    below = np.maximum(above - 1, 0)
    return np.where(np.abs(rows - kept[below]) <= np.abs(kept[above] - rows), below, above)
