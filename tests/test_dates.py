"""Dates of reports: the period that they cover, what was known at a time, and when a page was made."""

from __future__ import annotations

import datetime
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hubbub as hb
import terminal
from hubbub.core.errors import HubbubError
from hubbub.intake.counting.dated_source import AsOf
from hubbub.intake.periods import written_times

STUDY = """
version = 1
name = "digits"
[domain]
kind = "integers"
low = 0
high = 3
[mechanisms.noise]
kind = "randomized-response"
epsilon = 2.0
"""
DAYS = [f"2026-11-{day:02}T{hour:02}:00:00" for day in range(1, 11) for hour in (0, 23)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    Path("study.toml").write_text(STUDY)
    rows = [f"{day},{number % 4}\n" for number, day in enumerate(DAYS)]
    Path("reports.csv").write_text("time,output\n" + "".join(rows))
    moment = datetime.datetime(2026, 11, 12, 6, 7, 8, tzinfo=datetime.UTC).timestamp()
    os.utime("reports.csv", (moment, moment))
    return tmp_path


def run(*words: str, code: int = 0) -> Any:
    done = terminal.hubbub(*words, cwd=Path.cwd())
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("2026-11-03", 6),
        ("2026-11-03T22:59", 5),
        ("2026-11-03 23:00:00", 6),
        ("2026-11-03T23:00Z", 6),
        ("2030-01-01", 20),
    ],
)
def test_as_of_leaves_later_rows_out(text: str, known: int) -> None:
    document = json.loads(run("estimate", "study.toml", "reports.csv", "--as-of", text, "--quick", "--json").stdout)
    assert document["users"] == known
    last = DAYS[known - 1].removesuffix("T00:00:00")
    assert document["dates"] == {
        "first": "2026-11-01",
        "last": last,
        "as_of": text,
        "rows_left_out": len(DAYS) - known,
        "sources": [{"name": "reports.csv", "changed": "2026-11-12 06:07 UTC"}],
    }


def test_files_that_are_later_as_a_whole_are_left_out() -> None:
    Path("days").mkdir()
    for day in ("2026-11-01", "2026-11-02"):
        Path(f"days/{day}.csv").write_text(f"time,output\n{day},1\n{day},2\n")
    done = run("estimate", "study.toml", "days", "--as-of", "2026-11-01", "--quick")
    assert "as of: 2026-11-01: what was known then; 2 later rows left out" in done.stdout
    assert "2 rows" in run("estimate", "study.toml", "days/2026-11-02.csv", "--as-of", "2026-11-01", code=1).stderr


def test_rows_without_a_time_are_rejected() -> None:
    with Path("reports.csv").open("a") as file:
        file.write(",1\n17/11/2026,2\n")
    done = run("check", "study.toml", "reports.csv", "--as-of", "2026-11-03", "--json", "--allow-rejects", "2")
    assert json.loads(done.stdout)["rejected"] == 2
    assert "no-time" in run("check", "study.toml", "reports.csv", "--as-of", "2026-11-03", code=1).stderr


