"""Tutorials do what they say: every cell runs in an empty folder, every command succeeds, every number is computed."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir, gettempprefix
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "run_tutorial.py"
PAGES = sorted(path for path in (ROOT / "docs" / "tutorials").glob("*.md") if "{code-cell}" in path.read_text())
TUTORIALS = [pytest.param(page, marks=pytest.mark.slow, id=page.stem) for page in PAGES]  # `make docs` runs them, too


def extension(name: str) -> dict[str, Any]:
    """Return what an extension of the site has."""
    return runpy.run_path(str(ROOT / "docs" / "_extensions" / f"{name}.py"))


def run(page: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, str(SCRIPT), str(page), str(folder), *options], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_runs_and_its_claims_hold(page: Path, tmp_path: Path) -> None:
    done = run(page, tmp_path / "empty")
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_notebook_of_a_tutorial_does_without_what_is_hidden(page: Path, tmp_path: Path) -> None:
    done = run(page, tmp_path / "empty", "--as-notebook")
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]


def test_three_tutorials_at_least_are_found() -> None:
    assert {"survey", "city", "telemetry"} <= {page.stem for page in PAGES}


CELL = "```{{code-cell}}\n{}\n```\n"
FAULTS = {
    "an error in Python": (CELL.format("1 / 0"), "ZeroDivisionError"),
    "a command that fails": (CELL.format("!exit 3"), "CalledProcessError"),
    "a number that nothing computes": (CELL.format("1") + "It is {value}`share`.\n", "no hidden cell computes share"),
    "a claim that does not hold": (CELL.format(":tags: [remove-cell]\nassert 0.2 < 0.1"), "AssertionError"),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_tutorial_is_noticed(fault: str, tmp_path: Path) -> None:
    text, told = FAULTS[fault]
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{text}")
    done = run(page, tmp_path / "empty")
    assert done.returncode != 0
    assert told in done.stderr


def test_a_command_that_is_meant_to_fail_may(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(CELL.format("!false || true") + CELL.format(':tags: [remove-cell]\n{"a": "b"}') + "{value}`a`\n")
    done = run(page, tmp_path / "empty")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("a: b")


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_a_terminal_shows_what_is_left_on_it() -> None:
    terminal_html = extension("terminal_output")["terminal_html"]
    html = terminal_html("\x1b[32mgreen\x1b[0m <b>\r\nfirst\r\x1b[2Ksecond\r\ntoo much\r\n\x1b[1A\x1b[2Klast\r\n")
    assert plain(html) == "green &lt;b&gt;\nsecond\nlast\n"
    assert '<span class="t-green">green</span>' in html
    assert plain(terminal_html("a\nb\n")) == "a\nb\n"  # from a pipe


def test_long_lines_are_folded_between_words() -> None:
    found = plain(extension("terminal_output")["terminal_html"]("word " * 30 + "\r\n" + "x" * 100))
    assert found.splitlines() == [*[" ".join(["word"] * 16)], " ".join(["word"] * 14), "x" * 80, "x" * 20]


def test_a_progress_bar_is_shown_half_way_if_it_lasted() -> None:
    module = extension("terminal_output")
    draw = [f"\r\x1b[2Kreading {'━' * step} about {100 - step} s left" for step in range(100)]
    html = module["terminal_html"]("".join(draw) + "\r\x1b[2Kdone\r\n")
    assert "while it runs" in html
    assert "about 50 s left" in html
    soon_over = [f"\r\x1b[2Kreading {'━' * step}" for step in range(20)]
    assert "while it runs" not in module["terminal_html"]("".join(soon_over) + "\r\x1b[2Kdone\r\n")


def test_a_terminal_tells_nothing_of_the_folder_it_ran_in() -> None:
    module = extension("terminal_output")
    folder = f"{gettempdir()}/{gettempprefix()}ab12cd_3"
    assert plain(module["terminal_html"](f"written: {folder}/app.db")) == "written: /home/you/app.db\n"


def test_the_notebook_that_readers_download_has_nothing_hidden_and_no_results() -> None:
    nbformat = pytest.importorskip("nbformat", reason="notebooks are made with the site: pip install hubbub[docs]")
    pytest.importorskip("sphinx", reason="notebooks are made with the site: pip install hubbub[docs]")
    v4 = nbformat.v4
    result = v4.new_output("execute_result", {"text/plain": "{'share': '29%'}"})
    hidden = v4.new_code_cell("{'share': '29%'}", metadata={"tags": ["remove-cell"]}, outputs=[result])
    shown = v4.new_code_cell("!hubbub estimate x || true", outputs=[v4.new_output("stream", text=f"{gettempdir()}/x")])
    text = v4.new_markdown_cell("The [share](x.md) is {value}`share`\n([why](../explanation/trust.md)).\n![a](b.png)")
    made = extension("executed_pages")["download"](v4.new_notebook(cells=[text, hidden, shown]))
    nbformat.validate(nbformat.from_dict(made))
    assert [cell["source"] for cell in made["cells"]] == [
        "The share is 29%.\n![a](b.png)",
        "!hubbub estimate x",
    ]
    assert gettempdir() not in json.dumps(made)
