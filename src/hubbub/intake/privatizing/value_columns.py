"""Which columns of a source of values are read; all others are left out."""

from __future__ import annotations

from hubbub.core.errors import ReportsError, SettingError, shorten
from hubbub.domains import Domain
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.column_names import ROLES, check_columns, column_advice, refuse_near_names
from hubbub.intake.study import Study

NEARLY = {
    **dict.fromkeys(("user", "users", "userid", "username", "userids"), "user"),
    **dict.fromkeys(("mechanism", "mechanisms", "mechanismname"), "mechanism"),
    **dict.fromkeys(("value", "values"), "value"),
}
NEARLY_COORDINATES = {
    **dict.fromkeys(("lat", "latitude"), "lat"),
    **dict.fromkeys(("lon", "lng", "long", "longitude"), "lon"),
}


def value_columns(source: Source, study: Study, mechanism: str | None) -> list[str]:
    """Return the columns of a source of values that are read.

    `mechanism` is the name of the one that all rows go through; None where rows name their own, or there is only one.
    """
    names, columns = source.header(), source.columns
    value, user = columns.name_of("value"), columns.name_of("user")
    if not names:
        raise no_values(source.name, "an empty file")
    by_place = on_map(study.domain) and value not in names and not columns.is_chosen("value")
    nearly = {near: meant for near, meant in NEARLY.items() if not columns.is_chosen(meant)}
    chosen = [columns.name_of(role) for role in ROLES if columns.is_chosen(role)]
    others = [name for name in names if name not in chosen]
    refuse_near_names(source, others, nearly | NEARLY_COORDINATES if by_place else nearly)
    wanted = ["lat", "lon"] if by_place and {"lat", "lon"} & set(names) else [value]
    if on_map(study.domain) and value in names and not columns.is_chosen("value") and {"lat", "lon"} <= set(names):
        raise refusal(
            "repeated-column",
            "rows say twice where they are",
            where=source.name,
            got="columns value, lat and lon",
            expected="lat and lon, or a cell's number as value",
            remedy="keep one of them, and give the others another name",
        )
    if wanted == [value] and value not in names and not columns.is_chosen("value"):
        raise _no_column(source, names, on_map(study.domain))
    named = columns.name_of("mechanism")
    if named in names or columns.is_chosen("mechanism"):
        _refuse_two_answers(source, mechanism)
        wanted.append(named)
    elif mechanism is None and len(study.mechanisms) > 1:
        raise refusal(
            "no-mechanism-column",
            "nothing says which mechanism to use",
            where=source.name,
            got=f"columns {shorten(names)}",
            expected=f"one of {', '.join(study.mechanisms)}, for all rows or in a column mechanism",
            remedy="name it: --mechanism NAME",
        )
    if user in names or columns.is_chosen("user"):
        wanted.append(user)
    check_columns(source, names, wanted)
    return wanted


def on_map(domain: Domain) -> bool:
    """Whether values have a latitude and a longitude."""
    return domain.is_on_map


def _no_column(source: Source, names: list[str], places: bool) -> Exception:
    reports = "output" in names
    expected, remedy = column_advice(source, "value")
    return refusal(
        "no-column",
        "there is no column value",
        where=source.name,
        got=f"columns {shorten(names)}" + (": these look like reports, privatized already" if reports else ""),
        expected=f"columns lat and lon, or {expected}" if places else expected,
        remedy=remedy,
    )


def _refuse_two_answers(source: Source, mechanism: str | None) -> None:
    if mechanism is not None:
        raise SettingError(
            "the mechanism is named twice",
            where=f"{source.name}, column mechanism",
            got=f"a column mechanism, and {mechanism!r} for all rows",
            expected="one of the two",
            remedy="leave --mechanism out, or give the column another name",
        )


def no_values(where: str, got: str = "0 rows") -> ReportsError:
    """Return the error for a source without values."""
    return ReportsError(
        "there are no values",
        where=where,
        got=got,
        expected="at least one row",
        remedy="check that the file or table holds what you meant to privatize",
    )
