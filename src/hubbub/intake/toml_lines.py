"""The line of a study file that a message is about."""

from __future__ import annotations

import re

PLACE = re.compile(r"\[(?P<table>[^\[\]]+)\]")
LONGEST_LINE = 200  # characters at the start of a line that are looked at: headings and names of entries are short


def line_of(text: str, where: str, got: str) -> int | None:
    """Return the line that holds what a message names: an entry, or the heading of its table; None where unknown.

    `where` is that of the message, such as "study.toml, [domain]: Integers(low=)"; an entry that is not known stands in
    `got`.
    """
    place = PLACE.search(where)
    table = place["table"] if place else ""
    rest = where[place.end() :] if place else where.rpartition(",")[2]
    names = [*re.findall(r"\w+", rest)[::-1], got.strip("'\"")]
    headings, entries = _index(text)
    for name in names:
        if (table, name) in entries:
            return entries[table, name]
    if table in headings:
        return headings[table]
    outer, _, inner = table.rpartition(".")
    return entries.get((outer, inner)) or entries.get(("", table))


def _index(text: str) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Return the first line of each table, and of each entry of a table."""
    headings: dict[str, int] = {}
    entries: dict[tuple[str, str], int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        start = line[:LONGEST_LINE].strip()
        name, bracket, comment = start.removeprefix("[").partition("]")
        if start.startswith("[") and bracket and "[" not in name and comment.strip()[:1] in ("", "#"):
            table = _plain(name)
            headings.setdefault(table, number)
            continue
        name, equals, _ = start.partition("=")
        if equals and name.strip() and not set("#[]") & set(name):
            entries.setdefault((table, _plain(name)), number)
    return headings, entries


def _plain(name: str) -> str:
    """Return a name without the quotes and blanks that TOML allows around its parts."""
    return ".".join(part.strip().strip("'\"") for part in name.split("."))
