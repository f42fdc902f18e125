"""A fictional city: where its people are, its districts as polygons, and these as the page asks for them.

`Districts` stands in for what `hubbub.regions` returns: weights by many points in each cell instead of exact areas, and
intervals by the linear estimate.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import Voronoi, cKDTree

import hubbub as hb
from hubbub.core.arrays import Floats
from hubbub.intervals.set_intervals import SetShares, set_shares
from hubbub.reporting.map_regions import Ring

NAMES = (
    "Old Town", "Harbour", "Mission", "Castle Hill", "Riverside", "Market", "Botanical Garden", "Northgate", "Westend",
    "St Peter's", "University", "Glassworks", "Meadows", "Southbank", "Sankt Pauli an der Alten Brücke", "Île",
    "Airport", "Lakeside", "New Town", "Mill",
)  # fmt: skip
Z = 1.959963984540054
POINTS_PER_SIDE = 8  # of a cell, at which weights are counted


def city_grid() -> hb.Grid:
    """Return the map: 24 x 20 cells of about half a kilometre."""
    return hb.Grid.over(south=48.72, west=9.10, north=48.81, east=9.264, columns=24, rows=20)


class Row(NamedTuple):
    """The share of one district."""

    name: str
    estimate: float
    low: float
    high: float


class Rows(NamedTuple):
    """The shares of all districts."""

    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Districts:
    """Districts around centres: every place belongs to the nearest one."""

    grid: hb.Grid
    names: tuple[str, ...]
    centres: tuple[tuple[float, float], ...]  # in parts of the map's width and height

    @cached_property
    def outlines(self) -> list[list[Ring]]:
        """The polygons of the districts: cells of a Voronoi diagram, cut off at the map's sides by mirror images."""
        centres, box = np.array(self.centres), self.grid.box
        assert box is not None
        flipped = [np.column_stack([side - centres[:, 0], centres[:, 1]]) for side in (0.0, 2.0)]
        flipped += [np.column_stack([centres[:, 0], side - centres[:, 1]]) for side in (0.0, 2.0)]
        diagram = Voronoi(np.concatenate([centres, *flipped]))
        rings: list[list[Ring]] = []
        for number in range(len(centres)):
            corners = diagram.vertices[diagram.regions[diagram.point_region[number]]]
            turned = corners[np.argsort(np.arctan2(*(corners - centres[number]).T[::-1]))]
            east = np.clip(turned[:, 0], 0, 1) * (box.east - box.west) + box.west
            north = np.clip(turned[:, 1], 0, 1) * (box.north - box.south) + box.south
            ring = [(float(x), float(y)) for x, y in zip(east, north, strict=True)]
            rings.append([[*ring, ring[0]]])
        return rings

    @cached_property
    def weights(self) -> Floats:
        """How much of each cell lies in each district."""
        steps, grid = (np.arange(POINTS_PER_SIDE) + 0.5) / POINTS_PER_SIDE, self.grid
        inside = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(1, -1, 2)
        points = (grid.steps[:, None, :] + inside) / np.array([grid.columns, grid.rows])
        _, nearest = cKDTree(np.array(self.centres)).query(points)
        return np.stack([(nearest == number).mean(axis=1) for number in range(len(self.names))])

    @property
    def inside(self) -> Floats:
        """How much of each district is on the map: all of it."""
        return np.ones(len(self.names))

    @property
    def main_region(self) -> tuple[str | None, ...]:
        """The district that has the most of each cell."""
        return tuple(self.names[number] for number in self.weights.argmax(axis=0))

    def shares(self, reports: hb.Reports, *, level: float, estimate: hb.Estimate) -> Rows:
        """Return the share of each district, with an interval by the linear estimate."""
        assert level == 0.95
        linear = set_shares(reports, estimate.probabilities)
        assert isinstance(linear, SetShares)
        assert isinstance(linear.covariance, np.ndarray)
        shown, middle = self.weights @ estimate.probabilities, self.weights @ linear.centre
        reach = Z * np.sqrt(np.einsum("ij,jk,ik->i", self.weights, linear.covariance, self.weights))
        low, high = np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)
        rows = zip(self.names, shown, np.minimum(low, shown), np.maximum(high, shown), strict=True)
        return Rows(tuple(Row(name, float(share), float(one), float(two)) for name, share, one, two in rows))

    def geojson(self) -> dict[str, Any]:
        """Return the districts as a file for map tools."""
        features = [
            {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": rings}}
            for name, rings in zip(self.names, json.loads(json.dumps(self.outlines)), strict=True)
        ]
        return {"type": "FeatureCollection", "features": features}


@cache
def districts(seed: int = 24) -> Districts:
    """Return twenty districts of about the same size, drawn once for all."""
    rng = np.random.default_rng(seed)
    columns, rows = np.meshgrid(np.arange(5), np.arange(4))
    lattice = (np.column_stack([columns.ravel(), rows.ravel()]) + 0.5) / np.array([5, 4])
    centres = lattice + rng.uniform(-0.07, 0.07, lattice.shape)
    return Districts(city_grid(), NAMES, tuple((float(x), float(y)) for x, y in centres))


def population(seed: int = 24) -> Floats:
    """Return where the people are: a dense middle, districts that differ, and two that are nearly empty."""
    found, rng = districts(seed), np.random.default_rng(seed + 1)
    density = rng.lognormal(0.0, 0.7, len(NAMES))
    density[[NAMES.index("Airport"), NAMES.index("Botanical Garden")]] = 0.02
    places = (found.grid.steps + 0.5) / np.array([found.grid.columns, found.grid.rows])
    middle = np.exp(-(((places - [0.55, 0.5]) / 0.2) ** 2).sum(axis=1))
    people = (found.weights.T @ density) * (0.25 + 4.0 * middle)
    return np.asarray(people / people.sum())
