"""Counts of values: how many people hold each value, from any table that hubbub reads.

`plan` takes such a file as the truth: ``value,count`` for every domain, ``x,y,count`` or ``column,row,count`` for a
grid, ``lat,lon,count`` for a grid on the map (points of one cell add up there), and a column for each of several
attributes besides ``count``. An estimate that was written as a table, ``value,probability``, is one too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.errors import DomainError, IntakeError, restated, shorten
from hubbub.domains import Domain
from hubbub.intake.privatizing.value_positions import (
    CORRECT_ROW,
    BadRowError,
    ValueReader,
    read_all_numbers,
    read_numbers,
)
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.base import Source, check_counted
from hubbub.intake.sources.column_names import check_columns
from hubbub.intake.sources.csv_reader import CsvSource
from hubbub.intake.sources.distinct_entries import entry_type
from hubbub.intake.sources.source_lookup import sources_of, without_copies
from hubbub.intake.study import Study
from hubbub.rendering import from_spreadsheet_safe

if TYPE_CHECKING:
    import pyarrow as pa

COUNT_COLUMNS = ("count", "probability", "share")
CELL_COLUMNS = (("x", "y"), ("column", "row"))  # of a cell, from the west and from the south


def read_counts(source: object, study: Study) -> dict[Any, float]:
    """Return {value: count} over the study's domain; values that are not listed count as 0.

    The first row that cannot be read stops it, and is reported with its place.
    """
    domain = study.domain
    totals = np.zeros(len(domain))
    first_places: dict[int, int] = {}
    sources, _ = without_copies(sources_of(source, study))
    for table in sources:
        count_column, value_columns = _columns(table, domain)
        adds_up = value_columns == ("lat", "lon")  # points; everything else names each value once
        for positions, counts, places in _rows(table, domain, count_column, value_columns):
            for position, count, place in zip(positions.tolist(), counts.tolist(), places, strict=True):
                if not 0 <= count < np.inf:
                    raise IntakeError(
                        f"not a {count_column}",
                        where=table.where(place),
                        got=f"{count:g}",
                        expected="a number, 0 or more",
                        remedy=CORRECT_ROW,
                    )
                if position in first_places and not adds_up:
                    raise IntakeError(
                        "a value is listed twice",
                        where=table.where(place),
                        got=f"{domain.title(position)}, as in {table.unit} {first_places[position]:,}",
                        expected="each value once",
                        remedy="add the two counts up, or correct the value",
                    )
                first_places.setdefault(position, place)
            np.add.at(totals, positions, counts)
    if not 0.0 < float(totals.sum()) < np.inf:
        raise IntakeError(
            "nobody is counted",
            where=str(source),
            got=f"{len(first_places):,} values, {totals.sum():g} people",
            expected="at least one count above 0",
            remedy="check the column of counts",
        )
    held = np.flatnonzero(totals > 0)
    return {plain(label): count for label, count in zip(domain.labels[held], totals[held].tolist(), strict=True)}


def _columns(source: Source, domain: Domain) -> tuple[str, tuple[str, ...]]:
    """Return the column of counts, and the columns that say which value is counted."""
    names = source.header()
    attributes = () if domain.product is None else tuple(domain.product.attributes)
    known = [name for name in COUNT_COLUMNS if name not in attributes]
    counts = [name for name in known if name in names]
    layouts: list[tuple[str, ...]] = [attributes or ("value",)]
    if domain.grid is not None:
        layouts += CELL_COLUMNS
    if domain.is_on_map:
        layouts.append(("lat", "lon"))
    present = [layout for layout in layouts if set(layout) <= set(names)]
    if len(counts) != 1 or len(present) != 1:
        raise refusal(
            "no-column" if not counts or not present else "repeated-column",
            "the columns do not say how many people hold which value",
            where=source.name,
            got=f"columns {shorten(names)}" if names else "an empty file",
            expected=f"one of {' or '.join(','.join((*layout, known[0])) for layout in layouts)}",
            remedy="rename the columns",
        )
    check_columns(source, names, [*present[0], counts[0]])
    return counts[0], present[0]


def _rows(
    source: Source, domain: Domain, count_column: str, value_columns: tuple[str, ...]
) -> Iterator[tuple[Positions, Floats, list[int]]]:
    """Yield the position of each row's value, its count, and its place in the source."""
    reader = ValueReader(domain)
    for rows in source.rows([*value_columns, count_column]):
        check_counted(source, rows)
        if rows.faults:
            raise _fault_at(source, *rows.faults[0])
        if rows.parsed == 0:
            continue
        places = rows.place(np.arange(rows.parsed)).tolist()
        columns = {name: rows.columns[name] for name in value_columns}
        if "value" in columns:
            guarded = count_column == "probability" and isinstance(source, CsvSource)  # as hubbub writes estimates
            columns["value"] = _unguarded(columns["value"], domain, guarded=guarded)
        try:
            positions = _positions(source, places, domain, reader, columns)
            counts = read_numbers(rows.columns[count_column], count_column)
        except BadRowError as bad:
            raise _fault_at(source, places[bad.row], bad.fault) from None
        yield positions, counts, places


def _positions(
    source: Source, places: list[int], domain: Domain, reader: ValueReader, columns: Mapping[str, pa.ChunkedArray]
) -> Positions:
    """Return the position of each row's value; `places` are those of the rows in the source."""
    if domain.product is not None:
        return reader.read_label_columns(columns)
    if "value" in columns:
        return reader.read_labels(columns["value"])
    if "lat" in columns:
        return reader.read(columns)
    grid = domain.grid
    assert grid is not None  # noqa: S101  # other domains have no such columns
    xs, ys = read_all_numbers(columns)
    cells = []
    for place, x, y in zip(places, xs.tolist(), ys.tolist(), strict=True):
        try:
            cells.append(grid.cell(x, y))
        except DomainError as error:
            raise restated(error, IntakeError, where=source.where(place)) from None
    return grid.find(np.array(cells, dtype=np.int64))


def _fault_at(source: Source, place: int, fault: Fault) -> IntakeError:
    where = source.where(place) + (f", column {fault.column}" if fault.column else "")
    return restated(fault.error, IntakeError, where=where)


def _unguarded(column: pa.ChunkedArray, domain: Domain, *, guarded: bool) -> pa.ChunkedArray:
    """Return labels without the apostrophe that keeps spreadsheets from running them, where one was put there.

    A text that is a label itself keeps its apostrophe unless the table is `guarded`: written by hubbub.
    """
    import pyarrow as pa

    if domain.labels.dtype.kind == "i" or not pa.types.is_string(entry_type(column)):
        return column
    labels = {str(label) for label in domain.labels.tolist()}

    def label(text: str | None) -> str | None:
        plain_text = text if text is None else from_spreadsheet_safe(text)
        return plain_text if plain_text in labels and (guarded or text not in labels) else text

    return pa.chunked_array([[label(text) for text in column.to_pylist()]], type=pa.string())
