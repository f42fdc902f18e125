"""Exports: maps for map tools, tables that spreadsheets cannot be tricked by."""

from __future__ import annotations

import csv
import json
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hubbub as hb
import strategies as own
from hubbub.rendering import from_spreadsheet_safe, spreadsheet_safe
from terminal import hubbub

TOWN = hb.Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=5, rows=3)
REPORTS = hb.Reports.from_outputs(hb.PlanarGeometric(TOWN, 1.0), np.arange(15))


def area(ring: list[list[float]]) -> float:
    """Return the signed area of a ring: positive if it goes counter-clockwise."""
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise(ring)) / 2


# -- GeoJSON ------------------------------------------------------------------------------------------------------


def test_cells_are_closed_rings_that_cover_the_box() -> None:
    estimate = hb.estimate(REPORTS, "mle")
    band = hb.band(REPORTS, estimate=estimate, values=[0])
    document = json.loads(estimate.to_geojson(low=band.low, high=band.high))
    assert document["type"] == "FeatureCollection"
    assert "crs" not in document  # RFC 7946, section 4
    assert len(document["features"]) == 15
    total = 0.0
    for cell, feature in enumerate(document["features"]):
        assert (feature["type"], feature["geometry"]["type"], feature["id"]) == ("Feature", "Polygon", cell)
        (ring,) = feature["geometry"]["coordinates"]
        assert len(ring) == 5
        assert ring[0] == ring[-1]
        assert area(ring) > 0
        total += area(ring)
        own = feature["properties"]
        assert (own["value"], own["column"], own["row"]) == (cell, cell % 5, cell // 5)
        assert own["probability"] == estimate.probabilities[cell]
        middle = np.mean(ring[:4], axis=0)
        assert TOWN.locate(middle[1], middle[0]) == cell  # longitude comes first
    assert total == pytest.approx((37.7946 - 37.7228) * (122.5153 - 122.3789))
    assert document["features"][0]["properties"]["low"] == band.low[0]
    assert document["features"][1]["properties"]["low"] is None  # not asked for
    assert document["bbox"] == [-122.5153, 37.7228, -122.3789, 37.7946]


def test_neighbours_share_their_corners() -> None:
    features = json.loads(hb.estimate(REPORTS, "mle").to_geojson())["features"]
    first, second = (feature["geometry"]["coordinates"][0] for feature in features[:2])
    assert first[1] == second[0]
    assert first[2] == second[3]


def test_small_cells_get_as_many_digits_as_they_need() -> None:
    tiny = hb.Grid.over(south=0.0, west=0.0, north=3e-6, east=3e-6, columns=3, rows=3)
    reports = hb.Reports.from_counts(hb.RandomizedResponse(tiny, 1.0), np.ones(9, dtype=int))
    rings = [
        one["geometry"]["coordinates"][0] for one in json.loads(hb.estimate(reports, "mle").to_geojson())["features"]
    ]
    assert all(area(ring) == pytest.approx(1e-12, rel=0.01) for ring in rings)


def test_only_kept_cells_are_drawn() -> None:
    land = hb.Grid.over(south=0, west=0, north=1, east=1, columns=3, rows=2, cells=[1, 5])
    reports = hb.Reports.from_counts(hb.RandomizedResponse(land, 1.0), [3, 4])
    features = json.loads(hb.estimate(reports, "mle").to_geojson())["features"]
    assert [one["properties"]["value"] for one in features] == [1, 5]
    assert features[1]["geometry"]["coordinates"][0][0] == [0.666667, 0.5]
    part = json.loads(hb.estimate(REPORTS.restrict([3, 7]), "mle").to_geojson())["features"]
    assert [one["id"] for one in part] == [3, 7]


def test_terminal_writes_geojson_and_refuses_what_is_no_map(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        'version = 1\n[domain]\nkind = "grid"\ncolumns = 2\nrows = 2\n'
        "south = 0.0\nwest = 0.0\nnorth = 1.0\neast = 1.0\n"
        '[mechanisms.m]\nkind = "randomized-response"\nepsilon = 1.0\n'
    )
    (tmp_path / "r.csv").write_text("output\n0\n1\n1\n3\n")
    done = hubbub("estimate", "study.toml", "r.csv", "--method", "mle", "-o", "e.geojson", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "e.geojson").read_text())
    assert 0 <= document["features"][1]["properties"]["low"] <= document["features"][1]["properties"]["high"] <= 1
    (tmp_path / "plain.toml").write_text(
        (tmp_path / "study.toml").read_text().replace("south = 0.0\nwest = 0.0\nnorth = 1.0\neast = 1.0\n", "")
    )
    refused = hubbub("estimate", "plain.toml", "r.csv", "-o", "e2.geojson", cwd=tmp_path)
    assert refused.returncode == 1
    assert "these values have no place on the map" in refused.stderr
    assert not (tmp_path / "e2.geojson").exists()


