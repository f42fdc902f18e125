"""Cells of tables that people open in a spreadsheet: a label must not be taken for a formula.

Spreadsheets run what begins with =, +, -, @, a tab or a carriage return, and some of them the full-width forms of
these, or what follows blanks. Labels are foreign text. An apostrophe in front makes it text again, and is what
spreadsheets themselves put there. A text that has apostrophes before such a beginning already gets one more: '=1 and =1
must not become one. `from_spreadsheet_safe` takes the apostrophe off again; .json has labels as they are. Where a
comma stands in numbers, spreadsheets part cells at semicolons instead: texts that hold one are quoted, so that what
follows it does not begin a cell.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable
from typing import IO

FORMULA = "=+-@−"
PARTING = frozenset('",;|\t\r\n')  # what some program takes for the end of a cell


def spreadsheet_safe(value: object) -> object:
    """Return the value as it may stand in a table for people: numbers as they are, texts that look like formulas not.

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("west"), spreadsheet_safe(-3.5)
    ("'=1+1", 'west', -3.5)
    >>> spreadsheet_safe("'=1+1"), spreadsheet_safe("'west")
    ("''=1+1", "'west")
    """
    return "'" + value if isinstance(value, str) and _like_formula(value.lstrip("'")) else value


def from_spreadsheet_safe(text: str) -> str:
    """Return the text that `spreadsheet_safe` wrote as this one.

    >>> from_spreadsheet_safe("'=1+1"), from_spreadsheet_safe("'west")
    ('=1+1', "'west")
    """
    return text[1:] if text.startswith("'") and _like_formula(text.lstrip("'")) else text


def _like_formula(text: str) -> bool:
    """Whether some spreadsheet takes a text that begins like this for a formula."""
    if text[:1] in ("\t", "\r", "\n"):
        return True
    for letter in text:
        if unicodedata.category(letter)[0] in "CZ":  # control and format characters, blanks, ends of lines
            continue
        # Full-width and small forms stand for the same letter.
        return unicodedata.normalize("NFKC", letter)[:1] in FORMULA
    return False


def write_row(file: IO[str], cells: Iterable[object]) -> None:
    """Write a line of a table (CSV) that spreadsheets may open; None is an empty cell."""
    file.write(",".join(map(_written, cells)) + "\n")


def as_csv(header: Iterable[object], rows: Iterable[Iterable[object]]) -> bytes:
    """Return a table that spreadsheets may open, as the bytes of its file."""
    text = io.StringIO(newline="")
    write_row(text, header)
    for row in rows:
        write_row(text, row)
    return text.getvalue().encode()


def _written(value: object) -> str:
    safe = spreadsheet_safe(value)
    text = "" if safe is None else str(safe)
    return '"' + text.replace('"', '""') + '"' if PARTING.intersection(text) else text
