"""Grids on the map as GeoJSON (RFC 7946): one polygon for each cell, for map tools."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from hubbub.core.arrays import Floats
from hubbub.core.errors import DomainError
from hubbub.domains import Domain, Grid

LEAST_DIGITS = 6  # behind the point of a degree: a tenth of a metre
FINER = 3  # digits by which corners are finer than a cell


def on_the_map(domain: Domain) -> bool:
    """Whether the values are cells with a place on the map."""
    return domain.is_on_map


def check_on_the_map(domain: Domain) -> Grid:
    """Return the grid that the values are cells of, or say why they have no place on the map."""
    grid = domain.grid
    if grid is None or not domain.is_on_map:
        raise DomainError(
            "these values have no place on the map",
            where="GeoJSON",
            got=repr(domain.unrestricted)[:100],
            expected="a grid over a box on the map",
            remedy="build it with Grid.over(south=, west=, north=, east=, ...); other domains go to .csv or .json",
        )
    return grid


def geojson(domain: Domain, columns: Mapping[str, Floats]) -> str:
    """Return a FeatureCollection: a polygon for each cell of the domain, with columns as properties; NaN is null.

    Rings are closed and go counter-clockwise from the south-west corner, longitude before latitude. Neighbours share
    their corners to the last digit.
    """
    whole = check_on_the_map(domain)
    box = whole.box
    assert box is not None  # noqa: S101  # as was just checked
    wide, high = (box.east - box.west) / whole.columns, (box.north - box.south) / whole.rows
    digits = max(LEAST_DIGITS, FINER - math.floor(math.log10(min(wide, high))))

    def across(column: int) -> float:
        return round(box.east if column == whole.columns else box.west + column * wide, digits)

    def up(row: int) -> float:
        return round(box.north if row == whole.rows else box.south + row * high, digits)

    features = []
    numbers = {name: column.tolist() for name, column in columns.items()}
    for place, cell in enumerate(domain.labels.tolist()):
        row, column = divmod(int(cell), whole.columns)
        west, east, south, north = across(column), across(column + 1), up(row), up(row + 1)
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        properties: dict[str, object] = {"value": int(cell), "column": column, "row": row}
        for name, values in numbers.items():
            properties[name] = values[place] if math.isfinite(values[place]) else None
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
        "bbox": [across(0), up(0), across(whole.columns), up(whole.rows)],
        "features": features,
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"
