"""GeoParquet 1.1: a table with a column of shapes, which QGIS, kepler.gl, DuckDB and geopandas open as a map."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

GEOPARQUET_VERSION = "1.1.0"
SHAPES = "geometry"  # the column
WGS84 = 4326  # longitude and latitude, in this order whatever the system says: so the format demands


def geoparquet_bytes(columns: Mapping[str, Sequence[Any]], shapes: Sequence[Any]) -> bytes:
    """Return a Parquet file with columns and the shapes that belong to their rows, in degrees; None is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import shapely
    from pyproj import CRS

    about = {
        "version": GEOPARQUET_VERSION,
        "primary_column": SHAPES,
        "columns": {
            SHAPES: {
                "encoding": "WKB",
                "geometry_types": sorted({shape.geom_type for shape in shapes}),
                "crs": CRS.from_epsg(WGS84).to_json_dict(),
                "orientation": "counterclockwise",
                "edges": "planar",
                "bbox": [float(side) for side in shapely.total_bounds(shapes)],
            }
        },
    }
    turned = shapely.orient_polygons(shapes)
    binary = pa.array(shapely.to_wkb(turned, flavor="iso").tolist(), type=pa.binary())
    table = pa.table({**{name: pa.array(column) for name, column in columns.items()}, SHAPES: binary})
    content = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(about)}), content, compression="zstd")
    return content.getvalue()


def parquet_bytes(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Return a Parquet file with columns; None is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), content, compression="zstd")
    return content.getvalue()
