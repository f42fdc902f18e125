"""The site's gallery: every picture has its place, a text with links, and at most ten lines of code that draw it."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

DOCS = Path(__file__).parent.parent / "docs"
SCRIPTS = {path.stem.removeprefix("plot_"): path for path in sorted((DOCS / "gallery").glob("*/plot_*.py"))}
QUICK = ("yes_or_no", "two_groups_answers")
MAX_CODE_LINES = 10


def code_lines(script: str) -> list[str]:
    """Return the lines of a script without its docstring, empty lines and comments."""
    end = ast.parse(script).body[0].end_lineno
    return [line for line in script.splitlines()[end:] if line.strip() and not line.lstrip().startswith("#")]


def test_code_lines_are_counted() -> None:
    assert code_lines('"""\nTitle\n"""\n\nimport a\n\n# why\nfor b in a:\n    c(b)  # what\n') == [
        "import a",
        "for b in a:",
        "    c(b)  # what",
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_picture_takes_ten_lines_and_links_to_a_page(name: str) -> None:
    script = SCRIPTS[name].read_text(encoding="utf-8")
    text = ast.get_docstring(ast.parse(script)) or ""
    title, line, *words = text.splitlines()
    assert 0 < len(code_lines(script)) <= MAX_CODE_LINES
    assert line == "=" * len(title)
    assert 2 <= " ".join(words).replace(":doc:", "").count(". ") + 1 <= 4  # sentences
    pages = [word.split("`")[0] for word in text.split(":doc:`/")[1:]]
    assert pages
    assert all((DOCS / f"{page}.md").exists() for page in pages)


def test_the_gallery_has_a_place_for_every_picture() -> None:
    places = runpy.run_path(str(DOCS / "conf.py"))["GALLERY"]
    assert {(section, name) for section, names in places.items() for name in names} == {
        (path.parent.name, name) for name, path in SCRIPTS.items()
    }
    assert all((DOCS / "gallery" / section / "README.rst").exists() for section in places)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in SCRIPTS]
)
def test_the_lines_draw_a_picture(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    plt.switch_backend("Agg")
    plt.close("all")
    runpy.run_path(str(SCRIPTS[name]))
    assert len(plt.get_fignums()) == 1
    assert all(axes.has_data() for axes in plt.gcf().axes)
    plt.close("all")
