"""Sources that grow, collected again and again: every row is counted once, whatever happens in between."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import datetime
import importlib
import json
import random
import sqlite3
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import crashing
import hubbub as hb
from hubbub.core.errors import HubbubError
from hubbub.intake import api
from hubbub.intake.counting import continued_source, dated_source, partial_source, recent_marks, row_digests
from hubbub.intake.sources import base
from hubbub.intake.sources.mark_types import MarkType
from hubbub.intake.tallies.document_shapes import DamageError
from hubbub.intake.tallies.watermark_documents import read_watermark, watermark_document
from servers import Server

DIGITS = hb.Integers(0, 9)
STUDY = hb.Study(DIGITS, {"noise": hb.RandomizedResponse(DIGITS, 2.0)}, name="digits")
START = datetime.datetime(2026, 11, 17, 8, 30)
Row = tuple[int, int]  # how far it is beyond the start, and its output


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- sources that grow ---------------------------------------------------------------------------------------


def _as(kind: str, step: int) -> Any:
    moment = START + datetime.timedelta(minutes=step)
    return {
        "integer": step,
        "date": (START + datetime.timedelta(days=step)).date(),
        "time": moment,
        "zoned": moment.replace(tzinfo=datetime.UTC),
        "text": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
    }[kind]


class Sqlite:
    """A table of SQLite: whole numbers and texts."""

    kinds = ("integer", "text")
    source = "sqlite:///reports.db#reports"

    def __init__(self, kind: str) -> None:
        self._kind = kind
        with contextlib.closing(sqlite3.connect("reports.db")) as database:
            database.execute("CREATE TABLE reports (sent, output INTEGER)")

    def insert(self, rows: list[Row]) -> None:
        with contextlib.closing(sqlite3.connect("reports.db", isolation_level=None)) as database:
            entries = [(_as(self._kind, step), output) for step, output in rows]
            database.execute("BEGIN")
            database.executemany("INSERT INTO reports VALUES (?, ?)", entries)
            database.execute("COMMIT")

    def execute(self, statement: str) -> None:
        with contextlib.closing(sqlite3.connect("reports.db", isolation_level=None)) as database:
            database.execute(statement)


class Duck:
    """A table of DuckDB."""

    kinds = ("integer", "date", "time", "zoned", "text")
    source = "duckdb:///reports.duckdb#reports"

    def __init__(self, kind: str) -> None:
        self._kind = kind
        types = {"integer": "UINTEGER", "date": "DATE", "time": "TIMESTAMP", "zoned": "TIMESTAMPTZ", "text": "VARCHAR"}
        with duckdb.connect("reports.duckdb") as database:
            database.execute(f"CREATE TABLE reports (sent {types[kind]}, output INTEGER)")

    def insert(self, rows: list[Row]) -> None:
        with duckdb.connect("reports.duckdb") as database:
            entries = {"sent": [_as(self._kind, step) for step, _ in rows], "output": [output for _, output in rows]}
            database.register("entries", pa.table(entries))
            database.execute("INSERT INTO reports SELECT * FROM entries")


class File:
    """A file that grows: rows are appended, or in Parquet a row group is."""

    kinds: tuple[str, ...] = ("integer", "date", "time", "zoned", "text")

    def __init__(self, kind: str) -> None:
        self._kind, self._rows = kind, list[list[Row]]()

    def _tables(self) -> list[pa.Table]:
        return [
            pa.table({"sent": [_as(self._kind, step) for step, _ in rows], "output": [output for _, output in rows]})
            for rows in self._rows
        ]


class Parquet(File):
    source = "reports.parquet"

    def insert(self, rows: list[Row]) -> None:
        self._rows.append(rows)
        tables = self._tables()
        with pq.ParquetWriter(self.source, tables[0].schema) as writer:
            for table in tables:
                writer.write_table(table)


class Csv(File):
    kinds = ("integer", "text")
    source = "reports.csv"

    def insert(self, rows: list[Row]) -> None:
        is_new = not Path(self.source).exists()
        with Path(self.source).open("a", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([("sent", "output")] if is_new else [])
            writer.writerows([(_as(self._kind, step), output) for step, output in rows])


class Lines(File):
    kinds = ("integer", "text")
    source = "reports.jsonl"

    def insert(self, rows: list[Row]) -> None:
        with Path(self.source).open("a") as file:
            for step, output in rows:
                file.write(json.dumps({"sent": _as(self._kind, step), "output": output}) + "\n")


SOURCES: list[Any] = [Sqlite, Duck, Parquet, Csv, Lines]


def collected(source: object, name: str = "t", **options: Any) -> hb.Tally:
    """Collect, without a word about columns that are not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hb.HubbubWarning)
        return hb.collect(STUDY, source, f"{name}.tally.parquet", **{"watermark": "sent", **options})


