"""Damaged files of reports, in every format: only a HubbubError comes out, and no row is lost.

Run by itself, ``python tests/test_fuzz_sources.py EXAMPLES FORMAT...`` reads under a limit of memory and of computing,
and prints what came of the examples of each format as JSON. The gate reads a few hundred files so, `make slow` many
thousands.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

pytest.importorskip("resource", reason="memory cannot be limited here")

import resource
import signal

import hubbub as hb
from fuzzing import MEMORY, bounded, check_parts, damaged_bytes, stop
from hubbub.core.progress import finish
from hubbub.intake.in_memory_reading import read
from hubbub.intake.read_plan import plan_reading

DIGITS = hb.Integers(0, 9)
STUDY = hb.Study(
    DIGITS,
    {"near": hb.TruncatedGeometric(DIGITS, 0.5), "far": hb.Geometric(DIGITS, 0.5), "bits": hb.Rappor(DIGITS, 1.0),
     "hash": hb.LocalHashing(DIGITS, 1.0)},
    max_reports_per_user=3,
)  # fmt: skip
ROWS = [
    ("ann", "near", "3"), ("bob", "far", "-12"), ("ann", "bits", "1000000000"), ("cyd", "hash", "77:1"),
    ("dan", "near", "9"), ("bob", "bits", "0x8040"), ("eve", "far", "40"), ("fay", "near", "0"),
]  # fmt: skip
NAMES = ["user", "mechanism", "output"]
FORMATS = ["csv", "tsv", "jsonl", "csv.gz", "csv.zst", "jsonl.gz", "parquet", "arrow", "xlsx"]
TYPED = ("parquet", "arrow", "xlsx")
SHEET = "xl/worksheets/sheet1.xml"
seen: Counter[str] = Counter()


def text_of(kind: str, *, users: bool) -> bytes:
    """Return the reports as a text, or as the text inside a compressed file."""
    first = 0 if users else 1
    if kind.startswith("jsonl"):
        lines = [json.dumps(dict(zip(NAMES[first:], row[first:], strict=True))) for row in ROWS]
    else:
        between = "\t" if kind == "tsv" else ","
        lines = [between.join(row[first:]) for row in [tuple(NAMES), *ROWS]]
    return ("\n".join(lines) + "\n").encode()


@cache
def columns_of(kind: str, *, users: bool) -> bytes:
    """Return the reports as a file of typed columns."""
    table = pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True)))
    table = table if users else table.drop_columns("user")
    with io.BytesIO() as file:
        if kind == "xlsx":
            table.to_pandas().to_excel(file, index=False)
        elif kind == "parquet":
            pq.write_table(table, file, compression="none")
        else:
            feather.write_feather(table, file, compression="uncompressed")
        return file.getvalue()


def with_sheet(workbook: bytes, damaged: Callable[[bytes], bytes]) -> bytes:
    """Return a workbook whose sheet is damaged, in an archive that is not."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as new:
            for name in old.namelist():
                content = old.read(name)
                new.writestr(name, damaged(content) if name == SHEET else content)
        return file.getvalue()


def compressed(kind: str, text: bytes) -> bytes:
    if kind.endswith(".gz"):
        return gzip.compress(text, mtime=0)
    return bytes(pa.compress(text, codec="zstd", asbytes=True)) if kind.endswith(".zst") else text


def counted_apart(kind: str, text: bytes) -> int | None:
    """Return how many rows a text has, counted by its lines; None where lines alone do not tell."""
    in_utf16 = text.startswith((b"\xff\xfe", b"\xfe\xff"))
    if (b'"' in text and "json" not in kind) or b"\r" in text or in_utf16 or b"sep=" in text[:8].lower():
        return None
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if "json" in kind:
        return sum(bool(line.strip()) for line in lines)
    return sum(line != b"" for line in lines) - 1  # the first names the columns


def read_damaged(path: Path, content: bytes, expected: int | None) -> None:
    """Read a file: it is refused with a message, or each of its rows is taken or rejected."""
    path.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hb.HubbubWarning)
            reports, summary = finish(read(plan_reading(str(path), STUDY, allow_rejects="100%")))
    except hb.HubbubError as error:
        seen["refused"] += 1
        check_parts(error)
        if error.code == "rows-lost":
            raise AssertionError("rows were lost") from error
        return
    finally:
        path.unlink()
    rejected = sum(summary.rejected.values())
    seen["with rejects" if rejected else "taken"] += 1
    assert reports.users <= summary.rows - rejected
    assert all(len(note) < 1000 for note in summary.notes)
    if not summary.named:
        assert reports.users == summary.rows - rejected
    if expected is not None:
        assert summary.rows == expected, (content, summary)


