"""Geometry for grids: boxes on the map, and the nearest of a set of cells."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.arrays import Positions, as_real
from hubbub.client import EARTH_RADIUS_KM, TIE
from hubbub.errors import DomainError, shorten


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
        try:
            if any(np.asarray(given).dtype.kind == "b" for given in (latitude, longitude)):
                raise TypeError  # truth values are no numbers
            lat, lon = np.broadcast_arrays(
                np.asarray(latitude, dtype=np.float64), np.asarray(longitude, dtype=np.float64)
            )
        except (TypeError, ValueError, OverflowError):
            raise DomainError(
                "latitudes and longitudes do not go together",
                where="Grid.locate(latitude, longitude)",
                got=f"{shorten(latitude)} and {shorten(longitude)}",
                expected="two lists of numbers of the same length",
                remedy="pass one longitude for each latitude",
            ) from None
        inside = (lat >= self.south) & (lat <= self.north) & (lon >= self.west) & (lon <= self.east)
        if not inside.all():
            place = int(np.argmin(inside.ravel()))
            raise DomainError(
                "a point lies outside the box",
                where=f"Grid.locate, position {place}",
                got=f"latitude {lat.ravel()[place]}, longitude {lon.ravel()[place]}",
                expected=f"latitude {self.south} to {self.north}, longitude {self.west} to {self.east}",
                remedy="latitude comes first; leave points outside the study's area out on purpose",
            )
        column = np.floor((lon - self.west) / (self.east - self.west) * columns).astype(np.int64)
        row = np.floor((lat - self.south) / (self.north - self.south) * rows).astype(np.int64)
        return np.minimum(column, columns - 1), np.minimum(row, rows - 1)


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
        tied = distance <= distance.min(axis=1, keepdims=True) * (1 + TIE)
        chosen[first : first + step] = np.where(tied, candidates[mine], len(kept)).min(axis=1)
    return chosen


def _nearest_sorted(kept: Positions, rows: Positions) -> Positions:
    """Return the place of the nearest of the increasing numbers `kept` to each row; ties go to the lower."""
    above = np.minimum(np.searchsorted(kept, rows), kept.size - 1)
    below = np.maximum(above - 1, 0)
    return np.where(np.abs(rows - kept[below]) <= np.abs(kept[above] - rows), below, above)