def counts(tally: hb.Tally) -> Counter[int]:
    """Return how often each output was counted, as another reader of Parquet sees it."""
    rows = pq.read_table(tally.path, columns=["output", "users"]).to_pylist()
    return Counter({int(row["output"]): row["users"] for row in rows if row["output"] is not None})


def outputs(*parts: list[Row]) -> Counter[int]:
    return Counter(output for rows in parts for _, output in rows)


def refused(code: str, call: Callable[[], object]) -> HubbubError:
    with pytest.raises(HubbubError) as caught:
        call()
    error = caught.value
    assert error.code == code, error
    assert all(part.strip() for part in (error.what, error.where, error.got, error.expected, error.remedy))
    return error


def mark_of(tally: hb.Tally) -> Any:
    (source,) = tally.sources
    assert source.mark is not None
    return source.mark


# -- exactly once ----------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("growing", "kind"), [(each, kind) for each in SOURCES for kind in each.kinds])
def test_what_has_come_since_is_counted_once(growing: Any, kind: str) -> None:
    source = growing(kind)
    first = [(step, step % 10) for step in range(1, 30)]
    ties = [(29, 9), (29, 4), (29, 4)]  # one like a row that was counted, and twice the same
    more = [(30, 1), (40, 2)]
    source.insert(first)
    assert counts(collected(source.source)) == outputs(first)
    assert counts(collected(source.source)) == outputs(first)
    source.insert(ties)
    assert counts(collected(source.source)) == outputs(first, ties)
    source.insert(more)
    tally = collected(source.source)
    assert counts(tally) == outputs(first, ties, more)
    assert (tally.rows, len(tally.sources), tally.sources[0].rows) == (34, 1, 34)
    assert mark_of(tally).type.kind == {"zoned": "time"}.get(kind, kind)
    at_once = collected(source.source, "once")
    assert at_once.path.read_bytes() == tally.path.read_bytes()


def test_rows_are_not_read_again() -> None:
    """The database gets the mark, and row groups of Parquet that end before it are skipped."""
    for source in (Sqlite("text"), Duck("zoned"), Parquet("time")):
        name, read, take = type(source).__name__, list[int](), continued_source._RunState.take

        def watched(self: Any, rows: Any, keep: Any, take: Any = take, read: Any = read) -> Any:
            read.append(rows.parsed)
            return take(self, rows, keep)

        source.insert([(step, 1) for step in range(500)])
        source.insert([(step, 1) for step in range(500, 520)])
        collected(source.source, name)
        source.insert([(step, 2) for step in range(519, 525)])
        with mock.patch.object(continued_source._RunState, "take", watched):
            tally = collected(source.source, name)
        assert sum(read) == (20 + 6 if isinstance(source, Parquet) else 1 + 6)
        assert counts(tally) == {1: 520, 2: 6}


# -- late rows -------------------------------------------------------------------------------------------------


def test_late_rows_are_told_and_counted_on_request() -> None:
    source = Sqlite("integer")
    source.insert([(step, 1) for step in range(100)])
    collected(source.source, late_window=10)
    source.insert([(95, 2), (95, 2), (50, 3), (99, 4), (100, 5)])
    told = collected(source.source, late_window=10)
    assert counts(told) == {1: 100, 4: 1, 5: 1}  # at the mark and beyond
    assert (mark_of(told).waiting, mark_of(told).missed, mark_of(told).late) == (2, 1, 3)
    (note,) = [note for note in told.summary.notes if "late" in note]
    for word in ("3 rows", "sent", "99", "not counted", "--late count", "the 2 in the window", "1 of them"):
        assert word in note
    counted = collected(source.source, late_window=10, late="count")
    assert counts(counted) == {1: 100, 2: 2, 4: 1, 5: 1}
    assert (mark_of(counted).waiting, mark_of(counted).missed) == (0, 1)
    assert any("2 rows arrived late, and were counted" in note for note in counted.summary.notes)
    again = collected(source.source, late_window=10, late="count")
    assert counts(again) == counts(counted)
    source.insert([(95, 2)])
    ignored = collected(source.source, late_window=10, late="ignore")
    assert counts(ignored) == counts(counted)
    assert not any("late" in note for note in ignored.summary.notes)
    assert counts(collected(source.source, late_window=10, late="count")) == {1: 100, 2: 3, 4: 1, 5: 1}


