"""The columns of a source: what they are called, and which of them are read.

A column goes by its role (`output`, `user`, ...) unless an option names it. Names are exact; a name that is nearly one
of ours is refused, because a column read as something else would change what its rows mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hubbub.core.errors import SettingError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.study import Study
from hubbub.reports.validation import no_reports

if TYPE_CHECKING:
    from hubbub.intake.sources.base import Rows, Source

SURVEY_ROLES = ("weight", "stratum", "cluster")
REPORT_ROLES = ("output", "user", "mechanism", "time", *SURVEY_ROLES)  # the roles of columns in reports
ROLES = (*REPORT_ROLES, "value")
PERIOD_NAMES = ("day", "week", "month")
MAX_NAME_LETTERS = 60  # of a column's name in a message
NEAR_NAMES = {
    **dict.fromkeys(("user", "users", "userid", "username", "userids"), "user"),
    **dict.fromkeys(("mechanism", "mechanisms", "mechanismname"), "mechanism"),
    **dict.fromkeys(("output", "outputs"), "output"),
}
# Columns that say how many people a row stands for, in letters alone: weight, wt, survey_weight, pspwght, count, freq.
WEIGHTS = (
    (
        re.compile(r"(survey|sampl(e|ing)|design|person|case|final|freq(uency)?|psp|an|[afip])?w(eigh|egh|gh|g)?ts?"),
        "a column may hold survey weights",
        "if it does, name it with --weight-column {}; otherwise remove or rename it",
    ),
    (
        re.compile(r"counts?|freqs?|frequency|frequencies|n(um)?(users|people|respondents)"),
        "a row must stand for one person",
        "write one row for each report, or use hubbub.Reports.from_counts in Python; rename the column if it does not "
        "count people",
    ),
)


@dataclass(frozen=True)
class ColumnNames:
    """The name of the column for each role; None where none was chosen, and the role's own name is used."""

    output: str | None = None
    user: str | None = None
    mechanism: str | None = None
    time: str | None = None  # of which the day, week or month may be a group
    weight: str | None = None  # how many people the user of a row stands for
    stratum: str | None = None  # read if it is named, as the cluster is
    cluster: str | None = None
    value: str | None = None  # in files of values that are still to be privatized

    def __post_init__(self) -> None:
        roles: dict[str, str] = {}
        for role in ROLES:
            name = getattr(self, role)
            if name is None:
                continue
            if not isinstance(name, str) or not name:
                raise SettingError(
                    f"{role}_column must be the name of a column",
                    where=f"--{role}-column",
                    got=shorten(name),
                    expected="a text, spelt as in the source",
                    remedy=f"leave it out if the column is called {role}",
                )
            first_role = roles.setdefault(name, role)
            if first_role != role:
                raise SettingError(
                    "one column cannot have two meanings",
                    where=f"--{first_role}-column, --{role}-column",
                    got=f"{shorten(name)} for both",
                    expected="a separate column for each",
                    remedy="name another column",
                )

    def name_of(self, role: str) -> str:
        """Return what the column of a role is called in the source; any other column keeps its name."""
        return (getattr(self, role) if role in ROLES else None) or role

    def role_of(self, name: str) -> str:
        """Return the role of a column of the source; "" if it has none."""
        return next((role for role in ROLES if self.name_of(role) == name), "")

    def is_chosen(self, role: str) -> bool:
        """Whether an option names the column of a role."""
        return getattr(self, role) is not None

    def in_roles(self, rows: Rows) -> Rows:
        """Return rows with their columns named by their roles."""
        return replace(rows, columns={self.role_of(name) or name: column for name, column in rows.columns.items()})


OWN_NAMES = ColumnNames()


