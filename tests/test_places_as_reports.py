"""Outputs that are places: latitude and longitude, or x and y, in any source, counted as the mechanism remaps them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import stats

import hubbub as hb
from hubbub.client import Client
from hubbub.intake.cluster_tasks import ReadPart, read_part
from hubbub.intake.counting import place_encoder
from hubbub.intake.group_input import read_compared
from hubbub.intake.privatizing.value_positions import ValueReader
from hubbub.intake.sources.column_names import ColumnNames
from hubbub.reports.blocks import Singles
from terminal import hubbub

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

SIDES = {"south": 37.7228, "west": -122.5153, "north": 37.7946, "east": -122.3789}
CITY = hb.Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=6, rows=4)
LAND = hb.Grid(6, 4, CITY.sides, cells=[0, 1, 2, 5, 8, 9, 13, 20, 23], box=CITY.box)
FIELD = hb.Grid(49, 3, cell=(1.0, 0.5))
LEVEL = 1e-4  # of each chi-square test


def study_of(grid: hb.Grid, **more: Any) -> hb.Study:
    return hb.Study(grid, {"noisy": hb.PlanarLaplace(grid, 0.7)}, **more)


def mixed_study() -> hb.Study:
    return hb.Study(
        CITY,
        {
            "laplace": hb.PlanarLaplace(CITY, 0.7),
            "lattice": hb.PlanarGeometric(CITY, 0.7, truncated=False),
            "cell": hb.RandomizedResponse(CITY, 3.0),
        },
    )


def scattered(count: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return places in and around the city, some far away on the same half of the globe."""
    rng = np.random.default_rng(seed)
    lat = rng.uniform(37.70, 37.82, count)
    lon = rng.uniform(-122.55, -122.34, count)
    lat[::97], lon[::89] = rng.uniform(-89, 89, lat[::97].size), rng.uniform(-179, 50, lon[::89].size)
    return lat, lon


def lattice_of(lat: Floats, lon: Floats) -> tuple[Whole, Whole]:
    """Return column and row of each place, by the definition of the box: sides in equal parts."""
    columns = np.floor((lon - SIDES["west"]) * 6 / (SIDES["east"] - SIDES["west"])).astype(np.int64)
    rows = np.floor((lat - SIDES["south"]) * 4 / (SIDES["north"] - SIDES["south"])).astype(np.int64)
    return columns, rows


# -- what a place counts for -----------------------------------------------------------------------------------------


def test_places_outside_belong_to_the_nearest_edge_cell() -> None:
    lat, lon = scattered(5000)
    columns, rows = lattice_of(lat, lon)
    cells = np.clip(rows, 0, 3) * 6 + np.clip(columns, 0, 5)
    study = study_of(CITY)
    read = hb.read_reports(pd.DataFrame({"lat": lat, "lon": lon}), study)
    assert read == hb.Reports.from_outputs(study.mechanisms["noisy"], cells)


