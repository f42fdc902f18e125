"""Cells of tables that people open in a spreadsheet: a label must not be taken for a formula.

Spreadsheets run what begins with =, +, -, @, a tab or a carriage return, and some of them the full-width forms of
these, or what follows blanks. Labels are foreign text. An apostrophe in front makes it text again, and is what
spreadsheets themselves put there; programs that read such a table take one apostrophe off, or read .json.
"""

from __future__ import annotations

import unicodedata

FORMULA = "=+-@−"


def spreadsheet_safe(value: object) -> object:
    """Return the value as it may stand in a table for people: numbers as they are, texts that look like formulas not.

    >>> spreadsheet_safe("=1+1"), spreadsheet_safe("west"), spreadsheet_safe(-3.5)
    ("'=1+1", 'west', -3.5)
    """
    if not isinstance(value, str) or not value:
        return value
    if value[0] in "\t\r\n":
        return "'" + value
    for letter in value:
        if unicodedata.category(letter)[0] in "CZ":  # control and format characters, blanks, ends of lines
            continue
        # Full-width and small forms stand for the same letter.
        return "'" + value if unicodedata.normalize("NFKC", letter)[:1] in FORMULA else value
    return value
