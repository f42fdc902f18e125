"""Regions: how cells are cut, what shares and intervals come out, and the files that map tools open."""

from __future__ import annotations

import csv
import importlib
import json
import math
import pickle
import warnings
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
from matplotlib.figure import Figure
from matplotlib.path import Path as DrawnPath

import hubbub as hb
from hubbub.cli.options import ReadingOptions
from hubbub.cli.region_table import RegionOptions, print_regions
from hubbub.core.progress import finish
from hubbub.exporting.result_files import write_regions
from hubbub.intervals import weighted_sums
from hubbub.intervals.compact_covariance import CompactCovariance
from hubbub.intervals.set_intervals import SetShares, normal_quantile, set_shares
from terminal import hubbub

estimate_command: Any = importlib.import_module("hubbub.cli.estimate")

SOUTH, WEST, NORTH, EAST = 37.7228, -122.5153, 37.7946, -122.3789
TOWN = hb.Grid.over(south=SOUTH, west=WEST, north=NORTH, east=EAST, columns=5, rows=4)
CITY = hb.Grid.over(south=SOUTH, west=WEST, north=NORTH, east=EAST, columns=12, rows=10)  # more than 100 cells
PLAIN = hb.Grid(4, 3, cell=(2.0, 1.0), unit="m")


def feature(shape: Any, **properties: object) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": shapely.geometry.mapping(shape)}


def collection(*features: object, **members: object) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features), **members}


def cell_box(grid: hb.Grid, cell: int) -> Any:
    assert grid.box is not None
    width, height = (EAST - WEST) / grid.columns, (NORTH - SOUTH) / grid.rows
    row, column = divmod(cell, grid.columns)
    return shapely.box(
        WEST + column * width, SOUTH + row * height, WEST + (column + 1) * width, SOUTH + (row + 1) * height
    )


def cells_of_points(count: int, seed: int) -> list[Any]:
    """Return polygons that divide the box: what is nearest to each of some points."""
    rng = np.random.default_rng(seed)
    points = shapely.MultiPoint(np.c_[rng.uniform(WEST, EAST, count), rng.uniform(SOUTH, NORTH, count)])
    box = shapely.box(WEST, SOUTH, EAST, NORTH)
    return [part.intersection(box) for part in shapely.get_parts(shapely.voronoi_polygons(points, extend_to=box))]


def division(count: int, seed: int) -> dict[str, Any]:
    """Return such polygons with names, every other one the other way round."""
    parts = [part.reverse() if place % 2 else part for place, part in enumerate(cells_of_points(count, seed))]
    return collection(*(feature(part, name=f"D{place}") for place, part in enumerate(parts)))


def drawn(grid: hb.Grid, users: int, epsilon: float = 1.0, seed: int = 0) -> tuple[hb.Reports, np.ndarray[Any, Any]]:
    """Return reports about a smooth truth with a busy centre, and the truth."""
    middle = np.array([0.6 * grid.columns, 0.5 * grid.rows])
    truth = np.exp(-0.5 * ((grid.steps - middle) ** 2).sum(axis=1) / (0.15 * grid.columns) ** 2) + 0.002
    truth /= truth.sum()
    noise = hb.PlanarGeometric(grid, epsilon)
    rng = np.random.default_rng(seed)
    return hb.Reports.from_counts(noise, rng.multinomial(users, truth @ noise.matrix())), truth


@pytest.fixture(scope="module")
def town() -> tuple[hb.Reports, hb.Estimate]:
    reports, _ = drawn(TOWN, 3_000)
    return reports, hb.estimate(reports)


@pytest.fixture(scope="module")
def city() -> tuple[hb.Reports, hb.Estimate]:
    reports, _ = drawn(CITY, 20_000)
    return reports, hb.estimate(reports, "ems")


# -- cutting --------------------------------------------------------------------------------------------------