def test_late_rows_are_told_once_as_new() -> None:
    source = Sqlite("integer")
    source.insert([(step, 1) for step in range(10)])
    collected(source.source)
    source.insert([(3, 1)])
    assert "since the last run" not in collected(source.source).summary.notes[-1]
    source.insert([(4, 1), (5, 1)])
    assert "3 rows" in (note := collected(source.source).summary.notes[-1])
    assert "2 of them since the last run" in note


def test_rows_that_are_gone_are_told_once() -> None:
    source = Sqlite("integer")
    source.insert([(step, 1) for step in range(10)])
    collected(source.source, late_window=2)
    source.execute("DELETE FROM reports WHERE sent < 3")
    tally = collected(source.source, late_window=2)
    assert "3 rows that were counted before are no longer there" in tally.summary.notes[-1]
    assert counts(tally) == {1: 10}
    assert not any("no longer" in note for note in collected(source.source, late_window=2).summary.notes)


def test_a_row_at_the_mark_that_changed_is_not_counted_twice() -> None:
    source = Sqlite("integer")
    source.insert([(step, 1) for step in range(10)])
    collected(source.source)
    source.execute("UPDATE reports SET output = 2 WHERE sent = 9")
    error = refused("rows-changed", lambda: collected(source.source))
    assert "--late count" in error.remedy
    source.insert([(12, 3)])  # the mark moves on, which changes nothing
    refused("rows-changed", lambda: collected(source.source))
    source.execute("UPDATE reports SET output = 1 WHERE sent = 9")
    assert counts(collected(source.source)) == {1: 10, 3: 1}


def test_a_lag_leaves_the_newest_rows_for_the_next_run() -> None:
    source = Duck("time")
    source.insert([(step, 1) for step in range(30)])
    tally = collected(source.source, lag="10min")
    assert counts(tally) == {1: 20}
    assert not mark_of(tally).digests  # rows that have all arrived need not be recognised
    source.insert([(15, 2), (25, 3), (40, 4)])
    tally = collected(source.source, lag="10min")
    assert counts(tally) == {1: 30, 3: 1}
    assert mark_of(tally).missed == 1
    assert counts(collected(source.source, lag="0s")) == {1: 30, 3: 1, 4: 1}


# -- what cannot be read ---------------------------------------------------------------------------------------


def test_rows_without_a_mark_are_rejected_once() -> None:
    source = Sqlite("integer")
    source.insert([(1, 1), (2, 1)])
    source.execute("INSERT INTO reports VALUES (NULL, 1)")
    error = refused("no-mark", lambda: collected(source.source))
    assert "sent" in error.where
    assert collected(source.source, allow_rejects=1).rejected == {"no-mark": 1}
    source.insert([(3, 1)])
    tally = collected(source.source)  # the old one is not rejected again
    assert (dict(tally.rejected), counts(tally), tally.rows) == ({"no-mark": 1}, {1: 3}, 4)
    source.execute("INSERT INTO reports VALUES (NULL, 1), (NULL, 2)")
    assert collected(source.source, allow_rejects=2).rejected == {"no-mark": 3}


@pytest.mark.parametrize("options", [{}, {"lag": "0s"}, {"late_window": "1h"}], ids=["plain", "lag", "window"])
@pytest.mark.parametrize("kind", [Sqlite, Duck])
def test_a_rejected_row_of_a_database_is_told_by_its_number_in_the_run_and_its_mark(
    kind: type[Sqlite] | type[Duck], options: dict[str, Any]
) -> None:
    """Rows at the mark, and in the window, are read again in each run: they have no number."""
    source = kind("text")
    source.insert([(1, 1), (2, 99), (3, 1)])
    shown = f"{source.source}, row 2 (sent = {_as('text', 2)}), column output, mechanism noise"
    assert refused("out-of-domain", lambda: collected(source.source, **options)).where == shown
    collected(source.source, allow_rejects=1, **options)
    source.insert([(4, 1), (5, 2), (6, 99)])
    shown = f"{source.source}, row 3 (sent = {_as('text', 6)}), column output, mechanism noise"
    assert refused("out-of-domain", lambda: collected(source.source, **options)).where == shown
    listed = [*csv.DictReader(Path("t.rejects.csv").read_text().splitlines())]
    assert [(row["line"], row["watermark"], row["code"]) for row in listed] == [("3", _as("text", 6), "out-of-domain")]


