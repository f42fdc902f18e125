"""Consoles. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import codecs
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def use_utf8() -> None:
    """Write UTF-8 to files and pipes, whatever the system's own encoding is: on Windows that lacks most letters.

    A terminal keeps its encoding, and shows a question mark for what it has no letter for.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors=stream.errors)


def out() -> Console:
    """Return the console for results."""
    from hubbub.cli.plain_console import PlainConsole

    return PlainConsole()


def err() -> Console:
    """Return the console for progress and messages."""
    from hubbub.cli.plain_console import PlainConsole

    return PlainConsole(stderr=True)


def printable(text: str, most: int = 60) -> str:
    """Return a label fit for a terminal: control characters told, not obeyed, and no longer than a line."""
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def printable_lines(text: str) -> str:
    """Return sentences fit for a terminal, of any length: names in them may hold anything."""
    return "\n".join(printable(line, most=10 * len(line)) for line in text.split("\n"))


def print_json(document: dict[str, Any]) -> None:
    """Print a document for programs: one line, and nothing else."""
    typer.echo(json.dumps(document, allow_nan=False, ensure_ascii=False))


def print_written(path: Path) -> None:
    """Say which file was written."""
    err().print(f"written: {path}", soft_wrap=True)
