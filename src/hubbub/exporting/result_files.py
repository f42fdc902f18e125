"""Estimates as files: JSON, tables, maps and pictures."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hubbub.association import Independence
from hubbub.comparison import Comparison, GroupComparison
from hubbub.core.files import write_file
from hubbub.core.paths import check_replaceable, write_error
from hubbub.discovery import Discovery
from hubbub.domains import Domain
from hubbub.domains.product_labels import attribute_column
from hubbub.estimators import Estimate
from hubbub.intervals import Band
from hubbub.polygons import RegionShares
from hubbub.rendering import (
    cell_columns,
    cell_sides,
    check_on_map,
    csv_bytes,
    parquet_bytes,
    picture_bytes,
)
from hubbub.rendering.new_figure import PICTURE_INCHES
from hubbub.rendering.picture_text import title_words
from hubbub.resolution import Resolution
from hubbub.trends import Trend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ENDINGS = (".json", ".csv", ".geojson", ".parquet", ".png", ".svg")
WKT = "WKT"  # the column of shapes: by this name GDAL, and so QGIS, finds it


def check_output_path(path: Path | None) -> None:
    """Refuse a result that cannot be written (no such folder, a read-only file), before it takes minutes to compute."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise write_error(path, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    check_replaceable(path)


def write_result(
    estimate: Estimate, document: dict[str, Any], path: Path, band: Band | None = None, *, study: str = ""
) -> None:
    """Write an estimate as .json (everything), .csv or .parquet (a table), .geojson (a map's cells), .png or .svg.

    Of a grid on the map, the CSV table has the cells' middles, and the Parquet table is GeoParquet with their outlines.
    `study` is the name of the study, for the title of the picture.
    """
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(document, path)
    elif ending in (".csv", ".parquet"):
        names = ["value", "probability", *([] if band is None else ["low", "high", "standard_error"])]
        columns = _columns(document["estimate"], names)
        write_file(path, _table_bytes(columns, estimate.domain, ending))
    elif ending == ".geojson":
        intervals = {} if band is None else {"low": band.low, "high": band.high}
        write_file(path, estimate.to_geojson(**intervals).encode())
    else:
        from matplotlib.figure import Figure

        picture = estimate.picture(study=study)
        figure = Figure(figsize=picture.inches, layout="constrained")
        picture.on_figure(figure)
        write_file(path, picture_bytes(figure, ending, dpi=120))


def _columns(entries: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns of a table: those with some names, where combinations have one for each attribute."""
    columns: dict[str, list[Any]] = {}
    for name in names:
        column = [entry[name] for entry in entries]
        if name == "value" and column and isinstance(column[0], Mapping):
            columns |= {attribute_column(own, names): [value[own] for value in column] for own in column[0]}
        else:
            columns[name] = column
    return columns


def _csv_table(columns: Mapping[str, Sequence[Any]]) -> bytes:
    return csv_bytes(columns, zip(*columns.values(), strict=True))


def _table_bytes(columns: dict[str, list[Any]], domain: Domain, ending: str) -> bytes:
    """Return a table of all values as a file; cells of the map have a place."""
    if ending == ".csv":
        placed = columns | (cell_columns(domain) if domain.is_on_map else {})
        return _csv_table(placed)
    if not domain.is_on_map:
        return parquet_bytes(columns)
    import shapely

    return parquet_bytes(columns, shapely.box(*cell_sides(domain)[:4]).tolist())


def write_regions(shares: RegionShares, document: dict[str, Any], path: Path, *, study: str = "") -> None:
    """Write shares of regions as .json (everything), .csv (a table with WKT), .geojson, .parquet, .png or .svg."""
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(document, path)
    elif ending == ".geojson":
        write_file(path, shares.to_geojson().encode())
    elif ending == ".csv":
        columns = {**shares.columns(), WKT: [polygon.wkt for polygon in shares.regions.polygons]}
        write_file(path, _csv_table(columns))
    elif ending == ".parquet":
        check_on_map(shares.regions.grid)
        write_file(path, parquet_bytes(shares.columns(), shares.regions.polygons))
    else:
        write_picture(shares, path, study, (8.0, 6.0))


def write_resolution(resolution: Resolution, document: dict[str, Any], path: Path, *, title: str = "") -> None:
    """Write a division as .json (everything), .csv (a line for each value, with its part), .png or .svg (a picture)."""
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(document, path)
    elif ending == ".csv":
        names = ["part", "estimate", "low", "high", "told"]
        rows = [{**entry, "value": value} for entry in document["parts"] for value in entry["values"]]
        write_file(path, _csv_table(_columns(rows, ["value", *names])))
    else:
        write_picture(resolution, path, title)


def write_comparison(
    comparison: Comparison | GroupComparison | Trend | Independence,
    document: dict[str, Any],
    path: Path,
    *,
    title: str = "",
) -> None:
    """Write a comparison, trend or relation as .json (everything), .csv (a line for each value), .png or .svg."""
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(document, path)
    elif ending == ".csv":
        write_file(path, _csv_table(_columns(document["values"], list(document["values"][0]))))
    else:
        write_picture(comparison, path, title)


def write_discovery(found: Discovery, path: Path) -> None:
    """Write words that were found as .json (everything), .csv (a line for each word), .png or .svg."""
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(found.document(), path)
    elif ending == ".csv":
        write_file(path, _csv_table({str(name): column.tolist() for name, column in found.to_frame().items()}))
    else:
        write_picture(found, path, "")


class Drawn(Protocol):
    """A result that draws itself."""

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw it."""


def write_picture(result: Drawn, path: Path, title: str, inches: tuple[float, float] = PICTURE_INCHES) -> None:
    """Write the picture of a result as .png or .svg, under a title of its own."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=inches, layout="constrained")
    result.plot(figure.subplots())
    if title:
        (text,), style = title_words(title)
        figure.suptitle(text, **style)
    write_file(path, picture_bytes(figure, path.suffix, dpi=120))


def write_groups(document: dict[str, Any], path: Path) -> None:
    """Write the estimates of several groups as .json (everything) or .csv (one table, with a column for the group)."""
    if path.suffix.lower() == ".json":
        write_json(document, path)
        return
    of_regions = document["groups"][0]["regions"]
    names = list(of_regions[0]) if of_regions else ["value", "probability", "low", "high", "standard_error"]
    rows = [
        {**entry, "group": group["group"]}
        for group in document["groups"]
        for entry in group["regions" if of_regions else "estimate"]
    ]
    write_file(path, _csv_table(_columns(rows, ["group", *names])))


def write_records(records: pd.DataFrame, path: Path) -> None:
    """Write records as .csv or .parquet: a column for each attribute."""
    columns = {str(name): records[name].tolist() for name in records.columns}
    is_csv = path.suffix.lower() == ".csv"
    write_file(path, csv_bytes(columns, zip(*columns.values(), strict=True)) if is_csv else parquet_bytes(columns))


def write_json(document: dict[str, Any], path: Path) -> None:
    """Write a document for people who open it: a line for each entry."""
    write_file(path, (json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n").encode())
