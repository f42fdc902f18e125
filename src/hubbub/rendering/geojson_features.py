"""Map grids as GeoJSON (RFC 7946), for map tools: one polygon for each cell."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import DomainError
from hubbub.domains import Domain, Grid
from hubbub.domains.geometry import Box

MIN_DEGREE_DECIMALS = 6  # a tenth of a metre
EXTRA_DECIMALS = 3  # by which corners are more precise than the size of a cell


def check_on_map(domain: Domain) -> tuple[Grid, Box]:
    """Return the grid of the values' cells, and its box on the map; raise a DomainError if it has none."""
    grid = domain.grid
    if grid is None or grid.box is None:
        raise DomainError(
            "these values have no place on the map",
            where="map files",
            got=repr(domain.unrestricted)[:100],
            expected="a grid over a box on the map",
            remedy="build it with Grid.over(south=, west=, north=, east=, ...); write other domains to .csv or .json",
        )
    return grid, grid.box


class CellSides(NamedTuple):
    """The sides of cells in degrees, for each value of a domain, and those of all the grid."""

    west: Floats
    south: Floats
    east: Floats
    north: Floats
    bounds: tuple[float, float, float, float]


def cell_sides(domain: Domain) -> CellSides:
    """Return the sides of all cells, rounded to more digits than a place has; neighbours share them to the last one."""
    grid, box = check_on_map(domain)
    width, height = (box.east - box.west) / grid.columns, (box.north - box.south) / grid.rows
    decimals = max(MIN_DEGREE_DECIMALS, EXTRA_DECIMALS - math.floor(math.log10(min(width, height))))
    # By Python's own rounding, which is exact: NumPy multiplies and divides.
    x, y = (
        np.array([round(first + place * step, decimals) for place in range(count)] + [round(last, decimals)])
        for first, step, count, last in (
            (box.west, width, grid.columns, box.east),
            (box.south, height, grid.rows, box.north),
        )
    )
    rows, columns = np.divmod(domain.labels.astype(np.int64), grid.columns)
    bounds = float(x[0]), float(y[0]), float(x[-1]), float(y[-1])
    return CellSides(x[columns], y[rows], x[columns + 1], y[rows + 1], bounds)


def cell_columns(domain: Domain) -> dict[str, list[float]]:
    """Return the middle of each cell as columns lat and lon, by which map tools place the rows of a table."""
    sides = cell_sides(domain)
    middles = ((sides.south + sides.north) / 2.0, (sides.west + sides.east) / 2.0)
    return dict(zip(("lat", "lon"), (np.round(degrees, 9).tolist() for degrees in middles), strict=True))


def geojson(domain: Domain, columns: Mapping[str, Floats]) -> str:
    """Return a FeatureCollection: a polygon for each cell of the domain, with `columns` as properties; NaN is null.

    Rings are closed and run counter-clockwise from the south-west corner, longitude before latitude. Neighbours share
    their corners to the last digit.
    """
    grid, _ = check_on_map(domain)
    sides = cell_sides(domain)
    corners = np.stack(sides[:4], axis=1).tolist()
    features = []
    numbers = {name: column.tolist() for name, column in columns.items()}
    for position, cell in enumerate(domain.labels.tolist()):
        row, column = divmod(int(cell), grid.columns)
        west, south, east, north = corners[position]
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        properties: dict[str, object] = {"value": int(cell), "column": column, "row": row}
        for name, values in numbers.items():
            properties[name] = values[position] if math.isfinite(values[position]) else None
        features.append(
            {
                "type": "Feature",
                "id": int(cell),
                "geometry": {"type": "Polygon", "coordinates": [ring]},
                "properties": properties,
            }
        )
    document = {"type": "FeatureCollection", "bbox": list(sides.bounds), "features": features}
    return json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"