def test_rows_of_a_file_keep_their_lines_and_rows_without_a_mark_their_numbers() -> None:
    source = Csv("integer")
    source.insert([(1, 1), (2, 1)])
    collected(source.source)
    source.insert([(3, 1), (4, 99)])
    error = refused("out-of-domain", lambda: collected(source.source))
    assert error.where == f"{source.source}, line 5 (sent = 4), column output, mechanism noise"
    table = Sqlite("integer")
    table.insert([(1, 1), (2, 1)])
    collected(table.source, "other")
    table.execute("INSERT INTO reports VALUES (3, 1), (NULL, 1), (4, 99)")
    refused("rejected-rows", lambda: collected(table.source, "other"))
    listed = [*csv.DictReader(Path("other.rejects.csv").read_text().splitlines())]
    assert [(row["line"], row["watermark"], row["code"]) for row in listed] == [
        ("2", "", "no-mark"),
        ("3", "4", "out-of-domain"),
    ]


def test_marks_of_old_batches_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_marks, "MAX_ROWS", 10)
    marks, kind = recent_marks.RecentMarks(), MarkType("integer")
    for first in range(0, 60, 5):
        marks.put(np.arange(first, first + 5), 100 + np.arange(first, first + 5), kind)
    assert [marks.text(place) for place in (39, 40, 59, 60)] == [None, "140", "159", None]


def test_lines_that_cannot_be_read_are_rejected_once() -> None:
    source = Csv("integer")
    source.insert([(1, 1), (2, 1)])
    with Path(source.source).open("a") as file:
        file.write("3,1,1\n")
    assert collected(source.source, allow_rejects=1).rejected == {"too-many-fields": 1}
    source.insert([(4, 1), (5, 11)])
    assert collected(source.source, allow_rejects=1).rejected == {"too-many-fields": 1, "out-of-domain": 1}
    tally = collected(source.source)
    assert (dict(tally.rejected), counts(tally)) == ({"too-many-fields": 1, "out-of-domain": 1}, {1: 3})


@pytest.mark.parametrize(
    ("column", "entries", "code", "words"),
    [
        ("TEXT", ["'9'", "'10'"], "not-a-mark", "10 sorts before 9"),
        ("TEXT", ["'17.11.2026'"], "not-a-mark", "17.11.2026"),
        ("TEXT", ["'2026-11-17 08:30'", "'2026-11-17 08:30:10'"], "not-a-mark", "0000-00-00 00:00:00"),
        ("TEXT", ["'2026-13-17'"], "not-a-mark", "13"),
        ("REAL", ["1.5"], "wrong-type", "double"),
        ("BLOB", ["x'01'"], "wrong-type", "binary"),
        ("", ["1", "'2026-11-17'"], "not-a-mark", "1"),
    ],
)
def test_entries_that_do_not_sort(column: str, entries: list[str], code: str, words: str) -> None:
    with contextlib.closing(sqlite3.connect("reports.db", isolation_level=None)) as database:
        database.execute(f"CREATE TABLE reports (sent {column}, output INTEGER)")
        for entry in entries:
            database.execute(f"INSERT INTO reports VALUES ({entry}, 1)")  # noqa: S608
    error = refused(code, lambda: collected(Sqlite.source))
    assert words in error.got
    assert not Path("t.tally.parquet").exists()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE reports SET sent = sent - 5", "mark-moved-back"),
        ("DELETE FROM reports", "mark-moved-back"),
        ("UPDATE reports SET sent = '2026-11-17'", "other-mark"),
        ("ALTER TABLE reports RENAME COLUMN sent TO written", "no-column"),
        ("ALTER TABLE reports ADD COLUMN mechanism DEFAULT 'noise'", "other-mark"),
    ],
)
def test_a_source_that_is_not_what_it_was(change: str, code: str) -> None:
    source = Sqlite("integer")
    source.insert([(step, 1) for step in range(10)])
    old = collected(source.source).path.read_bytes()
    source.execute(change)
    refused(code, lambda: collected(source.source))
    assert Path("t.tally.parquet").read_bytes() == old