def test_weights_are_shares_of_cells_by_counting_points() -> None:
    """Against Matplotlib's test of points in paths: 900 points in each cell."""
    ring = [[1.0, 0.2], [7.3, 0.9], [6.1, 2.9], [2.2, 2.4], [1.0, 0.2]]
    hole = [[3.0, 1.0], [3.0, 1.9], [5.5, 1.5], [3.0, 1.0]]
    own = hb.regions(PLAIN, {"type": "Polygon", "coordinates": [ring, hole]})
    side = (np.arange(30) + 0.5) / 30
    for position, (column, row) in enumerate(PLAIN.steps):
        points = np.stack(np.meshgrid((column + side) * 2.0, row + side), axis=-1).reshape(-1, 2)
        inside = DrawnPath(ring).contains_points(points) & ~DrawnPath(hole).contains_points(points)
        assert own.weights.toarray()[0, position] == pytest.approx(inside.mean(), abs=0.02)
    area = 0.5 * abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise(ring)))
    area -= 0.5 * abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise(hole)))
    assert own.weights.sum() * 2.0 == pytest.approx(area)  # cells of 2 by 1, all of the region on the grid
    assert own.inside.tolist() == [1.0]
    assert own.rest == pytest.approx(1.0 - own.weights.toarray()[0])


