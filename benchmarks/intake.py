"""Reports read from files: against plain DuckDB grouping the same file, and the memory it takes.

Run: python benchmarks/intake.py [--rows MILLIONS]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

import hubbub as hb
from measure import apart, in_turn, row, save, seconds

LINE = hb.Integers(0, 99)
STUDY = hb.Study(LINE, {"strong": hb.Geometric(LINE, 0.1), "light": hb.Geometric(LINE, 0.5)})
GROUP = 1 << 20
REPEATS = 5


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


def collected(path: str, target: str) -> dict[str, Any]:
    """Collect a file into a tally, in a process of its own."""
    spent, tally = seconds(lambda: hb.collect(STUDY, path, target))
    return {"seconds": spent, "users": tally.users, "bytes": Path(target).stat().st_size}


def large(folder: Path, rows: int, users: int | None) -> list[dict[str, Any]]:
    """Collect many rows and look at the memory."""
    path, text = write(folder, "large", rows, users)
    text.unlink()
    found = apart(collected, str(path), str(folder / "large.tally.parquet"))
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


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=20, help="millions of rows of the files that are timed")
    parser.add_argument("--large", type=float, default=100, help="millions of rows of the file whose memory is watched")
    given = parser.parse_args()
    count, most = int(given.rows * 1e6), int(given.large * 1e6)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for users in (None, count // 2):
            table, text = write(folder, "reports", count, users)
            rows.append(throughput(text, users is not None, 0.5, count))
            rows.append(throughput(table, users is not None, 0.4 if users is None else 0.5, count))
            table.unlink()
            text.unlink()
        rows += large(folder, most, None)
        rows += large(folder, most, most // 2)
    save("intake", rows)


if __name__ == "__main__":
    main()