def test_the_watermark_stays_the_same() -> None:
    source = Csv("integer")
    source.insert([(1, 1), (2, 1)])
    collected(source.source)
    collected(source.source, watermark=None)  # nothing new in it
    source.insert([(3, 1)])
    assert "--watermark sent" in refused("other-mark", lambda: collected(source.source, watermark=None)).remedy
    refused("other-mark", lambda: collected(source.source, watermark="output2"))
    table = Sqlite("integer")
    table.insert([(1, 1)])
    collected(table.source, "plain", watermark=None)
    refused("other-mark", lambda: collected(table.source, "plain"))


def test_settings_that_mean_nothing() -> None:
    source = Sqlite("integer")
    source.insert([(1, 1)])
    frame = pa.table({"sent": [1], "output": [1]})
    for options, where in (
        ({"watermark": None, "lag": 1}, "--lag"),
        ({"watermark": None, "late": "count"}, "--late"),
        ({"watermark": ""}, "--watermark"),
        ({"watermark": "output"}, "--watermark"),
        ({"late": "often"}, "--late"),
        ({"late_window": 2.5}, "--late-window"),
        ({"late_window": "2d"}, "--late-window"),
        ({"lag": "soon"}, "--lag"),
        ({"cluster": "tcp://localhost:1"}, "collect(watermark=, cluster=)"),
    ):
        assert refused("", partial(collected, source.source, **options)).where == where
    assert refused("", lambda: collected(frame)).where == "collect(watermark=)"
    assert not Path("t.tally.parquet").exists()


