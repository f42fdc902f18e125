"""The same reports in any format, order and number of files are the same reports."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
from hubbub.intake.sources import parquet_arrow, text_files
from strategies import examples

DIGITS = hb.Integers(0, 9)
GRID = hb.Grid(4, 3)
STUDIES = {
    "line": hb.Study(
        DIGITS,
        {
            "light": hb.TruncatedGeometric(DIGITS, 0.5),
            "far": hb.Geometric(DIGITS, 0.5),
            "bits": hb.Rappor(DIGITS, 1.0),
            "hash": hb.LocalHashing(DIGITS, 1.0),
            "subset": hb.SubsetSelection(DIGITS, 1.0),
        },
    ),
    "map": hb.Study(
        GRID,
        {
            "pairs": hb.PlanarGeometric(GRID, 1.0, truncated=False),
            "cells": hb.PlanarGeometric(GRID, 1.0),
            "bits": hb.OptimizedUnary(GRID, 1.0),
        },
    ),
}
Row = tuple[int, str, Any]  # user, mechanism, output


def drawn(study: hb.Study, seed: int, count: int, people: int) -> list[Row]:
    """Return rows of some users, who may repeat mechanisms and outputs."""
    rng = np.random.default_rng(seed)
    names = rng.choice(list(study.mechanisms), count).tolist()
    users = rng.integers(-2, people, count).tolist()
    rows = []
    for user, name in zip(users, names, strict=True):
        mechanism = study.mechanisms[name]
        value = study.domain.labels[rng.integers(0, min(3, len(study.domain)))]
        rows.append((user, name, mechanism.privatize([value], rng=rng)[0]))
    return rows + rows[: count // 4]


def expected(study: hb.Study, rows: list[Row], users: bool) -> hb.Reports:
    if not users:
        return hb.Reports.from_users([[(study.mechanisms[name], output)] for _, name, output in rows])
    everyone: dict[int, list[tuple[hb.Mechanism, Any]]] = {}
    for user, name, output in rows:
        everyone.setdefault(user, []).append((study.mechanisms[name], output))
    return hb.Reports.from_users(everyone.values())


def columns(study: hb.Study, rows: list[Row], kind: str) -> dict[str, list[Any]]:
    """Return the columns of a table; `kind` says how users are written, "" for none."""
    found: dict[str, list[Any]] = {
        "mechanism": [name for _, name, _ in rows],
        "output": [study.mechanisms[name].output_space.write(output) for _, name, output in rows],
    }
    types: dict[str, Callable[[int], Any]] = {"int": int, "str": str, "float": float}
    return found | ({"user": [types[kind](user) for user, _, _ in rows]} if kind else {})


# -- the formats -----------------------------------------------------------------------------------------------------


def csv(path: Path, table: dict[str, list[Any]]) -> object:
    """Write users as text: in a CSV file 7.0 would be a name."""
    texts = {name: [str(int(entry)) if name == "user" else entry for entry in column] for name, column in table.items()}
    pd.DataFrame(texts).to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def jsonl(path: Path, table: dict[str, list[Any]]) -> object:
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def parquet(path: Path, table: dict[str, list[Any]]) -> object:
    pq.write_table(pa.table(table), path, row_group_size=7)
    return path


def dictionaries(path: Path, table: dict[str, list[Any]]) -> object:
    encoded = {name: pa.array(column).dictionary_encode() for name, column in table.items()}
    pq.write_table(pa.table(encoded), path)
    return path


def arrow(path: Path, table: dict[str, list[Any]]) -> object:
    whole = pa.table(table)
    with (pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file)(path, whole.schema) as writer:
        writer.write_table(whole, max_chunksize=5)
    return path


def sqlite(path: Path, table: dict[str, list[Any]]) -> object:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE reports ({', '.join(table)})")
        marks = ", ".join("?" * len(table))
        connection.executemany(f"INSERT INTO reports VALUES ({marks})", zip(*table.values(), strict=True))  # noqa: S608
    connection.close()
    return f"sqlite:///{path}#reports"


FORMATS: dict[str, Callable[[Path, dict[str, list[Any]]], object]] = {
    "r.csv": csv,
    "r.tsv": csv,
    "r.csv.gz": csv,
    "r.csv.zst": lambda path, table: zstd(path, csv(path.with_suffix(""), table)),
    "r.jsonl": jsonl,
    "r.jsonl.gz": jsonl,
    "r.parquet": parquet,
    "short.parquet": dictionaries,
    "r.arrow": arrow,
    "r.arrows": arrow,
    "r.db": sqlite,
    "pandas": lambda _, table: pd.DataFrame(table),
    "polars": lambda _, table: pl.DataFrame(table),
    "pyarrow": lambda _, table: pa.table(table),
}


def zstd(path: Path, written: object) -> Path:
    assert isinstance(written, Path)
    path.write_bytes(bytes(pa.compress(written.read_bytes(), "zstd", asbytes=True)))
    return path


@examples(40)
@given(
    st.sampled_from(sorted(STUDIES)),
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.sampled_from(["", "int", "str", "float"]),
    st.sampled_from(sorted(FORMATS)),
)
def test_every_format_says_the_same(chosen: str, seed: int, count: int, kind: str, name: str) -> None:
    study = STUDIES[chosen]
    rows = drawn(study, seed, count, 12)
    with tempfile.TemporaryDirectory() as folder:
        source = FORMATS[name](Path(folder) / name, columns(study, rows, kind))
        assert hb.read_reports(source, study) == expected(study, rows, bool(kind))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["", "int", "str", "float"])
def test_every_format_is_read(name: str, kind: str, tmp_path: Path) -> None:
    study = STUDIES["line"]
    rows = drawn(study, 1, 60, 20)
    source = FORMATS[name](tmp_path / name, columns(study, rows, kind))
    assert hb.read_reports(source, study) == expected(study, rows, bool(kind))


@examples(25)
@given(st.sampled_from(sorted(STUDIES)), st.integers(0, 10**6), st.integers(4, 60), st.booleans(), st.data())
def test_order_and_files_do_not_matter(chosen: str, seed: int, count: int, users: bool, data: st.DataObject) -> None:
    """A user's rows may stand anywhere, in files of different kinds, with the user as a number or a text."""
    study = STUDIES[chosen]
    rows = drawn(study, seed, count, 10)
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(rows) - 1), max_size=3)))
    parts = [shuffled[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        sources = []
        for place, part in enumerate(parts):
            name = data.draw(st.sampled_from(sorted(FORMATS)))
            kind = data.draw(st.sampled_from(["int", "str", "float"])) if users else ""
            (Path(folder) / str(place)).mkdir()
            table = columns(study, part, kind) | {"part": [str(place)] * len(part)}  # two files are never the same
            sources.append(FORMATS[name](Path(folder) / str(place) / name, table))
        with pytest.warns(hb.HubbubWarning, match="column part is not used"):
            assert hb.read_reports(data.draw(st.permutations(sources)), study) == expected(study, rows, users)


@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("chosen", sorted(STUDIES))
def test_a_tally_holds_the_same_reports(chosen: str, users: bool, tmp_path: Path) -> None:
    study = STUDIES[chosen]
    rows = drawn(study, 3, 300, 120)
    path = FORMATS["r.csv"](tmp_path / "r.csv", columns(study, rows, "int" if users else ""))
    tally = hb.collect(study, path, tmp_path / "t.tally.parquet")
    assert tally.rows == len(rows)
    assert hb.read_tally(tally.path).reports == hb.read_reports(path, study) == expected(study, rows, users)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("users", [False, True])
@pytest.mark.parametrize("chosen", sorted(STUDIES))
def test_one_run_two_runs_and_a_merge_write_the_same_bytes(chosen: str, users: bool, tmp_path: Path) -> None:
    study = STUDIES[chosen]
    rows = sorted(drawn(study, 4, 300, 120), key=lambda row: row[0])
    middle = next(place for place in range(150, len(rows)) if rows[place][0] != rows[place - 1][0])  # nobody is cut
    sources = []
    for number, part in enumerate((rows[:middle], rows[middle:])):
        sources.append(FORMATS["r.csv"](tmp_path / f"{number}.csv", columns(study, part, "int" if users else "")))

    def to(name: str) -> Path:
        return tmp_path / f"{name}.tally.parquet"

    hb.collect(study, sources, to("one"))
    hb.collect(study, sources[::-1], to("turned"))
    hb.collect(study, sources[0], to("two"))
    hb.collect(study, sources[1], to("second"))
    hb.merge([to("second"), to("two")], to("merged"), users_complete=True)
    hb.collect(study, sources[1], to("two"), users_complete=True)
    whole = to("one").read_bytes()
    for name in ("turned", "two", "merged"):
        assert to(name).read_bytes() == whole, name


@pytest.mark.parametrize("large", [10**18, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 10**25])
def test_a_user_of_many_digits_is_one_user_beside_names_and_alone(large: int, tmp_path: Path) -> None:
    study = hb.Study(DIGITS, {"light": hb.TruncatedGeometric(DIGITS, 0.5)})
    light = study.mechanisms["light"]
    (tmp_path / "a.csv").write_text(f"user,output\n{large},3\n")
    (tmp_path / "b.csv").write_text(f"user,output\nann,4\n{large},5\n")
    (tmp_path / "c.jsonl").write_text(json.dumps({"user": large, "output": 6}) + "\n")
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.jsonl")]
    if -(2**63) <= large < 2**64:
        kind = pa.int64() if large < 2**63 else pa.uint64()
        pq.write_table(pa.table({"user": pa.array([large], kind), "output": [7]}), tmp_path / "d.parquet")
        files.append(tmp_path / "d.parquet")
    outputs = [3, 5, 6, 7][: len(files)]
    same = hb.Reports.from_users([[(light, output) for output in outputs], [(light, 4)]])
    assert hb.read_reports(files, study) == same


def test_the_share_that_was_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "PIECE_BYTES", 500)
    monkeypatch.setattr(parquet_arrow, "MAX_BATCH_ROWS", 50)
    study = STUDIES["line"]
    table = columns(study, drawn(study, 5, 200, 20), "")
    for name in ("r.csv", "r.csv.gz", "r.parquet", "r.arrow"):
        source = FORMATS[name](tmp_path / name, table)
        told = [stage[0] / stage[1] for stage in hb.read_reports.steps(source, study) if stage[1]]
        assert told == sorted(told), name
        assert 0 < told[0] <= told[-1] == 1.0, name


@pytest.mark.parametrize(
    ("name", "separator"), [("r.csv", ";"), ("r.csv", "|"), ("r.csv", "\t"), ("r.tsv", ","), ("r.csv.gz", ";")]
)
def test_other_separators_than_the_extension_says_are_seen_in_the_header(
    name: str, separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    categories = hb.Categories(["007", "NA", "a,b", "c;d", "1,5"])
    study = hb.Study(categories, {"m": hb.RandomizedResponse(categories, 1.0)})
    table = pd.DataFrame({"user": ["1", "2", "3", "4", "5"], "output": categories.labels})
    table.to_csv(name, sep=separator, index=False)
    assert hb.read_reports(name, study) == hb.read_reports(table, study)


def test_what_the_message_advises_about_two_possible_separators_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = hb.Study(DIGITS, {"m": hb.TruncatedGeometric(DIGITS, 0.5)})
    Path("r.csv").write_text("output;a|b\n3;x\n4;y\n")
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports("r.csv", study)
    assert caught.value.code == "wrong-separator"
    exec(caught.value.remedy[caught.value.remedy.index("import pandas") :], {})  # noqa: S102
    with pytest.warns(hb.HubbubWarning, match="not used"):
        assert hb.read_reports("commas.csv", study).users == 2


@pytest.mark.skipif(sys.platform == "win32", reason="paths are shorter there")
def test_a_name_may_be_too_long_for_a_stamp_beside_it(tmp_path: Path) -> None:
    path = tmp_path / f"{'r' * 250}.csv"
    path.write_text("output\n3\n")
    study = hb.Study(DIGITS, {"m": hb.TruncatedGeometric(DIGITS, 0.5)})
    assert hb.read_reports(path, study).users == 1
