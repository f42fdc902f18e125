"""New studies from public files of the user's: boxes and grids around places, lists of labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

import hubbub as hb
from hubbub.client import Client
from hubbub.domains.geometry import Box
from hubbub.intake.new_studies.api import draft_study
from hubbub.intake.new_studies.suggested_grid import FEWEST_CELLS, MOST_CELLS, suggest_grid
from strategies import examples
from terminal import hubbub


def city(count: int = 500) -> tuple[Any, Any]:
    """Return places around Munich."""
    rng = np.random.default_rng(24)
    return rng.normal(48.14, 0.04, count), rng.normal(11.57, 0.06, count)


def places(path: Path, latitudes: Any, longitudes: Any, names: tuple[str, str] = ("lat", "lon")) -> Path:
    rows = "".join(f"{lat},{lon}\n" for lat, lon in zip(latitudes, longitudes, strict=True))
    path.write_text(f"{names[0]},{names[1]}\n{rows}")
    return path


def study_of(text: str, folder: Path) -> hb.Study:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    Client(path)  # devices take it, too
    return hb.read_study(path)


# -- grids ----------------------------------------------------------------------------------------------------------


@examples(150)
@given(
    st.floats(-70, 70), st.floats(-150, 150), st.floats(0.001, 15.0), st.floats(0.001, 15.0),
    st.none() | st.sampled_from([0.25, 0.5, 1.0, 7.0]),
)  # fmt: skip
def test_a_suggested_grid_holds_its_box_in_square_cells_of_a_round_size(
    south: float, west: float, tall: float, wide: float, cell: float | None
) -> None:
    box = Box(south, west, south + tall, west + wide)
    if cell is not None and max(box.size) / cell > 10_000:
        return
    grid = suggest_grid(box, cell=cell)
    assert grid.box.south <= box.south < box.north <= grid.box.north
    assert grid.box.west <= box.west < box.east <= grid.box.east
    for side, least in zip(grid.cell, box.size, strict=True):
        digits = side if cell is None else side / cell
        mantissa = digits / 10 ** np.floor(np.log10(digits * 1.02))
        rounding = 0.005 + 0.004 / side / min(grid.columns, grid.rows)  # degrees are written to the metre
        round_sizes = np.array([1.0, 2.0, 2.5, 5.0]) if cell is None else np.array([1.0])
        assert np.abs(mantissa / round_sizes - 1).min() < rounding, (side, least)
    if cell is None and max(box.size) / min(box.size) < 20:
        assert FEWEST_CELLS <= grid.columns * grid.rows <= MOST_CELLS


def test_a_grid_around_points(tmp_path: Path) -> None:
    latitudes, longitudes = city()
    draft = draft_study("grid", places=places(tmp_path / "bus_stops.csv", latitudes, longitudes))
    study = study_of(draft.text, tmp_path)
    assert isinstance(study.domain, hb.Grid)
    assert study.name == "bus stops"
    assert study.domain.locate(latitudes, longitudes).size == 500  # all are inside
    assert FEWEST_CELLS <= len(study.domain) <= MOST_CELLS
    assert "NEVER from the true places" in draft.text
    assert "NEVER from the true places" in draft.notes[-1]
    strong, light = study.mechanisms["strong"], study.mechanisms["light"]
    assert strong.epsilon * study.domain.width == pytest.approx(0.35, rel=0.05)
    assert light.epsilon * study.domain.width == pytest.approx(1.0, rel=0.05)


def test_points_far_away_are_left_out_and_told(tmp_path: Path) -> None:
    latitudes, longitudes = city()
    latitudes[7], longitudes[7] = 0.0, 0.0  # what geocoders return for an unknown address
    draft = draft_study("grid", places=places(tmp_path / "p.csv", latitudes, longitudes))
    domain = study_of(draft.text, tmp_path).domain
    assert isinstance(domain, hb.Grid)
    assert domain.box is not None
    assert domain.box.south > 47
    assert "1 point far away from the others left out" in draft.notes[0]
    assert "1 point far away from the others left out" in draft.text
    kept = np.arange(500) != 7
    domain.locate(latitudes[kept], longitudes[kept])


@pytest.mark.parametrize(
    "names", [("Latitude", "Longitude"), ("stop_lat", "stop_lon"), ("LAT", "LNG"), ("geo lat", "geo long")]
)
def test_the_usual_names_of_columns(names: tuple[str, str], tmp_path: Path) -> None:
    same = draft_study("grid", places=places(tmp_path / "p.csv", *city())).text
    assert draft_study("grid", places=places(tmp_path / "p.csv", *city(), names)).text == same


def test_sizes_that_are_chosen(tmp_path: Path) -> None:
    path = places(tmp_path / "p.csv", *city())
    half = study_of(draft_study("grid", places=path, cell=0.5).text, tmp_path).domain
    assert isinstance(half, hb.Grid)
    assert [half.width, half.height] == pytest.approx([0.5, 0.5], rel=1e-3)
    both = study_of(draft_study("grid", places=path, columns=12, rows=7).text, tmp_path).domain
    assert isinstance(both, hb.Grid)
    assert (both.columns, both.rows) == (12, 7)
    one = study_of(draft_study("grid", places=path, rows=10).text, tmp_path).domain
    assert isinstance(one, hb.Grid)
    assert one.rows == 10
    assert one.width / one.height == pytest.approx(1.0, abs=0.1)


def polygon(*corners: tuple[float, float]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}


def test_a_grid_around_the_shapes_of_a_geojson_file(tmp_path: Path) -> None:
    west, east = polygon((11.4, 48.05), (11.5, 48.05), (11.5, 48.2)), polygon((11.6, 48.1), (11.7, 48.1), (11.7, 48.25))
    features = [{"type": "Feature", "properties": {}, "geometry": shape} for shape in (west, east)]
    several = {
        "type": "GeometryCollection",
        "geometries": [west, {"type": "Point", "coordinates": [11.7, 48.25, 500.0]}],
    }
    documents = [
        {"type": "FeatureCollection", "features": [*features, {"type": "Feature", "properties": {}, "geometry": None}]},
        several,
        {"type": "MultiPolygon", "coordinates": [west["coordinates"], east["coordinates"]]},
    ]
    texts = []
    for document in documents:
        path = tmp_path / "city.geojson"
        path.write_text(json.dumps(document))
        texts.append(draft_study("grid", places=path, columns=10, rows=8).text)
    domain = study_of(texts[0], tmp_path).domain
    assert isinstance(domain, hb.Grid)
    assert domain.box == Box(48.05, 11.4, 48.25, 11.7)
    assert texts[1:] == texts[:1] * 2


# -- labels ---------------------------------------------------------------------------------------------------------


def test_labels_one_per_line(tmp_path: Path) -> None:
    path = tmp_path / "colours.txt"
    path.write_bytes('\ufeffred\r\n blue \r\n\r\nred\r\n日本\r\nRed\r\n"quoted" \\ back\r\n'.encode())
    draft = draft_study("categories", labels=path)
    study = study_of(draft.text, tmp_path)
    assert study.domain.labels.tolist() == ["red", "blue", "日本", "Red", '"quoted" \\ back']
    assert study.name == "colours"
    assert draft.notes == (
        "colours.txt: spaces around 1 label were removed",
        "colours.txt: 1 empty label left out",
        "colours.txt: 'red' is listed several times, and kept once",
        "colours.txt: 'red' and 'Red' look alike, and are different labels",
        "5 labels of colours.txt become public with the study file",
    )


@pytest.mark.parametrize(
    ("name", "content", "column", "expected"),
    [
        ("l.csv", b"label\na\nb\n", None, ["a", "b"]),
        ("l.csv", b"a\nb\nc\n", None, ["a", "b", "c"]),  # no header that is known: all are labels
        ("l.csv", b"code;label\n1;x\n2;y\n", None, ["x", "y"]),
        ("l.csv", b"code,text\n1,x\n2,y\n", "text", ["x", "y"]),
        ("l.csv", b'label\n"a, b"\nc\n', None, ["a, b", "c"]),
        ("l.csv", b"code,text\n007,x\n12,y\n", "code", ["007", "12"]),
        ("l.txt", "ä\nö\n".encode("utf-16"), None, ["ä", "ö"]),
        ("l.list", b"a\nb", None, ["a", "b"]),
        ("l.jsonl", b'{"label": "a"}\n{"label": "b"}\n', None, ["a", "b"]),
    ],
)
def test_labels_of_tables(name: str, content: bytes, column: str | None, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    draft = draft_study("categories", labels=tmp_path / name, column=column)
    assert study_of(draft.text, tmp_path).domain.labels.tolist() == expected


def test_a_few_labels_are_given_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = draft_study("categories", labels="yes, no,yes,")
    assert study_of(draft.text, tmp_path).domain.labels.tolist() == ["yes", "no"]
    assert draft.notes == (
        "--labels: spaces around 1 label were removed",
        "--labels: 1 empty label left out",
        "--labels: 'yes' is listed several times, and kept once",
    )
    with pytest.raises(hb.IntakeError, match="at least two labels"):
        draft_study("categories", labels="yes,")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b").write_text("c\nd\n")  # a file of that name is a file
    assert study_of(draft_study("categories", labels="a,b").text, tmp_path).domain.labels.tolist() == ["c", "d"]


def test_labels_and_places_of_a_workbook(tmp_path: Path) -> None:
    book = Workbook()
    for row in [("label", "lat", "lon"), ("a", 48.1, 11.5), ("b", 48.2, 11.6), ("a", 48.15, 11.7)]:
        book.active.append(row)
    book.save(tmp_path / "b.xlsx")
    labels = draft_study("categories", labels=tmp_path / "b.xlsx")
    assert study_of(labels.text, tmp_path).domain.labels.tolist() == ["a", "b"]
    assert "3 points of b.xlsx" in draft_study("grid", places=tmp_path / "b.xlsx").text


def test_whole_numbers_and_bins(tmp_path: Path) -> None:
    ages = study_of(draft_study("integers", low=-5, high=120, name='a "name"').text, tmp_path)
    assert (ages.domain, ages.name) == (hb.Integers(-5, 120), 'a "name"')
    bins = draft_study("bins", edges=[0, 2.5, 100]).text
    assert study_of(bins, tmp_path).domain == hb.Bins([0, 2.5, 100])
    assert "bin 0 is 0 up to 2.5" in bins


def test_without_files_it_is_the_template(tmp_path: Path) -> None:
    for kind in ("categories", "integers", "bins", "grid"):
        draft = draft_study(kind)
        assert draft.notes == ()
        study_of(draft.text, tmp_path)


# -- mistakes -------------------------------------------------------------------------------------------------------

IN_METRES = "x,lat,lon\n1,5332000.5,691000.2\n2,5333000.1,692000.7\n"
MISTAKES: dict[str, tuple[str, str, dict[str, Any], tuple[str, ...]]] = {
    "swapped": ("p.csv", "lat,lon\n-122.4,37.7\n-122.3,37.8\n", {}, ("no degrees", "swap the two columns")),
    "projected": ("p.csv", IN_METRES, {}, ("no degrees", "WGS 84")),
    "E7": ("p.csv", "lat,lon\n481400000,115700000\n482000000,116000000\n", {}, ("no degrees", "divide by ten million")),
    "both sides of the 180th meridian": ("p.csv", "lat,lon\n-17,179\n-18,-179\n", {}, ("180th meridian", "one side")),
    "one point": ("p.csv", "lat,lon\n48,11\n48,11\n", {}, ("one line", "by hand")),
    "no rows": ("p.csv", "lat,lon\n", {}, ("no places", "0 points")),
    "no columns": ("p.csv", "place,x\na,1\n", {}, ("no column may hold the latitude", "'place'", "rename")),
    "two latitudes": ("p.csv", "lat,latitude,lon\n1,1,1\n", {}, ("several columns", "'latitude'")),
    "text": (
        "p.csv",
        "lat,lon\n48.1,11.5\n48° 10',11.6\n",
        {},
        ("not a number", "decimal degrees", "line 3, column lat"),
    ),
    "a missing one": ("p.csv", "lat,lon\n48.1,11.5\n,11.6\n", {}, ("no value", "line 3, column lat")),
    "not GeoJSON": ("p.geojson", "{}", {}, ("not GeoJSON", "WGS 84")),
    "broken JSON": ("p.geojson", '{"type": "Feature"', {}, ("not GeoJSON", "export it again")),
    "a tiny cell": ("p.csv", "lat,lon\n48,11\n49,12\n", {"cell": 0.001}, ("--cell", "at least 0.011")),
    "no columns at all": ("p.csv", "lat,lon\n48,11\n49,12\n", {"columns": 0}, ("--columns", "from 1")),
    "cell and rows": (
        "p.csv",
        "lat,lon\n48,11\n49,12\n",
        {"cell": 1.0, "rows": 3},
        ("--cell", "or a number of columns"),
    ),
    "one label": ("l.txt", "a\n\na\n", {}, ("at least two labels", "1 label")),
    "no labels": ("l.txt", "\n \n", {}, ("at least two labels", "0 labels")),
    "two columns": ("l.csv", "code,text\n1,a\n2,b\n", {}, ("which column", "--column NAME")),
    "two columns of labels": ("l.csv", "label,name\n1,a\n2,b\n", {}, ("which column", "'name'")),
    "no such column": ("l.csv", "code,text\n1,a\n2,b\n", {"column": "label"}, ("no column label", "'text'")),
    "a column of lines": ("l.txt", "a\nb\n", {"column": "label"}, ("no columns", "each line is a label")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_files_are_told_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    file, content, options, words = MISTAKES[name]
    path = tmp_path / file
    path.write_text(content, encoding="utf-8")
    kind, option = ("grid", "places") if file.startswith("p") else ("categories", "labels")
    with pytest.raises(hb.HubbubError) as caught:
        draft_study(kind, **{option: path, **options})
    error = caught.value
    assert all((error.what, error.where, error.got, error.expected, error.remedy))
    for word in words:
        assert word in str(error)


def test_files_in_other_encodings_and_missing_ones(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_bytes("grün\nblau\n".encode("latin-1"))
    with pytest.raises(hb.IntakeError) as caught:
        draft_study("categories", labels=tmp_path / "l.txt")
    assert caught.value.code == "not-utf-8"
    missing: Any = tmp_path / "nothing.csv"
    for option, kind in (("places", "grid"), ("labels", "categories")):
        with pytest.raises(hb.IntakeError) as caught:
            draft_study(kind, **{option: missing})
        assert caught.value.code == "no-such-file"


@pytest.mark.parametrize(
    ("kind", "options"),
    [("grid", {"labels": "x"}), ("integers", {"places": "x"}), ("grid", {"cell": 1.0}), ("categories", {"column": "x"}),
     ("bins", {"low": 3}), ("grid", {"rows": 3})],
)  # fmt: skip
def test_options_of_other_kinds_are_refused(kind: str, options: dict[str, Any]) -> None:
    with pytest.raises(hb.SettingError, match="does not apply"):
        draft_study(kind, **options)


def test_the_terminal_says_loudly_that_the_box_is_public(tmp_path: Path) -> None:
    places(tmp_path / "stops.csv", *city(50))
    done = hubbub("new", "grid", "--from", "stops.csv", "--cell", "1", "-o", "s.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "NEVER from the true places of the people who answer" in done.stderr
    assert "cells of 1 km around 50 points of stops.csv" in done.stderr
    assert "THE BOX IS PUBLIC" in (tmp_path / "s.toml").read_text()
    again = hubbub("new", "grid", "--from", "stops.csv", "-o", "s.toml", cwd=tmp_path)
    assert (again.returncode, "there is a file already" in again.stderr) == (1, True)
    assert hubbub("new", "bins", "--edges", "0,x", cwd=tmp_path).returncode == 2
    assert not (tmp_path / "study.toml").exists()
