"""Run the cells of a tutorial in an empty folder, as a reader would; stop at the first that fails.

Run: python scripts/run_tutorial.py docs/tutorials/survey.md FOLDER [--as-notebook] [--store-pictures]

With --as-notebook, hidden cells are left out, as they are from the notebook that readers download.
With --store-pictures, the pictures of pages that the tutorial wrote go to docs/pictures, for those who build the site
without a browser.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CELL = re.compile(r"^```\{code-cell\}[^\n]*\n((?::[\w-]+:[^\n]*\n)*)(.*?)^```", flags=re.MULTILINE | re.DOTALL)
VALUE = re.compile(r"\{value\}`([^`]+)`")


class TutorialError(Exception):
    """A tutorial that does not do what it says."""


@dataclass(frozen=True)
class Cell:
    """A code cell of a page."""

    source: str
    tags: frozenset[str]

    @property
    def is_hidden(self) -> bool:
        """Whether the page does not show it: it checks, or computes what sentences say."""
        return "remove-cell" in self.tags

    @property
    def is_for_the_site(self) -> bool:
        """Whether the site alone runs it: a picture of something that the reader has in front of them."""
        return "site-only" in self.tags


def cells_of(page: str) -> list[Cell]:
    r"""Return the code cells of a page.

    >>> cells_of("text\n```{code-cell}\n:tags: [remove-cell]\n1 + 1\n```\n")
    [Cell(source='1 + 1\n', tags=frozenset({'remove-cell'}))]
    """
    return [
        Cell(source, frozenset(re.findall(r"[\w-]+", "".join(re.findall(r"^:tags:(.*)$", options, re.MULTILINE)))))
        for options, source in CELL.findall(page)
    ]


def names_of_values(page: str) -> set[str]:
    """Return the names of the computed texts that a page's sentences use."""
    return set(VALUE.findall(CELL.sub("", page)))


def run_page(page: Path, *, as_notebook: bool = False, pictures: bool = False) -> dict[str, str]:
    """Run a page's cells in the current folder; return the texts that hidden cells computed for its sentences."""
    import matplotlib
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    matplotlib.use("Agg")
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    text = page.read_text(encoding="utf-8")
    computed: dict[str, str] = {}
    settings = Config()
    settings.IPKernelApp.connection_file = ""  # by this packages tell that they are in a notebook, and behave otherwise
    settings.InteractiveShell.system_raise_on_error = True  # as on the site: a command that fails is a fault
    shell: Any = InteractiveShell.instance(config=settings)
    if pictures:
        sys.path.append(str(Path(__file__).parent.parent / "docs" / "_extensions"))
        os.environ["HUBBUB_STORE_PICTURES"] = "1"
        shell.run_cell("from report_picture import report_picture").raise_error()
    for cell in cells_of(text):
        if (cell.is_for_the_site and not pictures) or (cell.is_hidden and as_notebook):
            continue
        done = shell.run_cell(cell.source)
        done.raise_error()
        if cell.is_hidden and isinstance(done.result, dict):
            computed |= done.result
    if not as_notebook and (missing := names_of_values(text) - set(computed)):
        raise TutorialError(f"no hidden cell computes {', '.join(sorted(missing))}")
    return computed


def main() -> None:
    """Run a page in a folder."""
    page, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"{folder} is not empty: a tutorial begins in an empty folder")
    os.chdir(folder)
    computed = run_page(page, as_notebook="--as-notebook" in sys.argv, pictures="--store-pictures" in sys.argv)
    print("\n".join(f"{name}: {text}" for name, text in computed.items()))


if __name__ == "__main__":
    main()