# -- spreadsheets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\u00a0=1", "\u200b=1", "＝1", "＋1", "－1", "＠a",
     "\x00=1", "\ufeff=1", "−1", "\ue000=1", "=HYPERLINK(\"http://x\")", "\u3000@a", "\tplain", "﹢1"],
)  # fmt: skip
def test_what_looks_like_a_formula_is_made_text(text: str) -> None:
    assert spreadsheet_safe(text) == "'" + text


@pytest.mark.parametrize("text", ["'=1", "''=1", "'\t", "' +1", "'−1"])
def test_a_text_that_could_be_taken_for_a_guarded_formula_gets_an_apostrophe_too(text: str) -> None:
    """Otherwise '=1 and =1 would be written alike."""
    assert spreadsheet_safe(text) == "'" + text


@pytest.mark.parametrize(
    "value", ["", "a", "a=b", "'a", "'", "''", "'1", "1-2", " a", -1, -1.5, 0, None, True, "é", "<script>"]
)
def test_what_does_not_stays_as_it_is(value: object) -> None:
    assert spreadsheet_safe(value) is value


odd_texts = st.text(st.sampled_from("'\"=+-@−＝﹢⁺ \t\r\n\u200b\u3000a1") | st.characters(), max_size=6)


@own.examples(400)
@given(odd_texts, odd_texts)
@example("=1", "'=1")
def test_two_texts_never_become_one(first: str, second: str) -> None:
    assert (spreadsheet_safe(first) == spreadsheet_safe(second)) == (first == second)


@own.examples(400)
@given(odd_texts)
def test_no_text_begins_like_a_formula_and_every_one_can_be_read_back(text: str) -> None:
    safe = spreadsheet_safe(text)
    assert isinstance(safe, str)
    assert safe[:1] not in {"\t", "\r", "\n"}
    seen = safe.lstrip().lstrip("\u200b\ufeff\x00")
    assert unicodedata.normalize("NFKC", seen[:1]) not in {*"=+-@−"}
    assert from_spreadsheet_safe(safe) == text


LABELS = ["=1+1", "@x", "-5", "plain", 'a;=1+1;"']


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(
        f'version = 1\n[domain]\nkind = "categories"\nlabels = {json.dumps(LABELS)}\n'
        '[mechanisms.m]\nkind = "randomized-response"\nepsilon = 1.0\n'
    )
    rows = [(label, group) for group in ("=g", "h") for label in LABELS]
    with (tmp_path / "=r.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("output", "where"), *rows, ("beer", "h")])
    return tmp_path


def table(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_tables_of_the_terminal_are_safe_to_open(hostile: Path) -> None:
    options = ("--method", "mle", "--quick", "--allow-rejects", "1")
    done = hubbub("estimate", "study.toml", "=r.csv", *options, "--rejects", "bad.csv", "-o", "e.csv", cwd=hostile)
    assert done.returncode == 0, done.stderr
    assert [row["value"] for row in table(hostile / "e.csv")] == ["'=1+1", "'@x", "'-5", "plain", LABELS[4]]
    # Spreadsheets of half of the world part cells at semicolons: quotes keep the label in one cell there, too.
    assert (hostile / "e.csv").read_text().splitlines()[5].startswith('"a;=1+1;""",')
    assert all(0 <= float(row["probability"]) <= 1 for row in table(hostile / "e.csv"))
    (reject,) = table(hostile / "bad.csv")
    assert all(not str(entry).startswith(("=", "+", "-", "@")) for entry in reject.values())
    assert "=r.csv" in json.dumps(reject)
    done = hubbub("estimate", "study.toml", "=r.csv", *options, "--by", "where", "-o", "g.csv", cwd=hostile)
    assert done.returncode == 0, done.stderr
    assert {row["group"] for row in table(hostile / "g.csv")} == {"'=g", "h"}


# -- notebooks -------------------------------------------------------------------------------------------------------


def test_results_are_shown_in_notebooks_with_nothing_that_runs() -> None:
    domain = hb.Categories(["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "c"])
    reports = hb.Reports.from_counts(hb.RandomizedResponse(domain, 1.0), [50, 30, 20])
    shown: list[Any] = [hb.check(reports), hb.band(reports), hb.identify(reports), hb.estimate(reports, "mle")]
    for one in shown:
        text = one._repr_html_()
        assert text.startswith("<table>")
        assert "<script" not in text
        assert "<img" not in text
        assert str(one)  # plain text, too
    assert "&lt;script&gt;" in shown[0]._repr_html_()
    assert "fake users?" in shown[0]._repr_html_()
    assert shown[1]._repr_html_().count("<tr>") == 6  # level, a note, a head and three values