def damage(kind: str, count: int, folder: Path) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.booleans(), st.booleans(), st.data())
    def run(users: bool, inside: bool, data: st.DataObject) -> None:
        path = folder / f"{sum(seen.values())}.{kind}"
        if kind in TYPED:
            content, expected = columns_of(kind, users=users), None
            if kind == "xlsx" and inside:
                content = with_sheet(content, lambda sheet: data.draw(damaged_bytes(st.just(sheet))))
            else:
                content = data.draw(damaged_bytes(st.just(content)))
        elif inside or compressed(kind, b"") == b"":
            text = data.draw(damaged_bytes(st.just(text_of(kind, users=users))))
            content, expected = compressed(kind, text), counted_apart(kind, text)
        else:
            whole = compressed(kind, text_of(kind, users=users))
            content, expected = data.draw(damaged_bytes(st.just(whole))), None
        with bounded():
            read_damaged(path, content, expected)

    run()


def main(count: int, kinds: list[str]) -> None:
    with TemporaryDirectory() as folder:  # compiles and loads whatever is needed, before memory is counted
        for kind in FORMATS:
            typed = kind in TYPED
            content = columns_of(kind, users=True) if typed else compressed(kind, text_of(kind, users=True))
            read_damaged(Path(folder) / f"whole.{kind}", content, None if typed else len(ROWS))
    assert seen == {"taken": len(FORMATS)}, seen
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGVTALRM, stop)
    told = {}
    for kind in kinds:
        seen.clear()
        with TemporaryDirectory() as folder:
            damage(kind, count, Path(folder))
        told[kind] = dict(seen)
    sys.stdout.write(json.dumps(told) + "\n")


def fuzz(count: int, *kinds: str) -> dict[str, dict[str, int]]:
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory cannot be measured here")
    command = [sys.executable, __file__, str(count), *kinds]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3000)  # noqa: S603
    assert done.returncode == 0, done.stderr[-5000:]
    told: dict[str, dict[str, int]] = json.loads(done.stdout)
    return told


@pytest.mark.slow  # files of reports with faults of each kind are in test_bad_inputs
def test_a_few_damaged_files_of_reports() -> None:
    told = fuzz(15, "csv", "jsonl.gz", "parquet", "arrow", "xlsx")
    assert min(sum(counts.values()) for counts in told.values()) >= 15
    assert sum(counts.get("refused", 0) for counts in told.values()) > 20
    assert told["csv"]["with rejects"] > 2


@pytest.mark.parametrize("name", ["output", "mechanism"])
def test_an_entry_beyond_its_dictionary(name: str, tmp_path: Path) -> None:
    """Arrow reads such a file without a word, and the row would count as whatever stands there in another column."""
    texts = {"mechanism": ["near", "far", "hash"], "output": ["3", "4", "77:1"]}
    columns = {
        column: pa.DictionaryArray.from_arrays(pa.array([0, 1, 3 if column == name else 2]), entries, safe=False)
        for column, entries in texts.items()
    }
    path = tmp_path / "reports.parquet"
    pq.write_table(pa.table(columns), path, write_statistics=False)
    with pytest.raises(hb.IntakeError, match="index 3 into a dictionary of 3 entries, column " + name) as caught:
        hb.read_reports(str(path), STUDY)
    assert caught.value.code == "corrupt-file"


@pytest.mark.slow
def test_any_byte_of_a_parquet_file(tmp_path: Path) -> None:
    """One byte is another: the file is refused, with a cause of its own, or all of its rows are accounted for."""
    whole = columns_of("parquet", users=False)
    seen.clear()
    for place in range(len(whole)):
        for change in (1, 13, 128):
            damaged = whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :]
            read_damaged(tmp_path / f"{place}-{change}.parquet", damaged, None)
    assert seen["refused"] > 1000


def test_a_long_name_of_a_column_makes_no_long_message(tmp_path: Path) -> None:
    path = tmp_path / "reports.csv"
    path.write_text("mechanism," + "output" + "_" * 5000 + "\nnear,3\n")
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(str(path), STUDY)
    assert caught.value.code == "nearly-a-column"
    check_parts(caught.value)


@pytest.mark.parametrize("kind", ["csv.gz", "csv.zst"])
def test_a_damaged_file_keeps_no_memory(kind: str, tmp_path: Path) -> None:
    """Each reading reserves a piece of 32 MB; one that ends in an error gives it back."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory cannot be measured here")
    path = tmp_path / f"damaged.{kind}"
    path.write_bytes(compressed(kind, text_of(kind, users=True))[:-3])

    def refused(times: int) -> int:
        for _ in range(times):
            with pytest.raises(hb.HubbubError):
                hb.read_reports(str(path), STUDY)
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    before = refused(3)
    assert refused(20) - before < 200_000_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_many_damaged_files_of_reports(kind: str) -> None:
    counts = fuzz(3000, kind)[kind]
    assert min(counts["refused"], counts.get("taken", 0) + counts.get("with rejects", 0)) > 20


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
