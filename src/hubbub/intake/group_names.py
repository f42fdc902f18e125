"""Groups of rows: what they are called, and in which order they come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hubbub.core.errors import SettingError, shorten
from hubbub.intake.study import Study

Group = tuple[str, ...]  # the entries of its rows in the columns to group by
EVERYBODY: Group = ()  # the one group, where rows are not divided


def entry_name(entry: object) -> str | None:
    """Return an entry as text, the same from files of all kinds; None for an empty one."""
    if entry is None or entry == "" or entry != entry:  # nothing, or not a number
        return None
    if isinstance(entry, bytes):
        return "0x" + entry.hex()
    return str(int(entry)) if isinstance(entry, float) and entry.is_integer() else str(entry)


def group_order(group: Group) -> list[tuple[int, int, str]]:
    """Sort numbers by their size, then names.

    >>> sorted([("b",), ("10",), ("9",), ("a",)], key=group_order)
    [('9',), ('10',), ('a',), ('b',)]
    """
    return [(0, int(entry), "") if _is_number(entry) else (1, 0, entry) for entry in group]


def _is_number(entry: str) -> bool:
    return entry.isascii() and entry.removeprefix("-").isdigit() and len(entry) < 20  # "007" is one, and so sorts


def group_titles(groups: Iterable[Group]) -> dict[Group, str]:
    """Return the name of each group, as people read it.

    >>> group_titles([("north", "f"), ("north", "m")])
    {('north', 'f'): 'north, f', ('north', 'm'): 'north, m'}
    """
    titles = {group: ", ".join(group) for group in groups}
    if len(set(titles.values())) == len(titles):
        return titles
    return {group: ", ".join(repr(entry) for entry in group) for group in titles}  # an entry has a comma itself


def study_groups(study: Study) -> tuple[str, ...]:
    """Return the column to group by that the study names, if any, where nobody asks for another."""
    return (study.columns["group"],) if "group" in study.columns else ()


def check_by(by: object, where: str) -> tuple[str, ...]:
    """Return the columns to group by, each once."""
    columns = (by,) if isinstance(by, str) else tuple(by) if isinstance(by, Sequence) else (by,)
    if not all(isinstance(column, str) and column for column in columns) or len(set(columns)) != len(columns):
        raise SettingError(
            "groups need the names of columns, each once",
            where=where,
            got=shorten(by),
            expected="a column's name, or several",
            remedy='name the column: by="region"',
        )
    return columns