def test_kept_cells_alone_count() -> None:
    land = hb.Grid(4, 3, cell=(2.0, 1.0), unit="m", cells=[0, 1, 5, 10])
    own = hb.regions(land, {"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [3, 2], [0, 2], [0, 0]]]})
    assert own.of("1") == {0: 1.0, 1: 0.5, 5: 0.5}
    assert own.inside[0] == pytest.approx(4.0 / 6.0)
    assert own.main_region == ("1", "1", "1", None)
    assert "66.7% inside) lies partly outside the cells that the grid keeps" in own.notes[0]


def test_regions_of_several_polygons_and_collections() -> None:
    first, second = cell_box(TOWN, 0), cell_box(TOWN, 7)
    both = collection(feature(shapely.MultiPolygon([first, second]), name="islands"))
    in_collection = collection(feature(shapely.GeometryCollection([first, second]), name="islands"))
    expected = {0: 1.0, 7: 1.0}
    assert hb.regions(TOWN, both).of("islands") == pytest.approx(expected)
    assert hb.regions(TOWN, in_collection).of("islands") == pytest.approx(expected)
    bare = shapely.geometry.mapping(shapely.GeometryCollection([first, second]))
    numbered = hb.regions(TOWN, bare)
    assert [numbered.of(name) for name in numbered.names] == [pytest.approx({0: 1.0}), pytest.approx({7: 1.0})]
    assert hb.regions(TOWN, shapely.GeometryCollection([first])).of("1") == pytest.approx({0: 1.0})


def test_a_division_covers_each_cell_once() -> None:
    own = hb.regions(CITY, division(17, seed=3))
    assert own.weights.sum(axis=0) == pytest.approx(np.ones(len(CITY)))
    assert own.rest == pytest.approx(np.zeros(len(CITY)), abs=1e-9)
    assert own.notes == ()
    largest = own.weights.toarray().argmax(axis=0)
    assert own.main_region == tuple(own.names[place] for place in largest)


def test_overlaps_and_regions_outside_are_told() -> None:
    far = shapely.box(0.0, 0.0, 1.0, 1.0)
    own = hb.regions(
        TOWN,
        collection(
            feature(shapely.box(WEST, SOUTH, EAST, NORTH), name="all"),
            feature(shapely.box(WEST - 0.1, SOUTH, EAST - 0.1, NORTH), name="west"),
            feature(far, name="far"),
        ),
    )
    (notes,) = [" ".join(own.notes)]
    assert "all and west, perhaps others too, overlap" in notes
    assert "west (26.7% inside) lies partly outside" in notes
    assert "far lies outside the grid: nothing is known there" in notes
    assert own.inside == pytest.approx([1.0, 1.0 - 0.1 / (EAST - WEST), 0.0])


def test_outlines_stay_near_and_are_short() -> None:
    angles = np.linspace(0.0, 2.0 * math.pi, 2_001)[:-1]
    middle = np.array([(WEST + EAST) / 2, (SOUTH + NORTH) / 2])
    circle = shapely.Polygon(middle + 0.03 * np.c_[np.cos(angles), np.sin(angles)])
    country = circle.buffer(5.0).difference(circle)
    own = hb.regions(TOWN, collection(feature(circle, name="ring"), feature(country, name="around")))
    width, height = (EAST - WEST) / 5, (NORTH - SOUTH) / 4
    slack = min(width, height) / 20
    (ring,) = own.outlines[0]
    assert len(ring) < 100
    assert shapely.LinearRing(ring).is_ccw
    assert shapely.hausdorff_distance(shapely.Polygon(ring), circle) < slack
    around = np.concatenate(own.outlines[1])
    assert len(own.outlines[1]) == 2  # a hole
    assert around.min(axis=0) == pytest.approx([WEST - width, SOUTH - height])
    assert around.max(axis=0) == pytest.approx([EAST + width, NORTH + height])


# -- names and coordinates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "wanted", "names"),
    [
        ([{"name": "A", "code": 1}, {"name": "B", "code": 2}], None, ("A", "B")),
        ([{"name": "A", "code": 1}, {"name": "B", "code": 2}], "code", ("1", "2")),
        ([{"name": "A", "BEZIRK": "x"}, {"name": "A", "BEZIRK": "y"}], None, ("x", "y")),
        ([{"name": "A", "height": 3.5}, {"height": 4.5}], None, ("1", "2")),
        ([{"name": " A  b\n"}, {"name": "Ünter"}], None, ("A b", "Ünter")),
        ([{"ID": 7, "BEZIRK_NAME": "Mitte"}, {"ID": 8, "BEZIRK_NAME": "Neukölln"}], None, ("Mitte", "Neukölln")),
        ([{"OBJECTID": 7, "BEZIRK_NAME": "x"}, {"OBJECTID": 8, "BEZIRK_NAME": "y"}], None, ("x", "y")),
        ([{"ward": 7.0, "area": 0.5}, {"ward": 8.0, "area": 1.5}], None, ("7", "8")),
        ([{"area": 0.5, "region_people": 3}, {"area": 1.5, "region_people": 4}], None, ("1", "2")),  # no names
    ],
)
def test_names_come_from_a_property_that_all_have(
    properties: list[dict[str, object]], wanted: str | None, names: tuple[str, ...]
) -> None:
    features = [feature(cell_box(TOWN, place), **own) for place, own in enumerate(properties)]
    own = hb.regions(TOWN, collection(*features), name=wanted)
    assert own.names == names
    assert bool(own.notes) == (names == ("1", "2") and wanted is None)


def mercator(longitude: float, latitude: float) -> tuple[float, float]:
    """The formula of EPSG:3857, on its sphere."""
    radius = 6_378_137.0
    return radius * math.radians(longitude), radius * math.log(math.tan(math.pi / 4 + math.radians(latitude) / 2))


@pytest.mark.parametrize("name", ["EPSG:3857", "urn:ogc:def:crs:EPSG::3857"])
def test_other_coordinate_systems_are_converted(name: str) -> None:
    projected = shapely.Polygon([mercator(*point) for point in cell_box(TOWN, 7).exterior.coords])
    crs = {"type": "name", "properties": {"name": name}}
    own = hb.regions(TOWN, collection(feature(projected, name="a"), crs=crs))
    assert own.of("a")[7] == pytest.approx(1.0, abs=1e-6)
    assert "WGS 84 / Pseudo-Mercator" in own.notes[0]
    frame = geopandas.GeoDataFrame({"name": ["a"]}, geometry=[projected], crs="EPSG:3857")
    assert hb.regions(TOWN, frame).of("a")[7] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", ["urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::4326", "EPSG:4326"])
def test_longitude_and_latitude_by_any_name_stay(name: str) -> None:
    crs = {"type": "name", "properties": {"name": name}}
    own = hb.regions(TOWN, collection(feature(cell_box(TOWN, 7), name="a"), crs=crs))
    assert own.of("a") == pytest.approx({7: 1.0})
    assert own.notes == ()


def test_files_texts_and_heights_are_read(tmp_path: Path) -> None:
    ring = [[*point, 12.5] for point in cell_box(TOWN, 7).exterior.coords]
    text = json.dumps({"type": "Polygon", "coordinates": [ring]})
    (tmp_path / "marked.geojson").write_text("\ufeff" + text, encoding="utf-8")
    for source in (tmp_path / "marked.geojson", str(tmp_path / "marked.geojson"), text):
        own = hb.regions(TOWN, source)
        assert own.of("1") == pytest.approx({7: 1.0})
        assert own.notes == ("Heights of points were left out.",)


def test_regions_are_portable() -> None:
    own = hb.regions(TOWN, division(4, seed=1))
    again = pickle.loads(pickle.dumps(own))  # noqa: S301  # our own
    assert again.names == own.names
    assert (again.weights != own.weights).nnz == 0
    assert all(a.equals(b) for a, b in zip(again.polygons, own.polygons, strict=True))


# -- shares and intervals ------------------------------------------------------------------------------------------


def test_the_whole_grid_is_known(town: tuple[hb.Reports, hb.Estimate], city: tuple[hb.Reports, hb.Estimate]) -> None:
    for grid, (reports, estimate) in ((TOWN, town), (CITY, city)):
        everything = hb.regions(grid, shapely.box(WEST, SOUTH, EAST, NORTH))
        answer = everything.shares(reports, estimate=estimate)
        (row,) = answer.rows
        assert (row.low, row.high, row.simultaneous_low, row.simultaneous_high) == pytest.approx((1.0,) * 4)
        assert answer.rest is None


def test_a_cell_as_a_region_has_its_interval(city: tuple[hb.Reports, hb.Estimate]) -> None:
    reports, estimate = city
    cells = [55, 66, 3]
    half = cell_box(CITY, 66)
    half = shapely.box(half.bounds[0], half.bounds[1], (half.bounds[0] + half.bounds[2]) / 2, half.bounds[3])
    own = hb.regions(
        CITY, collection(*(feature(cell_box(CITY, cell), name=str(cell)) for cell in cells), feature(half, name="half"))
    )
    answer = own.shares(reports, estimate=estimate)
    band = hb.band(reports, values=cells, estimate=estimate)
    for row, cell in zip(answer.rows, cells, strict=False):
        expected = band.low[cell], band.estimate[cell], band.high[cell]
        assert (row.low, row.estimate, row.high) == pytest.approx(expected, abs=1e-9)
    whole, part = answer["66"], answer["half"]
    assert (2.0 * part.low, 2.0 * part.estimate, 2.0 * part.high) == pytest.approx(
        (whole.low, whole.estimate, whole.high), abs=1e-8
    )


def test_regions_of_a_small_grid_have_profile_intervals(town: tuple[hb.Reports, hb.Estimate]) -> None:
    reports, estimate = town
    own = hb.regions(TOWN, division(3, seed=5))
    answer = own.shares(reports, estimate=estimate, level=0.9)
    for name in own.names[:1]:
        alone = hb.interval(reports, own.of(name), 0.9, estimate=estimate)
        row = answer[name]
        assert (row.low, row.estimate, row.high) == pytest.approx((alone.low, alone.estimate, alone.high), abs=1e-6)
    assert "profile likelihood" in answer.note


def test_regions_of_a_larger_grid_have_linear_intervals(city: tuple[hb.Reports, hb.Estimate]) -> None:
    reports, estimate = city
    own = hb.regions(CITY, division(8, seed=5))
    answer = own.shares(reports, estimate=estimate)
    shares = set_shares(reports, estimate.probabilities)
    assert isinstance(shares, SetShares)
    for name, row in zip(own.names, answer.rows, strict=True):
        weights = np.zeros(len(CITY))
        for cell, weight in own.of(name).items():
            weights[cell] = weight
        middle = min(1.0, max(0.0, float(weights @ shares.centre)))
        reach = normal_quantile(0.95) * math.sqrt(weights @ shares.matrix @ weights)
        assert (row.confidence_low, row.confidence_high) == pytest.approx((max(0.0, middle - reach), middle + reach))
        assert row.low <= row.estimate <= row.high
        assert row.simultaneous_low <= row.low <= row.high <= row.simultaneous_high
        assert row.estimate == pytest.approx(weights @ estimate.probabilities)
    assert sum(row.estimate for row in answer.rows) == pytest.approx(1.0)
    assert "linear" in answer.note


def test_deviations_of_weights_are_those_of_the_matrix() -> None:
    rng = np.random.default_rng(7)
    root = rng.standard_normal((12, 12))
    matrix = root @ root.T
    matrix -= np.outer(matrix.sum(axis=1), matrix.sum(axis=0)) / matrix.sum()  # shares sum to 1: no variance
    weights = rng.random((6, 12))
    weights[0] = rng.random(12) < 0.4
    expected = np.sqrt(np.einsum("mx,xy,my->m", weights, matrix, weights))
    assert CompactCovariance.of_matrix(matrix).weighted_deviations(weights) == pytest.approx(expected)
    assert SetShares(np.full(12, 1 / 12), matrix, None).weighted_deviations(weights) == pytest.approx(expected)


def test_what_no_region_covers_and_what_nobody_knows(town: tuple[hb.Reports, hb.Estimate]) -> None:
    reports, estimate = town
    own = hb.regions(
        TOWN,
        collection(feature(cell_box(TOWN, 12), name="centre"), feature(shapely.box(0.0, 0.0, 1.0, 1.0), name="far")),
    )
    answer = own.shares(reports, estimate=estimate)
    assert answer.rest is not None
    assert answer.rest.estimate == pytest.approx(1.0 - answer["centre"].estimate)
    assert answer.rest.cells == pytest.approx(19.0)
    far = answer["far"]  # as a row in which nothing is known, not as a mistake
    assert not far.is_known
    assert math.isnan(far.low)
    document = json.loads(answer.to_json())
    assert document["regions"][1] | {"inside": None} == dict.fromkeys(document["regions"][1]) | {
        "region": "far",
        "cells": 0.0,
        "extended": False,
    }
    assert document["rest"]["region"] is None
    frame = answer.to_frame()
    assert frame["region"].tolist()[:2] == ["centre", "far"]
    assert np.isnan(frame["estimate"][1])
    assert "of the people are in no region" in answer.explain()
    assert "spread evenly" in answer.explain()
    assert "far" in answer._repr_html_()


def test_reports_on_a_part_of_the_grid_are_followed(town: tuple[hb.Reports, hb.Estimate]) -> None:
    reports, _ = town
    kept = [6, 7, 8, 11, 12, 13]
    few = reports.restrict(kept)
    own = hb.regions(TOWN, collection(feature(cell_box(TOWN, 12), name="a"), feature(cell_box(TOWN, 0), name="gone")))
    answer = own.shares(few, estimate=(estimate := hb.estimate(few, "mle")))
    assert answer["a"].estimate == pytest.approx(estimate.probabilities[kept.index(12)])
    assert not answer.rows[1].is_known


def test_where_linear_intervals_cannot_be_had_they_are_refused_or_others(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = np.repeat(np.arange(20), 5)
    noise = hb.PlanarGeometric(TOWN, 1.0)
    weighted = hb.Reports.from_outputs(noise, outputs, weights=np.linspace(1.0, 2.0, outputs.size))
    estimate = hb.estimate(weighted, "mle")
    own = hb.regions(TOWN, shapely.box(WEST, SOUTH, (WEST + EAST) / 2, NORTH))
    with pytest.raises(hb.EstimateError, match="survey weights"):
        own.shares(weighted, estimate=estimate, method="linear")
    monkeypatch.setattr(weighted_sums, "MAX_VALUES_ALL_SIMULATED", 10)
    answer = own.shares(weighted, estimate=estimate)
    assert "survey weights" in answer.note
    assert "profile" in answer.note
    assert 0.0 < answer.rows[0].low <= answer.rows[0].estimate <= answer.rows[0].high < 1.0


def test_intervals_hold_the_truth_in_a_few_studies() -> None:
    """At 95%, in 40 studies with 8 regions."""
    own = hb.regions(CITY, division(8, seed=2))
    weights = own.weights.toarray()
    held = together = 0
    for seed in range(40):
        reports, truth = drawn(CITY, 20_000, seed=seed)
        answer = own.shares(reports, estimate=hb.estimate(reports, "inv-n"))
        true = weights @ truth
        inside = [
            row.confidence_low <= share <= row.confidence_high for row, share in zip(answer.rows, true, strict=True)
        ]
        held += sum(inside)
        together += all(
            row.simultaneous_low <= share <= row.simultaneous_high for row, share in zip(answer.rows, true, strict=True)
        )
    assert held >= 0.89 * 320  # five standard deviations, were they independent
    assert together >= 34  # of 40 at 95%: fewer happen once in a hundred
    assert held < 320  # intervals that always hold are too wide


# -- files and pictures -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answer(town: tuple[hb.Reports, hb.Estimate]) -> hb.RegionShares:
    reports, estimate = town
    return hb.regions(TOWN, division(3, seed=9)).shares(reports, estimate=estimate, method="linear")


@pytest.mark.parametrize("ending", ["geojson", "parquet", "csv"])
def test_geopandas_reads_the_files_of_regions(answer: hb.RegionShares, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"regions.{ending}"
    write_regions(answer, {}, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # areas in degrees
        frame = geopandas.read_parquet(path) if ending == "parquet" else geopandas.read_file(path)
        assert frame.geometry.area.to_numpy() == pytest.approx([part.area for part in answer.regions.polygons])
    assert frame["region"].tolist() == list(answer.regions.names)
    for name in ("estimate", "low", "high", "simultaneous_low", "simultaneous_high", "cells", "inside"):
        assert frame[name].astype(float).tolist() == pytest.approx([getattr(row, name) for row in answer.rows])
    assert frame.geometry.iloc[0].geom_type == "Polygon"
    if ending != "csv":
        assert frame.crs == "EPSG:4326"
    if ending == "geojson":
        rings = [shape["geometry"]["coordinates"][0] for shape in json.loads(path.read_text())["features"]]
        assert all(shapely.LinearRing(ring).is_ccw for ring in rings)  # RFC 7946, section 3.1.6


def test_a_grid_without_a_place_has_no_map_files(tmp_path: Path) -> None:
    noise = hb.PlanarGeometric(PLAIN, 1.0)
    own = hb.regions(PLAIN, {"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [3, 2], [0, 2], [0, 0]]]})
    answer = own.shares(hb.Reports.from_outputs(noise, np.arange(12)))
    for ending in (".geojson", ".parquet"):
        with pytest.raises(hb.DomainError, match="no place on the map"):
            write_regions(answer, {}, tmp_path / f"a{ending}")
    axes = answer.plot(Figure().subplots())
    assert axes.get_xlabel() == "east (m)"


def test_pictures_show_each_region_with_holes(answer: hb.RegionShares, town: tuple[hb.Reports, hb.Estimate]) -> None:
    axes = answer.plot(Figure().subplots())
    assert len(axes.patches) == 3
    assert {"↑ N", *answer.regions.names} <= {text.get_text().split("\n")[0] for text in axes.texts}
    inner, outer = cell_box(TOWN, 7), shapely.box(WEST, SOUTH, EAST, NORTH)
    alike = [shapely.geometry.mapping(shapely.orient_polygons(ring))["coordinates"][0] for ring in (outer, inner)]
    rings = {"type": "Polygon", "coordinates": alike}  # both counter-clockwise, which RFC 7946 forbids and files have
    with_hole = hb.regions(TOWN, rings).shares(town[0], estimate=town[1], method="linear")
    (patch,) = with_hole.plot(Figure().subplots()).patches
    path = patch.get_path()
    turns = [bool(shapely.LinearRing(np.asarray(shape)).is_ccw) for shape in path.to_polygons()]
    assert sorted(turns) == [False, True]  # the hole runs the other way round, so that it stays empty


def test_names_in_pictures_stay_in_their_regions_and_apart(town: tuple[hb.Reports, hb.Estimate]) -> None:
    """A district around another one, and one too small for any word."""
    tiny = shapely.box(WEST, SOUTH, WEST + 0.002, SOUTH + 0.002)
    inner = cell_box(TOWN, 12)
    around = shapely.box(WEST, SOUTH, EAST, NORTH) - inner - tiny
    named = {"around the centre": around, "市中心": inner, "tiny": tiny}
    features = [feature(shape, name=name) for name, shape in named.items()]
    answer = hb.regions(TOWN, collection(*features)).shares(town[0], estimate=town[1], method="linear")
    figure = Figure(figsize=(8, 6), layout="constrained")
    axes = answer.plot(figure.subplots())
    figure.draw_without_rendering()
    written = {text.get_text().split("\n")[0]: text for text in axes.texts}
    assert "tiny" not in written
    outer = written["around\u0020the centre"]
    first, second = (text.get_window_extent() for text in (outer, next(iter({*written.values()} - {outer}))))
    assert not first.overlaps(second)
    shapes = axes.patches[0].get_path()
    left, right = axes.transData.inverted().transform([(first.x0, first.y0), (first.x1, first.y1)])
    middle = (left + right) / 2
    assert shapely.Polygon(shapes.to_polygons()[0], shapes.to_polygons()[1:]).contains(shapely.Point(middle))
    has_hint = figure.get_supxlabel() != ""
    assert has_hint == any("□" in name for name in written)


# -- terminal ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("regions")
    (where / "study.toml").write_text(
        f'version = 1\n[domain]\nkind = "grid"\nsouth = {SOUTH}\nwest = {WEST}\nnorth = {NORTH}\neast = {EAST}\n'
        'columns = 5\nrows = 4\n[mechanisms.map]\nkind = "planar-geometric"\nepsilon = 1.0\n'
    )
    outputs = hb.PlanarGeometric(TOWN, 1.0).privatize([12] * 300 + [7] * 100, rng=1)
    (where / "r.csv").write_text("output,who\n" + "".join(f"{cell},{'ab'[cell % 2]}\n" for cell in outputs))
    parts = cells_of_points(4, seed=6)
    features = [feature(part, kez=f"K{place}", size=place) for place, part in enumerate(parts)]
    (where / "d.geojson").write_text(json.dumps(collection(*features)))
    return where


QUICK = ("--quick", "--method", "mle", "--regions", "d.geojson", "--region-name", "kez", "--region-intervals", "linear")


def test_the_terminal_prints_regions_as_python_has_them(folder: Path) -> None:
    shown = hubbub("estimate", "study.toml", "r.csv", *QUICK, cwd=folder)
    assert shown.returncode == 0, shown.stderr
    printed = hubbub("estimate", "study.toml", "r.csv", *QUICK, "--json", cwd=folder)
    document = json.loads(printed.stdout)
    study = hb.read_study(folder / "study.toml")
    reports = hb.read_reports(pd.read_csv(folder / "r.csv")[["output"]], study)
    own = hb.regions(reports.domain, folder / "d.geojson", name="kez")
    answer = own.shares(reports, estimate=hb.estimate(reports, "mle"), method="linear")
    assert [row["region"] for row in document["regions"]] == list(own.names) == ["K0", "K1", "K2", "K3"]
    for row, mine in zip(document["regions"], answer.rows, strict=True):
        assert row == pytest.approx(mine.document())
        assert f"{mine.estimate:.4f}" in shown.stdout
        assert f"{mine.low:.4f} to {mine.high:.4f}" in shown.stdout
    assert document["region_rest"] is None
    assert (document["interval"], document["region_level"]) == (None, 0.95)  # --quick: none of values
    assert "spread evenly" in shown.stdout
    assert "column" not in shown.stdout  # cells have no names that people know


def test_names_have_room_on_a_narrow_terminal(
    town: tuple[hb.Reports, hb.Estimate], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eighty letters are what a terminal has by default; a name that it breaks within a word cannot be read."""
    reports, estimate = town
    name = "Friedrichshain-Kreuzberg"
    answer = hb.regions(TOWN, feature(cell_box(TOWN, 12), name=name)).shares(reports, estimate=estimate)
    for columns, heads in (("80", False), ("120", True)):
        monkeypatch.setenv("COLUMNS", columns)
        print_regions(answer)
        printed = capsys.readouterr().out
        assert name in printed
        assert ("inside" in printed.splitlines()[1]) == heads


def test_files_of_regions_take_no_time_for_what_they_do_not_hold(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("verdicts and intervals of cells are not in these files")

    monkeypatch.setattr("hubbub.trust_check.check", SimpleNamespace(steps=never))
    places = RegionOptions(regions=folder / "d.geojson", region_name="kez", region_intervals="linear")
    estimate_command.command(
        str(folder / "study.toml"),
        [str(folder / "r.csv")],
        options=estimate_command.EstimateOptions(method="mle"),
        places=places,
        reading=ReadingOptions(),
        output=folder / "alone.csv",
    )
    assert (folder / "alone.csv").exists()


def test_groups_have_regions_of_their_own(folder: Path) -> None:
    done = hubbub("estimate", "study.toml", "r.csv", *QUICK, "--by", "who", "-o", "g.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    with (folder / "g.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["group"], row["region"]) for row in rows] == [
        (group, f"K{place}") for group in "ab" for place in range(4)
    ]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--regions", "none.geojson"), 1, "cannot be read"),
        (("--regions", "d.geojson", "--region-name", "name"), 1, "kez and size"),
        (("--region-name", "kez"), 2, "--regions FILE"),
        (("--regions", "d.geojson", "--fakes", "1%"), 2, "do not allow for fakes"),
        (("--regions", "d.geojson", "-o", "d.geojson"), 2, "would be written over"),
        (("--regions", "d.geojson", "--region-intervals", "wald"), 2, "'wald'"),
    ],
)
def test_mistakes_at_the_terminal_are_told(folder: Path, words: tuple[str, ...], code: int, told: str) -> None:
    before = (folder / "d.geojson").read_bytes()
    done = hubbub("estimate", "study.toml", "r.csv", "--method", "mle", *words, cwd=folder)
    assert done.returncode == code
    assert told in done.stderr
    assert (folder / "d.geojson").read_bytes() == before


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_cells_have_a_place_in_tables(folder: Path, ending: str) -> None:
    words = ("--quick", "--method", "mle", "-o", f"cells.{ending}")
    assert hubbub("estimate", "study.toml", "r.csv", *words, cwd=folder).returncode == 0
    if ending == "csv":
        with (folder / "cells.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        places = [(float(row["lat"]), float(row["lon"])) for row in rows]
        assert [int(TOWN.locate(*place)) for place in places] == [int(row["value"]) for row in rows]
        return
    frame = geopandas.read_parquet(folder / "cells.parquet")
    assert frame.crs == "EPSG:4326"
    middles = [(shape.centroid.y, shape.centroid.x) for shape in frame.geometry]
    assert [int(TOWN.locate(*place)) for place in middles] == frame["value"].tolist()
    assert frame["probability"].sum() == pytest.approx(1.0)


# -- many studies ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("method", "runs"), [("linear", 400), ("profile", 60)])
def test_coverage_of_regions(method: str, runs: int) -> None:
    """Studies of a small town with 5 regions, one at a time and together, at 95% less three standard deviations."""
    own = hb.regions(TOWN, division(5, seed=4))
    weights = own.weights.toarray()
    held, together = np.zeros(5), 0
    for seed in range(runs):
        reports, truth = drawn(TOWN, 2_000, seed=seed)
        answer = own.shares(reports, estimate=hb.estimate(reports, "inv-n"), method=method)
        true = weights @ truth
        rows = list(zip(answer.rows, true, strict=True))
        held += [row.confidence_low <= share <= row.confidence_high for row, share in rows]
        together += all(row.simultaneous_low <= share <= row.simultaneous_high for row, share in rows)
    least = 0.95 - 3.0 * math.sqrt(0.05 * 0.95 / runs)
    assert (held / runs >= least).all()
    assert together / runs >= least


def test_progress_is_told(city: tuple[hb.Reports, hb.Estimate]) -> None:
    from hubbub.polygons import region_shares

    own = hb.regions(CITY, division(3, seed=1))
    steps: list[Any] = []
    finish(region_shares.steps(own, city[0], estimate=city[1]), steps.append)
    assert any("sets" in step.what for step in steps)
