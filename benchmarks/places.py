"""Reports that are places, collected into a tally: against plain DuckDB reading and grouping the same file by cell.

Run: python benchmarks/places.py [--rows MILLIONS]
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
from hubbub.core.threads import processors
from measure import in_turn, row, save

SIDES = {"south": 37.7228, "west": -122.5153, "north": 37.7946, "east": -122.3789}
CITY = hb.Grid.over(**SIDES, columns=24, rows=16)
STRONG, LIGHT = hb.PlanarLaplace(CITY, 0.7), hb.PlanarLaplace(CITY, 2.0)
STUDIES = {False: hb.Study(CITY, {"light": LIGHT}), True: hb.Study(CITY, {"strong": STRONG, "light": LIGHT})}
GROUP_ROWS = 1 << 20
REPEATS = 5
ASKED = 0.5
CELLS = (
    f"floor((lat - {SIDES['south']}) / {SIDES['north'] - SIDES['south']} * {CITY.rows}), "
    f"floor((lon - {SIDES['west']}) / {SIDES['east'] - SIDES['west']} * {CITY.columns})"
)


def batch(rng: np.random.Generator, rows: int, *, mechanisms: bool, users: int | None) -> pa.Table:
    """Return simulated rows: continuous planar Laplace noise around places in the city, as raw coordinates."""
    which = rng.integers(0, 2, rows) if mechanisms else np.ones(rows, dtype=np.int64)
    radius = rng.gamma(2.0, 1.0, rows) / np.where(which == 0, STRONG.epsilon, LIGHT.epsilon)
    angle = rng.uniform(0.0, 2 * np.pi, rows)
    width, height = CITY.columns * CITY.width, CITY.rows * CITY.height
    east = rng.uniform(0.0, width, rows) + radius * np.cos(angle)
    north = rng.uniform(0.0, height, rows) + radius * np.sin(angle)
    columns: dict[str, Any] = {
        "lat": np.round(SIDES["south"] + north / height * (SIDES["north"] - SIDES["south"]), 6),
        "lon": np.round(SIDES["west"] + east / width * (SIDES["east"] - SIDES["west"]), 6),
    }
    if mechanisms:
        columns["mechanism"] = pa.DictionaryArray.from_arrays(which.astype(np.int32), ["strong", "light"])
    if users is not None:
        columns["user"] = rng.integers(0, users, rows)
    return pa.table(columns)


def write(folder: Path, rows: int, *, mechanisms: bool, users: int | None = None) -> tuple[Path, Path]:
    """Write the same rows as Parquet and as CSV."""
    rng = np.random.default_rng(0)
    paths = folder / "places.parquet", folder / "places.csv"
    schema = batch(rng, 1, mechanisms=mechanisms, users=users).schema
    texts = pa.schema([(field.name, pa.string() if field.name == "mechanism" else field.type) for field in schema])
    options = csv.WriteOptions(quoting_style="none")
    with (
        parquet.ParquetWriter(paths[0], schema) as columns,
        csv.CSVWriter(paths[1], texts, write_options=options) as text,
    ):
        for first in range(0, rows, GROUP_ROWS):
            some = batch(rng, min(GROUP_ROWS, rows - first), mechanisms=mechanisms, users=users)
            columns.write_table(some)
            text.write_table(some.cast(texts))
    return paths


def plain(path: Path, *, mechanisms: bool, users: bool) -> Callable[[], Any]:
    """Return plain DuckDB's grouping of a file by cell, on as many threads as hubbub may use."""
    connection = duckdb.connect(config={"threads": processors()})
    grouped = [*(["mechanism"] if mechanisms else []), *(["user"] if users else []), CELLS]
    query = f"SELECT count(*) FROM (SELECT {', '.join(grouped)}, count(*) FROM '{path}' GROUP BY ALL)"  # noqa: S608
    return lambda: connection.execute(query).fetchall()


def ours(path: Path, *, mechanisms: bool) -> Callable[[], Any]:
    """Return what collects the same file into a tally: checked, counted, remapped, merged, written."""

    def collect() -> None:
        target = path.with_name("places.tally.parquet")
        target.unlink(missing_ok=True)
        hb.collect(STUDIES[mechanisms], path, target)

    return collect


def throughput(path: Path, rows: int, *, mechanisms: bool, users: bool) -> dict[str, Any]:
    """Time both in turn."""
    functions = [plain(path, mechanisms=mechanisms, users=users), ours(path, mechanisms=mechanisms)]
    for function in functions:  # both have seen the file
        function()
    theirs, own = in_turn(functions, REPEATS)
    more = [what for what, is_there in (("mechanism", mechanisms), ("user", users)) if is_there]
    return row(
        ", ".join([path.suffix[1:].upper(), f"{rows / 1e6:g} million rows of lat, lon", *more]),
        "DuckDB's GROUP BY cell / hubbub collect",
        f"{theirs:.2f} / {own:.2f} s = {theirs / own:.2f}",
        "shown" if users else f">= {ASKED}",
        holds=users or theirs / own >= ASKED,
    )


def main() -> None:
    """Print and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=10, help="millions of rows")
    count = int(parser.parse_args().rows * 1e6)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for mechanisms, users in ((False, None), (True, None), (True, count // 2)):
            for path in write(Path(name), count, mechanisms=mechanisms, users=users):
                rows.append(throughput(path, count, mechanisms=mechanisms, users=users is not None))
    save("places", rows)


if __name__ == "__main__":
    main()
