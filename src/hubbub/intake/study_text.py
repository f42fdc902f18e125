"""The text of a study file: entries as TOML, numbers with all digits, tables under headings of their own.

Floats are written as Python writes them, in the fewest digits that are read as the same float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def study_toml(document: Mapping[str, Any]) -> str:
    """Return the entries of a study as TOML: what is None, or an empty table, is left out."""
    return "\n".join(_table_text(document, ()))


def toml_value(value: object) -> str:
    """Return a text, number, list, or table in braces as TOML writes it.

    >>> print(toml_value({"n": [1, 0.1, True], "a b": "c"}))
    {n = [1, 0.1, true], "a b" = "c"}
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {toml_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _key(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else toml_value(name)


def _table_text(table: Mapping[str, Any], above: tuple[str, ...]) -> list[str]:
    """Return the lines of a table: its own entries, then the tables in it."""
    inner = {name: value for name, value in table.items() if isinstance(value, Mapping)}
    own = {name: value for name, value in table.items() if value is not None and name not in inner}
    lines = [f"{_key(name)} = {_entry(value)}" for name, value in own.items()]
    texts = (
        ["\n".join([*([f"[{'.'.join(map(_key, above))}]"] if above and lines else []), *lines, ""])] if lines else []
    )
    return texts + [text for name, value in inner.items() for text in _table_text(value, (*above, name))]


def _entry(value: object) -> str:
    """Return the value of an entry: of a list of lists each on a line of its own."""
    if isinstance(value, list) and value and all(isinstance(each, list) for each in value):
        return "[\n" + "".join(f"    {toml_value(each)},\n" for each in value) + "]"
    return toml_value(value)
