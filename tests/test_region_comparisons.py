"""Regions, and other sums with names, wherever groups and periods are compared: Python, terminal, page."""

from __future__ import annotations

import csv
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hubbub as hb
from hubbub.comparison.api import holm
from hubbub.core.progress import finish
from hubbub.intervals.linear_statistic import parse_statistics
from hubbub.reporting.map_regions import map_regions
from hubbub.reporting.verdicts import verdicts_of
from terminal import hubbub

STUDY = """
version = 1
name = "where people are"
[domain]
kind = "grid"
south = 52.48
west = 13.33
north = 52.54
east = 13.45
columns = 4
rows = 2
[mechanisms.noise]
kind = "planar-geometric"
epsilon = 2.0
"""
GRID = hb.Grid.over(south=52.48, west=13.33, north=52.54, east=13.45, columns=4, rows=2)
NOISE = hb.PlanarGeometric(GRID, epsilon=2.0)
# Borders in columns of the grid: the one between the first two regions cuts cells, and the last region lies outside.
BORDERS = {"west": (0.0, 1.5), "midtown, old": (1.5, 3.0), "east": (3.0, 4.0), "far away": (6.0, 7.0)}
WEST, OLD, EAST = list(BORDERS)[:3]
SHARES = {
    "2026-01": [0.35, 0.05, 0.05, 0.05, 0.35, 0.05, 0.05, 0.05],
    "2026-02": [0.35, 0.05, 0.05, 0.05, 0.35, 0.05, 0.05, 0.05],
    "2026-03": [0.15, 0.05, 0.05, 0.25, 0.15, 0.05, 0.05, 0.25],
}


def districts() -> dict[str, object]:
    """Return stripes of the map as GeoJSON."""
    width = (13.45 - 13.33) / 4
    features = []
    for name, (left, right) in BORDERS.items():
        west, east = 13.33 + width * left, 13.33 + width * right
        ring = [[west, 52.47], [east, 52.47], [east, 52.55], [west, 52.55], [west, 52.47]]
        shape = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"name": name}, "geometry": shape})
    return {"type": "FeatureCollection", "features": features}


@pytest.fixture(scope="module")
def regions() -> hb.Regions:
    return hb.regions(GRID, districts())


def outputs() -> dict[str, list[int]]:
    """Return what the users of each month sent."""
    rng = np.random.default_rng(8)
    people = {name: rng.choice(GRID.labels, 500, p=shares) for name, shares in SHARES.items()}
    return {name: NOISE.privatize(own, rng=rng).tolist() for name, own in people.items()}


@pytest.fixture(scope="module")
def months() -> dict[str, hb.Reports]:
    return {name: hb.Reports.from_outputs(NOISE, own) for name, own in outputs().items()}


@pytest.fixture(scope="module")
def pair(months: dict[str, hb.Reports], regions: hb.Regions) -> hb.Comparison:
    return hb.compare(months["2026-02"], months["2026-03"], of=regions, names=("February", "March"))


@pytest.fixture(scope="module")
def trend(months: dict[str, hb.Reports], regions: hb.Regions) -> hb.Trend:
    return hb.trend(months, of=regions)


# -- in Python -----------------------------------------------------------------------------------------------


def test_each_region_has_a_row_as_if_it_had_been_asked_for_alone(
    months: dict[str, hb.Reports], regions: hb.Regions, pair: hb.Comparison
) -> None:
    frame = pair.to_frame()
    assert frame["value"].tolist() == [WEST, OLD, EAST]
    for row in frame.itertuples():
        alone = hb.compare(months["2026-02"], months["2026-03"], of=regions.of(str(row.value))).to_frame().iloc[0]
        assert (row.first, row.second) == pytest.approx((alone["first"], alone["second"]), abs=1e-12)
        assert (row.low, row.high) == pytest.approx((alone["low"], alone["high"]), abs=5e-3)  # other draws of cutoffs
    assert frame["adjusted"].tolist() == holm(frame["p_value"].to_numpy()).tolist()
    assert frame["changed"].tolist() == [True, False, True]


def test_names_are_in_sentences_documents_pictures_and_tables(pair: hb.Comparison) -> None:
    assert pair.kind == "region"
    assert "The share of west is smaller in March than in February: by " in pair.sentence
    assert OLD not in pair.sentence
    document = pair.document()
    assert [row["value"] for row in document["values"]] == [WEST, OLD, EAST]
    assert (document["of"], document["total_variation"]) == ("region", None)
    assert any("far away lies outside the grid" in caveat for caveat in document["caveats"])
    assert [fact.text for fact in pair.facts() if fact.label == "note"] == document["caveats"]
    ticks = [tick.get_text() for tick in pair.plot().get_yticklabels()]
    assert sorted(ticks) == sorted([WEST, OLD, EAST])
    assert f">{OLD}</td>" in pair._repr_html_()
    assert pickle.loads(pickle.dumps(pair)).sentence == pair.sentence  # noqa: S301


