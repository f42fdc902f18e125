"""The columns of a source: what they are called, and which of them are read.

A column goes by its role (`output`, `user`, ...) unless an option or the study's table [columns] names it. Names are
exact; a name that is nearly one of ours is refused, because a column read as something else would change what its rows
mean. Where there are no outputs, a pair of columns may hold places instead (`with_places`), or a column for each
attribute its outputs (attribute_columns.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import SettingError, shorten
from hubbub.core.text import nearest_name
from hubbub.intake.attribute_roles import (
    PLACE_ROLES,
    PREFIX,
    attribute_spaces,
    is_attribute_role,
    roles_of_domain,
)
from hubbub.intake.reject_causes import near_column, refusal
from hubbub.intake.sources.attribute_columns import output_roles, without_near_roles
from hubbub.intake.study import Study
from hubbub.reports.validation import no_reports

if TYPE_CHECKING:
    from hubbub.intake.sources.base import Rows, Source

SURVEY_ROLES = ("weight", "stratum", "cluster")
REPORT_ROLES = ("output", "user", "mechanism", "time", *SURVEY_ROLES)  # the roles of columns in reports
COORDINATES = tuple(role for pair in PLACE_ROLES for role in pair)  # which stand for an output
ROLES = (*REPORT_ROLES, *COORDINATES, "value")
USUAL_NAMES = {"lat": ("lat", "latitude"), "lon": ("lon", "lng", "long", "longitude")}  # in any case
PERIOD_NAMES = ("day", "week", "month")
MAX_NAME_LETTERS = 60  # of a column's name in a message
NEAR_NAMES = {
    **dict.fromkeys(("user", "users", "userid", "username", "userids"), "user"),
    **dict.fromkeys(("mechanism", "mechanisms", "mechanismname"), "mechanism"),
    **dict.fromkeys(("output", "outputs"), "output"),
}
# Columns that say how many people a row stands for, in letters alone: weight, wt, survey_weight, pspwght, count, freq;
# and w, but not w1, which may be the first question.
WEIGHTS = (
    (
        re.compile(r"(survey|sampl(e|ing)|design|person|case|final|freq(uency)?|psp|an|[afip])?w(eigh|egh|gh|g)?ts?|w"),
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

    output: str | Mapping[str, str] | None = None  # of several attributes: the column of each
    user: str | None = None
    mechanism: str | None = None
    time: str | None = None  # of which the day, week or month may be a group
    weight: str | None = None  # how many people the user of a row stands for
    stratum: str | None = None  # read if it is named, as the cluster is
    cluster: str | None = None
    value: str | None = None  # in files of values that are still to be privatized
    lat: str | None = None  # of an output that is a place, in place of `output`
    lon: str | None = None
    x: str | None = None  # to the east of the grid's south-western corner, in its unit
    y: str | None = None
    by_study: frozenset[str] = frozenset()  # the roles that the study names, rather than an option
    attribute_roles: tuple[str, ...] = ()  # of columns that hold outputs of one attribute, where the study has any
    attribute_names: tuple[tuple[str, str], ...] = ()  # the names of such columns by their roles, where one was chosen

    def __post_init__(self) -> None:
        if isinstance(self.output, Mapping):
            named = {f"{PREFIX}{str(name).removeprefix(PREFIX)}": column for name, column in self.output.items()}
            object.__setattr__(self, "attribute_names", (*self.attribute_names, *named.items()))
            object.__setattr__(self, "output", None)
        roles: dict[str, str] = {}
        for role in (*ROLES, *dict(self.attribute_names)):
            name = self._chosen(role)
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
        outputs = [roles[0] for roles in (("output",), *PLACE_ROLES) if any(map(self.is_chosen, roles))]
        if len(outputs) > 1:
            raise SettingError(
                "rows give their output twice",
                where=", ".join(f"--{role}-column" for role in outputs),
                got=" and ".join(outputs),
                expected="a column of outputs, or lat and lon, or x and y",
                remedy="leave one of them out",
            )

    def _chosen(self, role: str) -> str | None:
        """Return the name that was chosen for the column of a role; None if none was."""
        if is_attribute_role(role):
            return dict(self.attribute_names).get(role)
        return getattr(self, role) if role in ROLES else None

    def name_of(self, role: str) -> str:
        """Return what the column of a role is called in the source; any other column keeps its name."""
        return self._chosen(role) or role

    def role_of(self, name: str) -> str:
        """Return the role of a column of the source; "" if it has none."""
        return next((role for role in (*ROLES, *self.attribute_roles) if self.name_of(role) == name), "")

    def is_coordinate(self, name: str) -> bool:
        """Whether a column of the source holds a coordinate of a place that is an output."""
        role = self.role_of(name)
        if is_attribute_role(role):
            return any(role.endswith(f".{axis}") for axis in COORDINATES) and role.count(".") > 1
        return role in (self.place or ())

    def is_chosen(self, role: str) -> bool:
        """Whether an option names the column of a role."""
        return self._chosen(role) is not None

    @property
    def place(self) -> tuple[str, str] | None:
        """The two roles that hold each row's place; None where a column holds its output."""
        return next((pair for pair in PLACE_ROLES if any(map(self.is_chosen, pair))), None)

    def with_study(self, study: Study) -> ColumnNames:
        """Return the names that options and the study choose; an option wins."""
        known = roles_of_domain(study.domain) if attribute_spaces(study.mechanisms) else ()
        own = self._with_attributes(known)
        chosen = {role for role in (*ROLES, *known) if own.is_chosen(role)}
        outputs = {"output", *COORDINATES, *known}
        if chosen & outputs:  # the option says where outputs are
            chosen |= outputs
        added = {role: name for role, name in study.columns.items() if role not in chosen}
        named: dict[str, Any] = {role: name for role, name in added.items() if role in ROLES}
        attributes = {role: name for role, name in added.items() if role in known}
        return replace(
            own,
            **named,
            by_study=frozenset({*named, *attributes}),
            attribute_names=(*own.attribute_names, *attributes.items()),
        )

    def _with_attributes(self, roles: tuple[str, ...]) -> ColumnNames:
        """Return the names of columns where those of some roles hold outputs of attributes.

        An option can name several: --output-column age=AGE_COLUMN,sex=SEX_COLUMN.
        """
        names = [role.removeprefix(PREFIX) for role in roles]
        own = self
        if roles and isinstance(self.output, str) and "=" in self.output:
            pairs = [part.partition("=")[::2] for part in self.output.split(",")]
            own = replace(self, output={name.strip(): column.strip() for name, column in pairs})
        for role, _ in own.attribute_names:
            if role not in roles:
                name = role.removeprefix(PREFIX)
                raise SettingError(
                    f"{shorten(name)} is no attribute of the study",
                    where="--output-column",
                    got=shorten(name),
                    expected=f"one of {', '.join(names)}" if names else "the name of one column: outputs are single",
                    remedy=nearest_name(name, names, "name an attribute" if names else "name one column"),
                )
        return replace(own, attribute_roles=roles)

    def in_roles(self, rows: Rows) -> Rows:
        """Return rows with their columns named by their roles."""
        return replace(rows, columns={self.role_of(name) or name: column for name, column in rows.columns.items()})


