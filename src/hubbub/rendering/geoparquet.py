"""Tables as Parquet; with shapes GeoParquet 1.1, which QGIS, kepler.gl, DuckDB and geopandas open as a map."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

GEOPARQUET_VERSION = "1.1.0"
SHAPES = "geometry"  # the column
WGS84 = 4326  # longitude and latitude, in this order whatever the system says: so the format demands


def parquet_bytes(columns: Mapping[str, Sequence[Any]], shapes: Sequence[Any] | None = None) -> bytes:
    """Return a Parquet file with columns, and the shapes in degrees that belong to their rows; None is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if shapes is not None:
        import shapely

        turned = shapely.orient_polygons(shapes)
        table = table.append_column(SHAPES, pa.array(shapely.to_wkb(turned, flavor="iso").tolist(), type=pa.binary()))
        table = table.replace_schema_metadata({"geo": json.dumps(_about(shapes))})
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def _about(shapes: Sequence[Any]) -> dict[str, Any]:
    """Return the metadata of GeoParquet."""
    import shapely
    from pyproj import CRS

    column = {
        "encoding": "WKB",
        "geometry_types": sorted({shape.geom_type for shape in shapes}),
        "crs": CRS.from_epsg(WGS84).to_json_dict(),
        "orientation": "counterclockwise",
        "edges": "planar",
        "bbox": [float(side) for side in shapely.total_bounds(shapes)],
    }
    return {"version": GEOPARQUET_VERSION, "primary_column": SHAPES, "columns": {SHAPES: column}}