def test_regions_that_do_not_differ_are_told_so(months: dict[str, hb.Reports], regions: hb.Regions) -> None:
    same = hb.compare(months["2026-01"], months["2026-01"], of=regions, names=("a", "b"))
    assert same.sentence == "These reports do not show in any of 3 regions that a and b differ."
    elsewhere = replace(same, equality=replace(same.equality, p_value=0.001))
    assert elsewhere.sentence == "a and b differ, but no single region for certain."


@pytest.mark.slow
def test_several_groups_are_compared_in_each_region(months: dict[str, hb.Reports], regions: hb.Regions) -> None:
    answer = hb.compare_groups(months, of=regions, against="2026-01")
    frame = answer.to_frame()
    assert frame["value"].tolist() == [WEST, OLD, EAST] * 3
    weights = regions.weights_over(GRID).toarray()[:3]
    for name, reports in months.items():
        own = frame[frame["group"] == name]["share"].to_numpy()
        assert own == pytest.approx(weights @ hb.estimate(reports).probabilities, abs=1e-12)
    tested = frame.dropna()
    assert tested["adjusted"].tolist() == holm(tested["p_value"].to_numpy()).tolist()
    assert answer.changed.tolist() == [[False] * 3, [False] * 3, [True, False, True]]
    assert (answer.order_of, answer.order[-1].name) == (WEST, "2026-03")
    assert "The share of east is larger in 2026-03 than in 2026-01: by " in answer.sentence
    assert hb.compare_groups(months, of=regions, order_by=3).order_of == GRID.title(3)


@pytest.mark.slow
def test_a_trend_of_regions_has_the_intervals_of_their_shares(
    months: dict[str, hb.Reports], regions: hb.Regions, trend: hb.Trend
) -> None:
    for place, reports in enumerate(months.values()):
        shares = regions.shares(reports)
        for label, name in enumerate([WEST, OLD, EAST]):
            own = (trend.estimate[place, label], trend.low[place, label], trend.high[place, label])
            assert own == pytest.approx((shares[name].estimate, shares[name].low, shares[name].high), abs=1e-12)
    assert (trend.band_low <= trend.low).all()
    assert (trend.band_high >= trend.high).all()
    (change,) = trend.changes
    assert (change.before, change.after, change.changed.tolist()) == ("2026-02", "2026-03", [True, False, True])
    assert "the share of west became smaller: by " in trend.sentence
    assert "The share of east became larger: by " in trend.sentence
    assert trend.to_frame()["value"].tolist() == [WEST, OLD, EAST] * 3
    assert trend.document()["of"] == "region"
    assert "far away lies outside the grid" in trend.note
    legend = trend.plot().get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [WEST, OLD, EAST]


def test_two_sums_are_not_taken_for_two_values_that_say_the_same() -> None:
    answers = hb.RandomizedResponse(hb.Categories(["never", "once", "often"]), epsilon=3.0)
    may, june = (hb.Reports.from_counts(answers, counts) for counts in ([600, 250, 150], [480, 250, 270]))
    sums = {"any": {"once", "often"}, "often": ["often"]}
    answer = hb.compare(may, june, of=sums, names=("May", "June"))
    assert answer.sentence.count("The share of ") == 2
    (change,) = hb.trend({"May": may, "June": june}, of=sums).changes
    assert change.sentence.count("he share of ") == 2
    whole = hb.compare(may, june).to_frame()
    assert answer.to_frame()["difference"].tolist() == pytest.approx(
        [-whole["difference"][0], whole["difference"][2]], abs=1e-12
    )
    ranked = hb.compare_groups({"May": may, "June": june, "July": june}, of=sums)
    assert ranked.to_frame()["value"].tolist() == ["any", "often"] * 3


def test_weighted_sums_with_names_are_numbers() -> None:
    answers = hb.RandomizedResponse(hb.Categories(["never", "once", "often"]), epsilon=3.0)
    may, june = (hb.Reports.from_counts(answers, counts) for counts in ([600, 250, 150], [480, 250, 270]))
    answer = hb.compare(may, june, of={"times": {"once": 1, "often": 5}, "often": ["often"]}, names=("May", "June"))
    assert not answer.is_share
    assert "times is higher in June than in May: by " in answer.sentence


@pytest.mark.parametrize(
    ("of", "told"),
    [
        ({"west": [0, 1], "east": 3}, "named sums must be lists or sets of values"),
        ({1: [0, 1]}, "named sums must be lists or sets of values"),
        ({"west": []}, "the list of values is empty"),
    ],
)
def test_sums_without_values_or_names_are_refused(of: object, told: str) -> None:
    with pytest.raises(hb.SettingError, match=told):
        parse_statistics(GRID, of)


