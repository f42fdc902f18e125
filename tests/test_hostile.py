"""Hostile inputs: refused soon, or streamed; never a crash, never more memory than a small machine has.

Each is read in a process of its own, whose peak of memory is measured. The clock is only there for what would hang.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hubbub as hb
from damaging import parts_of_tally, seal, write_forged
from studies import LIGHT_TOML

BITS = LIGHT_TOML.replace("truncated-geometric", "rappor")
MOST = 1 << 30  # bytes of memory

# The peak is the process's own, libraries included.
CHILD = """
import json, sys, time
import hubbub as hb
start = time.perf_counter()
try:
    action, study, source, target = sys.argv[1:]
    if action == "tally":
        found = {"users": hb.read_tally(source).reports.users}
    elif action == "study":
        found = {"users": len(hb.read_study(source).domain)}
    else:
        tally = hb.collect(hb.read_study(study), source, target, allow_rejects=action, memory="300MB")
        found = {"users": tally.users, "rows": tally.rows, "rejected": dict(tally.rejected)}
except hb.HubbubError as error:
    found = {"error": type(error).__name__, "code": error.code, "what": error.what}
found["seconds"] = time.perf_counter() - start
with open("/proc/self/status") as file:
    found["memory"] = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print(json.dumps(found))
"""


def run(folder: Path, source: object, action: str = "0", study: str = LIGHT_TOML, clock: int = 60) -> dict[str, Any]:
    """Read something in a process of its own; return what came of it."""
    (folder / "study.toml").write_text(study)
    arguments = [action, str(folder / "study.toml"), str(source), str(folder / "t.tally.parquet")]
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, check=False, timeout=clock
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["memory"] < MOST, found
    return found


# -- files -----------------------------------------------------------------------------------------------------------


def zipped(path: Path, block: bytes, times: int, head: bytes = b"output\n", tail: bytes = b"\n3\n") -> Path:
    """Write a block many times over, compressed: gzip members may follow each other."""
    member = gzip.compress(block, 9)
    with path.open("wb") as file:
        file.write(gzip.compress(head))
        for _ in range(times):
            file.write(member)
        file.write(gzip.compress(tail))
    return path


def framed(path: Path, block: bytes, times: int, head: bytes = b"output\n", tail: bytes = b"\n3\n") -> Path:
    frame = bytes(pa.compress(block, "zstd", asbytes=True))
    parts = [bytes(pa.compress(part, "zstd", asbytes=True)) for part in (head, tail)]
    path.write_bytes(parts[0] + frame * times + parts[1])
    return path


MEGABYTE = bytes(1 << 20)


@pytest.mark.slow
@pytest.mark.parametrize("make", [zipped, framed], ids=["gzip", "zstd"])
def test_a_gigabyte_in_one_line_is_one_bad_line(make: Callable[..., Path], tmp_path: Path) -> None:
    ending = ".gz" if make is zipped else ".zst"
    path = make(tmp_path / f"r.csv{ending}", MEGABYTE, 1000)
    assert path.stat().st_size < 2_000_000
    done = run(tmp_path, path, "1")
    assert (done["users"], done["rejected"]) == (1, {"line-too-long": 1})


@pytest.mark.slow
def test_a_gigabyte_of_json_in_one_line_is_one_bad_line(tmp_path: Path) -> None:
    path = zipped(tmp_path / "r.jsonl.gz", b"[" * (1 << 20), 1000, b'{"output": 3}\n', b'\n{"output": 3}\n')
    done = run(tmp_path, path, "1")
    assert (done["users"], done["rejected"]) == (2, {"line-too-long": 1})


def test_a_gigabyte_without_a_header_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, zipped(tmp_path / "r.csv.gz", MEGABYTE, 1000, b""))
    assert done["code"] == "no-header"


@pytest.mark.slow
def test_300_megabytes_of_rows_in_a_small_file_are_counted(tmp_path: Path) -> None:
    block = b"3\n4\n" * (1 << 18)
    path = framed(tmp_path / "r.csv.zst", block, 300, tail=b"5\n")
    assert path.stat().st_size < 1_000_000
    done = run(tmp_path, path, clock=300)
    assert done["users"] == 300 * (1 << 19) + 1


@pytest.mark.slow
def test_blank_lines_without_end_are_no_rows(tmp_path: Path) -> None:
    path = zipped(tmp_path / "r.csv.gz", b"\r\n" * (1 << 19), 100, b"", b"user,output\na,3\n")
    assert run(tmp_path, path)["users"] == 1


@pytest.mark.slow
def test_a_quote_that_is_never_closed_costs_one_row(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b"user,output\n" + b"".join(b'a,"\n' if row == 7 else b"%d,3\n" % row for row in range(3_000_000)))
    done = run(tmp_path, path, "1")
    assert (done["rows"], done["rejected"]) == (3_000_000, {"unclosed-quote": 1})


@pytest.mark.slow
def test_ever_new_bad_outputs_are_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b"output\n3\n" + b"".join(b"x%030d\n" % row for row in range(300_000)))
    done = run(tmp_path, path, "100%", clock=300)
    assert done["rejected"] == {"not-a-number": 300_000}


def test_json_that_is_nested_without_end_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    deep = b"[" * 100_000 + b"]" * 100_000
    path.write_bytes(b'{"output": 3}\n{"output": ' + deep + b'}\n{"output": 3, "x": ' + deep + b"}\n")
    done = run(tmp_path, path, "100%")
    assert done["rejected"] == {"not-json": 2}


def repeated(path: Path, columns: dict[str, pa.Array], times: int, **options: Any) -> Path:
    """Write a Parquet file with the same rows many times over."""
    table = pa.table(columns)
    with pq.ParquetWriter(path, table.schema, compression="zstd", **options) as writer:
        writer.write_table(pa.concat_tables([table] * times), row_group_size=table.num_rows * times)
    return path


@pytest.mark.slow
def test_100_million_rows_in_a_small_file_are_counted(tmp_path: Path) -> None:
    million = pa.array(np.full(1_000_000, 3, dtype=np.int8))
    path = repeated(tmp_path / "r.parquet", {"output": million}, 100)
    assert path.stat().st_size < 450_000
    assert run(tmp_path, path, clock=300)["users"] == 100_000_000


@pytest.mark.slow  # long texts take long
def test_long_texts_that_repeat_are_looked_at_once(tmp_path: Path) -> None:
    text = pa.DictionaryArray.from_arrays(np.zeros(100_000, dtype=np.int32), ["0" * 1_000_000])
    path = repeated(tmp_path / "r.parquet", {"output": text}, 1)
    done = run(tmp_path, path, study=BITS)
    assert done["code"] == "wrong-bits"


def test_names_of_users_that_would_fill_all_memory_are_refused(tmp_path: Path) -> None:
    rows = 100_000
    users = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int8), ["u" * 1_000_000])
    table = pa.table({"user": users, "output": pa.array(np.full(rows, 3, dtype=np.int8))})
    with pa.ipc.new_file(tmp_path / "r.arrow", table.schema) as writer:
        writer.write_table(table)
    assert run(tmp_path, tmp_path / "r.arrow")["code"] == "wrong-type"


@pytest.mark.slow
def test_long_names_of_users_that_repeat_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    """They take next to nothing in the file, and four gigabytes written out."""
    rows = 20_000
    users = pa.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), ["u" * 200_000])
    path = repeated(tmp_path / "r.parquet", {"user": users, "output": pa.array(np.full(rows, 99, dtype=np.int8))}, 1)
    assert path.stat().st_size < 10_000
    assert run(tmp_path, path)["code"] == "out-of-domain"


@pytest.mark.slow
def test_rows_with_nothing_in_them_are_read_in_parts(tmp_path: Path) -> None:
    batch = pa.record_batch({"output": pa.nulls(1_200_000)})
    with pa.ipc.new_file(tmp_path / "r.arrow", batch.schema) as writer:
        writer.write_batch(batch)
    assert (tmp_path / "r.arrow").stat().st_size < 1000
    assert run(tmp_path, tmp_path / "r.arrow", clock=300)["code"] == "no-output"


def claiming(path: Path, size: int) -> Path:
    content = path.read_bytes()
    path.write_bytes(content[:-8] + struct.pack("<I", size) + content[-4:])
    return path


@pytest.mark.parametrize("size", [2**32 - 1, 2**31, 1_000_000, 0, 3])
def test_a_footer_of_another_size_is_refused(size: int, tmp_path: Path) -> None:
    path = claiming(repeated(tmp_path / "r.parquet", {"output": pa.array([3])}, 1), size)
    with pytest.raises(hb.IntakeError) as caught:
        read(tmp_path, path)
    assert caught.value.code == "corrupt-file"


def read(folder: Path, source: object) -> hb.Reports:
    (folder / "study.toml").write_text(LIGHT_TOML)
    return hb.read_reports(source, hb.read_study(folder / "study.toml"))


FUZZ = """
import sys
from pathlib import Path
import numpy as np
import hubbub as hb
study, folder, whole = hb.read_study(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
content = whole.read_bytes()
rng = np.random.default_rng(0)
for turn in range(int(sys.argv[4])):
    changed = bytearray(content)
    for place in rng.integers(0, len(content), rng.integers(1, 9)):
        changed[place] = rng.integers(0, 256)
    if turn % 3 == 0:
        changed = changed[: rng.integers(0, len(content))]
    path = folder / f"fuzz{whole.suffix}"
    path.write_bytes(changed)
    print(turn, flush=True)
    try:
        hb.read_reports(path, study, allow_rejects="100%")
    except hb.HubbubError:
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["parquet", "csv", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("arrow", "arrows", "jsonl"))]
)
def test_damaged_files_are_read_or_refused_and_nothing_else(kind: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(LIGHT_TOML)
    rng = np.random.default_rng(1)
    rows = 300
    table = pa.table(
        {
            "user": [f"u{user}" for user in rng.integers(0, 100, rows)],
            "mechanism": pa.array(["light"] * rows).dictionary_encode(),
            "output": [str(output) for output in rng.integers(0, 10, rows)],
        }
    )
    path = tmp_path / f"whole.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind.startswith("arrow"):
        with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    elif kind == "csv":
        table.to_pandas().to_csv(path, index=False)
    else:
        table.to_pandas().to_json(path, orient="records", lines=True)
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", FUZZ, str(tmp_path / "study.toml"), str(tmp_path), str(path), "60"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, (done.stdout.splitlines()[-1:], done.stderr[-2000:])


# -- paths -----------------------------------------------------------------------------------------------------------


def loop(folder: Path) -> Path:
    (folder / "a.csv").symlink_to("a.csv")
    return folder / "a.csv"


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.csv")
    return folder / "pipe.csv"


PATHS: dict[str, tuple[Callable[[Path], object], str]] = {
    "zero": (lambda _: "/dev/zero", "not-a-file"),
    "zero by a link": (lambda folder: linked(folder, "/dev/zero"), "not-a-file"),
    "pipe": (pipe, "not-a-file"),
    "folder of a pipe": (lambda folder: pipe(folder).parent, "not-a-file"),
    "folder with the ending of a file": (lambda folder: made(folder / "r.csv"), "no-files"),
    "loop": (loop, "not-readable"),
    "NUL": (lambda _: "a\0b.csv", "not-readable"),
    "NUL in a pattern": (lambda _: "a\0*.csv", "no-files"),
    "long name": (lambda folder: folder / ("x" * 300 + ".csv"), "not-readable"),
    "long path": (lambda _: "x/" * 5000 + "r.csv", "not-readable"),
    "above the root": (lambda _: "../" * 200 + "no-such-folder/r.csv", "no-such-file"),
    "nothing": (lambda _: "", "no-files"),
}


def linked(folder: Path, target: str) -> Path:
    (folder / "r.csv").symlink_to(target)
    return folder / "r.csv"


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_leads_nowhere_good_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, code = PATHS[name]
    (tmp_path / "files").mkdir()
    monkeypatch.chdir(tmp_path / "files")
    source = make(tmp_path / "files")
    with pytest.raises(hb.HubbubError) as caught:
        read(tmp_path, source)
    assert caught.value.code == code


@pytest.mark.parametrize("path", ["a\0b.toml", "x" * 5000, "/dev/zero", "/", ""])
def test_a_study_at_no_good_path_is_refused(path: str) -> None:
    with pytest.raises(hb.StudyError):
        hb.read_study(path)


# -- studies ---------------------------------------------------------------------------------------------------------

KINDS = [
    "randomized-response",
    "geometric",
    "truncated-geometric",
    "laplace",
    "exponential",
    "rappor",
    "optimized-unary",
    "local-hashing",
    "subset-selection",
]


def studies() -> Iterator[tuple[str, str]]:
    for kind in KINDS:
        yield (
            f"10^12 numbers, {kind}",
            LIGHT_TOML.replace("high = 9", "high = 1000000000000").replace("truncated-geometric", kind),
        )
    grid = LIGHT_TOML.replace('"integers"\nlow = 0\nhigh = 9', '"grid"\ncolumns = 1000000\nrows = 1000000')
    for kind in ("planar-geometric", "planar-laplace", "randomized-response", "rappor"):
        yield f"10^12 cells, {kind}", grid.replace("truncated-geometric", kind)
    yield "10^12 cells on a map", grid.replace("columns", "south = 0.0\nwest = 0.0\nnorth = 1.0\neast = 1.0\ncolumns")
    for epsilon in ("nan", "inf", "-inf", "-1.0", "0.0", "1e308"):
        yield f"epsilon {epsilon}", LIGHT_TOML.replace("0.5", epsilon)
    yield "10^12 buckets", LIGHT_TOML.replace("truncated-geometric", "local-hashing") + "buckets = 1000000000000\n"
    yield "subsets of 10^12", LIGHT_TOML.replace("truncated-geometric", "subset-selection") + "size = 1000000000000\n"
    yield "lists in lists", LIGHT_TOML + "x = " + "[" * 200_000 + "]" * 200_000
    yield "tables in tables", LIGHT_TOML + "[" + ".".join(["a"] * 200_000) + "]\n"
    yield "tables in a table", LIGHT_TOML + "x = {" + ".".join(["a"] * 200_000) + " = 1}\n"
    yield "no study at all", "\n" * 1_000_000 + "\0"


HOSTILE = dict(studies())


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_study_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "hostile.toml").write_text(HOSTILE[name])
    with pytest.raises(hb.StudyError):
        hb.read_study(tmp_path / "hostile.toml")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["10^12 numbers, rappor", "10^12 cells, planar-geometric", "tables in tables"])