def wanted_columns(
    source: Source, study: Study, by: Sequence[str] = (), watermark: str | None = None, *, times: bool = False
) -> list[str]:
    """Return the columns of a source that are read, by their names in the source.

    A source is refused if a column is missing, is there twice, or has a meaning that would be ignored. The watermark
    must be there, too; it is returned only if it is read for its own sake. `times` are wanted where rows are left out
    by their time.
    """
    names, columns = source.header(), source.columns
    if not names:
        raise no_reports(source.name, "an empty file")
    for group in by:
        if group in ROLES and columns.name_of(group) != group:
            raise SettingError(
                "a column's name has two meanings",
                where=f"--by {group}, --{group}-column {columns.name_of(group)}",
                got=f"{group} for the groups, and another column in its place",
                expected=f"groups by a column that is not called {group}",
                remedy="rename the column",
            )
    chosen = [name for role in REPORT_ROLES if columns.is_chosen(role) for name in (role, columns.name_of(role))]
    others = [name for name in names if name not in (*chosen, *by)]
    refuse_near_names(source, others, {near: role for near, role in NEAR_NAMES.items() if not columns.is_chosen(role)})
    wanted = [columns.name_of("output")]
    mechanism, user = columns.name_of("mechanism"), columns.name_of("user")
    if mechanism in names or columns.is_chosen("mechanism"):
        wanted.append(mechanism)
    elif len(study.mechanisms) > 1:
        raise refusal(
            "no-mechanism-column",
            "the rows do not say which mechanism was used",
            where=source.name,
            got=f"columns {shorten(names, 200)}",
            expected=f"a column mechanism with one of {', '.join(study.mechanisms)}",
            remedy="add the column, or name it with --mechanism-column; only a study with a single mechanism can do "
            "without it",
        )
    if user in names or columns.is_chosen("user"):
        wanted.append(user)
    if "weight" in names and columns.role_of("weight") == "weight" and "weight" not in by:
        wanted.append(columns.name_of("weight"))
    wanted += [columns.name_of(role) for role in SURVEY_ROLES if columns.is_chosen(role)]
    wanted = list(dict.fromkeys(wanted))
    by_period = times or any(is_period(group, names) for group in by)
    if columns.is_chosen("time") and not by_period:
        raise SettingError(
            "times are not used",
            where="--time-column",
            got=columns.name_of("time"),
            expected="groups by day, week or month, or --as-of",
            remedy="add --by week or --as-of DATE, or leave --time-column out",
        )
    if by_period:
        wanted.append(columns.name_of("time"))
    wanted += [group for group in by if group not in wanted and not is_period(group, names)]
    grows = [] if watermark is None else [watermark]
    check_columns(source, names, [*wanted, *grows])
    has_weights = columns.name_of("weight") in wanted
    _refuse_weights(source, unused_columns(source, [*wanted, *grows]), WEIGHTS[1:] if has_weights else WEIGHTS)
    _refuse_watermark(columns, watermark)
    return wanted


def _refuse_watermark(columns: ColumnNames, watermark: str | None) -> None:
    """Refuse a column as a watermark that does not say when or in which order its rows came."""
    role = "" if watermark is None else columns.role_of(watermark)
    if role in ("output", "mechanism", *SURVEY_ROLES):
        raise SettingError(
            "the watermark must be a column that grows with the source",
            where="--watermark",
            got=f"{watermark}, the column of {role}s",
            expected="an id, or the time at which the row was written",
            remedy="name another column; add one to the source if there is none",
        )


def is_period(group: str, names: Sequence[str]) -> bool:
    """Whether a group is the period of a time, rather than what a column of that name says."""
    return group in PERIOD_NAMES and group not in names


def unused_columns(source: Source, wanted: list[str]) -> list[str]:
    """Return the columns of a source that are not read."""
    return [name for name in dict.fromkeys(source.header()) if name not in wanted]


def check_columns(source: Source, names: list[str], wanted: list[str]) -> None:
    """Refuse a source in which a wanted column is missing, or there twice."""
    for name in wanted:
        if names.count(name) == 1:
            continue
        code, what = "no-column", f"there is no column {name}"
        expected, remedy = column_advice(source, name)
        if name in names:
            code, what = "repeated-column", f"there are several columns {name}"
            remedy = "keep one of them under that name, and rename the others"
        got = f"columns {shorten(names)}"
        raise refusal(code, what, where=source.name, got=got, expected=expected, remedy=remedy)


def column_advice(source: Source, name: str) -> tuple[str, str]:
    """Return what is expected of a missing column, and how to add or name it."""
    expected, remedy = source.expected_column.format(name), source.column_remedy.format(name)
    role = source.columns.role_of(name)
    if role == name and not source.columns.is_chosen(role):
        remedy += f"; or name your column with --{role}-column NAME"
    return expected, remedy


def refuse_near_names(source: Source, names: list[str], near_names: Mapping[str, str]) -> None:
    """Refuse a column whose name is nearly that of a role that no column has."""
    for name in names:
        role = near_names.get(_letters(name))
        if role is not None and name != role and role not in names:
            remedy = f"rename it {role} if it holds that"
            if role in ROLES:
                shown = name if len(name) <= MAX_NAME_LETTERS else "NAME"
                remedy = f"if it holds that, name it with --{role}-column {shown}"
            raise refusal(
                "nearly-a-column",
                f"a column's name is nearly {role}",
                where=source.name,
                got=shorten(name),
                expected=f"{role}, or a clearly different name",
                remedy=f"{remedy}; otherwise give it another name",
            )


def _refuse_weights(source: Source, names: list[str], signs: Sequence[tuple[re.Pattern[str], str, str]]) -> None:
    """Refuse rows that stand for more or fewer than one person each: they would be counted as one."""
    for name in names:
        for pattern, what, remedy in signs:
            if pattern.fullmatch(_letters(name)):
                raise refusal(
                    "weighted-rows",
                    what,
                    where=f"{source.name}, column {name}",
                    got=f"a column called {shorten(name)}, which would be ignored",
                    expected="one row for each report of one person",
                    remedy=remedy.format(name),
                )


def _letters(name: str) -> str:
    return re.sub("[^a-z]", "", name.lower())
