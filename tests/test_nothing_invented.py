"""Ways to a wrong answer that would say nothing: what each of them must come to instead."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import hubbub as hb
from hubbub.core.defaults import DEFAULT_MEMORY
from hubbub.intake import cluster_reading as clustered
from hubbub.intake.cluster_tasks import ReadPart, read_part
from hubbub.intake.sources.parquet_arrow import ParquetSource
from terminal import hubbub

LINE = hb.Integers(0, 9)
STUDY = hb.Study(LINE, {"near": hb.TruncatedGeometric(LINE, 1.0)})
TOML = (
    'version = 1\n[domain]\nkind = "integers"\nlow = 0\nhigh = 9\n'
    '[mechanisms.near]\nkind = "truncated-geometric"\nepsilon = 1.0\n'
)


def unchecked(texts: list[bytes]) -> pa.Array:
    """Return texts that nobody has looked at: Arrow believes the type."""
    stored = pa.array(texts, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())


@pytest.mark.parametrize("column", ["user", "output"])
def test_texts_of_parquet_that_are_not_utf_8_are_rejected(tmp_path: Path, column: str) -> None:
    """Given to a database as they are, they came back as other users with other outputs."""
    bad = [b"\xff\xfe", b"\x80abc"]
    names = [str(k).encode() for k in range(50)]
    columns = {"user": names, "output": [str(k % 10).encode() for k in range(50)]}
    columns[column] = [*bad, *columns[column][2:]]
    table = pa.table({name: unchecked(texts) for name, texts in columns.items()})
    parquet.write_table(table, tmp_path / "r.parquet")
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(tmp_path / "r.parquet", STUDY)
    assert caught.value.code == "not-utf-8"
    assert hb.read_reports(tmp_path / "r.parquet", STUDY, allow_rejects=2).users == 48


def test_whole_numbers_beyond_those_of_arrow_are_told(tmp_path: Path) -> None:
    far = hb.Study(LINE, {"far": hb.Geometric(LINE, 0.5)})
    table = pa.table({"output": pa.array([2**63 + 1, 2**63 + 5], pa.uint64())})
    with pytest.raises(hb.IntakeError):
        hb.read_reports(table, far)
    near = pa.table({"output": pa.array([3, 5], pa.uint64())})
    assert hb.read_reports(near, far) == hb.Reports.from_outputs(far.mechanisms["far"], [3, 5])


def test_swapped_columns_of_many_rows_do_not_fill_the_memory() -> None:
    rows = 30_000
    table = pa.table({"mechanism": [f"m{k}" for k in range(rows)], "output": [str(10 * k) for k in range(rows)]})
    study = hb.Study(LINE, {"a": hb.Geometric(LINE, 0.5), "b": hb.Geometric(LINE, 1.0)})
    with pytest.raises(hb.IntakeError) as caught:
        hb.read_reports(table, study)
    assert caught.value.code == "unknown-mechanism"
    mixed = pa.table({"mechanism": ["a", "b"] * 5, "output": pa.array([1, 4_000_000] * 5)})
    assert hb.read_reports(mixed, study).users == 10


@dataclass(frozen=True)
class Halves(hb.Mechanism):
    """A mechanism of one's own, whose outputs are coded as fractions."""

    domain: hb.Domain
    epsilon: float = 1.0

    @property
    def outputs(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([0.3, 0.7])

    @cached_property
    def output_space(self):  # type: ignore[no-untyped-def]
        from hubbub.mechanisms.output_spaces import OutputSpace

        class Fractions(OutputSpace):
            def encode(self, outputs: object) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
                return np.array(list(map(float, outputs)))  # type: ignore[call-overload]

            def decode(self, codes: np.ndarray[tuple[int], np.dtype[np.float64]]):  # type: ignore[no-untyped-def]
                return codes

            def parse(self, text: str) -> object:
                return float(text)

        return Fractions()

    def log_columns(self, codes, among=None):  # type: ignore[no-untyped-def]
        values = len(self.domain) if among is None else among.size
        return np.log(np.where(np.arange(values)[:, None] < values / 2, codes, 1 - codes))

    def matrix(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return np.array([[0.3, 0.7]] * 5 + [[0.7, 0.3]] * 5)


def test_codes_of_a_mechanism_of_ones_own_stay_what_they_are(tmp_path: Path) -> None:
    own = Halves(LINE)
    study = hb.Study(LINE, {"own": own})
    reports = hb.read_reports(pa.table({"output": ["0.3", "0.7", "0.3"]}), study)
    assert reports == hb.Reports.from_outputs(own, [0.3, 0.7, 0.3])
    hb.collect(study, pa.table({"output": ["0.3", "0.7", "0.3"]}), tmp_path / "t.tally.parquet")
    assert hb.read_tally(tmp_path / "t.tally.parquet").reports == reports


def test_a_study_whose_names_no_file_can_hold_is_not_collected(tmp_path: Path) -> None:
    study = hb.Study(LINE, {"my mechanism": hb.TruncatedGeometric(LINE, 1.0)})
    with pytest.raises(hb.StudyError, match="cannot be written to a tally"):
        hb.collect(study, pa.table({"output": ["3"]}), tmp_path / "t.tally.parquet")
    with pytest.raises(hb.StudyError, match="names no mechanism"):
        hb.Study(LINE, {})
    with pytest.raises(hb.StudyError, match="max_reports_per_user must be a positive integer"):
        hb.Study(LINE, STUDY.mechanisms, max_reports_per_user=0)


def test_seven_is_one_user_in_every_column(tmp_path: Path) -> None:
    mixed = pd.DataFrame({"user": pd.Series([7, 7.0, "7"], dtype=object), "output": ["1", "2", "3"]})
    assert hb.read_reports(mixed, STUDY).users == 1
    with sqlite3.connect(tmp_path / "r.db") as database:
        database.execute("CREATE TABLE r (user, output)")
        database.executemany("INSERT INTO r VALUES (?, ?)", [(7, 1), (7.0, 2), ("7", 3)])
    database.close()
    assert hb.read_reports(f"sqlite:///{tmp_path}/r.db#r", STUDY).users == 1
    (tmp_path / "r.csv").write_text("user,output\n7,1\n7.0,2\n")
    assert hb.read_reports(tmp_path / "r.csv", STUDY).users == 1


# -- counted once ----------------------------------------------------------------------------------------


def refused(code: str, *arguments: object, **keywords: object) -> None:
    with pytest.raises(hb.IntakeError) as caught:
        hb.collect(*arguments, **keywords)  # type: ignore[arg-type]
    assert caught.value.code == code


def test_a_file_that_grew_is_not_counted_again(tmp_path: Path) -> None:
    path, target = tmp_path / "r.csv", tmp_path / "t.tally.parquet"
    path.write_text("output\n1\n2\n")
    hb.collect(STUDY, path, target)
    path.write_text("output\n1\n2\n3\n")
    refused("counted-twice", STUDY, path, target)
    assert hb.read_tally(target).users == 2


def test_a_table_in_memory_is_merged_once(tmp_path: Path) -> None:
    table = pd.DataFrame({"output": ["1", "2"]})
    assert hb.collect(STUDY, table, tmp_path / "a.tally.parquet").users == 2
    hb.collect(STUDY, table.iloc[::-1], tmp_path / "b.tally.parquet")
    assert (
        hb.merge([tmp_path / "a.tally.parquet", tmp_path / "b.tally.parquet"], tmp_path / "c.tally.parquet").users == 4
    )
    shutil.copy(tmp_path / "a.tally.parquet", tmp_path / "copy.tally.parquet")
    for other in ("copy", "c"):
        with pytest.raises(hb.IntakeError) as caught:
            hb.merge([tmp_path / "a.tally.parquet", tmp_path / f"{other}.tally.parquet"], tmp_path / "d.tally.parquet")
        assert caught.value.code == "same-content"  # it may be another table with the same rows


def test_a_table_of_a_database_is_the_same_by_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("r.db") as database:
        database.execute("CREATE TABLE t (output)")
        database.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    database.close()
    target = tmp_path / "t.tally.parquet"
    hb.collect(STUDY, "sqlite:///r.db#t", target)
    for other in ("sqlite:///./r.db#t", f"sqlite:///{tmp_path}/r.db#t", "sqlite:///r.db#T"):
        refused("counted-twice", STUDY, other, target)
    assert hb.read_tally(target).users == 2


# -- inputs stay what they are ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "estimate study.toml r.csv --by town --rejects r.csv",
        "estimate study.toml r.csv --rejects study.toml",
        "estimate study.toml r.csv --quick -o r.csv",
        "check study.toml r.csv --rejects study.toml",
        "collect study.toml r.csv -o t.tally.parquet --rejects study.toml",
        "collect study.toml r.csv -o t.tally.parquet --rejects r.csv",
        "collect study.toml sqlite:///r.db#t -o t.tally.parquet --rejects r.db",
    ],
)
def test_nothing_is_written_over_what_is_read(tmp_path: Path, words: str) -> None:
    (tmp_path / "study.toml").write_text(TOML)
    (tmp_path / "r.csv").write_text("output,town\n1,rome\n")
    with sqlite3.connect(tmp_path / "r.db") as database:
        database.execute("CREATE TABLE t (output)")
        database.execute("INSERT INTO t VALUES (1)")
    database.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = hubbub(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert "written over" in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_group_whose_name_looks_like_markup_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TOML)
    (tmp_path / "r.csv").write_text("output,town\n1,[/b]\n2,[/b]\n")
    words = "estimate study.toml r.csv --by town --quick --method mle"
    command = f"script -qec '{sys.executable} -m hubbub.cli {words}' /dev/null"
    if shutil.which("script") is None:
        pytest.skip("there is no terminal to show it on: the program script is missing")
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert done.returncode == 0, done.stdout
    assert "[/b]" in done.stdout


# -- parts of a file on a cluster ------------------------------------------------------------------------


def test_parts_of_a_file_are_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that finds another file than the client saw does not read it."""
    monkeypatch.setattr(clustered, "PART_BYTES", 1)
    path = tmp_path / "r.parquet"
    parquet.write_table(pa.table({"output": ["1", "2"]}), path, row_group_size=1)
    first, second = clustered._parts([ParquetSource(path)], digests=False)
    assert isinstance(first, ReadPart)
    assert read_part(STUDY, first, False, 0, DEFAULT_MEMORY).users == 1
    parquet.write_table(pa.table({"output": ["8", "9"]}), path, row_group_size=1)
    os.utime(path, (1, 1))
    with pytest.raises(hb.IntakeError) as caught:
        read_part(STUDY, second, False, 0, DEFAULT_MEMORY)
    assert caught.value.code == "changed-meanwhile"
