"""Map grids as GeoJSON (RFC 7946), for map tools: one polygon for each cell."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

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
            where="GeoJSON",
            got=repr(domain.unrestricted)[:100],
            expected="a grid over a box on the map",
            remedy="build it with Grid.over(south=, west=, north=, east=, ...); write other domains to .csv or .json",
        )
    return grid, grid.box


def geojson(domain: Domain, columns: Mapping[str, Floats]) -> str:
    """Return a FeatureCollection: a polygon for each cell of the domain, with `columns` as properties; NaN is null.

    Rings are closed and run counter-clockwise from the south-west corner, longitude before latitude. Neighbours share
    their corners to the last digit.
    """
    grid, box = check_on_map(domain)
    width, height = (box.east - box.west) / grid.columns, (box.north - box.south) / grid.rows
    decimals = max(MIN_DEGREE_DECIMALS, EXTRA_DECIMALS - math.floor(math.log10(min(width, height))))

    def longitude(column: int) -> float:
        return round(box.east if column == grid.columns else box.west + column * width, decimals)

    def latitude(row: int) -> float:
        return round(box.north if row == grid.rows else box.south + row * height, decimals)

    features = []
    numbers = {name: column.tolist() for name, column in columns.items()}
    for position, cell in enumerate(domain.labels.tolist()):
        row, column = divmod(int(cell), grid.columns)
        west, east, south, north = longitude(column), longitude(column + 1), latitude(row), latitude(row + 1)
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
    document = {
        "type": "FeatureCollection",
        "bbox": [longitude(0), latitude(0), longitude(grid.columns), latitude(grid.rows)],
        "features": features,
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"