def test_the_study_may_name_the_watermark() -> None:
    study = dataclasses.replace(STUDY, columns={"watermark": "sent", "time": "sent"})
    source = Sqlite("integer")
    source.insert([(1, 1), (2, 2)])
    for rows, users in (([], 2), ([(3, 3)], 3)):
        source.insert(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("error", hb.HubbubWarning)  # nothing is said of a column that is not used
            assert hb.collect(study, source.source, "t.tally.parquet").users == users
            assert hb.read_reports(source.source, study).users == users
    frame = pa.table({"output": [1]})
    assert hb.collect(study, frame, "frame.tally.parquet", watermark=False).users == 1
    Path("plain.csv").write_text("output\n1\n")
    assert "[columns]" in refused("no-column", lambda: hb.collect(study, "plain.csv", "p.tally.parquet")).remedy


def test_what_is_left_for_a_later_run_is_told() -> None:
    Path("days").mkdir()
    for name, rows in (("1", [(1, 1), (2, 2)]), ("2", [(8, 3), (9, 1)]), ("3", [(20, 1)])):
        lines = [f"{step},{output}" for step, output in rows]
        Path(f"days/{name}.csv").write_text("\n".join(["sent,output", *lines]) + "\n")
    with pytest.warns(hb.HubbubWarning, match=r"3\.csv: 1 row, all left for a later run"):
        tally = hb.collect(STUDY, "days", "t.tally.parquet", watermark="sent", lag=1)
    assert [(source.added, source.left_out) for source in tally.sources] == [(1, 1), (1, 1)]
    tally = collected("days")
    assert tally.users == 5
    assert sorted((source.added, source.left_out) for source in tally.sources) == [(1, 0), (1, 0), (1, 0)]
    table = Sqlite("integer")
    table.insert([(step, 1) for step in range(10)])
    tally = collected(table.source, "table", lag=3)
    assert [(source.added, source.left_out) for source in tally.sources] == [(7, 3)]
    assert "10 rows" in refused("no-reports", lambda: collected(table.source, "none", lag=100)).got


def test_a_changed_row_that_is_counted_as_late_is_told() -> None:
    source = Sqlite("integer")
    source.insert([(step, 1) for step in range(10)])
    options: dict[str, Any] = {"watermark": "sent", "late_window": 5, "late": "count"}
    collected(source.source, **options)
    with contextlib.closing(sqlite3.connect("reports.db", isolation_level=None)) as database:
        database.execute("UPDATE reports SET output = 2 WHERE sent = 7")
        database.execute("DELETE FROM reports WHERE sent = 6")
        database.execute("INSERT INTO reports VALUES (8, 3)")
    tally = collected(source.source, **options)
    assert tally.users == 12
    notes = "\n".join(tally.summary.notes)
    assert "1 row was counted in whose place" in notes
    assert "2 rows that were counted before are no longer there" in notes


def test_rows_without_any_mark_do_not_hide_the_source() -> None:
    Path("reports.csv").write_text("sent,output\n,1\n")
    refused("not-a-mark", lambda: collected("reports.csv", allow_rejects=1))
    Path("reports.csv").write_text("sent,output\n,1\n1,1\n")
    assert collected("reports.csv", allow_rejects=1).users == 1


def test_as_of_cannot_go_back() -> None:
    source = Csv("text")
    source.insert([(step, 1) for step in range(5)])
    collected(source.source, as_of="2026-11-17T08:33")
    assert refused("", lambda: collected(source.source, as_of="2026-11-17T08:32")).where == "--as-of"
    assert collected(source.source, as_of="2026-11-17T08:33").users == 4


@pytest.mark.parametrize("kind", [continued_source.ContinuedSource, dated_source.DatedSource])
def test_a_source_with_rows_left_out_is_the_source_in_all_else(kind: type[partial_source.PartialSource]) -> None:
    own = {"rows", "digest", "snapshot"}  # of the rows that are left
    names = {name for name in vars(base.Source) if not name.startswith("_")} - own
    assert names - {"is_addressed", "is_typed", "done", "columns", "column_remedy", "unit"} <= set(
        vars(partial_source.PartialSource)
    )
    told = {"mark_at", "where"} if kind is continued_source.ContinuedSource else set()  # with the row's watermark
    assert set(vars(kind)) & names == told


# -- users, groups, other sources --------------------------------------------------------------------------------


def test_rows_that_name_their_users_need_a_key() -> None:
    Path("users.key").write_text("a key that nobody can guess")
    source = Sqlite("integer")
    source.execute('ALTER TABLE reports ADD COLUMN "user"')
    source.execute("INSERT INTO reports VALUES (1, 1, 'ann'), (2, 2, 'ben')")
    assert "--users-key" in refused("", lambda: collected(source.source)).remedy
    collected(source.source, users_key="users.key")
    source.execute("INSERT INTO reports VALUES (2, 2, 'cem'), (3, 3, 'ann')")
    refused("user-counted-before", lambda: collected(source.source, users_key="users.key"))
    tally = collected(source.source, users_key="users.key", allow_rejects=1)
    assert (counts(tally), dict(tally.rejected)) == ({1: 1, 2: 2}, {"user-counted-before": 1})
    assert dict(collected(source.source, users_key="users.key").rejected) == {"user-counted-before": 1}
    text = pq.read_metadata("t.tally.parquet").metadata[b"hubbub"]
    assert b"ann" not in text
    lagging = collected(source.source, "lagging", lag=1, users_complete=True)
    assert not mark_of(lagging).digests


def test_digests_need_the_key() -> None:
    """What is remembered of a row under one key cannot be recomputed under another."""
    columns = {"output": pa.chunked_array([[1]])}
    one, two = (row_digests.RowDigester(key, "salt") for key in (b"first", b"second"))
    rows = np.array([0])
    assert one.digests(rows, columns, rows)[0] == one.digests(rows, columns, rows)[0]
    assert one.digests(rows, columns, rows)[0] != two.digests(rows, columns, rows)[0]


def test_groups_grow_as_well() -> None:
    source = Sqlite("text")
    source.insert([(0, 1), (60 * 16, 2)])
    by_day = {"by": "day", "time_column": "sent"}
    collected(source.source, **by_day)
    source.insert([(60 * 16, 3), (60 * 40, 4)])
    tally = collected(source.source, **by_day)
    users = {group.entries: group.users for group in tally.summary.groups}
    assert users == {("2026-11-17",): 1, ("2026-11-18",): 2, ("2026-11-19",): 1}


def test_sources_that_may_share_rows_are_refused() -> None:
    source = Sqlite("integer")
    source.insert([(step, 1) for step in range(5)])
    source.execute("CREATE TABLE others AS SELECT * FROM reports")
    query = "sqlite:///reports.db#SELECT * FROM reports WHERE output = 1"
    refused("overlapping-sources", lambda: collected([source.source, query]))
    collected(source.source)
    error = refused("overlapping-sources", lambda: collected(query))
    assert "both read the table reports" in error.got
    refused("overlapping-sources", lambda: collected(query, watermark=None))
    refused("overlapping-sources", lambda: collected("sqlite:///reports.db#SELECT nonsense FRM reports"))
    tally = collected("sqlite:///reports.db#others")
    assert (counts(tally), len(tally.sources)) == ({1: 10}, 2)
    assert counts(collected([source.source, "sqlite:///reports.db#others"])) == {1: 10}


def test_a_growing_file_under_another_name_is_recognised() -> None:
    source = Csv("integer")
    source.insert([(1, 1), (2, 1)])
    collected(source.source)
    source.insert([(3, 1)])
    Path("copy.csv").write_bytes(Path(source.source).read_bytes())
    assert "reports.csv" in refused("overlapping-sources", lambda: collected("copy.csv")).got
    Path("link.csv").symlink_to(source.source)
    assert counts(collected("link.csv")) == {1: 3}


def test_marks_are_merged_along() -> None:
    first, second = Sqlite("integer"), Csv("integer")
    first.insert([(1, 1)])
    second.insert([(1, 2)])
    collected(first.source, "a")
    collected(second.source, "b")
    hb.merge(["a.tally.parquet", "b.tally.parquet"], "all.tally.parquet")
    first.insert([(2, 3)])
    second.insert([(2, 4)])
    assert counts(collected([first.source, second.source], "all")) == {1: 1, 2: 1, 3: 1, 4: 1}
    for name, source in (("a", first.source), ("b", second.source)):
        collected(source, name)
        parts = [f"{name}.tally.parquet", "all.tally.parquet"]
        refused("counted-twice", partial(hb.merge, parts, "x.tally.parquet"))
    plain = hb.collect(STUDY, pa.table({"output": [1]}), "plain.tally.parquet")
    assert b"watermark" not in pq.read_metadata(plain.path).metadata[b"hubbub"]


# -- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("value", "1e3"),
        ("value", "-5"),
        ("since", "x"),
        ("type", "float"),
        ("form", "us"),
        ("rows", "AAAA"),
        ("rows", 7),
        ("columns", []),
        ("missed", -1),
        ("open", 0),
        ("before", "1"),
    ],
)
def test_a_damaged_mark_is_refused(entry: str, value: object) -> None:
    source = Sqlite("integer")
    source.insert([(step, 1) for step in range(5)])
    document = watermark_document(mark_of(collected(source.source, late_window=2)))
    assert watermark_document(read_watermark(document)) == document
    with pytest.raises(DamageError):
        read_watermark({**document, entry: value})


