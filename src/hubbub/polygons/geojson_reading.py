"""GeoJSON as people have it: a file, a text, a dictionary, or the table of another library, as a list of features.

Nothing here knows what a polygon is; `polygon_checks` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from hubbub.core.errors import RegionsError, shorten

EXPECTED = "GeoJSON: a FeatureCollection, a Feature, or a geometry of polygons"
WITH_OGR2OGR = "convert it, with QGIS or ogr2ogr -t_srs EPSG:4326 regions.geojson {name}"


class _OtherFormat(NamedTuple):
    """A format that people have, by how files of it end or begin."""

    name: str
    endings: tuple[str, ...]
    beginning: bytes


OTHER_FORMATS = (
    _OtherFormat("a shapefile", (".shp", ".shx", ".dbf"), b"\x00\x00\x27\x0a"),
    _OtherFormat("a GeoPackage", (".gpkg",), b"SQLite format 3"),
    _OtherFormat("an archive", (".zip", ".kmz", ".gz"), b"PK\x03\x04"),
    _OtherFormat("a Parquet file", (".parquet", ".geoparquet"), b"PAR1"),
    _OtherFormat("XML (KML, GML or a page of the web)", (".kml", ".gml", ".xml", ".html"), b"<"),
)


class Feature(NamedTuple):
    """One feature, and where it is."""

    where: str
    geometry: object
    properties: Mapping[str, Any]
    identifier: object = None


class FeatureList(NamedTuple):
    """All features of a source, and the coordinate system that it names, if any."""

    source: str
    features: list[Feature]
    coordinate_system: object = None


def read_features(geojson: object) -> FeatureList:
    """Return the features of a path, a text, a dictionary, or an object with ``__geo_interface__``."""
    if isinstance(geojson, Path) or (isinstance(geojson, str) and not geojson.lstrip("\ufeff \t\r\n").startswith("{")):
        path = Path(geojson)
        return _features(_parsed(_content(path), str(path)), str(path))
    if isinstance(geojson, str):
        return _features(_parsed(geojson.encode(), "the text"), "the text")
    if isinstance(geojson, Mapping):
        return _features(geojson, "the dictionary")
    interface = getattr(geojson, "__geo_interface__", None)
    if isinstance(interface, Mapping):
        name = f"the {type(geojson).__name__}"
        return _features(interface, name)._replace(coordinate_system=getattr(geojson, "crs", None))
    raise RegionsError(
        "this is not GeoJSON",
        where="regions(geojson)",
        got=shorten(geojson),
        expected="the path of a GeoJSON file, its content as a dictionary, or a GeoDataFrame",
        remedy="pass the path as a text",
    )


def _content(path: Path) -> bytes:
    """Return the bytes of a file, all at once: one that changes later is not read half old and half new."""
    where = str(path)
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        raise RegionsError(
            "the file of regions cannot be read",
            where=where,
            got=getattr(error, "strerror", None) or str(error),
            expected="the path of a GeoJSON file",
            remedy="check the path and its permissions",
        ) from None
    for other in OTHER_FORMATS:
        if path.suffix.lower() in other.endings or content.startswith(other.beginning):
            raise RegionsError(
                f"the file of regions is {other.name}",
                where=where,
                got=f"{path.suffix or 'a file'} that begins with {shorten(content[:8])}",
                expected="a GeoJSON file",
                remedy=WITH_OGR2OGR.format(name=path.name),
            )
    return content


def _parsed(content: bytes, where: str) -> Mapping[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise RegionsError(
            "a number of the file is not finite",
            where=where,
            got=constant,
            expected="numbers that JSON has: neither NaN nor Infinity",
            remedy="leave out features without a place, and write null for properties that are not known",
        )

    try:
        document = json.loads(content.decode("utf-8-sig"), parse_constant=refuse)
    except UnicodeDecodeError as error:
        got, remedy = f"bytes that are not UTF-8, at {error.start:,}", "save the file as UTF-8"
    except json.JSONDecodeError as error:
        got = f"{error.msg} in line {error.lineno}, column {error.colno}" if content.strip() else "an empty file"
        remedy = "check that the file is complete; " + WITH_OGR2OGR.format(name="the original")
        if error.msg == "Extra data":
            remedy = "put one FeatureCollection around the features: a file with one of them in each line is not read"
    except RecursionError:
        got, remedy = "brackets within brackets, thousands deep", WITH_OGR2OGR.format(name="the original")
    else:
        if isinstance(document, Mapping):
            return document
        got, remedy = shorten(document), 'put the features into {"type": "FeatureCollection", "features": [...]}'
    raise RegionsError("the file of regions is not GeoJSON", where=where, got=got, expected=EXPECTED, remedy=remedy)


def _features(document: Mapping[str, Any], source: str) -> FeatureList:
    kind = document.get("type")
    if kind == "FeatureCollection":
        members = document.get("features")
        if not isinstance(members, list | tuple):
            raise _wrong(source, f"features is {shorten(members)}", "write the list of features")
        features = [_feature(member, f"{source}, features[{place}]") for place, member in enumerate(members)]
    elif kind == "Feature":
        features = [_feature(document, source)]
    elif kind == "GeometryCollection" and isinstance(document.get("geometries"), list | tuple):
        parts = enumerate(document["geometries"])
        features = [Feature(f"{source}, geometries[{place}]", part, {}) for place, part in parts]
    elif kind == "Topology":
        raise _wrong(source, "TopoJSON", "convert it: mapshaper in.topojson -o regions.geojson, or topo2geo")
    elif "rings" in document or "geometryType" in document:
        raise _wrong(source, "Esri JSON", 'ask the service for f=geojson, or "Features To JSON" for GeoJSON')
    elif isinstance(kind, str):
        features = [Feature(source, document, {})]  # a geometry; others are refused there
    else:
        raise _wrong(source, shorten(dict(document)), 'write its "type"')
    if not features:
        raise _wrong(source, "no features", "write one feature for each region")
    return FeatureList(source, features, document.get("crs"))


def _feature(member: object, where: str) -> Feature:
    if not isinstance(member, Mapping) or member.get("type") != "Feature":
        raise RegionsError(
            "a feature is none",
            where=where,
            got=shorten(member),
            expected='{"type": "Feature", "geometry": ..., "properties": ...}',
            remedy="wrap the geometry in a feature",
        )
    properties = member.get("properties")
    return Feature(
        where, member.get("geometry"), properties if isinstance(properties, Mapping) else {}, member.get("id")
    )


def _wrong(source: str, got: str, remedy: str) -> RegionsError:
    return RegionsError("these are no regions", where=source, got=got, expected=EXPECTED, remedy=remedy)
