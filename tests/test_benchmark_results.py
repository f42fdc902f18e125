"""Results of benchmarks: each row says which command measured it, and pages have the numbers that were measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmark_modules import benchmark

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


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
    rows = [(path.name, row) for path in RESULTS for row in json.loads(path.read_text())["rows"]]
    assert {name for name, row in rows if (row["command"] is None) != (row["machine"] is None)} == set()
    commands = {row["command"] for _, row in rows if row["command"] is not None}
    assert [command for command in commands if not command.startswith("python benchmarks/")] == []


def test_the_page_of_benchmarks_is_written_from_the_results() -> None:
    assert benchmark("table").page() == (ROOT / "docs" / "reference" / "benchmarks.md").read_text()


@pytest.mark.parametrize(
    ("name", "filled", "typed"),
    [("page", "with_coverage", ("% |", "% or so |")), ("peers", "with_peers", ("solved; gap", "perfect; gap"))],
)
def test_tables_of_explanations_are_those_measured(name: str, filled: str, typed: tuple[str, str]) -> None:
    fill = getattr(benchmark("table"), filled)
    page = (ROOT / "docs" / "explanation" / f"{name}.md").read_text(encoding="utf-8")
    assert fill(page) == page
    assert fill(page.replace(*typed)) == page  # what is typed in does not stay