# -- schedules -----------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), min_size=1, max_size=5),  # rows, in any order
        st.sampled_from(["tell", "count", "crash"]),
    ),
    min_size=2,
    max_size=8,
)


class Model:
    """What should be counted, with rows known by their numbers rather than by what they hold."""

    def __init__(self, window: int) -> None:
        self.rows: list[Row] = []
        self.counted: set[int] = set()
        self.mark: int | None = None
        self.since = -1
        self._window = window

    def collect(self, late: str) -> None:
        for number, (key, _) in enumerate(self.rows):
            is_late = self.mark is not None and key < self.mark
            if number not in self.counted and (not is_late or (late == "count" and key >= self.since)):
                self.counted.add(number)
        self.mark = max(self.rows[number][0] for number in self.counted)
        self.since = max(self.since, self.mark - self._window)

    @property
    def late(self) -> int:
        assert self.mark is not None
        return sum(key <= self.mark for number, (key, _) in enumerate(self.rows) if number not in self.counted)


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, window=st.sampled_from([0, 3]))
def test_any_schedule_counts_every_row_once(steps: list[Any], window: int) -> None:
    for path in Path().iterdir():
        path.unlink()
    source, model = Sqlite("integer"), Model(window)
    for step in [*steps, "count"]:
        if isinstance(step, list):
            source.insert(step)
            model.rows += step
        elif not model.rows:
            continue
        elif step == "crash":
            with mock.patch.object(api, "write_tally", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
                collected(source.source, late_window=window)
        else:
            model.collect(step)
            tally = collected(source.source, late_window=window, late=step)
            assert counts(tally) == outputs([model.rows[number] for number in model.counted])
            assert mark_of(tally).late == model.late
            assert mark_of(tally).key == model.mark


def test_a_kill_at_any_moment_counts_every_row_once(tmp_path: Path) -> None:
    grown = crashing.Grown.in_folder(tmp_path / "grown", 300)
    steps = crashing.steps_of(grown)
    last = max(number for number, step in enumerate(steps, 1) if step == "write tally")
    kills = [crashing.Kill(last, "middle"), crashing.Kill(last + 1, "before"), crashing.Kill(len(steps), "after")]
    outcomes = crashing.kill_at(grown, kills)
    assert outcomes.wrong == []
    assert outcomes.left["old"] >= 1
    assert outcomes.left["new"] >= 1


# -- a server that grows while it is read ------------------------------------------------------------------------


dbapi: Any = importlib.import_module("adbc_driver_postgresql.dbapi")  # without types


GROWN_SIZES = 6  # at which the table is seen


def _fill(server: Server, statement: str, enough: threading.Event, errors: list[BaseException]) -> None:
    """Insert rows until somebody has seen enough of them."""
    draw = random.Random(5)  # noqa: S311
    try:
        with dbapi.connect(server.address("x").partition("#")[0]) as connection, connection.cursor() as cursor:
            while not enough.is_set():
                cursor.execute(statement.format(draw.randrange(1, 40)))
                connection.commit()
    except BaseException as error:
        errors.append(error)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("column", "kind"),
    [("id", "integer"), ("arrived", "time"), ("zoned", "time"), ("day", "date"), ("stamp", "text")],
)
def test_a_table_that_grows_while_it_is_read(server: Server, column: str, kind: str) -> None:
    table = f"growing_{column}"
    server.psql(
        f"CREATE TABLE {table} (id bigserial, arrived timestamp DEFAULT clock_timestamp(), zoned timestamptz DEFAULT "
        "clock_timestamp(), day date DEFAULT current_date, stamp varchar(19) DEFAULT to_char(clock_timestamp(), "
        f"'YYYY-MM-DD HH24:MI:SS'), output int); CREATE INDEX ON {table} ({column})"
    )
    enough, errors = threading.Event(), list[BaseException]()
    statement = f"INSERT INTO {table} (output) SELECT n % 10 FROM generate_series(1, {{}}) AS n"  # noqa: S608
    writer = threading.Thread(target=_fill, args=(server, statement, enough, errors))
    query = f"SELECT {column} AS sent, output FROM {table}"  # noqa: S608
    writer.start()
    sizes: set[int] = set()
    try:
        while len(sizes) < GROWN_SIZES and writer.is_alive():
            with contextlib.suppress(hb.ReportsError):  # nothing there yet
                sizes.add(collected(server.address(query)).users)
    finally:
        enough.set()
        writer.join()
    tally = collected(server.address(query))
    assert errors == []
    assert mark_of(tally).type.kind == kind
    assert len(sizes) == GROWN_SIZES  # it did grow meanwhile
    expected = server.psql(f"SELECT output || ' ' || count(*) FROM {table} GROUP BY output")  # noqa: S608
    rows = [line.split() for line in expected.splitlines() if line.strip()[:1].isdigit()]
    assert counts(tally) == {int(output): int(users) for output, users in rows}
    assert mark_of(tally).late == 0