def test_several_sums_are_refused_where_one_is_asked_for(months: dict[str, hb.Reports], regions: hb.Regions) -> None:
    for of in (regions, {"west": [0, 1]}):
        with pytest.raises(hb.SettingError, match="several statistics"):
            hb.interval(months["2026-01"], of)
    other = hb.Reports.from_counts(hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.0), [5, 5])
    with pytest.raises(hb.RegionsError, match="another grid"):
        hb.compare(other, other, of=regions)


@pytest.fixture(scope="module")
def checked(months: dict[str, hb.Reports], regions: hb.Regions) -> hb.Check:
    return hb.check(months["2026-01"], regions=regions, fit=False)


def test_a_check_tells_how_well_regions_are_determined(
    months: dict[str, hb.Reports], regions: hb.Regions, checked: hb.Check
) -> None:
    assert checked.regions is not None
    own = regions.shares(months["2026-01"])
    assert [row.low for row in checked.regions.rows[:3]] == [row.low for row in own.rows[:3]]
    precise = checked.facts()[-1].text
    assert precise == own.precision()
    assert precise.startswith("The largest share of a region, west, is estimated at ")
    with pytest.raises(hb.SettingError, match="do not allow for fakes"):
        hb.check(months["2026-01"], regions=regions, fakes=0.01)
    with pytest.raises(hb.SettingError, match="regions must be what"):
        hb.check(months["2026-01"], regions="districts.geojson")  # type: ignore[arg-type]


# -- at the terminal -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("city")
    (folder / "study.toml").write_text(STUDY)
    (folder / "districts.geojson").write_text(json.dumps(districts()))
    sent = outputs()
    rows = [f"{name},{output}" for name, own in sent.items() for output in own]
    (folder / "all.csv").write_text("\n".join(["month,output", *rows]) + "\n")
    for name, month in (("february", "2026-02"), ("march", "2026-03")):
        (folder / f"{name}.csv").write_text("\n".join(["output", *map(str, sent[month])]) + "\n")
    return folder


def test_compare_prints_and_writes_what_python_has(folder: Path, pair: hb.Comparison) -> None:
    words = ("compare", "study.toml", "february.csv", "march.csv", "--regions", "districts.geojson")
    document = json.loads(hubbub(*words, "--json", "-o", "regions.csv", cwd=folder).stdout)
    assert [row["value"] for row in document["values"]] == [WEST, OLD, EAST]
    assert [row["low"] for row in document["values"]] == pytest.approx(pair.low.tolist(), abs=1e-9)
    with (folder / "regions.csv").open(newline="") as written:
        assert [row["value"] for row in csv.DictReader(written)] == [WEST, OLD, EAST]


def test_groups_and_months_are_shown_by_region(folder: Path) -> None:
    common = ("study.toml", "all.csv", "--by", "month", "--regions", "districts.geojson")
    groups = hubbub("compare", *common, cwd=folder).stdout
    months = hubbub("trend", *common, cwd=folder).stdout
    for shown in (groups, months):
        assert all(name in shown for name in (WEST, OLD, EAST, *SHARES))
        assert "far away lies outside the grid" in " ".join(shown.split())
    assert "*: differs from the others together for certain" in " ".join(groups.split())


def test_check_has_regions_at_the_terminal(folder: Path, regions: hb.Regions, months: dict[str, hb.Reports]) -> None:
    words = ("check", "study.toml", "february.csv", "--regions", "districts.geojson")
    document = json.loads(hubbub(*words, "--json", cwd=folder).stdout)
    own = regions.shares(months["2026-02"])
    assert [row["region"] for row in document["regions"]] == list(BORDERS)
    assert [row["low"] for row in document["regions"][:3]] == pytest.approx([row.low for row in own.rows[:3]], abs=1e-9)
    assert document["verdicts"][-1]["text"] == own.precision()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("compare", "--region-name", "name"), "there are no regions to name"),
        (("trend", "--regions", "districts.geojson", "--of", "3"), "one thing at a time"),
        (("check", "--regions", "districts.geojson", "--fakes", "1%"), "do not allow for fakes"),
    ],
)
def test_options_that_do_not_go_together_are_refused(folder: Path, words: tuple[str, ...], told: str) -> None:
    command, *options = words
    run = hubbub(command, "study.toml", "february.csv", *options, cwd=folder)
    assert run.returncode == 2
    assert told in " ".join(run.stderr.replace("│", " ").split())


# -- on the page ---------------------------------------------------------------------------------------------


def test_the_page_speaks_of_regions_first(
    months: dict[str, hb.Reports], regions: hb.Regions, checked: hb.Check
) -> None:
    reports = months["2026-01"]
    on_map = finish(map_regions(regions, hb.estimate(reports), reports, 0.95, "auto"))
    fakes, precise = verdicts_of(checked, GRID, on_map)[-2:]
    own = regions.shares(reports)
    assert precise.text.startswith(own.precision())
    assert precise.answer == f"± {50 * (own[WEST].high - own[WEST].low):.2g} points"
    assert "the estimated share of one cell, " in fakes.text
    cells = verdicts_of(checked, GRID)[-1]
    assert "region" not in cells.text
