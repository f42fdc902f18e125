"""The table that `hubbub serve` fills and other commands read: its columns, and how it is continued.

Its columns are called as the study's [columns] says, so that every command finds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubbub.core.errors import StudyError
from hubbub.core.text import listed
from hubbub.intake.attribute_roles import PREFIX, attribute_spaces
from hubbub.intake.sources.database import DatabaseSource
from hubbub.intake.sources.database_address import is_address, parse_address
from hubbub.intake.study import Study

KEY = "key"  # of the client's making: a report that is sent again has the same one
NUMBER = "number"  # grows with the table
RECEIVED = "received"  # the day or hour of arrival, where the study keeps it


@dataclass(frozen=True)
class CollectedTable:
    """The columns of a collector's table."""

    number: str
    mechanism: str
    outputs: Mapping[str, str]  # by role: output, or output.NAME for each attribute
    user: str | None  # where people have tokens
    received: str | None  # where the study keeps the time of arrival

    @property
    def columns(self) -> list[str]:
        """The columns in which a report is written; the number is the database's own."""
        more = [name for name in (self.user, self.received) if name is not None]
        return [KEY, self.mechanism, *self.outputs.values(), *more]


def collected_table(study: Study) -> CollectedTable:
    """Return the columns of the table that a collector of this study fills.

    A study whose [columns] ask for something else in each row is refused: reports could be stored, but not read.
    """
    rules = study.collector
    if rules is None:
        raise StudyError(
            "the study has no [collector]",
            where="[collector]",
            got="nothing",
            expected="a table that says who may send, and what is kept of the time of arrival",
            remedy="add a heading [collector]; without entries everybody may send, and the day is kept",
        )
    named = study.columns
    spaces = attribute_spaces(study.mechanisms)
    roles = [PREFIX + name for name, _ in spaces[0].parts] if spaces else []
    if len(spaces) < len(study.mechanisms):
        roles.append("output")
    table = CollectedTable(
        named.get("watermark", NUMBER),
        named.get("mechanism", "mechanism"),
        {role: named.get(role, role) for role in roles},
        named.get("user", "user") if rules["access"] == "tokens" else None,
        None if rules["time"] == "none" else named.get("time", RECEIVED),
    )
    stored = [table.number, *table.columns]
    own = {"watermark", "mechanism", "user", "time", *roles}
    unknown = [role for role, name in named.items() if role not in own and not (role == "group" and name in stored)]
    twice = sorted({name for name in stored if stored.count(name) > 1})
    if unknown or twice:
        raise StudyError(
            "the study's reports have a column that a collector does not write" if unknown else "two columns are one",
            where=f"[columns], {unknown[0]}" if unknown else "[columns]",
            got=f"{unknown[0]} = {named[unknown[0]]!r}" if unknown else f"{twice[0]!r} for two of them",
            expected=f"names for {listed(sorted(own))} alone, all different, and none of them {KEY}",
            remedy="leave it out, or collect with a study file of its own: [columns] is no part of the fingerprint",
        )
    return table


def default_watermark(study: Study, source: object) -> str | None:
    """Return the column by which sources are continued if nobody names one.

    It is the study's, or the number of a collector's table; None if there is neither.
    """
    named = study.columns.get("watermark")
    if named is not None or study.collector is None:
        return named
    entries: Sequence[object] = source if isinstance(source, list | tuple) else [source]
    addresses = [entry for entry in entries if isinstance(entry, str) and is_address(entry)]
    if not addresses or len(addresses) < len(entries):
        return None
    headers = [DatabaseSource(parse_address(address)).header() for address in addresses]
    return NUMBER if all(KEY in header and NUMBER in header for header in headers) else None


def silent_columns(study: Study) -> tuple[str, ...]:
    """Return the columns of a collector's table that need no note if they are not read."""
    return () if study.collector is None else (KEY, NUMBER, RECEIVED)
