"""`regions`: polygons of a map as weighted sums of a grid's cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import RegionsError, shorten
from hubbub.core.text import listed, percent, plural
from hubbub.domains import Domain, Grid
from hubbub.polygons.cell_cutting import ROUNDING, cell_weights, inside_shares, outline
from hubbub.polygons.coordinate_systems import check_near_grid, grid_sides, to_coordinates_of_grid
from hubbub.polygons.feature_names import feature_names
from hubbub.polygons.geojson_reading import read_features
from hubbub.polygons.polygon_checks import parse_polygons
from hubbub.polygons.region_set import Regions

MIN_OVERLAP = 0.01  # of a cell: less is how neighbours were digitised
MAX_NAMED_REGIONS = 4  # in a note
MAX_COMPARED_PAIRS = 20_000  # of regions, to name the two that overlap most


def regions(grid: Domain, geojson: object, *, name: str | None = None) -> Regions:
    """Read regions of the map, such as districts, and weigh a grid's cells by how much of each lies in them.

    The weight of a cell in a region is the part of the cell's area that lies in the region: people are taken to be
    spread evenly within a cell. That is an assumption, and matters for regions that are not much larger than a cell.

    Parameters
    ----------
    grid : Grid
        The grid of the study.
    geojson : path, dict, or object with ``__geo_interface__``
        GeoJSON with polygons and multipolygons, with or without holes: the path of a file, its content, or a
        GeoDataFrame. Coordinates are longitude and latitude, unless the source names another coordinate system, from
        which they are converted. For a grid without a place on the map they are x and y in the grid's unit, from its
        south-west corner.
    name : str, optional
        The property that names the regions. By default the first of the usual ones (``name``, ``district``, ...)
        that every feature has, each its own; otherwise regions are numbered from 1.

    Returns
    -------
    Regions
        With `names`, `weights`, `inside`, `rest`, `outlines`, `notes`, `of(name)` and `shares(reports)`.

    Raises
    ------
    RegionsError
        If the source is not GeoJSON, a polygon is not valid, or no region touches the grid.

    Examples
    --------
    >>> import hubbub as hb
    >>> city = hb.Grid(4, 2, cell=1.0)
    >>> west = {"type": "Polygon", "coordinates": [[[0, 0], [1.5, 0], [1.5, 2], [0, 2], [0, 0]]]}
    >>> hb.regions(city, {"type": "Feature", "geometry": west, "properties": {"name": "west"}}).of("west")
    {0: 1.0, 1: 0.5, 4: 1.0, 5: 0.5}
    """
    import shapely

    lattice = _grid_of(grid)
    source = read_features(geojson)
    parsed = [parse_polygons(feature) for feature in source.features]
    names, numbered = feature_names(source, name)
    given = [polygon for polygon, _ in parsed]
    polygons, converted = to_coordinates_of_grid(given, lattice, source.coordinate_system, source.source)
    check_near_grid(shapely.bounds(polygons), shapely.bounds(given), lattice, source.source)
    weights = cell_weights(polygons, lattice)
    inside = inside_shares(polygons, weights, lattice)
    covered = weights.toarray()[0] if len(polygons) == 1 else _covered(polygons, weights, lattice)
    heights = "Heights of points were left out." if any(has_height for _, has_height in parsed) else ""
    notes = (
        numbered,
        converted,
        heights,
        _outside(names, inside, lattice),
        _overlap(names, polygons, weights, covered),
    )
    return Regions(
        lattice,
        names,
        weights,
        frozen(inside),
        frozen(1.0 - covered),
        tuple(polygons),
        tuple(tuple(frozen(ring) for ring in outline(polygon, lattice)) for polygon in polygons),
        tuple(note for note in notes if note),
    )


def _covered(polygons: list[Any], weights: sparse.csr_array, grid: Grid) -> Floats:
    """Return the part of each cell that lies in some region."""
    import shapely

    union = shapely.union_all(polygons)
    sides = grid_sides(grid)
    cell = (sides[2] - sides[0]) / grid.columns * (sides[3] - sides[1]) / grid.rows
    if float(shapely.area(polygons).sum()) - union.area > ROUNDING * cell:  # some overlap
        return np.asarray(cell_weights([union], grid).toarray()[0])
    return np.minimum(np.asarray(weights.sum(axis=0)), 1.0)


def _grid_of(grid: object) -> Grid:
    own = grid.grid if isinstance(grid, Domain) else None
    if own is not None:
        return own
    raise RegionsError(
        "regions need a grid",
        where="regions(grid)",
        got=shorten(grid),
        expected="the grid of the study: a Grid, or reports.domain",
        remedy="build it with Grid.over(south=, west=, north=, east=, ...), or take study.domain",
    )


def _outside(names: tuple[str, ...], inside: Floats, grid: Grid) -> str:
    """Return the note about regions that are not all on the grid."""
    whole = "the grid" if grid.cells is None else "the cells that the grid keeps"
    partly = [place for place in np.argsort(inside, kind="stable").tolist() if 0.0 < inside[place] < 1.0]
    wholly = [names[place] for place in np.flatnonzero(inside == 0.0).tolist()]
    notes = []
    if partly:
        shown = [f"{names[place]} ({percent(float(inside[place]))} inside)" for place in partly]
        lie = f"{listed(shown, most=MAX_NAMED_REGIONS)} {'lies' if len(partly) == 1 else 'lie'}"
        notes.append(f"{lie} partly outside {whole}: a share is that of the part inside.")
    if wholly:
        lie = f"{listed(wholly, most=MAX_NAMED_REGIONS)} {'lies' if len(wholly) == 1 else 'lie'}"
        notes.append(f"{lie} outside {whole}: nothing is known there.")
    return " ".join(notes)


def _overlap(names: tuple[str, ...], polygons: list[Any], weights: sparse.csr_array, covered: Floats) -> str:
    """Return the note about regions that overlap."""
    twice = np.asarray(weights.sum(axis=0)) - covered
    cells = int(np.count_nonzero(twice > MIN_OVERLAP))
    if not cells:
        return ""
    pair = _largest_overlap(polygons)
    which = "Some regions" if pair is None else f"{names[pair[0]]} and {names[pair[1]]}"
    more = "" if pair is None or len(names) == 2 else ", perhaps others too,"
    return (
        f"{which}{more} overlap, in {plural(cells, 'cell')}: people there count in each, and shares need not sum to 1."
    )


def _largest_overlap(polygons: list[Any]) -> tuple[int, int] | None:
    import shapely

    shapes = np.array(polygons, dtype=object)
    first, second = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    first, second = first[first < second], second[first < second]
    if not 0 < first.size <= MAX_COMPARED_PAIRS:
        return None
    largest = int(np.argmax(shapely.area(shapely.intersection(shapes[first], shapes[second]))))
    return int(first[largest]), int(second[largest])
