"""``hubbub trend``: tallies, sources and columns as periods, what is printed and written, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import hubbub as hb
from terminal import hubbub

STUDY = """
version = 1
name = "a survey"
[domain]
kind = "categories"
labels = ["yes", "no"]
[mechanisms.coin]
kind = "randomized-response"
p = 0.75
"""
YES = {"2026-01": 400, "2026-02": 410, "2026-03": 520, "2026-04": 25}  # of 1,000 users; of 50 in the last month
USERS = {"2026-04": 50}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study, all reports with a column for the month, and a file for each month."""
    folder = tmp_path_factory.mktemp("months")
    (folder / "study.toml").write_text(STUDY)
    lines = ["month,output"]
    for month, yes in YES.items():
        outputs = ["yes"] * yes + ["no"] * (USERS.get(month, 1_000) - yes)
        lines += [f"{month},{output}" for output in outputs]
        (folder / f"{month}.csv").write_text("\n".join(["output", *outputs]) + "\n")
        hb.collect(hb.read_study(folder / "study.toml"), folder / f"{month}.csv", folder / f"{month}.tally.parquet")
    (folder / "all.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_tallies_and_a_column_say_what_python_says(folder: Path) -> None:
    tallies = hubbub("trend", *(f"{month}.tally.parquet" for month in YES), "--json", cwd=folder)
    column = hubbub("trend", "study.toml", "all.csv", "--by", "month", "--json", cwd=folder)
    both = [json.loads(run.stdout) for run in (tallies, column)]
    assert both[0] | {"notes": []} == both[1] | {"notes": []}
    python = hb.trend({month: hb.read_tally(folder / f"{month}.tally.parquet").reports for month in YES})
    own = json.loads(python.to_json())
    for name in set(own) - {"periods"}:
        assert both[0][name] == own[name]
    assert [change["after"] for change in own["changes"]] == ["2026-03"]


def test_small_periods_are_joined_and_the_table_is_written(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "trend.csv"
    run = hubbub("trend", "study.toml", "all.csv", "--by", "month", "--min-group", "100", "-o", path, cwd=folder)
    assert "1 period joined to have 100 users or more: 2026-03 to 2026-04" in run.stderr
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["period"] for row in rows[::2]] == ["2026-01", "2026-02", "2026-03 to 2026-04"]


def test_the_page_of_the_terminal_names_the_change(folder: Path, tmp_path: Path) -> None:
    shown = hubbub("trend", "study.toml", *(f"{month}.csv" for month in YES), "--of", "yes", cwd=folder).stdout
    assert "Between 2026-02 and 2026-03 yes became more frequent" in shown
    assert "spends privacy in each" in shown
    assert "changed" in shown


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["2026-01.tally.parquet"], "hubbub trend", 2),
        (["2026-02.tally.parquet", "2026-01.tally.parquet"], "not in the order of time", 2),
        (["study.toml", "all.csv", "--by", "month", "--quantile", "0.5"], "these values have no order", 1),
        (["study.toml", "all.csv", "--by", "month", "--min-group", "5000"], "there are not several periods", 2),
    ],
)
def test_what_cannot_be_followed_is_explained(folder: Path, words: list[str], message: str, code: int) -> None:
    run = hubbub("trend", *words, cwd=folder)
    assert run.returncode == code
    assert message in run.stderr
    assert "remedy:" in run.stderr


def test_the_months_of_a_column_of_times_are_periods(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "all.csv").read_text().splitlines()
    dated = [f"{line[:7]}-{1 + place % 28:02},{line[8:]}" for place, line in enumerate(lines[1:])]
    (tmp_path / "dated.csv").write_text("\n".join(["time,output", *dated]) + "\n")
    hubbub("collect", folder / "study.toml", "dated.csv", "--by", "day", "-o", "days.tally.parquet", cwd=tmp_path)
    runs = [
        hubbub("trend", *words, "--by", "month", "--json", cwd=folder)
        for words in (["study.toml", "all.csv"], [tmp_path / "days.tally.parquet"])
    ]
    documents = [json.loads(run.stdout) for run in runs]
    assert documents[0] | {"notes": []} == documents[1] | {"notes": []}
