"""Counts of values: how many people hold each value, from any table that hubbub reads.

`plan` takes such a file as the truth: ``value,count`` for every domain, ``x,y,count`` or ``column,row,count`` for a
grid, ``lat,lon,count`` for a grid on the map (points of one cell add up there). An estimate that was written as a
table, ``value,probability``, is one too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.errors import DomainError, IntakeError, restated, shorten
from hubbub.domains import Domain, Grid
from hubbub.intake.privatizing.value_positions import BadRowError, ValueReader, read_all_numbers, read_numbers
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.column_names import check_columns
from hubbub.intake.sources.csv_reader import CsvSource
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
        for rows, positions, counts in _rows(table, domain, count_column, value_columns):
            places = rows.place(np.arange(rows.parsed))
            for position, place in zip(positions.tolist(), places.tolist(), strict=True):
                if first_places.setdefault(position, place) != place and not adds_up:
                    raise IntakeError(
                        "a value is listed twice",
                        where=table.where(place),
                        got=f"{domain.title(position)}, as in {table.unit} {first_places[position]:,}",
                        expected="each value once",
                        remedy="add the two counts up, or correct the value",
                    )
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
    counts = [name for name in COUNT_COLUMNS if name in names]
    layouts: list[tuple[str, ...]] = [("value",)]
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
            expected=f"one of {' or '.join(','.join((*layout, 'count')) for layout in layouts)}",
            remedy="rename the columns",
        )
    check_columns(source, names, [*present[0], counts[0]])
    return counts[0], present[0]


def _rows(
    source: Source, domain: Domain, count_column: str, value_columns: tuple[str, ...]
) -> Iterator[tuple[Rows, Positions, Floats]]:
    reader = ValueReader(domain)
    for rows in source.rows([*value_columns, count_column]):
        check_counted(source, rows)
        if rows.faults:
            place, fault = rows.faults[0]
            raise restated(fault.error, IntakeError, where=_where(source, place, fault.column))
        if rows.parsed == 0:
            continue
        try:
            positions = _positions(source, rows, domain, reader, count_column, value_columns)
            counts = read_numbers(rows.columns[count_column], count_column)
        except BadRowError as bad:
            where = _where(source, _place(rows, bad.row), bad.fault.column)
            raise restated(bad.fault.error, IntakeError, where=where) from None
        good = np.isfinite(counts) & (counts >= 0)
        if not good.all():
            row = int(np.argmin(good))
            raise IntakeError(
                f"not a {count_column}",
                where=source.where(_place(rows, row)),
                got=f"{counts[row]:g}",
                expected="a number, 0 or more",
                remedy="correct the row, or leave it out on purpose",
            )
        yield rows, positions, counts


def _positions(
    source: Source, rows: Rows, domain: Domain, reader: ValueReader, count_column: str, value_columns: tuple[str, ...]
) -> Positions:
    columns = {name: rows.columns[name] for name in value_columns}
    if value_columns == ("value",):
        guarded = count_column == "probability" and isinstance(source, CsvSource)  # as hubbub writes estimates
        return reader.read_labels(_unguarded(columns["value"], domain, guarded=guarded))
    if value_columns == ("lat", "lon"):
        return reader.read(columns)
    assert domain.grid is not None  # noqa: S101  # other domains have no such columns
    return _cells(source, rows, domain.grid, columns)


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


def _cells(source: Source, rows: Rows, grid: Grid, columns: Mapping[str, pa.ChunkedArray]) -> Positions:
    cells = []
    for row, pair in enumerate(zip(*(column.tolist() for column in read_all_numbers(columns)), strict=True)):
        try:
            cells.append(grid.cell(*pair))
        except DomainError as error:
            raise restated(error, IntakeError, where=source.where(_place(rows, row))) from None
    return grid.find(np.array(cells, dtype=np.int64))


def _place(rows: Rows, row: int) -> int:
    return int(rows.place(np.array([row]))[0])


def _where(source: Source, place: int, column: str) -> str:
    return source.where(place) + (f", column {column}" if column else "")
