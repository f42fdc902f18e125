"""CSV and TSV files as sources: fast where the text is plain, record by record where it is not.

Plain pieces go to Arrow's parser; any other piece, and any piece in which Arrow finds another number of rows than
`csv_records`, is read record by record, so that every bad line is reported. Rows are counted apart from the parser
because Arrow's and DuckDB's are more lenient than we are (they accept stray quotes, for example), and their own count
would not show a row that they lost.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.core.errors import shorten
from hubbub.core.text import listed
from hubbub.intake.reject_causes import Fault, row_fault
from hubbub.intake.sources import text_files
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.column_names import USUAL_NAMES
from hubbub.intake.sources.csv_header import SEPARATORS, CsvHeader, read_header
from hubbub.intake.sources.csv_records import Layout, count_lines, end_of_line, find_records, parse_record
from hubbub.intake.sources.decimal_commas import DecimalCommas
from hubbub.intake.sources.file_source import FileSource
from hubbub.intake.sources.text_files import read_pieces, with_last

if TYPE_CHECKING:
    import pyarrow as pa

NUMBER_COLUMNS = frozenset(  # that hold numbers with decimals, whatever the domain is
    (*USUAL_NAMES["lat"], *USUAL_NAMES["lon"], "x", "y", "weight", "count", "probability", "share")
)
SLOW_BYTES = 1 << 16  # a piece no larger than this is read record by record without looking for a plain part of it


class _Window(NamedTuple):
    """A text from a place on: the number of the line there, and whether nothing follows the text."""

    buffer: bytes
    place: int
    line: int
    last: bool

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.buffer) - self.place

    def first(self, size: int) -> tuple[bytes, bool]:
        """Return the first `size` bytes, and whether nothing follows them."""
        return self.buffer[self.place : self.place + size], self.last and size >= self.size


class CsvSource(FileSource):
    """A CSV or TSV file, perhaps compressed.

    `names` are the columns of a file without a header. `packed` are the roles of columns whose entries are long and
    mostly distinct, and `raw_numbers` says that values are numbers rather than labels.
    """

    unit = "line"
    is_typed = False
    column_remedy = "name one column {} in the header"

    def __init__(
        self,
        path: Path,
        delimiter: str,
        *,
        packed: Container[str] = (),
        raw_numbers: bool = False,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(path)
        self._likely_delimiter = delimiter
        self._packed = packed
        self._number_columns = NUMBER_COLUMNS | {"value"} if raw_numbers else NUMBER_COLUMNS
        self._names_without_header = names

    @cached_property
    def _head(self) -> CsvHeader:
        if self._names_without_header is not None:
            return CsvHeader(list(self._names_without_header), 0, 0, self._likely_delimiter)
        return read_header(self.path, self._likely_delimiter)

    @property
    def _delimiter(self) -> str:
        return self._head.delimiter

    @property
    def expected_column(self) -> str:
        """What is expected where a column is missing."""
        return f"one column {{}}, and {SEPARATORS[self._delimiter]} between columns"

    def header(self) -> list[str]:
        """Return the fields of the header."""
        return list(self._head.names)

    def notes(self, wanted: Sequence[str]) -> list[str]:
        """Return a sentence about decimal commas, if there may be any in the wanted columns."""
        numbers = self._with_decimals(wanted)
        if not numbers:
            return []
        return [
            f"{self.name}: columns are separated by semicolons, so that a comma in a number ({listed(numbers)}) is its "
            "decimal sign"
        ]

    def _with_decimals(self, wanted: Sequence[str]) -> list[str]:
        """Return the columns in which a comma is the decimal sign."""
        if self._delimiter != ";":
            return []
        roles = {name: self.columns.role_of(name) or name.strip().lower() for name in wanted}
        return [name for name, role in roles.items() if role in self._number_columns or self._is_coordinate(name)]

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows, some tens of megabytes at a time."""
        numbers, commas = self._with_decimals(wanted), DecimalCommas(self.name)
        for rows in self._pieces(wanted):
            points = {name: commas.as_points(name, rows.columns[name]) for name in numbers}
            yield replace(rows, columns={**rows.columns, **points}) if points else rows

    def _pieces(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows as they are written."""
        head, buffer, in_long_line = self._head, b"", False
        skip, line, size = head.size, 1 + head.lines, text_files.PIECE_BYTES
        for piece, last in with_last(read_pieces(self.path, self._set_done)):
            buffer += piece[skip:] if skip else piece
            skip, place = max(0, skip - len(piece)), 0
            while place < len(buffer):
                if in_long_line:
                    place, in_long_line = end_of_line(buffer, place, last=last)
                    if in_long_line:
                        break
                    continue
                window = _Window(buffer, place, line, last)
                rows, length, lines, size = self._next_rows(window, size, wanted)
                if rows.counted:
                    yield rows
                if length == 0:
                    break
                place, line = place + length, line + lines
                in_long_line = buffer[place - 1] not in b"\r\n"  # a line was too long, and its end is still to come
            buffer = buffer[place:]

    def _next_rows(self, window: _Window, size: int, wanted: Sequence[str]) -> tuple[Rows, int, int, int]:
        """Return the next rows, how many bytes and lines they take, and how many bytes to look at next.

        Halving finds one bad line among a million without parsing a million records slowly; even if all lines are
        bad, each byte is looked at no more than a few times.
        """
        is_single_column = len(self._head.names) == 1
        size = min(size, window.size)
        while True:
            text, last = window.first(size)
            layout = find_records(text, ord(self._delimiter), last=last, blank=is_single_column)
            if layout is not None and layout.end:
                table = self._parse(text, layout, wanted)
                if table is None and any(map(self._is_coordinate, wanted)):  # one of them may be no number
                    table = self._parse(text, layout, wanted, coordinates_as_texts=True)
                if table is not None and table.num_rows == layout.records:
                    places = None if layout.starts is None else window.line + layout.starts
                    columns = dict(zip(wanted, table.columns, strict=True))
                    rows = Rows(layout.records, columns, window.line, places)
                    following = max(text_files.PIECE_BYTES, 2 * size) if size == window.size else 2 * size
                    return rows, layout.end, layout.lines, following
            if size <= SLOW_BYTES:
                break
            size = max(SLOW_BYTES, size // 2)
        while True:
            text, last = window.first(size)
            rows, length, lines = self._parse_slowly(text, window.line, wanted, last=last)
            if length or size >= window.size:
                return rows, length, lines, 2 * max(size, SLOW_BYTES)
            size *= 2

    def _is_coordinate(self, name: str) -> bool:
        return self.columns.is_coordinate(name)

    def _parse(
        self, text: bytes, layout: Layout, wanted: Sequence[str], *, coordinates_as_texts: bool = False
    ) -> pa.Table | None:
        """Return the wanted columns as texts, coordinates as floats; None if Arrow finds something wrong."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv

        # Columns go by their numbers, because unwanted names may repeat. All but coordinates are read as texts, so that
        # 007 and 1e3 reach the checks as they were written.
        names = self._head.names
        dictionary = pa.dictionary(pa.int32(), pa.string())
        numbers = {name: str(names.index(name)) for name in wanted}
        roles = {number: self.columns.role_of(name) for name, number in numbers.items()}
        types = {
            number: pa.string() if role == "user" or role in self._packed else dictionary
            for number, role in roles.items()
        }
        coordinate = pa.string() if coordinates_as_texts else pa.float64()  # which rarely repeat
        types |= {number: coordinate for name, number in numbers.items() if self._is_coordinate(name)}
        numbered = [str(place) for place in range(len(names))]
        try:
            table = csv.read_csv(
                pa.BufferReader(pa.py_buffer(text).slice(0, layout.end)),
                csv.ReadOptions(column_names=numbered, block_size=2 * text_files.MAX_LINE_BYTES),
                csv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=layout.quoted,
                    ignore_empty_lines=len(names) > 1,
                ),
                csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(numbers.values()),
                    null_values=[""],  # of coordinates
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid:
            return None
        floats = [column for column in table.columns if pa.types.is_floating(column.type)]
        return table if all(pc.all(pc.is_finite(column)).as_py() is not False for column in floats) else None  # "nan"

    def _parse_slowly(self, buffer: bytes, line: int, wanted: Sequence[str], *, last: bool) -> tuple[Rows, int, int]:
        """Parse some records one by one; an incomplete one at the end is left, unless it is the end of the text."""
        import pyarrow as pa

        names = self._head.names
        numbers = [names.index(name) for name in wanted]
        places: list[int] = []
        kept: list[list[str]] = []
        faults: list[tuple[int, Fault]] = []
        place, first, lines_without_row = 0, line, 0
        while place < min(len(buffer), SLOW_BYTES):  # what follows may be plain again
            record, length = parse_record(buffer, place, self._delimiter, last=last)
            if length == 0:
                break
            if len(names) > 1 and buffer[place] in b"\r\n":
                lines_without_row += 1  # a blank line is not a row
            elif record.fault is not None:
                faults.append((line, record.fault))
            elif len(record.fields) != len(names):
                faults.append((line, _field_count_fault(record.fields, len(names), self._delimiter)))
            else:
                places.append(line)
                kept.append([record.fields[number] for number in numbers])
            lines_without_row += record.lines - 1
            place, line = place + length, line + record.lines
        # Counted apart from the records: all lines but the blank ones and those that continue a quoted field.
        counted = count_lines(buffer[:place]) - lines_without_row
        texts = zip(*kept, strict=True) if kept else ((),) * len(wanted)
        columns = {
            name: pa.chunked_array([pa.array(entries, pa.string())])
            for name, entries in zip(wanted, texts, strict=True)
        }
        return Rows(counted, columns, first, np.array(places, dtype=np.int64), tuple(faults)), place, line - first


def _field_count_fault(fields: list[str], expected: int, delimiter: str) -> Fault:
    count = len(fields)
    return row_fault(
        "too-many-fields" if count > expected else "too-few-fields",
        f"the row has too {'many' if count > expected else 'few'} fields",
        got=f"{count} in the row {shorten(delimiter.join(fields))}",
        expected=f"{expected}, as in the header",
        remedy=f"correct the row; put quotes around a text that contains {SEPARATORS[delimiter]}",
    )
