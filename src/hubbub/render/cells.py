"""Cells of tables that spreadsheets open."""

from __future__ import annotations

import unicodedata

FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are their wide forms
UNSEEN = ("Cc", "Cf", "Zl", "Zp", "Zs")  # spaces, and characters that control or format


def spreadsheet_safe(value: object) -> object:
    r"""Return a cell that no spreadsheet takes for a formula: such a text gets an apostrophe in front; numbers stay.

    Programs differ in what they skip before they look for a formula: all that cannot be seen is skipped here.

    >>> spreadsheet_safe("=HYPERLINK(1)"), spreadsheet_safe(" -1+1"), spreadsheet_safe("a = b"), spreadsheet_safe(-0.5)
    ("'=HYPERLINK(1)", "' -1+1", 'a = b', -0.5)
    """
    if not isinstance(value, str):
        return value
    start = next((place for place, letter in enumerate(value) if unicodedata.category(letter) not in UNSEEN), 0)
    dangerous = value.startswith(("\t", "\r")) or value[start:].startswith(FORMULA)
    return f"'{value}" if dangerous else value
