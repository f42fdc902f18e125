"""The commands that how-to pages show, run on files that hold what the pages say."""

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest

from servers import Server

HOW_TO = Path(__file__).parent.parent / "docs" / "how-to"
ADDRESS = "postgresql://reader@db.example.org/app"

DRINKS = """version = 1
name = "drinks"
[domain]
kind = "categories"
labels = ["tea", "coffee", "water"]
[mechanisms.answer]
kind = "randomized-response"
epsilon = 2.0
"""
CITY = """version = 1
[domain]
kind = "grid"
south = 52.48
west = 13.33
north = 52.54
east = 13.45
columns = 3
rows = 2
[mechanisms.noise]
kind = "planar-laplace"
epsilon = 1.0
"""
FURTHER_TABLES = """
INSERT INTO reports (output) SELECT 'tea' FROM generate_series(1, 50);
CREATE SCHEMA survey;
GRANT USAGE ON SCHEMA survey TO reader;
CREATE TABLE survey.reports (device_id bigint, output text);
INSERT INTO survey.reports SELECT n, 'water' FROM generate_series(1, 50) AS n;
CREATE TABLE answers (answer text, wave integer);
INSERT INTO answers SELECT 'tea', n % 3 FROM generate_series(1, 50) AS n;
GRANT SELECT ON survey.reports, answers TO reader;
"""


def blocks(name: str, language: str) -> list[str]:
    text = (HOW_TO / f"{name}.md").read_text(encoding="utf-8")
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, flags=re.MULTILINE | re.DOTALL)
    return [re.sub(rf"(?m)^{indent}", "", block) for indent, block in found]


def run(script: str, folder: Path, **environment: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603
        ["bash", "-euo", "pipefail", "-c", script],  # noqa: S607
        cwd=folder, env={**os.environ, "PATH": path, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the pages name: answers about drinks."""
    draw = random.Random(1)  # noqa: S311
    answers = draw.choices(["tea", "coffee", "water"], [5, 3, 1], k=240)
    (tmp_path / "study.toml").write_text(DRINKS)
    rows = [
        f"{user},{answer},{'north' if user % 2 else 'south'},{'fm'[user % 3 % 2]},2026-{10 + user % 2}-0{1 + user % 9}"
        for user, answer in enumerate(answers)
    ]
    (tmp_path / "reports.csv").write_text("\n".join(["user,output,region,sex,time", *rows]) + "\n")
    lines = ["device_id,answer", *(f"{user},{answer}" for user, answer in enumerate(answers))]
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.title = "Sheet1"
    for line in lines:
        book.active.append(line.split(","))
    book.save(tmp_path / "answers.xlsx")
    for site, part in {"north": answers[:100], "south": answers[100:]}.items():
        (tmp_path / f"{site}.csv").write_text("\n".join(["output", *part]) + "\n")
    return tmp_path


@pytest.fixture
def city(folder: Path) -> Path:
    """The files that pages about maps name."""
    draw = random.Random(2)  # noqa: S311
    (folder / "study.toml").write_text(CITY)
    places = [(52.48 + 0.06 * draw.random(), 13.33 + 0.12 * draw.random()) for _ in range(60)]
    for head, name in {"lat,lon": "places", "noisy_lat,noisy_lon": "noisy"}.items():
        (folder / f"{name}.csv").write_text("\n".join([head, *(f"{lat},{lon}" for lat, lon in places)]) + "\n")
    (folder / "stops.csv").write_text((folder / "places.csv").read_text())
    sent = [0, 1, 1, 2, 4, 5] * 20
    rows = [f"{output},{'fm'[place % 4 // 2]},2026-{10 + place % 2}-05" for place, output in enumerate(sent)]
    (folder / "reports.csv").write_text("\n".join(["output,sex,time", *rows]) + "\n")
    for month in ("october", "november"):
        (folder / f"{month}.csv").write_text("\n".join(["output", *map(str, sent)]) + "\n")
    ring = [[13.33, 52.48], [13.39, 52.48], [13.39, 52.54], [13.33, 52.54], [13.33, 52.48]]
    feature = {
        "type": "Feature",
        "properties": {"name": "west", "BEZIRK": "west"},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }
    (folder / "districts.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    (folder / "answers.txt").write_text("tea\ncoffee\n")
    return folder


def script(name: str) -> str:
    found = "\n".join(blocks(name, "sh"))
    assert "hubbub " in found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["read-reports", "keep-groups-apart", "merge-tallies"])
def test_commands_about_reports_run(name: str, folder: Path) -> None:
    run(script(name), folder)


@pytest.mark.slow
def test_commands_about_rejected_rows_run(folder: Path) -> None:
    with (folder / "reports.csv").open("a") as file:
        file.write("999,tee,north,f,2026-10-01\n")
    run(script("rejected-rows"), folder)
    assert "out-of-domain" in (folder / "rejects.csv").read_text()
    assert "out-of-domain" in (folder / "week.rejects.csv").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tally"), [("report", "week"), ("dates", "survey")])
def test_commands_about_the_page_run(name: str, tally: str, folder: Path) -> None:
    run(f"hubbub collect study.toml reports.csv -o {tally}.tally.parquet\n{script(name)}", folder)
    assert len((folder / "report.html").read_text()) > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["maps", "new-study", "collect-places"])
def test_commands_about_maps_run(name: str, city: Path) -> None:
    """The second file of places has other names for its columns, as the options of its command say."""
    lines = script(name).replace("places.csv --lat-column", "noisy.csv --lat-column")
    run(lines, city)


@pytest.mark.slow
def test_the_nightly_job_runs_twice_and_old_rows_may_go(folder: Path) -> None:
    database = sqlite3.connect(folder / "app.db")
    with database:
        database.execute("CREATE TABLE reports (arrived TEXT NOT NULL, output TEXT NOT NULL)")
        rows = [(f"2026-11-16 09:{minute:02}:00", "tea") for minute in range(60)]
        database.executemany("INSERT INTO reports VALUES (?, ?)", rows)
    run(script("nightly"), folder, REPORTS="sqlite:///app.db#reports")
    with database:
        database.execute("INSERT INTO reports VALUES ('2026-11-17 09:00:00', 'water')")
        database.execute("DELETE FROM reports WHERE arrived < '2026-11-16 09:30:00'")
    database.close()
    run(script("nightly"), folder, REPORTS="sqlite:///app.db#reports")


@pytest.mark.slow
def test_commands_about_postgresql_run(server: Server, folder: Path) -> None:
    table, cleaning = blocks("nightly", "sql")
    (settings,) = blocks("several-answers", "sql")
    (role,) = blocks("read-postgresql", "sql")
    assert role in table
    server.psql("CREATE DATABASE app")
    server.psql(f"\\connect app\n{table}{FURTHER_TABLES}{cleaning}")
    server.psql(f"CREATE DATABASE settings;\n\\connect settings\n{settings}")
    address = server.address("", "app", "reader").removesuffix("#")
    run(script("read-postgresql").replace(ADDRESS, address), folder)
    run(script("nightly").replace("--lag 10min", ""), folder, REPORTS=f"{address}#reports")