@pytest.mark.parametrize("text", ["yesterday", "17.11.2026", "2026-13-01", "2026-11-17T08:30+01:00"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(HubbubError) as caught:
        AsOf.of(text)
    assert (caught.value.where, text in caught.value.got) == ("--as-of", True)


def test_times_are_read_as_they_are_written() -> None:
    texts = ["2026-11-17", "2026-11-17T08:30", "2026-11-17 08:30:00.5+05:00", "2026-11-17T08:30Z", None, "noon"]
    times, faults = written_times(pa.chunked_array([texts]))
    expected = [datetime.datetime(2026, 11, 17, hour, minute) for hour, minute in ((0, 0), (8, 30), (8, 30), (8, 30))]
    seconds = [moment.replace(tzinfo=datetime.UTC).timestamp() for moment in expected]
    assert times[:4].tolist() == [int(1e6 * (second + 0.5 * (row == 2))) for row, second in enumerate(seconds)]
    assert [(row, fault.code) for row, fault in faults] == [(4, "no-time"), (5, "not-a-time")]
    zoned = pa.array([0], pa.timestamp("ms", tz="Asia/Tokyo"))
    assert written_times(pa.chunked_array([zoned]))[0].tolist() == [9 * 3_600_000_000]


def test_a_tally_with_a_watermark_knows_its_period() -> None:
    with sqlite3.connect("reports.db") as database:
        database.execute("CREATE TABLE reports (sent TEXT, output INTEGER)")
        database.executemany("INSERT INTO reports VALUES (?, ?)", [(day, 1) for day in DAYS])
    words = ["collect", "study.toml", "sqlite:///reports.db#reports", "-o", "t.tally.parquet", "--watermark", "sent"]
    document = json.loads(run(*words, "--as-of", "2026-11-04", "--json").stdout)
    assert (document["users"], document["dates"]["last"]) == (8, "2026-11-04T23:00:00")
    assert document["sources"][0]["watermark"] == {
        "column": "sent",
        "value": "2026-11-04T23:00:00",
        "first": "2026-11-01T00:00:00",
        "late": 0,
        "rows_added": 8,
        "rows_left_out": 12,
    }
    document = json.loads(run(*words, "--json").stdout)
    assert document["users"] == len(DAYS)
    assert "counted up to sent = 2026-11-10T23:00:00" in run(*words).stdout
    page = run("report", "t.tally.parquet", "--quick", "--date", "2026-11-17", "-o", "page.html")
    assert "period: 2026-11-01T00:00:00 to 2026-11-10T23:00:00" in page.stdout
    text = Path("page.html").read_text()
    assert 'id="dates"' in text
    assert "2026-11-10T23:00:00" in text
    assert "2026-11-17" in text
    assert "t.tally.parquet, last changed" in text
    assert "--as-of" in run("estimate", "t.tally.parquet", "--as-of", "2026-11-03", code=2).stderr


def test_a_page_is_dated_only_if_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = hb.collect("study.toml", pa.table({"output": [0, 1, 2]}), "t.tally.parquet")
    hb.report(tally, "plain.html", quick=True)
    assert 'id="dates"' not in Path("plain.html").read_text()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    run("report", "t.tally.parquet", "--quick", "-o", "page.html")
    assert "Report made: <bdi>1970-01-02</bdi>" in Path("page.html").read_text()
    assert "--date" in run("report", "t.tally.parquet", "--date", "today", code=2).stderr


def test_days_are_a_period() -> None:
    run("collect", "study.toml", "reports.csv", "--by", "day", "-o", "t.tally.parquet")
    document = json.loads(run("estimate", "t.tally.parquet", "--quick", "--json").stdout)
    assert (document["dates"]["first"], document["dates"]["last"]) == ("2026-11-01", "2026-11-10")


def test_a_tally_by_day_knows_what_was_known() -> None:
    run("collect", "study.toml", "reports.csv", "--by", "day", "-o", "t.tally.parquet")
    run("collect", "study.toml", "reports.csv", "-o", "plain.tally.parquet")
    then = ["--as-of", "2026-11-03", "--quick", "--json", "--method", "mle"]
    tally = json.loads(run("estimate", "t.tally.parquet", *then).stdout)
    rows = json.loads(run("estimate", "study.toml", "reports.csv", *then).stdout)
    assert (tally["users"], tally["estimate"]) == (rows["users"], rows["estimate"])
    dates = tally["dates"]
    assert (dates["first"], dates["last"], dates["rows_left_out"]) == ("2026-11-01", "2026-11-03", 14)
    weeks = json.loads(run("estimate", "t.tally.parquet", "--by", "week", *then).stdout)
    assert [week["users"] for week in weeks["groups"]] == [2, 4]  # 2026-11-01 is a Sunday
    for path, moment, words in (
        ("plain.tally.parquet", "2026-11-03", "--by day"),
        ("t.tally.parquet", "2026-11-03T12:00", "the date alone"),
        ("t.tally.parquet", "soon", "year, month and day"),
    ):
        assert words in run("estimate", path, "--as-of", moment, code=2).stderr
    assert "days after 2026-10-31" in run("check", "t.tally.parquet", "--as-of", "2026-10-31", code=1).stderr


def test_as_of_needs_times() -> None:
    Path("plain.csv").write_text("output\n1\n")
    assert "time" in run("estimate", "study.toml", "plain.csv", "--as-of", "2026-11-03", code=1).stderr
    words = ["collect", "study.toml", "reports.csv", "-o", "t.tally.parquet", "--as-of", "2026-11-03"]
    assert "--watermark" in run(*words, code=2).stderr
    with sqlite3.connect("reports.db") as database:
        database.execute("CREATE TABLE reports AS SELECT 1 AS id, 1 AS output")
    words[2] = "sqlite:///reports.db#reports"
    assert "no times" in run(*words, "--watermark", "id", code=2).stderr
