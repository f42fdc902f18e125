"""CSV that is safe to open in a spreadsheet: no label is taken for a formula.

Labels are foreign text, and spreadsheets run text that begins with =, +, -, @, a tab or a carriage return; some also
run the full-width forms of these, or what follows blanks. A leading apostrophe turns it back into text, as spreadsheets
do themselves. If a text already has apostrophes before such a beginning, it gets one more, so that '=1 and =1 stay
different; `from_spreadsheet_safe` removes it again. JSON files have labels unchanged. Where numbers are written with a
decimal comma, spreadsheets separate cells at semicolons, so texts with a semicolon are quoted: what follows it must not
begin a cell.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable
from typing import IO

FORMULA_STARTS = "=+-@−"
CELL_DELIMITERS = frozenset('",;|\t\r\n')  # characters that some program takes for the end of a cell


def spreadsheet_safe(value: object) -> object:
    """Return a value with an apostrophe in front if it is a text that looks like a formula.

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("west"), spreadsheet_safe(-3.5)
    ("'=1+1", 'west', -3.5)
    >>> spreadsheet_safe("'=1+1"), spreadsheet_safe("'west")
    ("''=1+1", "'west")
    """
    return "'" + value if isinstance(value, str) and _looks_like_formula(value.lstrip("'")) else value


def from_spreadsheet_safe(text: str) -> str:
    """Return the text that `spreadsheet_safe` turned into this one.

    >>> from_spreadsheet_safe("'=1+1"), from_spreadsheet_safe("'west")
    ('=1+1', "'west")
    """
    return text[1:] if text.startswith("'") and _looks_like_formula(text.lstrip("'")) else text


def _looks_like_formula(text: str) -> bool:
    """Whether some spreadsheet takes a text for a formula."""
    if text[:1] in ("\t", "\r", "\n"):
        return True
    for letter in text:
        if unicodedata.category(letter)[0] in "CZ":  # control and format characters, blanks, line ends
            continue
        # Full-width and small forms count as the same letter.
        return unicodedata.normalize("NFKC", letter)[:1] in FORMULA_STARTS
    return False


def csv_bytes(header: Iterable[object], rows: Iterable[Iterable[object]]) -> bytes:
    """Return a spreadsheet-safe CSV file as bytes."""
    text = io.StringIO(newline="")
    write_csv_row(text, header)
    for row in rows:
        write_csv_row(text, row)
    return text.getvalue().encode()


def write_csv_row(file: IO[str], cells: Iterable[object]) -> None:
    """Write a spreadsheet-safe line of CSV; None is an empty cell."""
    file.write(",".join(map(_csv_cell, cells)) + "\n")


def _csv_cell(value: object) -> str:
    safe = spreadsheet_safe(value)
    text = "" if safe is None else str(safe)
    return '"' + text.replace('"', '""') + '"' if CELL_DELIMITERS.intersection(text) else text
