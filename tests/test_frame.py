"""Tables in memory as sources of reports."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hubbub.core.errors import IntakeError
from hubbub.intake.sources import frames, row_batches
from hubbub.intake.sources.frames import FrameSource, is_frame

PERSON = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")


def read(table: object, *wanted: str) -> pa.Table:
    source = FrameSource(table)
    columns = wanted or tuple(source.header())
    parts = list(source.rows(columns))
    place = 1
    for part in parts:
        assert (part.counted, part.first) == (part.parsed + len(part.faults), place)
        place += part.counted
    return pa.concat_tables([pa.table(dict(part.columns)) for part in parts])


def column(*entries: object, dtype: Any = object) -> pa.ChunkedArray:
    return read(pd.DataFrame({"output": pd.Series(list(entries), dtype=dtype)})).column("output")


MAKERS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pyarrow batch": pa.RecordBatch.from_pydict,
    "pyarrow reader": lambda data: pa.table(data).to_reader(),
    "duckdb": lambda data: duckdb.from_arrow(pa.table(data)),
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[[dict[str, list[Any]]], Any]:
    return MAKERS[request.param]


def test_tables_are_told_from_paths(make: Callable[[dict[str, list[Any]]], Any]) -> None:
    assert is_frame(make({"output": [1]}))
    assert is_frame(pd.Series([1]))
    assert is_frame(pl.LazyFrame({"output": [1]}))
    assert not any(
        map(is_frame, ["a.csv", b"a", 1, None, [1], {"output": [1]}, np.ones(3), pd.DataFrame, pl.DataFrame])
    )


def test_every_library_gives_the_same(make: Callable[[dict[str, list[Any]]], Any]) -> None:
    data: dict[str, list[Any]] = {"output": [1, 2, 3], "user": ["a", None, "é"], "more": [0.5, 1.5, 2.5]}
    table = make(data)
    source = FrameSource(table)
    assert source.name == f"{type(table).__module__.partition('.')[0].lstrip('_')} table"
    assert source.header() == ["output", "user", "more"]
    assert read(table, "user", "output").to_pydict() == {"user": data["user"], "output": data["output"]}


def test_an_empty_table_has_no_rows(make: Callable[[dict[str, list[Any]]], Any]) -> None:
    source = FrameSource(make({"output": []}))
    assert source.header() == ["output"]
    assert list(source.rows(["output"])) == []


def test_rows_come_in_batches(make: Callable[[dict[str, list[Any]]], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_batches, "BATCH_ROWS", 1000)
    monkeypatch.setattr(frames, "BATCH_ROWS", 1000)
    parts = list(FrameSource(make({"output": list(range(5500))})).rows(["output"]))
    assert [part.parsed for part in parts] == [1000] * 5 + [500]
    assert [part.first for part in parts] == [1, 1001, 2001, 3001, 4001, 5001]
    assert [entry for part in parts for entry in part.columns["output"].to_pylist()] == list(range(5500))


@pytest.mark.parametrize(
    ("entries", "kind", "expected"),
    [
        ([1, "1e3", None], pa.large_string(), ["1", "1e3", None]),
        ([1, 2, None], pa.int64(), [1, 2, None]),
        ([np.int64(1), 2, float("nan")], pa.int64(), [1, 2, None]),
        ([2**70, 1], pa.large_string(), [str(2**70), "1"]),
        ([2**53 + 1, 1.5, 7.0], pa.large_string(), ["9007199254740993", "1.5", "7.0"]),
        (["a", None, float("nan"), pd.NA], pa.string(), ["a", None, None, None]),
        ([b"\xff", None], pa.binary(), [b"\xff", None]),
        ([b"\x0a", "0a", 7], pa.large_string(), ["0a", "0a", "7"]),
        ([True, None], pa.bool_(), [True, None]),
        ([1.5, None], pa.float64(), [1.5, None]),
        ([Decimal("7.00"), Decimal("-1.50"), Decimal("1E+2")], pa.large_string(), ["7", "-1.5", "100"]),
        ([PERSON, None], pa.large_string(), [str(PERSON), None]),
        ([None, None], pa.null(), [None, None]),
    ],
)
def test_objects_of_pandas_are_kept_as_they_are(entries: list[Any], kind: Any, expected: list[Any]) -> None:
    found = column(*entries)
    assert found.type == kind
    assert found.to_pylist() == expected


@pytest.mark.parametrize(
    ("dtype", "entries", "expected"),
    [
        ("int64", [1, 2], [1, 2]),
        ("uint64", [2**64 - 1], [2**64 - 1]),
        ("float64", [1.5, float("nan")], [1.5, None]),
        ("Int64", [1, None], [1, None]),
        ("boolean", [True, None], [True, None]),
        ("string", ["a", None], ["a", None]),
        ("category", ["a", "b", None, "a"], ["a", "b", None, "a"]),
        ("category", [1, "1e3", None], ["1", "1e3", None]),
        (pd.ArrowDtype(pa.decimal128(10, 2)), [Decimal("7.00"), None], ["7", None]),
        (pd.ArrowDtype(pa.string_view()), ["a", None], ["a", None]),
    ],
)
def test_typed_columns_of_pandas(dtype: Any, entries: list[Any], expected: list[Any]) -> None:
    assert column(*entries, dtype=dtype).to_pylist() == expected


def test_the_type_is_that_of_the_whole_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_batches, "BATCH_ROWS", 2)
    monkeypatch.setattr(frames, "BATCH_ROWS", 2)
    assert column(1, 2, 3, "x").to_pylist() == ["1", "2", "3", "x"]


def test_half_a_character_is_a_fault_of_its_row() -> None:
    for entries in (["a", "\ud800", "b"], [1, "\ud800", "b"]):
        (rows,) = FrameSource(pd.DataFrame({"output": pd.Series(entries, dtype=object)})).rows(["output"])
        assert (rows.counted, rows.parsed) == (3, 2)
        assert [(place, fault.code) for place, fault in rows.faults] == [(2, "not-utf-8")]
        assert rows.columns["output"].to_pylist() == [str(entries[0]), "b"]


def test_columns_of_pandas_that_are_the_index() -> None:
    table = pd.DataFrame({"output": [1, 2], "user": ["a", "b"]})
    assert read(table.set_index("user"), "user", "output").to_pydict() == {"user": ["a", "b"], "output": [1, 2]}
    both = table.set_index(["user", "output"])
    assert read(both).to_pydict() == {"user": ["a", "b"], "output": [1, 2]}
    assert FrameSource(table.iloc[::-1]).header() == ["output", "user"]
    assert read(table.iloc[::-1], "output").column("output").to_pylist() == [2, 1]


def test_names_of_columns_may_repeat() -> None:
    table = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "output"])
    assert FrameSource(table).header() == ["a", "a", "output"]
    assert read(table, "output").to_pydict() == {"output": [3]}
    twice = pa.table([[1], [2], [3]], names=["a", "a", "output"])
    assert FrameSource(twice).header() == ["a", "a", "output"]
    assert read(twice, "output").to_pydict() == {"output": [3]}
    assert FrameSource(pd.DataFrame({7: [1]})).header() == ["7"]


def test_types_of_polars() -> None:
    table = pl.DataFrame(
        {
            "a": pl.Series(["x", "y"], dtype=pl.Categorical),
            "b": pl.Series(["x", "y"], dtype=pl.Enum(["x", "y"])),
            "c": pl.Series([Decimal("7.00"), Decimal("1.50")], dtype=pl.Decimal(10, 2)),
            "d": [b"\xff", None],
            "e": [1, None],
            "f": pl.Series([2**100, None], dtype=pl.Int128),
            "g": pl.Series([object(), object()], dtype=pl.Object),  # not asked for, so never looked at
        }
    )
    assert read(table, *"abcdef").to_pydict() == {
        "a": ["x", "y"],
        "b": ["x", "y"],
        "c": ["7", "1.5"],
        "d": [b"\xff", None],
        "e": [1, None],
        "f": [str(2**100), None],
    }


def test_types_of_arrow() -> None:
    identifiers = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([PERSON.bytes, None], pa.binary(16)))
    truths = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8()))
    views = pa.array([b"\xff", None], pa.binary_view())
    table = pa.table({"a": identifiers, "b": truths, "c": views, "d": pa.array(["x", None]).dictionary_encode()})
    reports = read(table)
    assert reports.to_pydict() == {"a": [str(PERSON), None], "b": [True, None], "c": [b"\xff", None], "d": ["x", None]}
    assert [str(kind) for kind in reports.schema.types] == ["string", "bool", "large_binary", "string"]
    sliced = read(table.slice(1)).to_pydict()
    assert sliced == {"a": [None], "b": [None], "c": [None], "d": [None]}


def test_dates_and_lists_stay_what_they_are() -> None:
    table = pd.DataFrame({"a": pd.period_range("2020-01", periods=2, freq="M"), "b": [[1], [2]]})
    reports = read(table)
    assert not pa.types.is_integer(reports.schema.field("a").type)
    assert pa.types.is_list(reports.schema.field("b").type)


def test_two_tables_are_not_the_same_source() -> None:
    table = pd.DataFrame({"output": [1]})
    assert FrameSource(table).identity == FrameSource(table).identity != FrameSource(table.copy()).identity
    assert FrameSource(table).size() == 1


def test_a_table_that_loses_rows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(self: FrameSource, wanted: Any) -> Iterator[list[pa.Array]]:
        yield [pa.array([1, 2])]

    monkeypatch.setattr(FrameSource, "_batches", lossy)
    parts = list(FrameSource(pa.table({"output": [1, 2, 3]})).rows(["output"]))
    assert (sum(part.counted for part in parts), sum(part.parsed for part in parts)) == (3, 2)


def spent() -> FrameSource:
    source = FrameSource(pa.table({"output": [1]}).to_reader())
    assert sum(part.counted for part in source.rows(["output"])) == 1
    return source


class Stream:
    """Something that promises a stream and has none."""

    def __arrow_c_stream__(self, schema: object = None) -> object:
        raise NotImplementedError("later")


def objects(*entries: object) -> pd.DataFrame:
    return pd.DataFrame({"output": pd.Series(list(entries), dtype=object)})


# Further tables are in test_bad_inputs.py, read as a user would.
BAD: list[tuple[str, Callable[[], Any], str]] = [
    ("polars series", lambda: pl.Series("output", [1]), "not-a-source"),
    ("pandas index", lambda: pd.Index([1], name="output"), "not-a-source"),
    ("pandas groups", lambda: pd.DataFrame({"output": [1], "user": [1]}).groupby("user"), "not-a-source"),
    ("arrow column", lambda: pa.chunked_array([[1]]), "not-a-source"),
    ("no stream", Stream, "not-a-source"),
    ("spent reader", spent, "not-a-source"),
    ("truth among texts", lambda: objects("yes", True), "wrong-type"),
    ("numpy truth among texts", lambda: objects("yes", np.bool_(True)), "wrong-type"),
    ("list among texts", lambda: objects("a", [1]), "wrong-type"),
    ("pair among numbers", lambda: objects(1, (1, 2)), "wrong-type"),
    ("date among numbers", lambda: objects(1, datetime.date(2020, 1, 1)), "wrong-type"),
    ("objects", lambda: objects(object(), object()), "wrong-type"),
    ("complex numbers", lambda: pd.DataFrame({"output": [1j]}), "wrong-type"),
    ("complex objects", lambda: objects(1j, 2), "wrong-type"),
]


@pytest.mark.parametrize(("make_bad", "code"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_tables_are_refused_in_five_parts(make_bad: Callable[[], Any], code: str) -> None:
    table = make_bad()
    with pytest.raises(IntakeError) as caught:
        list((table if isinstance(table, FrameSource) else FrameSource(table)).rows(["output"]))
    error = caught.value
    assert error.code == code
    assert all((error.what, error.where, error.got, error.expected, error.remedy))


def test_a_lazy_frame_is_told_what_to_do() -> None:
    with pytest.raises(IntakeError, match=r"frame\.collect\(\)"):
        FrameSource(pl.LazyFrame({"output": [1]}))
