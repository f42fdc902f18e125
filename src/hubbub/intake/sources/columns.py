"""Which columns of a source are read: names are exact, and what is nearly one of ours is asked about."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hubbub.errors import shorten
from hubbub.intake.causes import refusal
from hubbub.intake.sources.rows import Source
from hubbub.intake.study import Study
from hubbub.reports.gather import no_reports

NEARLY = {
    **dict.fromkeys(("user", "users", "userid", "username", "userids"), "user"),
    **dict.fromkeys(("mechanism", "mechanisms", "mechanismname"), "mechanism"),
    **dict.fromkeys(("output", "outputs"), "output"),
}


def wanted_columns(source: Source, study: Study, by: str | None = None) -> list[str]:
    """Return the columns of a source that are read; refuse a source that lacks one, or has one twice."""
    names = source.header()
    if not names:
        raise no_reports(source.name, "an empty file")
    refuse_nearly(source, names, NEARLY)
    wanted = ["output"]
    if "mechanism" in names:
        wanted.append("mechanism")
    elif len(study.mechanisms) > 1:
        raise refusal(
            "no-mechanism-column",
            "rows do not say which mechanism was used",
            where=source.name,
            got=f"columns {', '.join(names)}",
            expected=f"a column mechanism with one of {', '.join(study.mechanisms)}",
            remedy="add the column; it may be left out only when the study names a single mechanism",
        )
    if "user" in names:
        wanted.append("user")
    if by is not None and by not in wanted:
        wanted.append(by)
    check_once(source, names, wanted)
    return wanted


def check_once(source: Source, names: list[str], wanted: list[str]) -> None:
    """Refuse a source that lacks a column, or has it twice."""
    for name in wanted:
        if names.count(name) != 1:
            missing = name not in names
            expected, remedy = source.column_advice(name)
            raise refusal(
                "no-column" if missing else "repeated-column",
                f"there is no column {name}" if missing else f"there are several columns {name}",
                where=source.name,
                got=f"columns {shorten(names)}",
                expected=expected,
                remedy=remedy if missing else "keep one of them under that name, and rename the others",
            )


def refuse_nearly(source: Source, names: list[str], nearly: Mapping[str, str]) -> None:
    """Refuse a column that is nearly one of ours: read as another column, its rows would mean something else."""
    for name in names:
        meant = nearly.get(re.sub("[^a-z]", "", name.lower()))
        if meant is not None and name != meant and meant not in names:
            raise refusal(
                "nearly-a-column",
                "a column's name is nearly one that means something",
                where=source.name,
                got=shorten(name),
                expected=f"{meant}, or another name altogether",
                remedy=f"rename the column {meant} if it says that, otherwise give it another name",
            )
