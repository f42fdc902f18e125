"""What a run over sources has to say beside its result: columns that were not used, and what could not be checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from hubbub.intake.sources.column_names import MAX_NAME_LETTERS
from hubbub.intake.study import Study

SHOWN_COLUMNS = 5


def unused_note(source: str, columns: Sequence[str], *, users: bool) -> str:
    """Return the sentence about columns that nobody reads; they may say who sent a row."""
    several = len(columns) > 1
    more = f" and {len(columns) - SHOWN_COLUMNS} more" if len(columns) > SHOWN_COLUMNS else ""
    names = ", ".join(map(_in_short, columns[:SHOWN_COLUMNS])) + more
    note = f"{source}: columns {names} are not used" if several else f"{source}: column {names} is not used"
    if users:
        return note
    note += ": each row is counted as one person; "
    if several:
        return note + "if one of them says who sent the row, name it with --user-column NAME (user_column= in Python)"
    return note + f"name it with --user-column {names} (user_column= in Python) if it says who sent the row"


def _in_short(name: str) -> str:
    return name if len(name) <= MAX_NAME_LETTERS else name[: MAX_NAME_LETTERS - 1] + "…"


def copies_notes(names: Sequence[str]) -> list[str]:
    """Return the sentence about files that were left out as copies of others."""
    if not names:
        return []
    return [f"{', '.join(names)}: {'copies of other files' if len(names) > 1 else 'a copy of another file'}, left out"]


def limit_notes(study: Study, *, users: bool) -> list[str]:
    """Return a sentence about limits for a user that cannot be checked, since rows do not say who sent them."""
    limits = [
        text
        for limit, text in (
            (study.max_reports_per_user, f"max_reports_per_user = {study.max_reports_per_user}"),
            (study.max_epsilon_per_user, f"max_epsilon_per_user = {study.max_epsilon_per_user}"),
            (study.max_epsilon_per_unit, f"max_epsilon_per_unit = {study.max_epsilon_per_unit}"),
        )
        if limit is not None
    ]
    if users or not limits:
        return []
    told = " and ".join(limits)
    return [f"rows do not say who sent them: whether everybody kept to the study's {told} cannot be checked"]


def overlap_notes(names: Iterable[str], before: Iterable[str] = (), *, users: bool) -> list[str]:
    """Return a sentence for each database of which several tables or queries are counted: they may share rows.

    `before` are sources that were counted in earlier runs. Rows that say who sent them are checked by their users.
    """
    if users:
        return []
    earlier = set(map(_database, filter(_is_address, before)))
    now = Counter(map(_database, filter(_is_address, names)))
    return [
        f"{name}: several tables or queries of this database are counted together; whether they share rows cannot be "
        "checked, and a person in two of them counts twice. To be sure, select a column user and collect with "
        "--users-key"
        for name, times in now.items()
        if times > 1 or name in earlier
    ]


def _is_address(name: str) -> bool:
    return "://" in name and "#" in name


def _database(name: str) -> str:
    """Return where a table lies, without the table and the user who logs in."""
    return re.sub(r"://[^/@#]*@", "://", name.partition("#")[0])
