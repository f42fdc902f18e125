"""Reports read from files and databases: against plain DuckDB grouping the same file, and the memory it takes.

Tables of databases are read beside files with the same rows, in one run; each in a process of its own.

Run: python benchmarks/intake.py [--rows MILLIONS] [--only files|attributes|large|databases]
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import warnings
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

import hubbub as hb
from measure import apart, in_turn, row, save, save_merged, seconds

LINE = hb.Integers(0, 99)
STUDY = hb.Study(LINE, {"strong": hb.Geometric(LINE, 0.1), "light": hb.Geometric(LINE, 0.5)})
GROUP = 1 << 20
REPEATS = 5
SELECTED = """i AS id, CASE WHEN i % 2 = 0 THEN 'strong' ELSE 'light' END AS mechanism,
    i * 7919 % 41 + 20 AS output, 'region ' || i % 25 AS region"""  # of numbers from 1 on, in any database


def batch(rng: np.random.Generator, rows: int, users: int | None) -> pa.Table:
    """Return simulated rows: two mechanisms, outputs around a hump, users at random."""
    which = rng.integers(0, 2, rows)
    scale = np.where(which == 0, 10.0, 2.0)
    outputs = rng.binomial(99, 0.4, rows) + np.round(rng.laplace(size=rows) * scale).astype(np.int64)
    columns = {
        "mechanism": pa.DictionaryArray.from_arrays(which.astype(np.int32), ["strong", "light"]),
        "output": pa.array(outputs),
    }
    if users is not None:
        columns = {"user": pa.array(rng.integers(0, users, rows)), **columns}
    return pa.table(columns)


def write(folder: Path, name: str, rows: int, users: int | None) -> tuple[Path, Path]:
    """Write the same rows as Parquet and as CSV."""
    rng = np.random.default_rng(0)
    paths = folder / f"{name}.parquet", folder / f"{name}.csv"
    schema = batch(rng, 1, users).schema
    texts = pa.schema([(field.name, pa.string() if field.name == "mechanism" else pa.int64()) for field in schema])
    options = csv.WriteOptions(quoting_style="none")
    with (
        parquet.ParquetWriter(paths[0], schema) as columns,
        csv.CSVWriter(paths[1], texts, write_options=options) as text,
    ):
        for first in range(0, rows, GROUP):
            some = batch(rng, min(GROUP, rows - first), users)
            columns.write_table(some)
            text.write_table(some.cast(texts))
    return paths


def plain(path: Path, users: bool) -> Callable[[], Any]:
    """Return plain DuckDB's grouping of a file: by mechanism and output, or by user."""
    connection = duckdb.connect()
    if users:
        query = f"SELECT count(*) FROM (SELECT user, count(*) FROM '{path}' GROUP BY user)"  # noqa: S608
    else:
        query = f"SELECT mechanism, output, count(*) FROM '{path}' GROUP BY ALL"  # noqa: S608
    return lambda: connection.execute(query).fetchall()


def ours(path: Path) -> Callable[[], Any]:
    """Return what reads the same file to reports: checked, counted, merged."""
    return lambda: hb.read_reports(path, STUDY)


def throughput(path: Path, users: bool, asked: float, rows: int) -> dict[str, Any]:
    """Time both in turn."""
    hb.read_reports(path, STUDY)  # both have seen the file
    theirs, own = in_turn([plain(path, users), ours(path)], REPEATS)
    what = "GROUP BY user" if users else "GROUP BY mechanism, output"
    return row(
        f"{path.suffix[1:].upper()}, {rows / 1e6:g} million rows" + (", with users" if users else ""),
        f"DuckDB's {what} / hubbub",
        f"{theirs:.2f} / {own:.2f} s = {theirs / own:.2f}",
        f">= {asked}",
        holds=theirs / own >= asked,
    )


def attributes(folder: Path, rows: int) -> list[dict[str, Any]]:
    """Time a table of two attributes beside two tables of one, with the same entries."""
    rng = np.random.default_rng(0)
    kinds = hb.Categories([f"kind {number}" for number in range(10)])
    parts = {"age": hb.TruncatedGeometric(LINE, 0.5), "kind": hb.RandomizedResponse(kinds, 1.0)}
    split = hb.Split(parts)
    entries = {
        "age": pa.array(rng.binomial(99, 0.4, rows)),
        "kind": pa.DictionaryArray.from_arrays(rng.integers(0, 10, rows, dtype=np.int32), kinds.labels.tolist()),
    }
    tables = {name: (pa.table({"output": own}), hb.Study(parts[name].domain, {"all": parts[name]}))
              for name, own in entries.items()}  # fmt: skip
    columns = pa.table({f"output.{name}": own for name, own in entries.items()})
    tables["both"] = columns, hb.Study(split.domain, {"all": split})
    found = []
    for ending in ("csv", "parquet"):
        readers = {}
        for name, (table, study) in tables.items():
            path = folder / f"{name}.{ending}"
            if ending == "csv":
                texts = pa.table({column: table[column].cast(pa.string()) for column in table.column_names})
                csv.write_csv(texts, path, csv.WriteOptions(quoting_style="none"))
            else:
                parquet.write_table(table, path, row_group_size=GROUP)
            readers[name] = partial(hb.read_reports, path, study)
            readers[name]()  # all have seen the file
        age, kind, both = in_turn(list(readers.values()), REPEATS)
        found.append(
            row(
                f"{ending.upper()}, {rows / 1e6:g} million rows, two attributes",
                "the attributes in tables of their own / in one table",
                f"{age + kind:.2f} / {both:.2f} s = {(age + kind) / both:.2f}",
                ">= 0.5",
                holds=(age + kind) / both >= 0.5,
            )
        )
    return found


