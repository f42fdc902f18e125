"""One rule for whole numbers that come as floats, in every kind of source, for outputs, users and values.

34.0 is 34, as a text, as a JSON number and in a column of floats. A float that is so large that its type cannot tell
it from its neighbours may have been rounded, and is refused; so are fractions, and texts with an exponent.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from hubbub.core.progress import finish
from hubbub.intake.in_memory_reading import read as read_plan
from hubbub.intake.read_plan import plan_reading
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.reports.blocks import Singles

LINE = hb.Integers(0, 5000)
NAMED = hb.Categories([34, 35, 2048, 2**53, "text", "7", "9.0"])
STUDIES = {
    "values": hb.Study(LINE, {"m": hb.TruncatedGeometric(LINE, 0.01)}),
    "numbers": hb.Study(LINE, {"m": hb.Geometric(LINE, 0.01)}),
    "labels": hb.Study(NAMED, {"m": hb.RandomizedResponse(NAMED, 1.0)}),
}
TYPES = {"halffloat": 11, "float": 24, "double": 53}  # bits of whole numbers that are all told apart


def csv_of(folder: Path, entries: list[float], name: str) -> object:
    (folder / "r.csv").write_text(f"row,{name}\n" + "".join(f"{row},{entry!r}\n" for row, entry in enumerate(entries)))
    return folder / "r.csv"


def json_of(folder: Path, entries: list[float], name: str) -> object:
    lines = (json.dumps({"row": row, name: entry}) + "\n" for row, entry in enumerate(entries))
    (folder / "r.jsonl").write_text("".join(lines))
    return folder / "r.jsonl"


def table_of(entries: list[float], name: str, kind: str) -> pa.Table:
    numbers = pa.array(np.array(entries, dtype=pa.type_for_alias(kind).to_pandas_dtype()))
    return pa.table({"row": pa.array(range(len(entries))), name: numbers})


def parquet_of(kind: str) -> Callable[[Path, list[float], str], object]:
    def make(folder: Path, entries: list[float], name: str) -> object:
        pq.write_table(table_of(entries, name, kind), folder / "r.parquet")
        return folder / "r.parquet"

    return make


def arrow_of(kind: str) -> Callable[[Path, list[float], str], object]:
    def make(folder: Path, entries: list[float], name: str) -> object:
        table = table_of(entries, name, kind)
        with pa.OSFile(str(folder / "r.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        return folder / "r.arrow"

    return make


def pandas_of(kind: str) -> Callable[[Path, list[float], str], object]:
    def make(folder: Path, entries: list[float], name: str) -> object:
        return table_of(entries, name, kind).to_pandas()

    return make


def polars_of(kind: str) -> Callable[[Path, list[float], str], object]:
    def make(folder: Path, entries: list[float], name: str) -> object:
        return pl.DataFrame({name: entries}, schema={name: {"float": pl.Float32, "double": pl.Float64}[kind]})

    return make


def sqlite_of(folder: Path, entries: list[float], name: str) -> object:
    with sqlite3.connect(folder / "r.db") as connection:
        connection.execute(f"CREATE TABLE t ({name} REAL)")
        connection.executemany("INSERT INTO t VALUES (?)", [(entry,) for entry in entries])
    connection.close()
    return f"sqlite:///{folder / 'r.db'}#t"


def duckdb_of(kind: str) -> Callable[[Path, list[float], str], object]:
    def make(folder: Path, entries: list[float], name: str) -> object:
        with duckdb.connect(str(folder / "r.duckdb")) as connection:
            connection.execute(f"CREATE TABLE t ({name} {kind})")
            connection.executemany("INSERT INTO t VALUES (?)", [(entry,) for entry in entries])
        return f"duckdb:///{folder / 'r.duckdb'}#t"

    return make


# How a column of floats is made, and how many bits of a whole number it holds.
SOURCES: dict[str, tuple[Callable[[Path, list[float], str], object], int]] = {
    "csv": (csv_of, 53),
    "json": (json_of, 53),
    **{f"parquet {kind}": (parquet_of(kind), bits) for kind, bits in TYPES.items()},
    **{f"arrow {kind}": (arrow_of(kind), bits) for kind, bits in TYPES.items()},
    **{f"pandas {kind}": (pandas_of(kind), bits) for kind, bits in TYPES.items()},
    "polars float": (polars_of("float"), 24),
    "polars double": (polars_of("double"), 53),
    "sqlite": (sqlite_of, 53),
    "duckdb float": (duckdb_of("FLOAT"), 24),
    "duckdb double": (duckdb_of("DOUBLE"), 53),
}
every_source = pytest.mark.parametrize("source", SOURCES)


def read(source: object, study: hb.Study) -> tuple[hb.Reports, Summary]:
    return finish(read_plan(plan_reading(source, study, allow_rejects="100%")))


def taken(folder: Path, source: str, entries: list[float], study: str) -> tuple[list[object], dict[str, int]]:
    """Return the outputs that were read, in order, and why others were not."""
    make, _ = SOURCES[source]
    chosen = STUDIES[study]
    reports, summary = read(make(folder, entries, "output"), chosen)
    (block,) = reports.blocks
    assert isinstance(block, Singles)
    outputs = np.repeat(block.mechanism.output_space.decode(block.codes), block.counts)
    return outputs.tolist(), dict(summary.rejected)


@every_source
def test_floats_are_taken_as_whole_numbers_or_refused_alike(source: str, tmp_path: Path) -> None:
    """2049 in 16 bits is 2048: who reads 2048 there cannot know."""
    limit = 2 ** SOURCES[source][1]
    entries = [34.0, 35.0, 34.5, 34.0, limit - 1.0, 1.0 - limit, float(limit), -float(limit)]
    found = taken(tmp_path, source, entries, "numbers")
    assert found == ([1 - limit, 34, 34, 35, limit - 1], {"rounded-number": 2, "not-a-number": 1})


@pytest.mark.parametrize("source", ["csv", "json", "parquet halffloat", "pandas double", "sqlite"])
def test_values_of_the_domain_and_labels_are_found_by_whole_floats(source: str, tmp_path: Path) -> None:
    assert taken(tmp_path, source, [34.0, 35.0, 34.5], "values") == ([34, 35], {"not-a-number": 1})
    (tmp_path / "labels").mkdir()
    assert taken(tmp_path / "labels", source, [34.0, 35.0, 36.0], "labels") == ([34, 35], {"out-of-domain": 1})


def test_two_thousand_and_forty_eight_in_sixteen_bits_is_no_label(tmp_path: Path) -> None:
    for study in ("values", "labels"):
        assert taken(tmp_path, "parquet halffloat", [2048.0, 34.0], study) == ([34], {"rounded-number": 1})
        assert taken(tmp_path, "parquet float", [2048.0, 34.0], study) == ([34, 2048], {})
    assert taken(tmp_path, "csv", [2.0**53, 34.0], "labels") == ([34], {"rounded-number": 1})


@pytest.mark.parametrize("study", ["values", "numbers"])
def test_whole_numbers_written_otherwise_are_refused(study: str, tmp_path: Path) -> None:
    texts = ["1e3", "1E3", "34.00", "34.", ".0", "3_4.0", " 34.0", "34.0 ", "0x22", "34.01", "inf", "nan", "--34.0"]
    rows = "".join(f"{text},1\n" for text in [*texts, "34", "+34.0", "034.0", "34.0"])
    (tmp_path / "r.csv").write_text(f"output,row\n{rows}")
    reports, summary = read(tmp_path / "r.csv", STUDIES[study])
    assert dict(summary.rejected) == {"not-a-number": len(texts)}
    assert reports.users == 4


def test_json_numbers_follow_the_same_rule_as_texts(tmp_path: Path) -> None:
    numbers = ["1e3", "1E+3", "1000.00", "34.0", '"34.0"', "34"]
    (tmp_path / "r.jsonl").write_text("".join(f'{{"output": {number}}}\n' for number in numbers))
    reports, summary = read(tmp_path / "r.jsonl", STUDIES["values"])
    assert dict(summary.rejected) == {"not-a-number": 3}
    assert reports.users == 3


def test_users_of_json_and_texts_beyond_floats_are_refused_too(tmp_path: Path) -> None:
    """Large floats are written with an exponent, by JSON and by pandas."""
    users = ["1e16", "12345678901234567.0", "1e300", "7.0", "1e2"]
    (tmp_path / "r.jsonl").write_text("".join(f'{{"output": 3, "user": {user}}}\n' for user in users))
    reports, summary = read(tmp_path / "r.jsonl", STUDIES["values"])
    assert (reports.users, dict(summary.rejected)) == (2, {"rounded-number": 3})
    texts = ["1.2345678901234568e+16", "1e17", "9007199254740993.0", "9007199254740993", "9007199254740991.0"]
    (tmp_path / "r.csv").write_text("output,user\n" + "".join(f"3,{text}\n" for text in texts))
    reports, summary = read(tmp_path / "r.csv", STUDIES["values"])
    assert (reports.users, dict(summary.rejected)) == (3, {"rounded-number": 2})  # 1e17 is a name, or hexadecimal


def test_texts_are_looked_up_before_they_are_numbers(tmp_path: Path) -> None:
    """The label "9.0" is itself; the label "7" is a text, which no number is."""
    (tmp_path / "r.csv").write_text("output\n9.0\n34.0\n7\n7.0\n")
    reports, summary = read(tmp_path / "r.csv", STUDIES["labels"])
    assert dict(summary.rejected) == {"out-of-domain": 1}
    assert reports.users == 3


# -- users ------------------------------------------------------------------------------------------------------


@every_source
def test_users_follow_the_same_rule(source: str, tmp_path: Path) -> None:
    make, bits = SOURCES[source]
    study = hb.Study(LINE, {"m": hb.TruncatedGeometric(LINE, 0.01)})
    users = [7.0, 2.0**bits - 1, 2.0**bits, -(2.0**bits), 7.0]
    table = make(tmp_path, users, "user")
    rows = _with_outputs(table, tmp_path)
    reports, summary = read(rows, study)
    assert dict(summary.rejected) == {"rounded-number": 2}
    assert reports.users == 2  # 7 sent two rows
    whole = pd.DataFrame({"user": ["7", str(2**bits - 1), "7"], "output": [34, 34, 34]})
    assert reports == hb.read_reports(whole, study)


def _with_outputs(table: Any, folder: Path) -> object:
    """Return a source of users with the output 34 in each row."""
    if isinstance(table, pd.DataFrame):
        return table.assign(output=34)
    if isinstance(table, pl.DataFrame):
        return table.with_columns(output=34)
    if isinstance(table, str):
        return table.replace("#t", "#SELECT *, 34 AS output FROM t")
    path = Path(table)
    if path.suffix == ".csv":
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[0] + ",output", *(line + ",34" for line in lines[1:])]) + "\n")
    elif path.suffix == ".jsonl":
        path.write_text(path.read_text().replace("}", ', "output": 34}'))
    else:
        arrow = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
        arrow = arrow.append_column("output", pa.array([34] * arrow.num_rows))
        if path.suffix == ".parquet":
            pq.write_table(arrow, path)
        else:
            path = folder / "users.arrow"
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, arrow.schema) as writer:
                writer.write_table(arrow)
    return path


# -- values -----------------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@every_source
def test_values_to_privatize_follow_the_same_rule(source: str, tmp_path: Path) -> None:
    make, bits = SOURCES[source]
    domain = hb.Integers(2**bits - 40, 2**bits)
    study = hb.Study(domain, {"m": hb.RandomizedResponse(domain, 20.0)})
    good = make(tmp_path, [float(2**bits - 1), float(2**bits - 35)], "value")
    assert hb.privatize_file(good, study, None, tmp_path / "good.csv").rows == 2
    (tmp_path / "bad").mkdir()
    bad = make(tmp_path / "bad", [float(2**bits - 1), float(2**bits)], "value")
    with pytest.raises(hb.IntakeError) as caught:
        hb.privatize_file(bad, study, None, tmp_path / "bad.csv")
    assert caught.value.code == "rounded-number"


@pytest.mark.parametrize("source", ["csv", "json", "parquet float", "sqlite"])
def test_fractions_are_no_values_to_privatize(source: str, tmp_path: Path) -> None:
    half = SOURCES[source][0](tmp_path, [0.5], "value")
    with pytest.raises(hb.IntakeError) as caught:
        hb.privatize_file(half, STUDIES["values"], None, tmp_path / "half.csv")
    assert caught.value.code == "not-a-number"


def test_users_that_may_have_been_rounded_are_not_carried_along(tmp_path: Path) -> None:
    table = pd.DataFrame({"value": [3, 4], "user": [7.0, 2.0**53]})
    with pytest.raises(hb.IntakeError, match="may have been rounded") as caught:
        hb.privatize_file(table, STUDIES["values"], None, tmp_path / "r.csv")
    assert caught.value.where == "pandas table, row 2, column user"


@pytest.mark.parametrize(("dtype", "bits"), [(np.float16, 11), (np.float32, 24), (np.float64, 53)])
def test_arrays_in_python_follow_the_same_rule(dtype: type[np.floating[Any]], bits: int) -> None:
    domain = hb.Integers(2**bits - 40, 2**bits)
    assert domain.index(np.array([2**bits - 1], dtype=dtype)).tolist() == [39]
    with pytest.raises(hb.DomainError, match="may have been rounded"):
        domain.index(np.array([2**bits - 1, 2**bits], dtype=dtype))
    noise = hb.Geometric(hb.Integers(0, 9), 0.1)
    with pytest.raises(hb.OutputError, match="may have been rounded"):
        hb.Reports.from_outputs(noise, np.array([2**bits], dtype=dtype))
    labels = hb.Categories([2**bits, 1])
    with pytest.raises(hb.DomainError, match="may have been rounded"):
        labels.index(np.array([2**bits], dtype=dtype))
    assert labels.index([2**bits, 1]).tolist() == [0, 1]
