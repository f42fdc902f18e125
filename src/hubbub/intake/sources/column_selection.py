"""Which columns of a source are read: names are exact, and what is nearly one of ours is asked about."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hubbub.core.errors import IntakeError, SettingError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.column_names import LONGEST_NAME, REPORT, ROLES
from hubbub.intake.study import Study
from hubbub.reports.validation import no_reports

NEARLY = {
    **dict.fromkeys(("user", "users", "userid", "username", "userids"), "user"),
    **dict.fromkeys(("mechanism", "mechanisms", "mechanismname"), "mechanism"),
    **dict.fromkeys(("output", "outputs"), "output"),
}
# Columns that say for how many people a row stands, in letters alone: weight, wt, survey_weight, pspwght, count, freq.
WEIGHT = re.compile(r"(survey|sampl(e|ing)|design|person|case|final|freq(uency)?|psp|an|[afip])?w(eigh|egh|gh|g)?ts?")
COUNT = re.compile(r"counts?|freqs?|frequency|frequencies|n(um)?(users|people|respondents)")


def wanted_columns(source: Source, study: Study, by: str | None = None) -> list[str]:
    """Return the columns of a source that are read, by their own names.

    A source that lacks one, has one twice, or has one whose meaning would be ignored is refused.
    """
    names, columns = source.header(), source.columns
    if not names:
        raise no_reports(source.name, "an empty file")
    if by is not None and by in ROLES and columns.name_of(by) != by:
        raise SettingError(
            "a column's name has two meanings",
            where=f"--by {by}, --{by}-column {columns.name_of(by)}",
            got=f"{by} for the groups, and another column in its place",
            expected=f"groups by a column that is not called {by}",
            remedy="rename the column",
        )
    chosen = [name for role in REPORT if columns.chosen(role) for name in (role, columns.name_of(role))]
    others = [name for name in names if name not in (*chosen, by)]
    refuse_nearly(source, others, {near: meant for near, meant in NEARLY.items() if not columns.chosen(meant)})
    wanted = [columns.name_of("output")]
    mechanism, user = columns.name_of("mechanism"), columns.name_of("user")
    if mechanism in names or columns.chosen("mechanism"):
        wanted.append(mechanism)
    elif len(study.mechanisms) > 1:
        raise refusal(
            "no-mechanism-column",
            "rows do not say which mechanism was used",
            where=source.name,
            got=f"columns {shorten(names, 200)}",
            expected=f"a column mechanism with one of {', '.join(study.mechanisms)}",
            remedy="add the column, or name it with --mechanism-column; it may be left out only when the study names a "
            "single mechanism",
        )
    if user in names or columns.chosen("user"):
        wanted.append(user)
    if by is not None and by not in wanted:
        wanted.append(by)
    check_once(source, names, wanted)
    _refuse_weights(source, unused_columns(source, wanted))
    return wanted


def unused_columns(source: Source, wanted: list[str]) -> list[str]:
    """Return the columns of a source that are not read."""
    return [name for name in dict.fromkeys(source.header()) if name not in wanted]


def _refuse_weights(source: Source, names: list[str]) -> None:
    """Refuse rows that stand for more or fewer than one person each: they would be counted as one."""
    for name in names:
        letters = _letters(name)
        if WEIGHT.fullmatch(letters):
            raise _not_one_person(
                source,
                name,
                "weights are not supported yet",
                "remove the column to give every row the same weight, or rename it if it is no weight",
            )
        if COUNT.fullmatch(letters):
            raise _not_one_person(
                source,
                name,
                "rows that stand for several people are not read",
                "write one row for each report, or use hubbub.Reports.from_counts in Python; rename the column if it "
                "is no count of people",
            )


def _not_one_person(source: Source, name: str, what: str, remedy: str) -> IntakeError:
    return refusal(
        "weighted-rows",
        what,
        where=f"{source.name}, column {name}",
        got=f"a column called {shorten(name)}, which would be ignored",
        expected="one row for each report of one person",
        remedy=remedy,
    )


def check_once(source: Source, names: list[str], wanted: list[str]) -> None:
    """Refuse a source that lacks a column, or has it twice."""
    for name in wanted:
        if names.count(name) != 1:
            missing = name not in names
            expected, remedy = advice_on(source, name)
            raise refusal(
                "no-column" if missing else "repeated-column",
                f"there is no column {name}" if missing else f"there are several columns {name}",
                where=source.name,
                got=f"columns {shorten(names)}",
                expected=expected,
                remedy=remedy if missing else "keep one of them under that name, and rename the others",
            )


def advice_on(source: Source, name: str) -> tuple[str, str]:
    """Return what is expected of a column that is missing, and how to mend that."""
    expected, remedy = source.column_advice(name)
    role = source.columns.role_of(name)
    if role == name and not source.columns.chosen(role):
        remedy += f"; or say what yours is called: --{role}-column NAME"
    return expected, remedy


def refuse_nearly(source: Source, names: list[str], nearly: Mapping[str, str]) -> None:
    """Refuse a column that is nearly one of ours: read as another column, its rows would mean something else."""
    for name in names:
        meant = nearly.get(_letters(name))
        if meant is not None and name != meant and meant not in names:
            shown = name if len(name) <= LONGEST_NAME else "NAME"
            raise refusal(
                "nearly-a-column",
                "a column's name is nearly one that means something",
                where=source.name,
                got=shorten(name),
                expected=f"{meant}, or another name altogether",
                remedy=(f"name it with --{meant}-column {shown}" if meant in ROLES else f"rename it {meant}")
                + " if it says that, otherwise give it another name",
            )


def _letters(name: str) -> str:
    return re.sub("[^a-z]", "", name.lower())
