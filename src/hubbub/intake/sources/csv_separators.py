"""What separates the columns of a text: by its ending, and by the looks of its first line."""

from __future__ import annotations

import csv
from pathlib import Path

from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import refusal

ENDINGS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}


def check_separator(line: bytes, delimiter: str, path: Path, number: int) -> None:
    """Refuse a first line of one field that something else than the delimiter separates: it is meant as several.

    A name that holds such a character itself stands in quotes.
    """
    other = _other_separator(line, delimiter)
    if other is None:
        return
    endings = {delimiter: ending for ending, delimiter in reversed(ENDINGS.items())}
    raise refusal(
        "wrong-separator",
        f"the columns are separated by {SEPARATORS[other]}",
        where=f"{path}, line {number}",
        got=shorten(line.decode().rstrip("\r\n")),
        expected=f"{SEPARATORS[delimiter]} between columns",
        remedy=f"rename the file: with {SEPARATORS[other]} its ending is {endings[other]}"
        if other in endings
        else f"write it with commas, in Python for example: import pandas; pandas.read_csv({path.name!r}, "
        f"sep={other!r}, dtype=str, keep_default_na=False).to_csv('commas.csv', index=False)",
    )


def _other_separator(line: bytes, delimiter: str) -> str | None:
    """Return what separates the fields of a line, if it is something else than the delimiter."""
    for other in SEPARATORS:
        if other == delimiter:
            continue
        try:
            fields = next(csv.reader([line.decode().rstrip("\r\n")], delimiter=other, strict=True), [])
        except (UnicodeDecodeError, csv.Error):  # this is not how the line is written
            continue
        if len(fields) > 1 and all(field.strip() for field in fields):
            return other
    return None