def test_places_outside_belong_to_the_nearest_kept_cell_and_ties_to_the_lowest() -> None:
    lat, lon = scattered(3000, seed=1)
    lat[:500], lon[:500] = scattered(500, seed=2)
    steps = np.stack(lattice_of(lat, lon), axis=1)
    kept = np.array(LAND.cells)
    apart = np.abs(steps[:, None, :] - np.stack([kept % 6, kept // 6], axis=1)[None, :, :]) * np.array(LAND.sides)
    distances = np.hypot(apart[..., 0], apart[..., 1])
    nearest = kept[np.argmax(distances <= distances.min(axis=1, keepdims=True) * (1 + 1e-9), axis=1)]
    study = study_of(LAND)
    read = hb.read_reports(pd.DataFrame({"lat": lat, "lon": lon}), study)
    assert read == hb.Reports.from_outputs(study.mechanisms["noisy"], nearest)


def test_untruncated_places_stay_outside() -> None:
    lat, lon = scattered(3000)
    study = hb.Study(CITY, {"lattice": hb.PlanarGeometric(CITY, 0.7, truncated=False)})
    read = hb.read_reports(pd.DataFrame({"lat": lat, "lon": lon}), study)
    assert read == hb.Reports.from_outputs(study.mechanisms["lattice"], np.stack(lattice_of(lat, lon), axis=1))


def test_mechanisms_of_one_source_each_remap_in_their_own_way() -> None:
    lat, lon = scattered(3000)
    columns, rows = lattice_of(lat, lon)
    inside = (columns >= 0) & (columns < 6) & (rows >= 0) & (rows < 4)
    which = np.array(["laplace", "lattice", "cell"])[np.arange(3000) % 3]
    study = mixed_study()
    table = pd.DataFrame({"mechanism": which, "lat": lat, "lon": lon})
    outside = int((~inside & (which == "cell")).sum())
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(table, study)
    assert caught.value.code == "out-of-domain"
    read = hb.read_reports(table, study, allow_rejects=outside)
    outputs = {
        "laplace": np.clip(rows, 0, 3) * 6 + np.clip(columns, 0, 5),
        "lattice": np.stack([columns, rows], axis=1),
        "cell": rows * 6 + columns,
    }
    counted = {"laplace": which == "laplace", "lattice": which == "lattice", "cell": (which == "cell") & inside}
    parts = [hb.Reports.from_outputs(study.mechanisms[name], outputs[name][own]) for name, own in counted.items()]
    assert read == parts[0] + parts[1] + parts[2]


def test_a_place_on_an_edge_is_the_cell_that_privatizing_finds() -> None:
    """A cell holds its southern and western side, and the last row and column their outer side, too."""
    grid = hb.Grid.over(south=0.0, west=0.0, north=3.0, east=4.0, columns=4, rows=3)
    lat, lon = (part.ravel() for part in np.meshgrid([0.0, 0.5, 1.0, 2.0, 3.0], [0.0, 1.0, 1.5, 3.0, 4.0]))
    expected = np.minimum(np.floor(lat), 2) * 4 + np.minimum(np.floor(lon), 3)
    columns = {"lat": pa.chunked_array([lat]), "lon": pa.chunked_array([lon])}
    values = ValueReader(grid).read(columns)
    assert values.tolist() == expected.tolist()
    study = study_of(grid)
    read = hb.read_reports(pa.table(columns), study)
    assert read == hb.Reports.from_outputs(study.mechanisms["noisy"], values)
    just_outside = pa.table({"lat": [np.nextafter(3.0, 4.0)], "lon": [np.nextafter(4.0, 5.0)]})
    lattice = hb.Study(grid, {"lattice": hb.PlanarGeometric(grid, 1.0, truncated=False)})
    pair = hb.Reports.from_outputs(lattice.mechanisms["lattice"], np.array([[4, 3]]))
    assert hb.read_reports(just_outside, lattice) == pair


@pytest.mark.filterwarnings("ignore::hubbub.HubbubWarning")
def test_distances_count_from_the_south_western_corner() -> None:
    study = study_of(FIELD)
    noisy = study.mechanisms["noisy"]
    centres = (FIELD.steps + 0.5) * np.array(FIELD.sides)
    read = hb.read_reports(pd.DataFrame({"x": centres[:, 0], "y": centres[:, 1]}), study)
    assert read == hb.Reports.from_outputs(noisy, FIELD.labels)
    edges = np.arange(50.0)  # 1 / 49 * 49 is below 1 in floats: sides must not be divided before they are multiplied
    read = hb.read_reports(pd.DataFrame({"x": edges, "y": np.zeros(50)}), study)
    assert read == hb.Reports.from_outputs(noisy, np.minimum(np.arange(50), 48))
    on_map = study_of(CITY)
    centres = (CITY.steps + 0.5) * np.array(CITY.sides)
    read = hb.read_reports(pd.DataFrame({"x": centres[:, 0], "y": centres[:, 1]}), on_map)
    assert read == hb.Reports.from_outputs(on_map.mechanisms["noisy"], CITY.labels)


def test_noise_across_the_180th_meridian_stays_on_its_side() -> None:
    grid = hb.Grid.over(south=-18.0, west=179.0, north=-17.0, east=180.0, columns=2, rows=2)
    study = study_of(grid)
    read = hb.read_reports(pd.DataFrame({"lat": [-17.25] * 3, "lon": [-179.9, 180.1, 179.1]}), study)
    assert read == hb.Reports.from_outputs(study.mechanisms["noisy"], [3, 3, 2])


@pytest.mark.parametrize("grid", [CITY, LAND], ids=["all cells", "kept cells"])
def test_raw_continuous_noise_has_the_law_of_the_mechanism(grid: hb.Grid) -> None:
    """Remapping raw noise here is what the mechanism does on the device; without what lies outside it is not.

    One chi-square test at level 1e-4 for each of a corner, an edge cell and a cell in the middle.
    """
    study, rng, users = study_of(grid), np.random.default_rng(7), 20_000
    mechanism = study.mechanisms["noisy"]
    degree = np.radians(6371.0088)  # kilometres
    shrunk = np.cos(np.radians((SIDES["south"] + SIDES["north"]) / 2))
    for cell in (0, 5, 9) if grid is CITY else (0, 5, 9, 23):
        radius, angle = rng.gamma(2.0, 1.0, users) / 0.7, rng.uniform(0.0, 2 * np.pi, users)
        lat = SIDES["south"] + (cell // 6 + 0.5) / 4 * (SIDES["north"] - SIDES["south"])
        lon = SIDES["west"] + (cell % 6 + 0.5) / 6 * (SIDES["east"] - SIDES["west"])
        table = pd.DataFrame(
            {
                "lat": lat + radius * np.sin(angle) / degree,
                "lon": lon + radius * np.cos(angle) / (degree * shrunk),
            }
        )
        law = mechanism.matrix()[int(grid.find(cell))]
        assert fit(hb.read_reports(table, study), law) > LEVEL
        columns, rows = lattice_of(table["lat"].to_numpy(), table["lon"].to_numpy())
        inside = (
            grid.find(np.where((columns >= 0) & (columns < 6) & (rows >= 0) & (rows < 4), rows * 6 + columns, -1)) >= 0
        )
        assert fit(hb.read_reports(table[inside], study), law) < LEVEL


def fit(reports: hb.Reports, law: Floats) -> float:
    """Return the p-value of Pearson's test; cells expected fewer than ten times are joined."""
    counts = np.zeros(law.size)
    [block] = reports.blocks
    assert isinstance(block, Singles)
    counts[block.codes] = block.counts
    expected = law * counts.sum()
    rare = expected < 10
    observed, expected = (np.append(part[~rare], part[rare].sum()) for part in (counts, expected))
    possible = expected > 0
    return float(stats.chisquare(observed[possible], expected[possible]).pvalue)


def test_the_window_of_cells_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    lat, lon = scattered(2000)
    table = pd.DataFrame({"lat": lat, "lon": lon})
    study = hb.Study(CITY, {"lattice": hb.PlanarGeometric(CITY, 0.7, truncated=False)})
    read = hb.read_reports(table, study)
    monkeypatch.setattr(place_encoder, "WINDOW_CELLS", 1)
    monkeypatch.setattr(place_encoder, "BLOCK_ROWS", 7)
    assert hb.read_reports(table, study) == read


# -- where places come from ------------------------------------------------------------------------------------------

SOURCES: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "csv": lambda table, folder: _written(table.to_csv, folder / "r.csv", index=False),
    "tsv": lambda table, folder: _written(table.to_csv, folder / "r.tsv", index=False, sep="\t"),
    "jsonl": lambda table, folder: _written(
        table.to_json, folder / "r.jsonl", orient="records", lines=True, double_precision=15
    ),
    "parquet": lambda table, folder: _written(table.to_parquet, folder / "r.parquet"),
    "arrow": lambda table, folder: _written(table.to_feather, folder / "r.arrow"),
    "polars": lambda table, _: pl.from_pandas(table),
    "texts": lambda table, _: table.astype({"lat": str, "lon": str}),
    "texts in a dictionary": lambda table, _: table.astype(str).astype("category"),
    "decimals": lambda table, _: pa.table(
        {
            name: pa.array([f"{entry:.6f}" for entry in table[name]]).cast(pa.decimal128(12, 6))
            for name in ("lat", "lon")
        }
        | {"user": pa.array(table["user"])}
    ),
    "sqlite": lambda table, folder: _sqlite(table, folder / "r.db"),
    "duckdb": lambda table, folder: _duckdb(table, folder / "r.duckdb"),
}


def _written(write: Callable[..., Any], path: Path, **options: Any) -> Path:
    write(path, **options)
    return path


def _sqlite(table: pd.DataFrame, path: Path) -> str:
    connection = sqlite3.connect(path)
    table.to_sql("r", connection, index=False)
    connection.close()
    return f"sqlite:///{path}#r"


def _duckdb(table: pd.DataFrame, path: Path) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE r AS SELECT * FROM given")
    return f"duckdb:///{path}#r"


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_of_places_gives_the_same_reports(kind: str, tmp_path: Path) -> None:
    lat, lon = (np.round(part, 6) for part in scattered(400))
    table = pd.DataFrame({"lat": lat, "lon": lon, "user": np.arange(400) // 2})
    study = study_of(CITY)
    cells = CITY.locate(lat, lon, outside="nearest")
    noisy = study.mechanisms["noisy"]
    expected = hb.Reports.from_users(
        [(noisy, int(first)), (noisy, int(second))] for first, second in cells.reshape(200, 2)
    )
    assert hb.read_reports(SOURCES[kind](table, tmp_path), study) == expected


def test_a_bad_row_changes_no_other_row(tmp_path: Path) -> None:
    """Coordinates are parsed as floats where all are numbers, and as texts otherwise: both read the same."""
    lines = ["37.75,-122.45", "+37.76,-122.46", " 37.77,-122.47 ", "3.778e1,-122.4", '"37.73","-122.5"']
    study, path = study_of(CITY), tmp_path / "r.csv"
    path.write_text("lat,lon\n" + "\n".join(lines) + "\n")
    read = hb.read_reports(path, study)
    for bad in ("x,-122.45", "nan,-122.45", ",-122.45", "-inf,3"):
        path.write_text("lat,lon\n" + "\n".join([*lines, bad]) + "\n")
        assert hb.read_reports(path, study, allow_rejects=1) == read


def test_groups_and_workers(tmp_path: Path) -> None:
    lat, lon = scattered(300)
    study, cells = study_of(CITY), CITY.locate(lat, lon, outside="nearest")
    noisy = study.mechanisms["noisy"]
    path = tmp_path / "r.csv"
    pd.DataFrame({"lat": lat, "lon": lon, "town": np.arange(300) % 2}).to_csv(path, index=False)
    tally = hb.collect(study, path, tmp_path / "r.tally.parquet", by="town")
    groups = tally.groups("town")
    assert groups["0"] == hb.Reports.from_outputs(noisy, cells[::2])
    assert tally.reports == hb.Reports.from_outputs(noisy, cells)
    part = ReadPart(0, str(path), None, False, ColumnNames(lat="lat", lon="lon"))
    assert read_part(study, part, False, 0, "1GB").reports == tally.reports


# -- which columns ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("Latitude", "lng"), ("LAT", "LON"), ("lat", "long"), ("latitude", "Longitude")])
def test_usual_names_are_read_and_told(names: tuple[str, str]) -> None:
    table = pd.DataFrame({names[0]: [37.75], names[1]: [-122.45]})
    study = study_of(CITY)
    with pytest.warns(hb.HubbubWarning, match=f"{names[0]} and {names[1]} are read as each row's place"):
        read = hb.read_reports(table, study)
    assert read == hb.read_reports(table, study, lat_column=names[0], lon_column=names[1])


@pytest.mark.parametrize(
    ("names", "remedy"),
    [
        (("gps_latitude", "gps_longitude"), "--lat-column gps_latitude --lon-column gps_longitude"),
        (("my lat", "Lng of app"), "--lat-column 'my lat' --lon-column 'Lng of app'"),
        (("Breite", "Länge"), "--lat-column NAME --lon-column NAME"),
    ],
)
def test_places_by_unusual_names_are_told_how_to_be_read(names: tuple[str, str], remedy: str) -> None:
    """Nothing is guessed, but the columns that may hold the places are named."""
    with pytest.raises(hb.HubbubError, match="none of lat and lon") as caught:
        hb.read_reports(pd.DataFrame(dict(zip(names, ([37.75], [-122.45]), strict=True))), study_of(CITY))
    assert remedy in caught.value.remedy
    assert "[columns]" in caught.value.remedy


def test_outputs_come_before_places() -> None:
    table = pd.DataFrame({"output": [3, 4], "lat": [37.75] * 2, "lon": [-122.45] * 2})
    study = study_of(CITY)
    with pytest.warns(hb.HubbubWarning, match="lat, lon are not used"):
        read = hb.read_reports(table, study)
    assert read == hb.Reports.from_outputs(study.mechanisms["noisy"], [3, 4])
    with pytest.warns(hb.HubbubWarning, match="output is not used"):
        read = hb.read_reports(table, study, lat_column="lat", lon_column="lon")
    assert read == hb.Reports.from_outputs(study.mechanisms["noisy"], [CITY.locate(37.75, -122.45)] * 2)


def test_columns_that_contradict_each_other_are_refused() -> None:
    table = pd.DataFrame({"lat": [37.75], "lon": [-122.45], "output": [3]})
    with pytest.raises(hb.SettingError, match="output twice"):
        hb.read_reports(table, study_of(CITY), output_column="output", lat_column="lat", lon_column="lon")
    with pytest.raises(hb.SettingError, match="output twice"):
        hb.read_reports(table, study_of(CITY), lat_column="lat", y_column="output")
    with pytest.raises(hb.IntakeError, match="no place on the map"):
        hb.read_reports(table, study_of(FIELD), lat_column="lat", lon_column="lon")
    digits = hb.Integers(0, 9)
    for study in (
        hb.Study(digits, {"noisy": hb.Geometric(digits, 1.0)}),
        hb.Study(CITY, {"bits": hb.Rappor(CITY, 1.0)}),
    ):
        with pytest.raises(hb.SettingError, match="not places"):
            hb.read_reports(table, study, lat_column="lat", lon_column="lon")


def test_a_few_places_may_lie_anywhere_but_not_nearly_all() -> None:
    lat, lon = np.full(1000, 37.75), np.full(1000, -122.45)
    lat[20:] = -33.9
    study = study_of(CITY)
    assert hb.read_reports(pd.DataFrame({"lat": lat, "lon": lon}), study).users == 1000
    lat[5:] = -33.9
    with pytest.raises(hb.IntakeError, match="far from the study's map"):
        hb.read_reports(pd.DataFrame({"lat": lat, "lon": lon}), study)


def test_strong_noise_is_not_a_wrong_unit() -> None:
    """With epsilon 0.002 per km fewer than 1% of all places are within three diameters, and yet all are the study's."""
    rng = np.random.default_rng(5)
    radius, angle = rng.gamma(2.0, 500.0, 5000) / 111.2, rng.uniform(0, 2 * np.pi, 5000)
    lat, lon = np.clip(37.75 + radius * np.sin(angle), -89, 89), -122.45 + radius * np.cos(angle) / 0.79
    study = hb.Study(CITY, {"noisy": hb.PlanarLaplace(CITY, 0.002)})
    assert hb.read_reports(pd.DataFrame({"lat": lat, "lon": lon}), study).users == 5000


def test_distances_in_metres_are_told() -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"x": rng.uniform(0, 49_000, 50), "y": rng.uniform(0, 1_500, 50)})
    with pytest.raises(hb.IntakeError, match="in metres") as caught:
        hb.read_reports(table, study_of(FIELD))
    assert caught.value.code == "wrong-coordinates"


# -- the study's [columns] ------------------------------------------------------------------------------------------

STUDY = """version = 1
[domain]
kind = "grid"
south = 37.7228
west = -122.5153
north = 37.7946
east = -122.3789
columns = 6
rows = 4
[mechanisms.noisy]
kind = "planar-geometric"
epsilon = 0.7
"""
COLUMNS = """[columns]
user = "device"
lat = "noisy_lat"
lon = "noisy_lon"
time = "sent"
group = "district"
"""
ROWS = "device,noisy_lat,noisy_lon,sent,district\n" + "".join(
    f"{user},{37.73 + 0.005 * (user % 9)},{-122.5 + 0.01 * (user % 7)},2026-11-17,{'ab'[user % 2]}\n"
    for user in range(80)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(STUDY + COLUMNS)
    (tmp_path / "reports.csv").write_text(ROWS)
    return tmp_path


def test_a_study_that_names_its_columns_is_the_same_study(folder: Path) -> None:
    study = hb.read_study(folder / "study.toml")
    (folder / "plain.toml").write_text(STUDY)
    assert study.fingerprint == hb.read_study(folder / "plain.toml").fingerprint
    assert dict(study.columns) == {
        "user": "device", "lat": "noisy_lat", "lon": "noisy_lon", "time": "sent", "group": "district"
    }  # fmt: skip
    assert Client(folder / "study.toml").privatize(3).isdigit()  # devices read the same file


@pytest.mark.filterwarnings("ignore::hubbub.HubbubWarning")
def test_what_the_study_names_needs_no_options(folder: Path) -> None:
    study, path = hb.read_study(folder / "study.toml"), folder / "reports.csv"
    read = hb.read_reports(path, study)
    assert read.users == 80
    assert read == hb.read_reports(
        path, study_of_file(folder), user_column="device", lat_column="noisy_lat", lon_column="noisy_lon"
    )
    tally = hb.collect(study, path, folder / "a.tally.parquet")
    assert tally.summary.by == ("district",)
    assert hb.collect(study, path, folder / "b.tally.parquet", by="week").summary.by == ("week",)
    assert hb.collect(study, path, folder / "c.tally.parquet", by=()).summary.by == ()
    assert list(read_compared([str(folder / "study.toml"), str(path)], ())) == ["a", "b"]
    path.write_text("device,output\n1,3\n2,4\n")
    read = hb.read_reports(path, study, output_column="output")  # an option wins
    assert read == hb.Reports.from_outputs(study.mechanisms["noisy"], [3, 4])


def study_of_file(folder: Path) -> hb.Study:
    (folder / "plain.toml").write_text(STUDY)
    return hb.read_study(folder / "plain.toml")


def test_a_column_that_the_study_names_and_a_source_lacks(folder: Path) -> None:
    (folder / "reports.csv").write_text(ROWS.replace("noisy_lon", "lon", 1))
    with pytest.raises(hb.IntakeError, match="there is no column noisy_lon") as caught:
        hb.read_reports(folder / "reports.csv", folder / "study.toml")
    assert "the study's [columns] names it" in caught.value.remedy
    assert "--lon-column" in caught.value.remedy


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ('usr = "device"', "unknown entry"),
        ("user = 3", "must be a text"),
        ('user = ""', "must be a text"),
        ('user = "a"\ncluster = "a"', "two meanings"),
        ('lat = "a"', "needs lat and lon"),
        ('y = "a"', "needs x and y"),
        ('output = "o"\nlat = "a"\nlon = "b"', "output twice"),
        ('x = "o"\ny = "p"\nlat = "a"\nlon = "b"', "output twice"),
    ],
)
def test_columns_of_a_study_are_checked(columns: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f"{STUDY}[columns]\n{columns}\n")
    with pytest.raises(hb.StudyError, match=what) as caught:
        hb.read_study(path)
    assert "line " in caught.value.where


def test_places_named_for_a_study_without_a_map_are_refused() -> None:
    with pytest.raises(hb.StudyError, match="no map"):
        study_of(FIELD, columns={"lat": "a", "lon": "b"})
    digits = hb.Integers(0, 9)
    with pytest.raises(hb.StudyError, match="no grid"):
        hb.Study(digits, {"noisy": hb.Geometric(digits, 1.0)}, columns={"x": "a", "y": "b"})
    assert study_of(FIELD, columns={"x": "a", "y": "b"}).columns["x"] == "a"


def test_the_terminal_reads_places(folder: Path) -> None:
    collected = hubbub("collect", "study.toml", "reports.csv", "-o", "a.tally.parquet", cwd=folder)
    assert collected.returncode == 0, collected.stderr
    assert "2 groups by district" in collected.stdout
    wrong = hubbub(
        *("estimate", "study.toml", "reports.csv", "--lat-column", "noisy_lon", "--lon-column", "noisy_lat"), cwd=folder
    )
    assert wrong.returncode == 1
    assert "latitude and longitude are swapped" in wrong.stderr
    refused = hubbub("estimate", "a.tally.parquet", "--lat-column", "lat", cwd=folder)
    assert refused.returncode == 2
    assert "--lat-column does not apply to a tally" in refused.stderr


def test_tables_of_other_places_have_other_digests(tmp_path: Path) -> None:
    digests = []
    for place in (37.75, 37.76):
        table = pa.table({"lat": [place], "lon": [-122.45]})
        digests.append(hb.collect(study_of(CITY), table, tmp_path / f"{place}.tally.parquet").sources[0].digest)
    assert len(set(digests)) == 2


def test_places_of_a_parquet_file_on_several_row_groups(tmp_path: Path) -> None:
    lat, lon = scattered(1000)
    path = tmp_path / "r.parquet"
    parquet.write_table(pa.table({"lon": lon.astype(np.float32), "lat": lat}), path, row_group_size=300)
    study = study_of(CITY)
    cells = CITY.locate(lat, lon.astype(np.float32).astype(np.float64), outside="nearest")
    assert hb.read_reports(path, study) == hb.Reports.from_outputs(study.mechanisms["noisy"], cells)
