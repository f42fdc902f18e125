"""Checks of a file of places before it is read, and its name for people."""

from __future__ import annotations

import os
from pathlib import Path

from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.file_source import file_errors

GZIP_MAGIC = b"\x1f\x8b"
FILE_ENDINGS = {".gz", ".csv", ".tsv", ".txt"}


def check_file(path: Path, expected: str) -> None:
    """Refuse what is not a file, and a name that does not match the compression."""
    if not path.is_file():
        there = path.exists()
        raise refusal(
            "not-a-file" if there else "no-such-file",
            "not a plain file" if there else "no such file",
            where=str(path),
            got="a folder, a device or a pipe" if there else "nothing at that path",
            expected=expected,
            remedy="name the file itself" if there else "check the path; nothing is downloaded for you",
        )
    with file_errors(path), path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    if packed != (path.suffix.lower() == ".gz"):
        raise refusal(
            "corrupt-file",
            "the file name does not match its content",
            where=str(path),
            got="compressed by gzip" if packed else "not compressed by gzip",
            expected="a name that ends in .gz if and only if the file is compressed",
            remedy=f"rename it {path.name}.gz" if packed else f"rename it {path.stem}, or copy it again",
        )


def readable_name(path: Path) -> str:
    """Return the name of a file as text that can be written down: on the disk it may be any bytes."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def plain_name(path: Path) -> str:
    """Return the name of a file without its endings, for titles."""
    while path.suffix.lower() in FILE_ENDINGS and path.stem:
        path = path.with_suffix("")
    return readable_name(path)
