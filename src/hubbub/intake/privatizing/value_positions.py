"""Values of rows: the columns that hold them, and their positions in the domain.

A value is a label, a raw number for bins, or a latitude and a longitude for a map; all other columns are left out. Of
several attributes, each has a column of its own.
Each distinct entry is looked at once where entries repeat (labels), and all at once where they do not (numbers). The
first row that cannot be read is reported with its place: nobody is left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import TypeVar

import numpy as np

from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.arrow import pa
from hubbub.core.errors import DomainError, HubbubError, IntakeError, OutputError, ReportsError, SettingError, shorten
from hubbub.core.number_advice import number_advice
from hubbub.core.text import listed, renaming
from hubbub.domains import Domain, Product
from hubbub.intake.counting.item_encoder import is_empty
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.column_names import (
    NEAR_NAMES,
    ROLES,
    USUAL_NAMES,
    check_columns,
    column_advice,
    refuse_near_names,
)
from hubbub.intake.sources.distinct_entries import check_column, entries_of, one_array
from hubbub.intake.sources.number_columns import floats_of
from hubbub.intake.study import Study
from hubbub.mechanisms.output_spaces import ValueOutputs

T = TypeVar("T")

NEAR_VALUE_NAMES = {
    **{near: role for near, role in NEAR_NAMES.items() if role != "output"},
    **dict.fromkeys(("value", "values"), "value"),
}
NEAR_COORDINATES = {near: role for role, names in USUAL_NAMES.items() for near in names}
CORRECT_ROW = "correct the row, or leave it out on purpose"
OUTSIDE_REMEDIES = {  # for true values outside the domain, by their kind of column
    "value": "widen the first or last bin, or deliberately leave that person out",
    "lat, lon": "latitude comes first; enlarge the study's area, or deliberately leave that person out",
}


def value_columns(source: Source, study: Study, mechanism: str | None) -> list[str]:
    """Return the columns of a source of values that are read.

    `mechanism` is the name of the one that all rows go through; None where rows name their own, or there is only one.
    """
    names, columns = source.header(), source.columns
    user = columns.name_of("user")
    if not names:
        raise no_values(source.name, "an empty file")
    product = study.domain.product
    if product is None:
        wanted = _value_column(source, names, study.domain)
    else:
        wanted = _attribute_columns(source, names, product)
    named = columns.name_of("mechanism")
    if named in names or columns.is_chosen("mechanism"):
        if mechanism is not None:
            raise SettingError(
                "the mechanism is named twice",
                where=f"{source.name}, column mechanism",
                got=f"a column mechanism, and {mechanism!r} for all rows",
                expected="one of the two",
                remedy="leave --mechanism out, or give the column another name",
            )
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


def _attribute_columns(source: Source, names: list[str], domain: Product) -> list[str]:
    """Return the columns of each attribute: its own, or its latitude and longitude."""
    if source.columns.is_chosen("value"):
        raise SettingError(
            "values of several attributes are not in one column",
            where="--value-column",
            got=source.columns.name_of("value"),
            expected=f"the columns {listed(list(domain.attributes))}",
            remedy="leave it out; columns are called by their attributes",
        )
    nearly = {near: role for near, role in NEAR_VALUE_NAMES.items() if role in ("user", "mechanism")}
    chosen = [source.columns.name_of(role) for role in ("user", "mechanism")]
    refuse_near_names(source, [name for name in names if name not in (*domain.attributes, *chosen)], nearly)
    wanted: list[str] = []
    for name, own in domain.attributes.items():
        places = place_columns(name)
        if own.is_on_map and name not in names and set(places) & set(names):
            wanted += places
            continue
        if name not in names:
            reports = any(each == "output" or each.startswith("output.") for each in names)
            expected = f"a column for each of {listed(list(domain.attributes))}"
            spare = [each for each in names if each not in domain.attributes]
            raise refusal(
                "no-column",
                f"there is no column {name}",
                where=source.name,
                got=f"columns {shorten(names)}" + (": these look like reports, privatized already" if reports else ""),
                expected=expected + (f"; or {places[0]} and {places[1]}" if own.is_on_map else ""),
                remedy=renaming(spare, [name], source.column_remedy.format(name)),
            )
        wanted.append(name)
    return wanted


def place_columns(column: str) -> tuple[str, str]:
    """Return the columns of a latitude and a longitude that stand for a column of cells."""
    return ("lat", "lon") if column == "value" else (f"{column}.lat", f"{column}.lon")


def _value_column(source: Source, names: list[str], domain: Domain) -> list[str]:
    """Return the column of values, or those of a latitude and a longitude."""
    columns = source.columns
    value = columns.name_of("value")
    on_map = domain.is_on_map and not columns.is_chosen("value")
    by_place = on_map and value not in names
    nearly = {near: meant for near, meant in NEAR_VALUE_NAMES.items() if not columns.is_chosen(meant)}
    chosen = [columns.name_of(role) for role in ROLES if columns.is_chosen(role)]
    others = [name for name in names if name not in chosen]
    refuse_near_names(source, others, nearly | NEAR_COORDINATES if by_place else nearly)
    wanted = ["lat", "lon"] if by_place and {"lat", "lon"} & set(names) else [value]
    if on_map and value in names and {"lat", "lon"} <= set(names):
        raise refusal(
            "repeated-column",
            "rows give their location twice",
            where=source.name,
            got="columns value, lat and lon",
            expected="lat and lon, or a cell's number as value",
            remedy="keep one of them, and give the others another name",
        )
    if wanted == [value] and value not in names and not columns.is_chosen("value"):
        raise _no_column(source, names, on_map)
    return wanted


def _no_column(source: Source, names: list[str], places: bool) -> IntakeError:
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


def no_values(where: str, got: str = "0 rows") -> ReportsError:
    """Return the error for a source without values."""
    return ReportsError(
        "there are no values",
        where=where,
        got=got,
        expected="at least one row",
        remedy="check that the file or table holds what you meant to privatize",
    )


class BadRowError(Exception):
    """A row that cannot be read, by its place in the batch, and why."""

    def __init__(self, row: int, fault: Fault) -> None:
        super().__init__(row, fault)
        self.row, self.fault = row, fault


def read_all(readers: Iterable[Callable[[], T]]) -> list[T]:
    """Return what each reader reads; where some cannot, raise the error of the earliest row."""
    read: list[T] = []
    errors: list[BadRowError] = []
    for reader in readers:
        try:
            read.append(reader())
        except BadRowError as error:
            errors.append(error)
    if errors:
        raise min(errors, key=attrgetter("row"))
    return read


class ValueReader:
    """Turns columns of values into positions, and remembers the labels it has seen.

    `column` is that of the values; the attributes of a product have one each.
    """

    def __init__(self, domain: Domain, column: str = "value") -> None:
        self._domain, self._column = domain, column
        self._parts = {}
        if domain.product is not None:
            self._parts = {name: ValueReader(own, name) for name, own in domain.product.attributes.items()}
        else:
            self._space = ValueOutputs(domain, column)
        self._known: dict[str, dict[object, int | Fault]] = {}  # the position of each label, or why it has none

    def read(self, columns: Mapping[str, pa.ChunkedArray]) -> Positions:
        """Return the position of each row's value."""
        if self._domain.product is not None:
            return self._together([partial(part.read, columns) for part in self._parts.values()])
        if self._column not in columns:
            grid = self._domain.grid
            assert grid is not None  # noqa: S101  # other domains have no such columns
            names = place_columns(self._column)
            numbers = read_all_numbers({name: columns[name] for name in names})
            return grid.find(_located(grid.locate, ", ".join(names), "lat, lon", *numbers))
        locate = self._domain.raw_locator
        if locate is not None:
            return _located(locate, self._column, "value", read_numbers(columns[self._column], self._column))
        return self.read_labels(columns[self._column])

    def read_label_columns(self, columns: Mapping[str, pa.ChunkedArray]) -> Positions:
        """Return the position of each row's combination; for bins, too, columns hold labels."""
        return self._together([partial(part.read_labels, columns[name]) for name, part in self._parts.items()])

    def _together(self, readers: Iterable[Callable[[], Positions]]) -> Positions:
        """Return the positions of combinations, from a reader for each attribute."""
        assert self._domain.product is not None  # noqa: S101  # others have one column
        positions = self._domain.product.at_coordinates(read_all(readers))
        if (positions < 0).any():
            raise BadRowError(int(np.argmax(positions < 0)), self._impossible())
        return positions

    def _impossible(self) -> Fault:
        """Return the fault of a row whose values cannot meet; it does not show them."""
        names = listed(list(self._parts))
        expected = "a combination that no rule of `impossible` bars"
        what = "a row has a combination that the study calls impossible"
        return _fault("", "out-of-domain", what, f"values of {names}", expected)

    def read_labels(self, column: pa.ChunkedArray) -> Positions:
        """Return the positions of a column of labels; for bins, too, these are the labels: their numbers."""
        kind = check_column(column, self._column)
        numbers = self._domain.labels.dtype.kind == "i"
        if numbers and pa.types.is_integer(column.type) and kind != pa.uint64() and column.null_count == 0:
            positions = self._domain.find(np.asarray(one_array(column)).astype(np.int64))
            if (positions >= 0).all():
                return positions
        entries = entries_of(column, self._column)
        known = self._known.setdefault(entries.kind, {})
        used = np.flatnonzero(np.bincount(entries.indices, minlength=len(entries.values)))
        listed = entries.take(used)
        new = [entry for entry in listed if entry not in known]
        if new:
            known.update(zip(new, self._find(new), strict=True))
        by_entry = np.full(len(entries.values), -1, dtype=np.int64)
        results = [known[entry] for entry in listed]
        by_entry[used] = [-1 if isinstance(result, Fault) else result for result in results]
        positions = by_entry[entries.indices]
        if (positions < 0).any():
            row = int(np.argmax(positions < 0))
            fault = known[entries.values[int(entries.indices[row])]]
            assert isinstance(fault, Fault)  # noqa: S101  # it has no position
            raise BadRowError(row, fault)
        return positions

    def _find(self, entries: list[object]) -> list[int | Fault]:
        """Return the position of each entry, or why it has none; all at once where all have one."""
        try:
            positions = self._space.encode([self._space.read(entry) for entry in entries])
            if len(positions) == len(entries):
                return [int(position) for position in positions]
        except OutputError:
            pass
        return [self._find_one(entry) for entry in entries]

    def _find_one(self, entry: object) -> int | Fault:
        if is_empty(entry):
            return missing(self._column)
        try:
            return int(self._space.encode([self._space.read(entry)])[0])
        except OutputError as error:
            if error.code == "rounded-number":
                return _fault(self._column, error.code, error.what, error.got, error.expected, error.remedy)
            code = error.code if error.code == "not-a-number" else "out-of-domain"
            what = "not a whole number" if error.code == "not-a-number" else "a value is not in the domain"
            remedy = number_advice(entry, CORRECT_ROW, whole=True) if code == "not-a-number" else CORRECT_ROW
            return _fault(self._column, code, what, shorten(plain(entry)), self._domain.describe(), remedy)


