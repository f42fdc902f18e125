"""Results of benchmarks: each row says which command measured it, and pages have the numbers that were measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmark_modules import benchmark
from measured_numbers import mistakes

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


def tables() -> dict[str, list[dict[str, Any]]]:
    return {path.stem: json.loads(path.read_text())["rows"] for path in RESULTS}


def kept(name: str, value: float) -> dict[str, Any]:
    return {"problem": name, "measured": "seconds", "reached": f"{value:g}", "asked": "shown", "holds": True}


def test_each_row_keeps_the_command_that_measured_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = benchmark("measure")
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["/somewhere/times.py", "--counts", "/home/me/counts.csv"])
    measure.save("times", [kept("short", 1.0), kept("long", 2.0)])
    monkeypatch.setattr(sys, "argv", ["times.py", "--only", "a long one"])
    measure.save_merged("times", [kept("long", 3.0), kept("longer", 4.0)])
    rows = measure.stored_rows("times")
    assert [(row["problem"], row["reached"]) for row in rows] == [("short", "1"), ("long", "3"), ("longer", "4")]
    first, second = "python benchmarks/times.py --counts FILE", "python benchmarks/times.py --only 'a long one'"
    assert [row["command"] for row in rows] == [first, second, second]
    assert json.loads((tmp_path / "times.json").read_text()).keys() == {"rows"}


def test_several_rows_about_one_problem_are_renewed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = benchmark("measure")
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    measure.save("times", [kept("a", 1.0), kept("b", 2.0), kept("a", 3.0)])
    measure.save_merged("times", [kept("a", 4.0), kept("a", 5.0), kept("c", 6.0)])
    assert [row["reached"] for row in measure.stored_rows("times")] == ["4", "5", "2", "6"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel's record of memory is Linux's")
def test_peak_memory_is_that_of_the_process_alone() -> None:
    """What `getrusage` says would include the memory of the process that starts another one."""
    held = np.ones(25_000_000)  # 200 MB
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import measure; print(measure.peak_mib())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert 10.0 < float(done.stdout) < 150.0
    assert benchmark("measure").peak_mib() > 2**-20 * held.nbytes


def test_a_row_whose_command_is_not_known_is_not_claimed_by_a_later_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = benchmark("measure")
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["times.py"])
    measure.save("times", [{**kept("old", 1.0), "command": None, "machine": None}, kept("new", 2.0)])
    assert [row["command"] for row in measure.stored_rows("times")] == [None, "python benchmarks/times.py"]


def test_a_table_of_several_runs_says_which_run_each_row_is_from() -> None:
    table = benchmark("table")
    one, other = {"command": "python a.py", "machine": "m"}, {"command": "python a.py --only b", "machine": "m"}
    lost = {"command": None, "machine": None}
    assert table.table([kept("a", 1.0) | one]).splitlines() == [
        "`python a.py` (m)", "",
        "| problem | measured | reached | required | holds |", "|---|---|---|---|---|",
        "| a | seconds | 1 | shown | yes |",
    ]  # fmt: skip
    lines = table.table([kept("a", 1.0) | one, kept("b", 2.0) | other, kept("c", 3.0) | lost, kept("d", 4.0) | one])
    runs, _, rows = lines.partition("\n\n")
    assert runs.splitlines() == ["1. `python a.py` (m)", "2. `python a.py --only b` (m)", f"3. {table.UNKNOWN_RUN}"]
    head, _, *lines = rows.splitlines()
    assert head.endswith("| holds | run |")
    assert [line.split(" | ")[-1] for line in lines] == ["1 |", "2 |", "3 |", "1 |"]
    assert table.table([{"tool": "x", "gap": 1} | one]).splitlines()[2:] == ["| tool | gap |", "|---|---|", "| x | 1 |"]


def test_stored_rows_have_a_command_of_their_own() -> None:
    rows = [row for table in tables().values() for row in table]
    assert [row for row in rows if (row["command"] is None) != (row["machine"] is None)] == []
    commands = {row["command"] for row in rows if row["command"] is not None}
    assert [command for command in commands if not command.startswith("python benchmarks/")] == []


def test_the_page_of_benchmarks_is_written_from_the_results() -> None:
    table = benchmark("table")
    assert table.page() == (ROOT / "docs" / "reference" / "benchmarks.md").read_text()
    assert {path.stem for path in RESULTS} <= {*table.ORDER, *table.COVERAGE}  # nothing measured is left out


@pytest.mark.parametrize(
    ("name", "filled", "typed"),
    [("page", "with_coverage", ("% |", "% or so |")), ("peers", "with_peers", ("solved; gap", "perfect; gap"))],
)
def test_tables_of_explanations_are_those_measured(name: str, filled: str, typed: tuple[str, str]) -> None:
    fill = getattr(benchmark("table"), filled)
    page = (ROOT / "docs" / "explanation" / f"{name}.md").read_text(encoding="utf-8")
    assert fill(page) == page
    assert fill(page.replace(*typed)) == page  # what is typed in does not stay


def test_numbers_that_pages_quote_are_those_measured() -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}
    quoting = {path.name for path, text in pages.items() if "<!-- measured\n" in text}
    assert {"intervals.md", "weights.md", "fit.md", "cluster.md", "nightly.md"} <= quoting
    stored = tables()
    assert [f"{path.name}: {wrong}" for path, text in pages.items() for wrong in mistakes(text, stored)] == []


TIMES = [
    {"problem": "a: x", "measured": "100 studies; plain 0.759, width 2", "reached": "0.957"},
    {"problem": "a: y", "measured": "one / two", "reached": "1.50 / 0.75 s = 2.00"},
    {"problem": "a: y", "measured": "bytes", "reached": "6,124"},
    {"problem": "b", "measured": "share", "reached": "12.34%"},
]


@pytest.mark.parametrize(
    ("text", "source", "wrong"),
    [
        ("It is 75.9% now.", "75.9% | times | a: x | plain", None),
        ("It is 95.7%.", "95.7% | times | a: x", None),
        ("It is 12.3%, or 12%.", "12% | times | b", None),
        ("It took 0.75 s.", "0.75 s | times | a: y | one / two", None),
        ("The ratio is 2.0.", "2.0 | times | a: y | one / two", None),
        ("| bytes | 6,124 |", "6,124 | times | a: y | bytes", None),
        ("At least 95.7% in 3 rows.", "3 | times | a* | rows", None),
        ("At least 0.957.", "0.957 | times | a* | lowest", None),
        ("It is 75.8%.", "75.8% | times | a: x | plain", "the page says 75.8%, measured was '0.759'"),
        ("It is 0.757.", "0.757 | times | a: x | plain", "the page says 0.757, measured was '0.759'"),
        ("It took 0.75 ms.", "0.75 ms | times | a: y | one / two", "the page says 0.75 ms"),
        ("It is 175.9%.", "75.9% | times | a: x | plain", "'75.9%' is not in the paragraph or table above"),
        ("It is 75.9%.\n\nOr not.", "75.9% | times | a: x | plain", "'75.9%' is not in the paragraph or table above"),
        ("It took 0.75 s.", "0.75 s | times | a: y", "2 rows fit instead of one"),
        ("It is 2.", "2 | times | c", "0 rows fit instead of one"),
        ("It is 2.", "2 | time | b", "'time'"),
        ("At least 0.9.", "0.9 | times | a* | lowest", "the page says 0.9, measured was '0.957'"),
    ],
)
def test_a_number_that_was_not_measured_is_noticed(text: str, source: str, wrong: str | None) -> None:
    found = mistakes(f"Before: 75.9%.\n\n{text}\n<!-- measured\n{source}\n-->\n\nAfter.", {"times": TIMES})
    assert len(found) == (wrong is not None)
    assert wrong is None or wrong in found[0]
