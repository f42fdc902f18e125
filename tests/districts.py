"""A fictional city: where its people are, and its districts as polygons."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.spatial import Voronoi

import hubbub as hb
from hubbub.core.arrays import Floats

NAMES = (
    "Old Town", "Harbour", "Mission", "Castle Hill", "Riverside", "Market", "Botanical Garden", "Northgate", "Westend",
    "St Peter's", "University", "Glassworks", "Meadows", "Southbank", "Sankt Pauli an der Alten Brücke", "Île",
    "Airport", "Lakeside", "New Town", "Mill",
)  # fmt: skip


def city_grid() -> hb.Grid:
    """Return the map: 24 x 20 cells of about half a kilometre."""
    return hb.Grid.over(south=48.72, west=9.10, north=48.81, east=9.264, columns=24, rows=20)


@dataclass(frozen=True)
class Districts:
    """Districts around centres: every place belongs to the nearest one."""

    grid: hb.Grid
    names: tuple[str, ...]
    centres: tuple[tuple[float, float], ...]  # in parts of the map's width and height

    @cached_property
    def outlines(self) -> list[list[list[tuple[float, float]]]]:
        """The polygons of the districts: cells of a Voronoi diagram, cut off at the map's sides by mirror images."""
        centres, box = np.array(self.centres), self.grid.box
        assert box is not None
        flipped = [np.column_stack([side - centres[:, 0], centres[:, 1]]) for side in (0.0, 2.0)]
        flipped += [np.column_stack([centres[:, 0], side - centres[:, 1]]) for side in (0.0, 2.0)]
        diagram = Voronoi(np.concatenate([centres, *flipped]))
        rings: list[list[list[tuple[float, float]]]] = []
        for number in range(len(centres)):
            corners = diagram.vertices[diagram.regions[diagram.point_region[number]]]
            turned = corners[np.argsort(np.arctan2(*(corners - centres[number]).T[::-1]))]
            east = np.clip(turned[:, 0], 0, 1) * (box.east - box.west) + box.west
            north = np.clip(turned[:, 1], 0, 1) * (box.north - box.south) + box.south
            ring = [(float(x), float(y)) for x, y in zip(east, north, strict=True)]
            rings.append([[*ring, ring[0]]])
        return rings

    def geojson(self) -> dict[str, Any]:
        """Return the districts as a file for map tools."""
        features = [
            {"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Polygon", "coordinates": rings}}
            for name, rings in zip(self.names, json.loads(json.dumps(self.outlines)), strict=True)
        ]
        return {"type": "FeatureCollection", "features": features}


@cache
def city_regions(seed: int = 24) -> hb.Regions:
    """Return the districts as regions of the map."""
    found = districts(seed)
    return hb.regions(found.grid, found.geojson())


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
    people = (city_regions(seed).weights.T @ density) * (0.25 + 4.0 * middle)
    return np.asarray(people / people.sum())
