"""Counts of values: how many people hold each, one row for each value, from any table that hubbub reads.

Such a file is what `plan` can assume of the truth: ``value,count`` for every domain, ``x,y,count`` or
``column,row,count`` for a grid, ``lat,lon,count`` for a grid on the map (points of one cell add up there). An estimate
that was written as a table, ``value,probability``, is one too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.errors import DomainError, IntakeError, shorten
from hubbub.domains import Domain, Grid
from hubbub.intake.privatizing.value_columns import on_map
from hubbub.intake.privatizing.value_positions import Bad, ValueReader, read_numbers
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.column_selection import check_once
from hubbub.intake.sources.csv_reader import Delimited
from hubbub.intake.sources.source_lookup import sources_of, without_copies
from hubbub.intake.study import Study
from hubbub.rendering import from_spreadsheet_safe

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = ("count", "probability", "share")  # names of the column that says how many
PLACES = (("x", "y"), ("column", "row"))  # of a cell, from the west and from the south


def read_counts(source: object, study: Study) -> dict[Any, float]:
    """Return {value: count} over the study's domain; values that are not listed count as 0.

    The first row that cannot be taken ends it, and is told with its place.
    """
    domain = study.domain
    totals = np.zeros(len(domain))
    first: dict[int, int] = {}
    sources, _ = without_copies(sources_of(source, study))
    for one in sources:
        number, names = _columns(one, domain)
        adds_up = names == ("lat", "lon")  # points; everything else names each value once
        for rows, positions, counts in _rows(one, domain, number, names):
            places = rows.place(np.arange(rows.parsed))
            for position, place in zip(positions.tolist(), places.tolist(), strict=True):
                if first.setdefault(position, place) != place and not adds_up:
                    raise _wrong(
                        one,
                        place,
                        "a value is listed twice",
                        got=f"{domain.title(position)}, as in {one.unit} {first[position]:,}",
                        expected="each value once",
                        remedy="add the two counts up, or correct the value",
                    )
            np.add.at(totals, positions, counts)
    if not 0.0 < float(totals.sum()) < np.inf:
        raise IntakeError(
            "nobody is counted",
            where=str(source),
            got=f"{len(first):,} values, {totals.sum():g} people",
            expected="at least one count above 0",
            remedy="check the column of counts",
        )
    held = np.flatnonzero(totals > 0)
    return {plain(label): count for label, count in zip(domain.labels[held], totals[held].tolist(), strict=True)}


def _columns(source: Source, domain: Domain) -> tuple[str, tuple[str, ...]]:
    """Return the column of counts, and the columns that say of what."""
    names = source.header()
    numbers = [name for name in NUMBERS if name in names]
    ways: list[tuple[str, ...]] = [("value",)]
    if domain.grid is not None:
        ways += PLACES
    if on_map(domain):
        ways.append(("lat", "lon"))
    found = [way for way in ways if set(way) <= set(names)]
    if len(numbers) != 1 or len(found) != 1:
        raise refusal(
            "no-column" if not numbers or not found else "repeated-column",
            "the columns do not say how many people hold which value",
            where=source.name,
            got=f"columns {shorten(names)}" if names else "an empty file",
            expected=f"one of {' or '.join(','.join((*way, 'count')) for way in ways)}",
            remedy="name the columns so",
        )
    check_once(source, names, [*found[0], numbers[0]])
    return numbers[0], found[0]


def _rows(
    source: Source, domain: Domain, number: str, names: tuple[str, ...]
) -> Iterator[tuple[Rows, Positions, Floats]]:
    reader = ValueReader(domain)
    for rows in source.rows([*names, number]):
        check_counted(source, rows)
        if rows.faults:
            place, fault = rows.faults[0]
            raise _at(source, place, fault)
        if rows.parsed == 0:
            continue
        positions = _positions(source, rows, domain, reader, number, names)
        counts = read_numbers(rows.columns[number], number)
        for found in (positions, counts):
            if isinstance(found, Bad):
                raise _at(source, int(rows.place(np.array([found.row]))[0]), found.fault)
        assert not isinstance(positions, Bad)  # noqa: S101  # told above
        assert not isinstance(counts, Bad)  # noqa: S101
        _check_counts(source, rows, counts, number)
        yield rows, positions, counts


def _positions(
    source: Source, rows: Rows, domain: Domain, reader: ValueReader, number: str, names: tuple[str, ...]
) -> Positions | Bad:
    if names == ("value",):
        guarded = number == "probability" and isinstance(source, Delimited)  # as hubbub writes estimates
        return reader.read_labels(_unguarded(rows.columns["value"], domain, guarded=guarded))
    if names == ("lat", "lon"):
        return reader.read({name: rows.columns[name] for name in names})
    assert domain.grid is not None  # noqa: S101  # other domains have no such columns
    return _cells(source, rows, domain.grid, [rows.columns[name] for name in names], names)


def _unguarded(column: pa.ChunkedArray, domain: Domain, *, guarded: bool) -> pa.ChunkedArray:
    """Return labels without the apostrophe that keeps spreadsheets from running them, where one was put there.

    A text that is a label itself keeps its apostrophe unless the table is `guarded`: written by hubbub.
    """
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if domain.labels.dtype.kind == "i" or not pa.types.is_string(kind):
        return column
    labels = {str(label) for label in domain.labels.tolist()}

    def label(text: str | None) -> str | None:
        plain_text = text if text is None else from_spreadsheet_safe(text)
        return plain_text if plain_text in labels and (guarded or text not in labels) else text

    return pa.chunked_array([[label(text) for text in column.to_pylist()]], type=pa.string())


def _cells(
    source: Source, rows: Rows, grid: Grid, columns: list[pa.ChunkedArray], names: tuple[str, ...]
) -> Positions | Bad:
    steps = [read_numbers(column, name) for column, name in zip(columns, names, strict=True)]
    bad = [one for one in steps if isinstance(one, Bad)]
    if bad:
        return min(bad, key=lambda one: one.row)
    cells = []
    for row, pair in enumerate(zip(*(one.tolist() for one in steps if not isinstance(one, Bad)), strict=True)):
        try:
            cells.append(grid.cell(*pair))
        except DomainError as error:
            place = int(rows.place(np.array([row]))[0])
            raise _wrong(
                source, place, error.what, got=error.got, expected=error.expected, remedy=error.remedy
            ) from None
    return grid.find(np.array(cells, dtype=np.int64))


def _check_counts(source: Source, rows: Rows, counts: Floats, number: str) -> None:
    good = np.isfinite(counts) & (counts >= 0)
    if not good.all():
        row = int(np.argmin(good))
        raise _wrong(
            source,
            int(rows.place(np.array([row]))[0]),
            f"not a {number}",
            got=f"{counts[row]:g}",
            expected="a number, 0 or more",
            remedy="correct the row, or leave it out on purpose",
        )


def _at(source: Source, place: int, fault: Fault) -> IntakeError:
    error = fault.error
    where = source.where(place) + (f", column {fault.column}" if fault.column else "")
    return refusal(fault.code, error.what, where=where, got=error.got, expected=error.expected, remedy=error.remedy)


def _wrong(source: Source, place: int, what: str, *, got: str, expected: str, remedy: str) -> IntakeError:
    return IntakeError(what, where=source.where(place), got=got, expected=expected, remedy=remedy)
