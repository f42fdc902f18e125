"""How a command fails: what people read on standard error, and the document that ``--json`` prints all the same."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

import typer

from hubbub.cli.console import print_json
from hubbub.core.errors import PARTS, HubbubError, SettingError
from hubbub.core.redaction import redact

USAGE_ERROR = typer.BadParameter.__base__ or Exception  # what Typer raises for every wrong call; it has no public name
MISTAKE, USAGE = 1, 2  # exit codes: the data or study is at fault, or the command was called wrongly


class Failure(NamedTuple):
    """What went wrong: for people, for programs, and the exit code."""

    text: str
    kind: str  # the name of the error's class, or `UsageError`, `Stopped` or `UnexpectedError`
    parts: dict[str, str]
    exit_code: int = MISTAKE

    @classmethod
    def of(cls, error: Any, words: Sequence[str]) -> Failure:
        """Return what to say of an error; `words` are those after the program's name."""
        if isinstance(error, HubbubError):
            parts = {name: getattr(error, name) for name in PARTS}
            exit_code = USAGE if isinstance(error, SettingError) else MISTAKE
            return cls(f"hubbub: {error}", type(error).__name__, parts, exit_code)
        if isinstance(error, typer.Abort) and not isinstance(error.__cause__, EOFError):
            return cls("hubbub: stopped", "Stopped", {"what": "stopped"})
        if isinstance(error, USAGE_ERROR):
            return cls._of_usage(error, words)
        what = redact("".join(traceback.format_exception_only(error)).strip())
        text = redact("".join(traceback.format_exception(error)))
        return cls(text, "UnexpectedError", {"what": what, "remedy": "report this as a mistake of the program"})

    @classmethod
    def _of_usage(cls, error: Any, words: Sequence[str]) -> Failure:
        """Say how a command was called wrongly; arguments may be addresses with passwords in them."""
        message, got = redact(error.format_message()), redact(shlex.join(["hubbub", *words]))
        command, usage = "hubbub", ""
        if error.ctx is not None:
            command, usage = error.ctx.command_path, error.ctx.get_usage()
        remedy = f"see {command} --help"
        expected = " ".join(usage.split()).removeprefix("Usage: ")
        parts = {"what": message, "where": command, "got": got, "expected": expected, "remedy": remedy}
        head = f"{usage}\nTry '{command} --help' for help.\n\n" if usage else ""
        return cls(f"{head}Error: {message}", "UsageError", parts, int(error.exit_code))

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints; parts that there are not are None."""
        parts = {name: _encodable(self.parts.get(name, "")) or None for name in PARTS}
        return {"version": 1, "error": {"kind": self.kind, **parts, "exit_code": self.exit_code}}


def tell(error: Exception, words: Sequence[str]) -> int:
    """Say why a command failed, to programs that asked for JSON on standard output, too; return the exit code."""
    failure = Failure.of(error, words)
    if not words and failure.kind == "UsageError":  # no command was named: the message is the help
        typer.echo(failure.parts["what"])
        return failure.exit_code
    typer.echo(failure.text, err=True)
    if _asks_for_json(words):
        try:
            print_json(failure.document())
        except BrokenPipeError:  # the reader has left: what remains is the exit code
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return failure.exit_code


def _encodable(text: str) -> str:
    """Return a text that UTF-8 can hold: words of a command and names of files may be any bytes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _asks_for_json(words: Sequence[str]) -> bool:
    """Whether ``--json`` is among the options, also of a call that could not be parsed."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options
