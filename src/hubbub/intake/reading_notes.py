"""Notes of a run over sources: columns not used, or found by their usual names, and what could not be checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from hubbub.intake.sources.column_names import MAX_NAME_LETTERS, ColumnNames
from hubbub.intake.study import LIMITS, Study

MAX_COLUMNS_NAMED = 5


def unused_notes(unused: Iterable[tuple[str, Sequence[str]]], *, users: bool) -> list[str]:
    """Return one sentence for all sources with the same unused columns; these may say who sent a row."""
    sources: dict[tuple[str, ...], list[str]] = {}
    for source, columns in unused:
        if columns:
            sources.setdefault(tuple(columns), []).append(source)
    return [_unused_note(_several(names), columns, users=users) for columns, names in sources.items()]


def place_notes(found: Iterable[tuple[str, ColumnNames]], study: Study) -> list[str]:
    """Return one sentence for all sources whose columns of places nobody named, unless they are `lat` and `lon`."""
    sources: dict[tuple[str, str, str], list[str]] = {}
    for source, columns in found:
        if columns.place is not None:
            first, second = map(columns.name_of, columns.place)
            if (first, second) != ("lat", "lon"):
                sources.setdefault((columns.place[0], first, second), []).append(source)
    grid = study.domain.grid
    unit = "" if grid is None else grid.unit
    meanings = {
        "lat": "latitude and longitude",
        "x": f"{unit} to the east and north of the grid's south-western corner",
    }
    return [
        f"{_several(listed)}: columns {_shortened(first)} and {_shortened(second)} are read as each row's place, in "
        f"{meanings[role]}; if that is right, name them in the study's [columns]"
        for (role, first, second), listed in sources.items()
    ]


def _several(names: Sequence[str]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _unused_note(source: str, columns: Sequence[str], *, users: bool) -> str:
    several = len(columns) > 1
    more = f" and {len(columns) - MAX_COLUMNS_NAMED} more" if len(columns) > MAX_COLUMNS_NAMED else ""
    names = ", ".join(map(_shortened, columns[:MAX_COLUMNS_NAMED])) + more
    note = f"{source}: columns {names} are not used" if several else f"{source}: column {names} is not used"
    if users:
        return note
    note += ": each row is counted as one person; "
    if several:
        return note + "if one of them says who sent the row, name it with --user-column NAME (user_column= in Python)"
    return note + f"name it with --user-column {names} (user_column= in Python) if it says who sent the row"


def _shortened(name: str) -> str:
    return name if len(name) <= MAX_NAME_LETTERS else name[: MAX_NAME_LETTERS - 1] + "…"


def copies_notes(names: Sequence[str]) -> list[str]:
    """Return the sentence about files that were left out as copies of others."""
    if not names:
        return []
    return [f"{', '.join(names)}: {'copies of other files' if len(names) > 1 else 'a copy of another file'}, left out"]


def limit_notes(study: Study, *, users: bool) -> list[str]:
    """Return a sentence about limits per user that cannot be checked because rows do not say who sent them."""
    limits = [f"{name} = {getattr(study, name)}" for name in LIMITS if getattr(study, name) is not None]
    if users or not limits:
        return []
    kept = " and ".join(limits)
    return [f"rows do not say who sent them: whether everybody kept to the study's {kept} cannot be checked"]


def shared_notes(users: int) -> list[str]:
    """Return the sentence about users who are in several groups."""
    if users == 0:
        return []
    who = "1 user has" if users == 1 else f"{users:,} users have"
    return [f"{who} rows in several groups: they are counted in each, and comparisons take groups for different people"]


def overlap_notes(names: Iterable[str], before: Iterable[str] = (), *, users: bool) -> list[str]:
    """Return a sentence for each database with several tables or queries that are counted: they may share rows.

    `before` are sources that were counted in earlier runs. Rows that say who sent them are checked by their users.
    """
    if users:
        return []
    earlier = set(filter(None, map(_database, before)))
    now = Counter(filter(None, map(_database, names)))
    return [
        f"{name}: several tables or queries of this database are counted together; whether they share rows cannot be "
        "checked, and a person in two of them counts twice. To be sure, select a column user and collect with "
        "--users-key"
        for name, times in now.items()
        if times > 1 or name in earlier
    ]


def _database(name: str) -> str:
    """Return the address of a source's database, without the table and the user who logs in; "" if it has none."""
    return re.sub(r"://[^/@#]*@", "://", name.partition("#")[0]) if "://" in name and "#" in name else ""
