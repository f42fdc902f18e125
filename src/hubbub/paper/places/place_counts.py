"""Tables of counts: how many people are in each cell, one line per cell."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from hubbub.core.errors import IntakeError, shorten
from hubbub.core.text import plural
from hubbub.domains import Grid
from hubbub.intake.sources.base import check_counted
from hubbub.intake.sources.csv_reader import CsvSource
from hubbub.paper.places.place import Place
from hubbub.paper.places.place_files import check_file, plain_name, readable_name
from hubbub.paper.places.zone import CELL_KM, COLUMNS, ROWS

COLUMN_NAMES = ["x", "y", "count"]
EXPECTED_TABLE = "a table x,y,count: one line for each cell, x = 0 in the west and y = 0 in the south"
WHOLE_NUMBER = re.compile(r"[0-9]{1,15}")  # 15 digits are below 2^53: sums and shares of them are exact
MAX_CELLS = 1_000_000


Cells = dict[tuple[int, int], tuple[int, int]]  # by x and y: the line that lists the cell, and the people in it


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
    cells = _read_cells(path, file)
    sha256 = file.digest()
    file.check_unchanged()  # last: the digest must be of what was read
    grid = _grid(path, cells)
    counts = np.zeros(len(grid), dtype=np.int64)
    for (x, y), (_, people) in cells.items():
        counts[grid.cell(x, y)] = people
    source = (
        f"{readable_name(path)}: {counts.sum():,} people counted, all in the {grid.columns} x {grid.rows} cells of "
        f"the zone; {np.count_nonzero(counts == 0):,} cells are empty"
    )
    return Place(grid, counts, plain_name(path), source, synthetic=False, sha256=sha256)


def _read_cells(path: Path, file: CsvSource) -> Cells:
    """Return the cells that are listed; the first line at fault ends it."""
    cells: Cells = {}
    for rows in file.rows(COLUMN_NAMES):
        check_counted(file, rows)
        if rows.faults:
            line, fault = rows.faults[0]
            expected, error = "three whole numbers: x,y,count", fault.error
            raise _line_error(path, line, error.what, got=error.got, expected=expected, remedy=error.remedy)
        texts = zip(*(rows.columns[name].to_pylist() for name in COLUMN_NAMES), strict=True)
        for line, entries in zip(rows.place(np.arange(rows.parsed)).tolist(), texts, strict=True):
            x, y, people = (_number(path, line, *entry) for entry in zip(COLUMN_NAMES, entries, strict=True))
            if (x, y) in cells:
                raise _line_error(
                    path,
                    line,
                    "a cell is listed twice",
                    got=f"x {x}, y {y}, as on line {cells[x, y][0]:,}",
                    expected="each cell once",
                    remedy="add the two counts up, or correct the cell",
                )
            cells[x, y] = line, people
    return cells


def _number(path: Path, line: int, name: str, text: str) -> int:
    if WHOLE_NUMBER.fullmatch(text):
        return int(text)
    what = "negative" if WHOLE_NUMBER.fullmatch(text.removeprefix("-")) else "not a whole number"
    expected = "a whole number, 0 or more, of at most 15 digits"
    remedy = "count cells from 0, from the west and from the south"
    if name == "count":
        remedy = "count people, not shares; leave a cell without people out"
    raise _line_error(path, line, f"{name} is {what}", got=shorten(text), expected=expected, remedy=remedy)


def _grid(path: Path, cells: Cells) -> Grid:
    """Return the grid in which all cells fit; refuse a table without people, or too large a grid."""
    people = sum(count for _, count in cells.values())
    if not 0 < people < 2**53:
        raise IntakeError(
            "too many people" if people else "nobody is counted",
            where=str(path),
            got=f"{plural(len(cells), 'cell')}, {people:,} people",
            expected="fewer than 2^53 people" if people else "at least 1 person",
            remedy="check the column count",
        )
    columns, rows = 1 + max(x for x, _ in cells), 1 + max(y for _, y in cells)
    if columns <= COLUMNS and rows <= ROWS:
        columns, rows = COLUMNS, ROWS
    if columns * rows > MAX_CELLS:
        far = max(cells, key=max)
        raise _line_error(
            path,
            cells[far][0],
            "a cell is too far away",
            got=f"x {far[0]}, y {far[1]}: a grid of {columns:,} x {rows:,} cells",
            expected=f"at most {MAX_CELLS:,} cells",
            remedy="number the columns and rows from 0; coordinates on the map are read by --data instead",
        )
    return Grid(columns, rows, cell=CELL_KM)


def _line_error(path: Path, line: int, what: str, *, got: object, expected: str, remedy: str) -> IntakeError:
    return IntakeError(what, where=f"{path}, line {line:,}", got=got, expected=expected, remedy=remedy)