OWN_NAMES = ColumnNames()


def with_places(source: Source, study: Study) -> ColumnNames:
    """Return the names of a source's columns, completed by those that hold places if none holds outputs.

    Columns `lat` and `lon` are found by their usual other names, too: latitude, lng, LON, ...
    """
    names, columns = source.header(), source.columns
    grid = study.domain.grid
    if columns.place is None and (columns.is_chosen("output") or "output" in names or grid is None):
        return columns
    if grid is None or not any(mechanism.sends_places for mechanism in study.mechanisms.values()):
        if columns.place is None:
            return columns
        role = next(role for role in columns.place if columns.is_chosen(role))
        raise SettingError(
            "the outputs of this study are not places",
            where=f"--{role}-column",
            got=shorten(columns.name_of(role)),
            expected="a grid, and a mechanism that answers with places on it",
            remedy="name the column of outputs: --output-column NAME",
        )
    pairs = PLACE_ROLES if grid.box is not None else PLACE_ROLES[::-1]  # without a box, x and y come first
    for pair in pairs if columns.place is None else (columns.place,):
        found = {role: _column_of(source, names, role) for role in pair}
        known = [role for role, name in found.items() if name is not None]
        if columns.place is None and (not known or (len(known) == 1 and known[0] in ("x", "y"))):
            continue  # a single x may be anything; a single latitude lacks its longitude
        if pair == ("lat", "lon") and grid.box is None:
            raise refusal(
                "no-column",
                "the study's grid has no place on the map",
                where=source.name,
                got=f"columns {shorten(names)}, and a grid in {grid.unit}",
                expected=f"a column output, or x and y in {grid.unit} from the grid's south-western corner",
                remedy="give the study's grid south, west, north and east to read latitudes and longitudes",
            )
        first, second = (found[role] or role for role in pair)
        return replace(columns, lat=first, lon=second) if pair[0] == "lat" else replace(columns, x=first, y=second)
    return columns


def _column_of(source: Source, names: Sequence[str], role: str) -> str | None:
    """Return the column of a coordinate: the one that is named, or called so, or usually called so; None if none is."""
    if source.columns.is_chosen(role) or role in names:
        return source.columns.name_of(role)
    usual = [name for name in names if name.strip().lower() in USUAL_NAMES.get(role, ())]
    if len(usual) > 1:
        raise refusal(
            "repeated-column",
            f"several columns may hold the {USUAL_NAMES[role][-1]}",
            where=source.name,
            got=f"columns {shorten(usual)}",
            expected=f"one column {role}",
            remedy=f"name the right one with --{role}-column NAME",
        )
    return usual[0] if usual else None


