"""Tables of counts: how many people are in each cell, one line per cell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hubbub.core.errors import IntakeError, shorten
from hubbub.core.text import plural
from hubbub.domains import Grid
from hubbub.intake.sources.base import check_counted
from hubbub.intake.sources.csv_reader import CsvSource
from hubbub.paper.places.place import Place
from hubbub.paper.places.place_files import check_file, line_error, plain_name, readable_name
from hubbub.paper.places.zone import CELL_KM, COLUMNS, ROWS

COLUMN_NAMES = ["x", "y", "count"]
EXPECTED_TABLE = "a table x,y,count: one line for each cell, x = 0 in the west and y = 0 in the south"
WHOLE_NUMBER = re.compile(r"[0-9]{1,15}")  # 15 digits are below 2^53: sums and shares of them are exact
MAX_CELLS = 1_000_000


class _Cell(NamedTuple):
    line: int
    x: int
    y: int
    people: int


def read_counts(path: Path) -> Place:
    """Return the place of a table ``x,y,count``, plain or compressed by gzip.

    Cells that are not listed are empty. The grid has the paper's 24 x 16 cells of 0.5 km if all cells that are listed
    fit in there, otherwise as many columns and rows as are needed.
    """
    check_file(path, EXPECTED_TABLE)
    file = CsvSource(path, ",")
    if file.header() != COLUMN_NAMES:
        raise IntakeError(
            "the first line does not name the columns",
            where=f"{path}, the first line",
            got=shorten(",".join(file.header())) if file.header() else "an empty file",
            expected="x,y,count",
            remedy="write that line above the counts; points with lat and lon are read by --data instead",
        )
    cells = list(_cells(path, file))
    sha256 = file.digest()
    file.check_unchanged()  # last: the digest must be of what was read
    grid = _grid(path, cells)
    counts = np.zeros(len(grid), dtype=np.int64)
    for cell in cells:
        counts[grid.cell(cell.x, cell.y)] = cell.people
    people, holes = int(counts.sum()), int(np.count_nonzero(counts == 0))
    return Place(
        grid=grid,
        counts=counts,
        name=plain_name(path),
        source=f"{readable_name(path)}: {people:,} people counted, all in the {grid.columns} x {grid.rows} cells of "
        f"the zone; {holes:,} cells are empty",
        synthetic=False,
        sha256=sha256,
    )


def _cells(path: Path, file: CsvSource) -> Iterator[_Cell]:
    """Yield the cells that are listed; the first line at fault ends it."""
    seen: dict[tuple[int, int], int] = {}
    for rows in file.rows(COLUMN_NAMES):
        check_counted(file, rows)
        if rows.faults:
            line, fault = rows.faults[0]
            error = fault.error
            raise line_error(
                path, line, error.what, got=error.got, expected="three whole numbers: x,y,count", remedy=error.remedy
            )
        texts = zip(*(rows.columns[name].to_pylist() for name in COLUMN_NAMES), strict=True)
        for line, entries in zip(rows.place(np.arange(rows.parsed)).tolist(), texts, strict=True):
            cell = _Cell(line, *(_number(path, line, *entry) for entry in zip(COLUMN_NAMES, entries, strict=True)))
            first = seen.setdefault((cell.x, cell.y), line)
            if first != line:
                raise line_error(
                    path,
                    line,
                    "a cell is listed twice",
                    got=f"x {cell.x}, y {cell.y}, as on line {first:,}",
                    expected="each cell once",
                    remedy="add the two counts up, or correct the cell",
                )
            yield cell


def _number(path: Path, line: int, name: str, text: str) -> int:
    if WHOLE_NUMBER.fullmatch(text):
        return int(text)
    negative = WHOLE_NUMBER.fullmatch(text.removeprefix("-")) is not None
    raise line_error(
        path,
        line,
        f"{name} is negative" if negative else f"{name} is not a whole number",
        got=shorten(text),
        expected="a whole number, 0 or more, of at most 15 digits",
        remedy="count people, not shares; leave a cell without people out"
        if name == "count"
        else "count cells from 0, from the west and from the south",
    )


def _grid(path: Path, cells: list[_Cell]) -> Grid:
    """Return the grid in which all cells fit; refuse a table without people, or too large a grid."""
    people = sum(cell.people for cell in cells)
    if not 0 < people < 2**53:
        raise IntakeError(
            "too many people" if people else "nobody is counted",
            where=str(path),
            got=f"{plural(len(cells), 'cell')}, {people:,} people",
            expected="at least 1 person" if not people else "fewer than 2^53 people",
            remedy="check the column count",
        )
    columns, rows = 1 + max(cell.x for cell in cells), 1 + max(cell.y for cell in cells)
    if columns <= COLUMNS and rows <= ROWS:
        columns, rows = COLUMNS, ROWS
    if columns * rows > MAX_CELLS:
        far = max(cells, key=lambda cell: max(cell.x, cell.y))
        raise line_error(
            path,
            far.line,
            "a cell is too far away",
            got=f"x {far.x}, y {far.y}: a grid of {columns:,} x {rows:,} cells",
            expected=f"at most {MAX_CELLS:,} cells",
            remedy="number the columns and rows from 0; coordinates on the map are read by --data instead",
        )
    return Grid(columns, rows, cell=CELL_KM)