def test_transactions_that_commit_out_of_order_are_late(server: Server) -> None:
    server.psql("CREATE TABLE unordered (sent serial PRIMARY KEY, output int)")
    base = server.address("x").partition("#")[0]
    with dbapi.connect(base) as slow, dbapi.connect(base) as quick:
        with slow.cursor() as cursor:
            cursor.execute("INSERT INTO unordered (output) VALUES (1)")  # number 1, which nobody sees yet
        with quick.cursor() as cursor:
            cursor.execute("INSERT INTO unordered (output) VALUES (2), (2)")
        quick.commit()
        for name, options in (("told", {}), ("window", {"late_window": 100}), ("lag", {"lag": 1})):
            collected(server.address("unordered"), name, **options)
        slow.commit()
    told = collected(server.address("unordered"), "told")
    assert (counts(told), mark_of(told).missed) == ({2: 2}, 1)
    window = collected(server.address("unordered"), "window", late_window=100, late="count")
    assert (counts(window), mark_of(window).late) == ({1: 1, 2: 2}, 0)


@pytest.mark.parametrize("column", ["a_numeric", "a_uuid", "a_real", "a_boolean", "a_char", "a_list"])
def test_types_of_postgresql_that_do_not_sort(server: Server, column: str) -> None:
    query = f"SELECT {column} AS sent, 1 AS output FROM types WHERE {column} IS NOT NULL"  # noqa: S608
    refused("wrong-type", lambda: collected(server.address(query)))


def test_an_infinite_time_is_no_mark(server: Server) -> None:
    error = refused(
        "not-a-mark", lambda: collected(server.address("SELECT 'infinity'::timestamp AS sent, 1 AS output"))
    )
    assert "infinity" in error.got
