"""Run the examples of a page of the documentation, and compare what they print with what the page shows.

Blocks of `python` and `sh` are run in their order, in an empty folder; a block of `text` right below one is what it
prints. A folded section called DATA makes the files of a page, and so is run first, wherever it stands.

Run: python tests/page_examples.py PAGE... to write what examples print today into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = "The data of this page"
FENCE = re.compile(r"^```(python|sh|text)\n(.*?)^```\n", flags=re.MULTILINE | re.DOTALL)
COLUMNS = 84  # what the site shows without scrolling
CHANGED = 1_793_600_000  # when files were last changed, which some commands print: seconds since 1970


@dataclass(frozen=True)
class Example:
    """A block of code, and where the page shows what it prints: `start` to `end` of its text, if anywhere."""

    language: str
    code: str
    start: int = 0
    end: int = 0


def examples(text: str) -> list[Example]:
    """Return the examples of a page in the order in which they are run."""
    first: list[Example] = []
    then: list[Example] = []
    folded = re.search(rf"^:::\{{dropdown\}} {DATA}$.*?^:::$", text, flags=re.MULTILINE | re.DOTALL)
    blocks = list(FENCE.finditer(text))
    for place, block in enumerate(blocks):
        language, code = block.groups()
        if language == "text":
            continue
        own = Example(language, code)
        for following in blocks[place + 1 : place + 2]:
            if following[1] == "text" and not text[block.end() : following.start()].strip():
                own = Example(language, code, *following.span(2))
        (first if folded and folded.start() < block.start() < folded.end() else then).append(own)
    return first + then


def run(example: Example, names: dict[str, Any]) -> str:
    """Run one example in the current folder and return what a terminal of COLUMNS columns would show."""
    for file in Path.cwd().iterdir():
        os.utime(file, (CHANGED, CHANGED))
    if example.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example.code, "example", "exec"), names)  # noqa: S102
        return printed.getvalue()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(  # noqa: S603
        ["bash", "-euo", "pipefail", "-c", example.code],  # noqa: S607
        env={**os.environ, "PATH": path, "COLUMNS": str(COLUMNS)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {example.code}\n{done.stdout}")
    return done.stdout


def tidy(printed: str) -> str:
    """Return what was printed as a page has room for it: in lines of COLUMNS, without blanks at their ends."""
    return "\n".join(_wrapped(line.rstrip()) for line in printed.splitlines()).strip("\n") + "\n"


def _wrapped(line: str) -> str:
    """Break a long line as a terminal does, between words; the text beside a label stays beside it."""
    beginning = re.match(r"(?:\S+(?: \S+)* {2,})?\s*(?:- )?", line)
    indent = " " * (beginning.end() if beginning else 0)
    return textwrap.fill(line, COLUMNS, subsequent_indent=indent) if len(line) > COLUMNS else line


def ran(text: str) -> list[tuple[Example, str]]:
    """Run all examples of a page in the current folder; return those whose output is shown, with what they print."""
    import matplotlib

    matplotlib.use("Agg")
    # Dataclasses look their own module up, so it must be one that exists.
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = [(example, tidy(run(example, names))) for example in examples(text)]
    return [(example, own) for example, own in printed if example.end]


def rewritten(text: str) -> str:
    """Return a page with what its examples print today."""
    for example, printed in sorted(ran(text), key=lambda pair: -pair[0].start):
        text = text[: example.start] + printed + text[example.end :]
    return text


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
        sys.stdout.write(f"rewritten: {page}\n")
