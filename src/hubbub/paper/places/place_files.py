"""Files of places: what to check before one is read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.file_source import file_errors

GZIP = b"\x1f\x8b"
ENDINGS = {".gz", ".csv", ".tsv", ".txt"}


def check_file(path: Path, expected: str) -> None:
    """Refuse what is no file, and a compressed one whose name does not say so, or the other way round."""
    if not path.is_file():
        there = path.exists()
        raise refusal(
            "not-a-file" if there else "no-such-file",
            "not a plain file" if there else "there is no such file",
            where=str(path),
            got="a folder, a device or a pipe" if there else "nothing at that path",
            expected=expected,
            remedy="name the file itself" if there else "check the path; nothing is downloaded for you",
        )
    with file_errors(path), path.open("rb") as file:
        packed = file.read(2) == GZIP
    if packed != (path.suffix.lower() == ".gz"):
        raise refusal(
            "corrupt-file",
            "the file's name and its content do not agree",
            where=str(path),
            got="compressed by gzip" if packed else "not compressed by gzip",
            expected="a name that ends in .gz for a compressed file, and for no other",
            remedy=f"rename it {path.name}.gz" if packed else f"rename it {path.stem}, or copy it again",
        )


def readable(path: Path) -> str:
    """Return the name of a file as text that can be written down: on the disk it may be any bytes."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def plain_name(path: Path) -> str:
    """Return the name of a file without its endings, for titles."""
    while path.suffix.lower() in ENDINGS and path.stem:
        path = path.with_suffix("")
    return readable(path)


def listed(lines: Iterable[int]) -> str:
    """Return numbers of lines as people read them."""
    return ", ".join(f"{line:,}" for line in lines)


def many(count: int, what: str) -> str:
    """Return how many there are of something."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def wrong(path: Path, line: int, what: str, *, got: object, expected: str, remedy: str) -> IntakeError:
    """Return the error about one line of a file."""
    return IntakeError(what, where=f"{path}, line {line:,}", got=got, expected=expected, remedy=remedy)