def read_numbers(column: pa.ChunkedArray, name: str) -> Floats:
    """Return a column of numbers, or of their texts, as floats."""
    check_column(column, name)
    values, wrong = floats_of(column)
    bad = np.isnan(values)
    if not bad.any():
        return values
    row = int(np.argmax(bad))
    entry = column[row].as_py()
    if wrong is None or not wrong[row]:
        raise BadRowError(row, missing(name))
    expected, remedy = "a number such as 37.75", number_advice(entry, CORRECT_ROW)
    raise BadRowError(row, _fault(name, "not-a-number", "not a number", shorten(entry), expected, remedy))


def read_all_numbers(columns: Mapping[str, pa.ChunkedArray]) -> list[Floats]:
    """Return several columns of numbers; the first row at fault in any of them is an error."""
    return read_all(partial(read_numbers, column, name) for name, column in columns.items())


def _located(locate: Callable[..., Positions], column: str, kind: str, *numbers: Floats) -> Positions:
    """Return the positions that `locate` finds; the first row that it refuses is found by bisection."""
    try:
        return np.asarray(locate(*numbers), dtype=np.int64)
    except DomainError as error:
        refused: HubbubError = error
    first, last = 0, len(numbers[0])
    while last - first > 1:
        middle = (first + last) // 2
        try:
            locate(*(part[first:middle] for part in numbers))
            first = middle
        except DomainError:
            last = middle
    try:
        locate(*(part[first:last] for part in numbers))
    except DomainError as error:
        refused = error
    # These are true values: what the message says about noisy reports does not apply.
    remedy = OUTSIDE_REMEDIES[kind]
    raise BadRowError(first, _fault(column, "out-of-domain", refused.what, refused.got, refused.expected, remedy))


def missing(column: str) -> Fault:
    """Return the fault of a row without a value."""
    return _fault(column, "no-value", "a row has no value", "nothing", f"a value in column {column} in every row")


def _fault(column: str, code: str, what: str, got: str, expected: str, remedy: str = CORRECT_ROW) -> Fault:
    return Fault(column, refusal(code, what, where="", got=got, expected=expected, remedy=remedy))
