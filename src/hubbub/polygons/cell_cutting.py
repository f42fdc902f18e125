"""Polygons cut by the cells of a grid: which part of each cell's area lies in which region."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Floats, Positions
from hubbub.domains import Grid
from hubbub.polygons.coordinate_systems import grid_sides

ROUNDING = 1e-9  # of a cell's area, or of a region's if that is smaller
MAX_OUTLINE_SLACK = 1 / 20  # of a cell's shorter side: how far a drawn outline may be from the polygon


def cell_weights(polygons: list[Any], grid: Grid) -> sparse.csr_array:
    """Return the part of each cell's area that lies in each polygon: polygons by cells, in the order of the labels.

    Both are flat in the same coordinates, in which all of a cell has one scale: no projection changes the ratio.
    """
    import shapely

    boxes = _cell_boxes(grid)
    shapes = np.array(polygons, dtype=object)
    shapely.prepare(shapes)
    tree = shapely.STRtree(boxes)
    rows, cells = tree.query(shapes, predicate="intersects")
    inside = shapely.contains_properly(shapes[rows], boxes[cells])
    weights = np.ones(rows.size)
    cut = np.flatnonzero(~inside)
    area = float(shapely.area(boxes[0]))
    pieces = _pieces_in_rows(shapes, rows[cut], grid.steps[cells[cut], 1], grid)
    weights[cut] = shapely.area(shapely.intersection(pieces, boxes[cells[cut]])) / area
    weights[weights > 1.0 - ROUNDING] = 1.0
    least = ROUNDING * np.minimum(1.0, shapely.area(shapes) / area)
    kept = weights > least[rows]
    shape = (len(polygons), len(grid))
    return sparse.csr_array((weights[kept], (rows[kept], cells[kept])), shape=shape)


def _pieces_in_rows(shapes: Any, polygons: Positions, grid_rows: Positions, grid: Grid) -> Any:
    """Return for pairs of a polygon and a row of cells the part of the polygon in that row.

    A border of a hundred thousand points is cut by each row once; the cells of the row then cut what is left of it.
    """
    import shapely

    west, south, east, north = grid_sides(grid)
    pairs, place = np.unique(np.stack([polygons, grid_rows], axis=1), axis=0, return_inverse=True)
    y = np.linspace(south, north, grid.rows + 1)
    strips = shapely.box(west, y[pairs[:, 1]], east, y[pairs[:, 1] + 1])
    pieces = shapely.intersection(shapes[pairs[:, 0]], strips)
    for mixed in np.flatnonzero(shapely.get_type_id(pieces) == shapely.GeometryType.GEOMETRYCOLLECTION).tolist():
        # The polygon also touches the row along a line, which has no area and which the next cut does not take.
        pieces[mixed] = shapely.MultiPolygon([part for part in pieces[mixed].geoms if part.geom_type == "Polygon"])
    return pieces[place.ravel()]


def inside_shares(polygons: list[Any], weights: sparse.csr_array, grid: Grid) -> Floats:
    """Return the part of each polygon's area that lies on cells of the grid."""
    import shapely

    west, south, east, north = grid_sides(grid)
    cell = (east - west) / grid.columns * (north - south) / grid.rows
    shares: Floats = np.minimum(weights.sum(axis=1) * cell / shapely.area(polygons), 1.0)
    return np.where(shares > 1.0 - 1e-6, 1.0, shares)


def outline(polygon: Any, grid: Grid) -> tuple[Floats, ...]:
    """Return the rings of a polygon as far as they are near the grid, simplified as far as nobody sees.

    Polygons run counter-clockwise and holes clockwise, as those who fill them need it.
    """
    import shapely

    west, south, east, north = grid_sides(grid)
    width, height = (east - west) / grid.columns, (north - south) / grid.rows
    # A country around a city has thousands of points that no map of the city shows.
    near = shapely.intersection(polygon, shapely.box(west - width, south - height, east + width, north + height))
    simple = shapely.simplify(near, MAX_OUTLINE_SLACK * min(width, height), preserve_topology=True)
    parts = [
        part
        for part in shapely.get_parts(shapely.orient_polygons(simple))
        if part.geom_type == "Polygon" and not part.is_empty
    ]
    return tuple(shapely.get_coordinates(ring) for part in parts for ring in (part.exterior, *part.interiors))


def _cell_boxes(grid: Grid) -> Any:
    import shapely

    west, south, east, north = grid_sides(grid)
    x, y = np.linspace(west, east, grid.columns + 1), np.linspace(south, north, grid.rows + 1)
    columns, rows = grid.steps.T
    return shapely.box(x[columns], y[rows], x[columns + 1], y[rows + 1])