def test_a_hostile_study_takes_no_memory(name: str, tmp_path: Path) -> None:
    (tmp_path / "hostile.toml").write_text(HOSTILE[name])
    done = run(tmp_path, tmp_path / "hostile.toml", "study")
    assert done["error"] == "StudyError"


def test_a_study_of_200_megabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text(LIGHT_TOML + "# a comment\n" * 17_000_000)
    done = run(tmp_path, path, "study")
    assert (done["error"], done["what"]) == ("StudyError", "the study file is too large")


# -- tallies ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Forged:
    """A tally that was changed by somebody who knows how it is made."""

    content: str
    document: dict[str, Any]
    columns: dict[str, list[Any]]


JOINT = "user,output\na,3\na,4\nb,5\nb,6\n"
SINGLE = "output\n3\n4\n"
FORGED = {
    "huge times": Forged(
        JOINT, {"rows": 2**40, "sources": [{"name": "x", "sha256": None, "rows": 2**40}]}, {"times": [2**31 - 1] * 4}
    ),
    "huge users": Forged(SINGLE, {}, {"users": [2**62, 2**62]}),
    "users that overflow to what is said": Forged(SINGLE, {}, {"users": [2**63 - 1, 2**63 - 1]}),
    "patterns out of order": Forged(JOINT, {}, {"pattern": [5, 5, 2, 2]}),
    "a pattern in two places": Forged(JOINT, {}, {"pattern": [0, 1, 1, 0]}),
    "a study of 10^12 cells": Forged(
        SINGLE,
        {
            "study": {
                "version": 1,
                "domain": {"kind": "grid", "columns": 10**6, "rows": 10**6},
                "mechanisms": {"light": {"kind": "planar-geometric", "epsilon": 1.0}},
            }
        },
        {},
    ),
    "another study": Forged(
        SINGLE,
        {
            "study": {
                "version": 1,
                "domain": {"kind": "integers", "low": 0, "high": 8},
                "mechanisms": {"light": {"kind": "truncated-geometric", "epsilon": 0.5}},
            }
        },
        {},
    ),
    "an unknown version": Forged(SINGLE, {"version": 99}, {}),
    "another fingerprint": Forged(SINGLE, {"fingerprint": "f" * 64}, {}),
    "negative counts": Forged(SINGLE, {}, {"users": [-1, 3]}),
    "users that do not match": Forged(SINGLE, {}, {"users": [1, 3]}),
    "a nested study": Forged(
        SINGLE, {"study": {"version": 1, "domain": {"kind": "integers", "low": 0, "high": {}}, "mechanisms": []}}, {}
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_tally_is_refused(name: str, tmp_path: Path) -> None:
    forged = FORGED[name]
    (tmp_path / "study.toml").write_text(LIGHT_TOML)
    (tmp_path / "r.csv").write_text(forged.content)
    path = tmp_path / "t.tally.parquet"
    hb.collect(hb.read_study(tmp_path / "study.toml"), tmp_path / "r.csv", path)
    table, document = parts_of_tally(path)
    for column, values in forged.columns.items():
        place = table.schema.get_field_index(column)
        table = table.set_column(place, table.schema.field(place), [pa.array(values, table.schema.field(place).type)])
    write_forged(path, table, seal({**document, **forged.document}, table))
    done = run(tmp_path, path, "tally")
    assert done["code"] == ("unknown-version" if "version" in name else "damaged-tally")


def test_a_description_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.tally.parquet"
    metadata = {b"hubbub": b"[" * 1_000_000}
    pq.write_table(pa.table({"kind": ["single"]}).replace_schema_metadata(metadata), path)
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_tally(path)
    assert caught.value.code == "damaged-tally"
