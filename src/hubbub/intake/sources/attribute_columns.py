"""Reports about several attributes: which columns of a source hold their outputs.

Each attribute has a column `output.NAME`, or two with its place (`output.NAME.lat` and `output.NAME.lon`); or one
column `output` holds all of them, as a JSON object or a struct.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hubbub.core.errors import shorten
from hubbub.core.text import letters_of, listed, near_name
from hubbub.domains import Domain
from hubbub.intake.attribute_roles import PREFIX, attribute_of, attribute_spaces, is_attribute_role, place_pairs
from hubbub.intake.reject_causes import near_column, refusal
from hubbub.mechanisms.attribute_outputs import AttributeOutputs

if TYPE_CHECKING:
    from hubbub.intake.sources.base import Source
    from hubbub.intake.study import Study

NEARLY_PREFIX = re.compile(r"outputs?[\W_]*", re.IGNORECASE)
COORDINATE_WORDS = ("lat", "latitude", "lon", "lng", "long", "longitude")


def output_roles(source: Source, study: Study) -> tuple[str, ...]:
    """Return the roles of the columns in which a source holds outputs; refuse one that does not say which they are."""
    columns, names = source.columns, source.header()
    if columns.place is not None:
        return columns.place
    if not columns.attribute_roles:
        return ("output",)
    spaces = attribute_spaces(study.mechanisms)
    attributes = {name: part.domain for name, part in spaces[0].parts}
    _refuse_unknown(source, names, list(attributes))
    found: list[str] = []
    for name, domain in attributes.items():
        found += _roles_of(source, names, name, domain)
    whole = columns.is_chosen("output") or "output" in names
    if not found and whole:
        return ("output",)
    absent = absent_attributes(found, attributes)
    if absent:
        _refuse_absent(source, names, absent, spaces, attributes, whole=whole)
    if whole and len(spaces) < len(study.mechanisms):  # other mechanisms send one output
        return (*found, "output")
    if whole:
        raise refusal(
            "repeated-column",
            "the source gives outputs twice",
            where=source.name,
            got=f"columns {columns.name_of('output')} and {listed([columns.name_of(role) for role in found])}",
            expected="a column for each attribute, or one column with all of them",
            remedy="remove or rename one of them",
        )
    return tuple(found)


def absent_attributes(roles: Iterable[str], attributes: Iterable[str]) -> list[str]:
    """Return the attributes that have no column among some roles."""
    about = {attribute_of(role) for role in roles if is_attribute_role(role)}
    return [name for name in attributes if name not in about]


def absent_notes(sources: Iterable[tuple[str, Sequence[str]]], study: Study) -> list[str]:
    """Return one sentence for all sources that lack the columns of the same attributes, given the roles of each."""
    spaces = attribute_spaces(study.mechanisms)
    names = [name for name, _ in spaces[0].parts] if spaces else []
    lacking: dict[tuple[str, ...], list[str]] = {}
    for source, roles in sources:
        if any(map(is_attribute_role, roles)):
            lacking.setdefault(tuple(absent_attributes(roles, names)), []).append(source)
    return [
        f"{where[0]}{f' and {len(where) - 1} more' if len(where) > 1 else ''}: there is no column "
        f"{listed([PREFIX + name for name in absent])}: no row says anything about {listed(list(absent))}"
        for absent, where in lacking.items()
        if absent
    ]


def _refuse_unknown(source: Source, names: Sequence[str], attributes: Sequence[str]) -> None:
    """Refuse a column that is called like that of an attribute, but of none that the study has."""
    for name in names:
        if is_attribute_role(name) and name not in source.columns.attribute_roles and not source.columns.role_of(name):
            raise refusal(
                "unknown-attribute",
                "a column is about an attribute that the study does not have",
                where=source.name,
                got=shorten(name),
                expected=f"{PREFIX}NAME with one of {', '.join(attributes)}",
                remedy=_role_advice(name, source.columns.attribute_roles),
            )


def _role_advice(name: str, roles: Sequence[str]) -> str:
    """Return what to do about a column of an unknown attribute: the prefix that all have in common makes none near."""
    near = near_name(name.removeprefix(PREFIX), [role.removeprefix(PREFIX) for role in roles])
    return "rename the column, or leave it out" if near is None else f"did you mean {PREFIX + near!r}?"


def without_near_roles(source: Source, names: Sequence[str]) -> list[str]:
    """Return the columns that are not called as, or nearly as, those of the outputs of attributes.

    A source is refused if a name such as Output.age is nearly that of an attribute that has no column. Where one column
    holds the outputs of all attributes, none is missing.
    """
    columns, header = source.columns, source.header()
    there = [role for role in columns.attribute_roles if columns.is_chosen(role) or columns.name_of(role) in header]
    has_whole = not there and (columns.is_chosen("output") or "output" in header)
    about = {attribute_of(role) for role in there}
    role_of = {letters_of(role.removeprefix(PREFIX)): role for role in reversed(columns.attribute_roles)}
    others = []
    for name in names:
        if is_attribute_role(name):
            continue
        prefix = NEARLY_PREFIX.match(name)
        role = role_of.get(letters_of(name[prefix.end() :])) if prefix else None
        if role is None:
            others.append(name)
        elif not has_whole and attribute_of(role) not in about:
            own = role.removeprefix(PREFIX)
            remedy = f"if it holds that, rename it, or name it with --output-column {own}=NAME"
            raise near_column(source.name, name, role, remedy)
    return others


def _roles_of(source: Source, names: Sequence[str], attribute: str, domain: Domain) -> list[str]:
    """Return the roles of the columns with the outputs of one attribute: one, two coordinates, or none."""
    columns, role = source.columns, PREFIX + attribute

    def is_there(each: str) -> bool:
        return columns.is_chosen(each) or columns.name_of(each) in names

    ways = [(role,), *((f"{role}.{first}", f"{role}.{second}") for first, second in place_pairs(domain))]
    ways = [way for way in ways if any(map(is_there, way))]
    if len(ways) > 1:
        raise refusal(
            "repeated-column",
            f"the outputs of {attribute} are there twice",
            where=source.name,
            got=f"columns {listed([columns.name_of(each) for way in ways for each in way if is_there(each)])}",
            expected=f"{role}, or the two coordinates of its place",
            remedy="remove or rename one of them",
        )
    return [each for way in ways for each in way]  # a coordinate that is missing is refused like any column


def _refuse_absent(
    source: Source,
    names: Sequence[str],
    absent: Sequence[str],
    spaces: Sequence[AttributeOutputs],
    attributes: dict[str, Domain],
    *,
    whole: bool,
) -> None:
    """Refuse a source without the column of an attribute, unless reports may lack it."""
    coordinates = [name for name in names if name.strip().lower() in COORDINATE_WORDS]
    places = [name for name in absent if attributes[name].grid is not None]
    columns = listed([PREFIX + name for name in attributes])
    if coordinates and places:
        first, second = place_pairs(attributes[places[0]])[0]
        raise refusal(
            "no-column",
            f"there is no column {PREFIX}{places[0]}, and it is not told what the coordinates are",
            where=source.name,
            got=f"columns {shorten(names, 200)}",
            expected=f"{PREFIX}{places[0]}, or {PREFIX}{places[0]}.{first} and {PREFIX}{places[0]}.{second}",
            remedy=f"rename the columns of coordinates, or name them in the study's [columns]: "
            f'"{PREFIX}{places[0]}.{first}" = {coordinates[0]!r}',
        )
    nothing = len(absent) == len(attributes)
    if nothing or (not whole and all(space.sent == "all" for space in spaces)):
        raise refusal(
            "no-column",
            "there is no column of outputs" if nothing else f"there is no column {PREFIX}{absent[0]}",
            where=source.name,
            got=f"columns {shorten(names, 200)}",
            expected=f"the columns {columns}" + (", or one column output with all of them" if nothing else ""),
            remedy=f"rename the columns, or name them: --output-column {absent[0]}=NAME, or "
            f'"{PREFIX}{absent[0]}" = "NAME" in the study\'s [columns]',
        )