def coordinate_candidates(names: Sequence[str], role: str) -> list[str]:
    """Return the columns whose name has a usual word for a latitude or a longitude in it.

    >>> coordinate_candidates(["stop_lat", "gps_longitude", "platform"], "lat")
    ['stop_lat']
    """
    return [name for name in names if any(word in USUAL_NAMES[role] for word in re.split("[^a-z]+", name.lower()))]


def _refuse_unnamed_places(source: Source, study: Study, names: Sequence[str]) -> None:
    """Refuse a source of a study about places that has neither outputs nor places by names that are read."""
    grid = study.domain.grid
    if grid is None or not any(mechanism.sends_places for mechanism in study.mechanisms.values()):
        return
    pair = PLACE_ROLES[0] if grid.box is not None else PLACE_ROLES[1]
    found = [coordinate_candidates(names, role) if role in USUAL_NAMES else [] for role in pair]
    guessed = [candidates[0] if len(candidates) == 1 else "NAME" for candidates in found]
    options = " ".join(f"--{role}-column {shlex.quote(name)}" for role, name in zip(pair, guessed, strict=True))
    raise refusal(
        "no-column",
        f"there is no column output, and none of {' and '.join(pair)}",
        where=source.name,
        got=f"columns {shorten(names, 200)}",
        expected=f"{source.expected_column.format('output')}; or each row's place in two columns {' and '.join(pair)}",
        remedy=f"name the columns of places with {options}, or in the study's [columns]; one of cells with "
        "--output-column NAME",
    )


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
    chosen_roles = [role for role in (*REPORT_ROLES, *COORDINATES, *columns.attribute_roles) if columns.is_chosen(role)]
    chosen = [name for role in chosen_roles for name in (role, columns.name_of(role))]
    others = [name for name in names if name not in (*chosen, *by)]
    if columns.attribute_roles:
        others = without_near_roles(source, others)
    refuse_near_names(source, others, {near: role for near, role in NEAR_NAMES.items() if not columns.is_chosen(role)})
    wanted = [columns.name_of(role) for role in output_roles(source, study)]
    if wanted == ["output"] and not columns.is_chosen("output") and "output" not in names:
        _refuse_unnamed_places(source, study, names)
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
    if columns.is_chosen("time") and "time" not in columns.by_study and not by_period:
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
    check_columns(source, names, wanted)
    if watermark is not None:
        _check_watermark(source, names, watermark, by_study=study.columns.get("watermark") == watermark)
    has_weights = columns.name_of("weight") in wanted
    grows = [] if watermark is None else [watermark]
    _refuse_weights(source, unused_columns(source, [*wanted, *grows]), WEIGHTS[1:] if has_weights else WEIGHTS)
    return wanted


def _check_watermark(source: Source, names: list[str], watermark: str, *, by_study: bool) -> None:
    """Refuse a watermark that is not there, or does not say when or in which order its rows came."""
    if watermark not in names:
        raise refusal(
            "no-column",
            f"there is no column {watermark}",
            where=source.name,
            got=f"columns {shorten(names)}",
            expected="the column of the watermark: an id, or the time at which the row was written",
            remedy="the study's [columns] names it: correct watermark there, or pass --watermark COLUMN"
            if by_study
            else "name another one with --watermark COLUMN, or add it to the source",
        )
    check_columns(source, names, [watermark])
    role = source.columns.role_of(watermark)
    if role in ("output", "mechanism", *SURVEY_ROLES) or is_attribute_role(role):
        raise SettingError(
            "the watermark must be a column that grows with the source",
            where="[columns], watermark" if by_study else "--watermark",
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
    if role in source.columns.by_study:
        option = (
            f"--output-column {role.removeprefix(PREFIX)}=NAME" if is_attribute_role(role) else f"--{role}-column NAME"
        )
        return expected, f"the study's [columns] names it: correct {role} there, or pass {option}"
    if source.columns.is_chosen(role):
        option = "output" if is_attribute_role(role) else role
        return expected, f"correct --{option}-column, or {remedy}"
    if role == name and role in ROLES:
        remedy += f"; or name your column with --{role}-column NAME"
    return expected, remedy


def refuse_near_names(source: Source, names: list[str], near_names: Mapping[str, str]) -> None:
    """Refuse a column whose name is nearly that of a role that no column has."""
    for name in names:
        role = near_names.get(_letters(name))
        if role is not None and name != role and role not in names:
            remedy = f"rename it {role} if it holds that"
            if role not in COORDINATES:  # of values to privatize, which have no such option
                shown = name if len(name) <= MAX_NAME_LETTERS else "NAME"
                remedy = f"if it holds that, name it with --{role}-column {shown}"
            raise near_column(source.name, name, role, remedy)


def _refuse_weights(source: Source, names: list[str], signs: Sequence[tuple[re.Pattern[str], str, str]]) -> None:
    """Refuse rows that stand for more or fewer than one person each: they would be counted as one."""
    for name in names:
        letters = _letters(name)
        called = letters if len(letters) > 1 else name.lower()
        for pattern, what, remedy in signs:
            if pattern.fullmatch(called):
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
