"""Tables that `hubbub design` reads: bounds for pairs of values, and what users lose by each answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.errors import IntakeError, restated, shorten
from hubbub.domains import Domain
from hubbub.intake.privatizing.value_positions import (
    CORRECT_ROW,
    BadRowError,
    ValueReader,
    read_all_numbers,
    read_numbers,
)
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.column_names import check_columns
from hubbub.intake.sources.source_lookup import sources_of
from hubbub.intake.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

ENDS = ("value", "other")
BOUND = "bound"

T = TypeVar("T")
Pair = tuple[Any, Any]


def read_pairs(path: str, study: Study) -> dict[Pair, float] | list[Pair]:
    """Return {(value, other): bound} from a table value,other,bound; a list of pairs if it has no column of bounds.

    Of several attributes, the columns are called value.NAME and other.NAME.
    """
    domain, source = study.domain, _one_source(path, study)
    names = source.header()
    columns = {end: [end] if domain.product is None else [f"{end}.{name}" for name in domain.product.attributes]
               for end in ENDS}  # fmt: skip
    wanted = [name for own in columns.values() for name in own] + [BOUND] * (BOUND in names)
    _refuse_others(source, names, wanted, "value,other,bound; or value,other where all pairs have one epsilon")
    readers = {end: ValueReader(domain) for end in ENDS}
    bounds: dict[Pair, float] = {}
    first_places: dict[frozenset[int], int] = {}
    for rows, places in _batches(source, wanted):
        ends = [
            _read(source, places, partial(_positions, readers[end], rows.columns, columns[end], domain)) for end in ENDS
        ]
        numbers = np.zeros(len(places))
        if BOUND in names:
            numbers = _read(source, places, partial(read_numbers, rows.columns[BOUND], BOUND))
        for value, other, number, place in zip(*(each.tolist() for each in (*ends, numbers)), places, strict=True):
            both = frozenset((value, other))
            if both in first_places:
                raise IntakeError(
                    "a pair is listed twice",
                    where=source.where(place),
                    got=f"{domain.title(value)} and {domain.title(other)}, as in {source.unit} {first_places[both]:,}",
                    expected="each pair once, in either order: a bound holds in both directions",
                    remedy="keep the smaller of the two bounds",
                )
            first_places[both] = place
            bounds[plain(domain.labels[value]), plain(domain.labels[other])] = float(number)
    return bounds if BOUND in names else list(bounds)


def read_losses(path: str, study: Study) -> Floats:
    """Return the loss of each value (row) by each answer (column) from a table with their labels.

    The column `value` holds the values, and every other column is called like an answer; rows and columns may come in
    any order.
    """
    domain, source = study.domain, _one_source(path, study)
    names = source.header()
    answers = [str(plain(label)) for label in domain.labels] if domain.product is None else []
    if not answers:
        raise IntakeError(
            "losses of combinations are not read from a file",
            where=source.name,
            got="a study of several attributes",
            expected="a domain of one attribute",
            remedy="pass them in Python: hb.design(..., loss=table)",
        )
    _refuse_others(source, names, ["value", *answers], "value, and a column for each answer, called like the value")
    reader = ValueReader(domain)
    losses = np.full((len(domain), len(domain)), np.nan)
    for rows, places in _batches(source, ["value", *answers]):
        positions = _read(source, places, partial(reader.read_labels, rows.columns["value"]))
        table = {name: rows.columns[name] for name in answers}
        numbers = _read(source, places, partial(read_all_numbers, table))
        for row, position in enumerate(positions.tolist()):
            if not np.isnan(losses[position, 0]):
                raise IntakeError(
                    "a value is listed twice",
                    where=source.where(places[row]),
                    got=domain.title(position),
                    expected="one row of losses for each value",
                    remedy=CORRECT_ROW,
                )
            losses[position] = [column[row] for column in numbers]
    missing = np.flatnonzero(np.isnan(losses[:, 0]))
    if missing.size:
        raise IntakeError(
            "a value has no losses",
            where=source.name,
            got=f"no row for {shorten(plain(domain.labels[missing[0]]))}",
            expected=f"a row for each of the {len(domain)} values",
            remedy="add what a user of that value loses by each answer",
        )
    return losses


def _one_source(path: str, study: Study) -> Source:
    sources = sources_of(path, study)
    if len(sources) != 1:
        raise refusal(
            "named-twice",
            "several files where one table is read",
            where=path,
            got=f"{len(sources)} files",
            expected="one file",
            remedy="name a single file",
        )
    return sources[0]


def _refuse_others(source: Source, names: list[str], wanted: list[str], expected: str) -> None:
    """Refuse a table that lacks a column, or has one that would be ignored."""
    check_columns(source, names, wanted)
    others = [name for name in names if name not in wanted]
    if others:
        raise refusal(
            "no-column",
            "a column means nothing here",
            where=source.name,
            got=f"a column {shorten(others[0])}",
            expected=f"the columns {expected}",
            remedy="rename or remove the column",
        )


def _batches(source: Source, wanted: list[str]) -> Iterator[tuple[Rows, list[int]]]:
    """Yield batches of rows, with the place of each; the first row that cannot be parsed is an error."""
    for rows in source.rows(wanted):
        check_counted(source, rows)
        if rows.faults:
            place, fault = rows.faults[0]
            raise restated(fault.error, IntakeError, where=source.where(place))
        if rows.parsed:
            yield rows, rows.place(np.arange(rows.parsed)).tolist()


def _positions(
    reader: ValueReader, columns: Mapping[str, pa.ChunkedArray], names: list[str], domain: Domain
) -> Positions:
    if domain.product is None:
        return reader.read_labels(columns[names[0]])
    return reader.read_label_columns(
        dict(zip(domain.product.attributes, (columns[name] for name in names), strict=True))
    )


def _read(source: Source, places: list[int], read: Callable[[], T]) -> T:
    """Return what is read; a row that cannot be is reported with its place."""
    try:
        return read()
    except BadRowError as bad:
        column = f", column {bad.fault.column}" if bad.fault.column else ""
        raise restated(bad.fault.error, IntakeError, where=source.where(places[bad.row]) + column) from None