def collected(source: str, target: str, options: dict[str, Any]) -> dict[str, Any]:
    """Collect a source into a tally, in a process of its own."""
    warnings.simplefilter("ignore", hb.HubbubWarning)  # that some columns are not read is meant here
    before = hb.read_tally(target).rows if Path(target).exists() else 0
    spent, tally = seconds(lambda: hb.collect(STUDY, source, target, **options))
    size = Path(target).stat().st_size
    return {"seconds": spent, "users": tally.users, "added": tally.rows - before, "bytes": size}


def large(folder: Path, rows: int, users: int | None) -> list[dict[str, Any]]:
    """Collect many rows and look at the memory."""
    path, text = write(folder, "large", rows, users)
    text.unlink()
    found = apart(collected, str(path), str(folder / "large.tally.parquet"), {})
    problem = f"Parquet, {rows / 1e6:g} million rows" + ("" if users is None else f", {found['users']:,} users")
    path.unlink()
    (folder / "large.tally.parquet").unlink()
    return [
        row(
            problem,
            "peak memory of hubbub collect",
            f"{found['peak MiB']:,.0f} MiB",
            "under 4 GiB",
            holds=found["peak MiB"] < 4096,
        ),
        row(
            problem,
            "time, size of the tally",
            f"{found['seconds']:.1f} s, {found['bytes'] / 1e3:,.0f} kB",
            "shown",
            holds=True,
        ),
    ]


def databases(folder: Path, rows: int) -> list[dict[str, Any]]:
    """Collect the same rows from files and from tables of databases; at last once more, when nothing is new."""
    sources = {**_written_by_duckdb(folder, rows), "SQLite": _written_by_sqlite(folder, rows)}
    runs: list[tuple[str, str, dict[str, Any]]] = [(name, source, {}) for name, source in sources.items()]
    runs.append(("SQLite, --watermark id", sources["SQLite"], {"watermark": "id"}))
    runs.append(("SQLite, --watermark id, nothing new", sources["SQLite"], {"watermark": "id"}))
    runs.append(("SQLite, --by region of 25", sources["SQLite"], {"by": "region"}))
    found, of_csv = [], 0.0
    for name, source, options in runs:
        target = folder / f"{'-'.join(options) or 'plain'}.tally.parquet"
        if not options:
            target.unlink(missing_ok=True)
        own = apart(collected, source, str(target), options)
        of_csv = of_csv or own["seconds"]
        speed = f"{rows / own['seconds'] / 1e6:.2g} million rows/s, {of_csv / own['seconds']:.2f} of CSV, "
        found.append(
            row(
                f"{name}, {rows / 1e6:g} million rows",
                "hubbub collect: time, speed, peak memory",
                f"{own['seconds']:.1f} s, {speed if own['added'] else ''}{own['peak MiB']:,.0f} MiB",
                "all rows" if own["added"] else "no row again",
                holds=own["users"] == rows,
            )
        )
    return found


def _written_by_duckdb(folder: Path, rows: int) -> dict[str, str]:
    """Write the rows as files and as a table of DuckDB; return the sources by name."""
    path = folder / "reports.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(f"CREATE TABLE reports AS SELECT {SELECTED} FROM range(1, {rows + 1}) AS numbers(i)")  # noqa: S608
        for name in ("parquet", "csv"):
            database.execute(f"COPY reports TO '{folder / 'reports'}.{name}'")
    files = {name: str(folder / f"reports.{name.lower()}") for name in ("CSV", "Parquet")}
    return {**files, "DuckDB": f"duckdb:///{path}#reports"}


def _written_by_sqlite(folder: Path, rows: int) -> str:
    """Write the rows as a table of SQLite; return its address."""
    path = folder / "reports.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE reports (id INTEGER PRIMARY KEY, mechanism TEXT, output INTEGER, region TEXT)")
        numbers = f"WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {rows})"  # noqa: S608
        database.execute(f"INSERT INTO reports {numbers} SELECT {SELECTED} FROM numbers")  # noqa: S608
    return f"sqlite:///{path}#reports"


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", choices=["", "files", "attributes", "large", "databases"], help="this part alone"
    )
    parser.add_argument("--rows", type=float, default=20, help="millions of rows of the files that are timed")
    parser.add_argument("--large", type=float, default=100, help="millions of rows of the file whose memory is watched")
    parser.add_argument("--table", type=float, default=10, help="millions of rows of the tables of databases")
    given = parser.parse_args()
    count, most = int(given.rows * 1e6), int(given.large * 1e6)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for users in (None, count // 2) if given.only in ("", "files") else ():
            table, text = write(folder, "reports", count, users)
            rows.append(throughput(text, users is not None, 0.5, count))
            rows.append(throughput(table, users is not None, 0.4 if users is None else 0.5, count))
            table.unlink()
            text.unlink()
        if given.only in ("", "attributes"):
            rows += attributes(folder, count // 4)
        for users in (None, most // 2) if given.only in ("", "large") else ():
            rows += large(folder, most, users)
        if given.only in ("", "databases"):
            rows += databases(folder, int(given.table * 1e6))
    (save_merged if given.only else save)("intake", rows)


if __name__ == "__main__":
    main()
