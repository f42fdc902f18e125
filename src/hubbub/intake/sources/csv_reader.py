"""CSV and TSV: fast where the text is plain, record by record where it is not, and every line accounted for.

Plain pieces go to Arrow's parser, and the rows it finds are counted against the line ends. A piece that is not plain,
or whose count does not agree, is read again record by record, so that each bad line is told and none is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hubbub.core.errors import IntakeError, shorten
from hubbub.intake.reject_causes import CAUSES, Fault, fields, refusal
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.csv_records import Layout, layout
from hubbub.intake.sources.csv_separators import ENDINGS as ENDINGS
from hubbub.intake.sources.csv_separators import SEPARATORS, check_separator
from hubbub.intake.sources.file_source import File
from hubbub.intake.sources.text_files import LONGEST, MOST_LINES, PIECE, pieces

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 1 << 16  # bytes that are read record by record without further ado
HEADER = "a line with the names of the columns, such as: user,mechanism,output"
QUOTED = re.compile(rb'"((?:[^"]++|"")*+)"')
UNQUOTED = {",": re.compile(rb"[^,\r\n]*+"), "\t": re.compile(rb"[^\t\r\n]*+")}
LINE = re.compile(rb"[^\r\n]*+(?:\r\n|\r|\n|\Z)")


class Record(NamedTuple):
    """One record: its fields or what is wrong with it, and the lines it takes."""

    fields: list[str]
    fault: Fault | None
    lines: int


NOTHING = Record([], None, 0), 0


class CsvPiece(NamedTuple):
    """A text from a place on: the number of its line there, and whether nothing follows the text."""

    buffer: bytes
    place: int
    line: int
    last: bool

    def size(self) -> int:
        """Return how many bytes there are."""
        return len(self.buffer) - self.place

    def text(self, size: int) -> tuple[bytes, bool]:
        """Return so many bytes, and whether nothing follows them."""
        return self.buffer[self.place : self.place + size], self.last and size >= self.size()


class Delimited(File):
    """A CSV or TSV file, perhaps compressed; `names` are the columns of one without a line that names them."""

    unit = "line"

    def __init__(self, path: Path, delimiter: str, *, packed: bool = False, names: Sequence[str] | None = None) -> None:
        super().__init__(path)
        self._delimiter = delimiter
        self._packed = packed  # are most outputs long and different?
        self._names = names

    def column_advice(self, column: str) -> tuple[str, str]:
        """Return what is expected of a column that is missing, and how to mend that."""
        between = SEPARATORS[self._delimiter]
        return f"one column {column}, and {between} between columns", f"name one column {column} in the first line"

    @cached_property
    def _head(self) -> tuple[Record, int]:
        """The first record that is not blank, which names the columns, with all lines and bytes up to its end."""
        if self._names is not None:
            return Record(list(self._names), None, 0), 0
        buffer, lines, size = b"", 0, 0
        for piece, last in _with_last(pieces(self.path)):
            buffer += piece
            blank = len(buffer) - len(buffer.lstrip(b"\r\n"))
            if blank == len(buffer) and not last:
                blank -= 1  # a line feed may still follow
            lines, size, buffer = lines + _lines(buffer[:blank]), size + blank, buffer[blank:]
            if buffer.strip(b"\r\n"):
                found, length = self._record(buffer, 0, last=last)
                if length:
                    if found.fault is not None or len(found.fields) == 1:
                        check_separator(_line(buffer, 0), self._delimiter, self.path, lines + 1)
                    if found.fault is not None:
                        raise self._unreadable(found.fault, lines + 1)
                    return found._replace(lines=lines + found.lines), size + length
        return Record([], None, lines), size

    def header(self) -> list[str]:
        """Return the fields of the first line."""
        head, _ = self._head
        if head.fields and not any(head.fields):
            raise refusal(
                "no-header",
                "the first line names no columns",
                where=self.name,
                got="only separators",
                expected=HEADER,
                remedy="add that line; in a file of outputs alone it is: output",
            )
        return list(head.fields)

    def _unreadable(self, fault: Fault, number: int) -> IntakeError:
        return refusal(
            "no-header",
            f"the first line cannot be read: {fault.error.what}",
            where=f"{self.name}, line {number}",
            got=fault.error.got,
            expected=HEADER,
            remedy=fault.error.remedy,
        )

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows, some tens of megabytes at a time."""
        names = self.header()
        (head, skip), buffer, within = self._head, b"", False
        line, window = 1 + head.lines, PIECE
        for piece, last in _with_last(pieces(self.path, self._tell)):
            buffer += piece[skip:] if skip else piece
            skip, place = max(0, skip - len(piece)), 0
            while place < len(buffer):
                if within:
                    place, within = _rest(buffer, place, last=last)
                    if within:
                        break
                    continue
                part = CsvPiece(buffer, place, line, last)
                rows, length, lines, window = self._rows(part, window, names, wanted)
                if rows.counted:
                    yield rows
                if length == 0:
                    break
                place, line = place + length, line + lines
                within = buffer[place - 1] not in b"\r\n"  # a line was too long, and this is not yet its end
            buffer = buffer[place:]

    def _rows(self, part: CsvPiece, window: int, names: list[str], wanted: Sequence[str]) -> tuple[Rows, int, int, int]:
        """Return the next rows, how many bytes and lines they take, and how many bytes to look at next.

        Halving finds one bad line among a million without reading a million records slowly; where all lines are bad,
        no more than a few are looked at more than once.
        """
        size = min(window, part.size())
        while True:
            text, last = part.text(size)
            plain = layout(text, ord(self._delimiter), LONGEST, last=last, blank=len(names) == 1)
            if plain is not None and plain.end:
                table = self._parse(text, plain, names, wanted)
                if table is not None and table.num_rows == plain.records:
                    places = None if plain.starts is None else part.line + plain.starts
                    columns = dict(zip(wanted, table.columns, strict=True))
                    rows = Rows(plain.records, columns, part.line, places)
                    return rows, plain.end, plain.lines, max(PIECE, 2 * size) if size == part.size() else 2 * size
            if size <= FEW:
                break
            size = max(FEW, size // 2)
        while True:
            text, last = part.text(size)
            rows, length, lines = self._slowly(text, part.line, names, wanted, last=last)
            if length or size >= part.size():
                return rows, length, lines, 2 * max(size, FEW)
            size *= 2

    def _tell(self, read: int) -> None:
        self.done = read / max(1, self.weight())

    def _parse(self, text: bytes, plain: Layout, names: list[str], wanted: Sequence[str]) -> pa.Table | None:
        """Return the wanted columns as texts, None where the parser finds something wrong."""
        import pyarrow as pa
        from pyarrow import csv

        # Columns are numbered: names that are not wanted may repeat. All are texts: 007 and 1e3 reach the checks as
        # they were written.
        short = pa.dictionary(pa.int32(), pa.string())
        kinds = {"mechanism": short, "output": pa.string() if self._packed else short, "user": pa.string()}
        numbers = {name: str(names.index(name)) for name in wanted}
        types = {number: kinds.get(self.columns.role_of(name), short) for name, number in numbers.items()}
        try:
            return csv.read_csv(
                pa.BufferReader(pa.py_buffer(text).slice(0, plain.end)),
                csv.ReadOptions(column_names=[str(place) for place in range(len(names))], block_size=2 * LONGEST),
                csv.ParseOptions(
                    delimiter=self._delimiter,
                    newlines_in_values=plain.quoted,
                    ignore_empty_lines=len(names) > 1,
                ),
                csv.ConvertOptions(
                    column_types=types, include_columns=list(numbers.values()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:
            return None

    def _slowly(
        self, buffer: bytes, line: int, names: list[str], wanted: Sequence[str], *, last: bool
    ) -> tuple[Rows, int, int]:
        """Read some records one by one; what is not whole at the end is left, unless it is the end."""
        import pyarrow as pa

        places, kept, faults = [], [], []
        place, start, continued = 0, line, 0
        numbers = [names.index(name) for name in wanted]
        while place < min(len(buffer), FEW):  # the rest may be plain again
            found, length = self._record(buffer, place, last=last)
            if length == 0:
                break
            if len(names) > 1 and buffer[place] in b"\r\n":
                continued += 1  # a blank line is no row
            elif found.fault is not None:
                faults.append((line, found.fault))
            elif len(found.fields) != len(names):
                faults.append((line, fields(len(found.fields), len(names), self._delimiter.join(found.fields))))
            else:
                places.append(line)
                kept.append([found.fields[number] for number in numbers])
            place, line, continued = place + length, line + found.lines, continued + found.lines - 1
        # Counted apart from the records: all lines, less those that are blank or go on with a quoted field.
        counted = _lines(buffer[:place]) - continued
        texts = zip(*kept, strict=True) if kept else ((),) * len(wanted)
        arrays = {
            name: pa.chunked_array([pa.array(text, pa.string())]) for name, text in zip(wanted, texts, strict=True)
        }
        return Rows(counted, arrays, start, np.array(places, dtype=np.int64), tuple(faults)), place, line - start

    def _record(self, buffer: bytes, place: int, *, last: bool) -> tuple[Record, int]:
        """Return the record at `place` and its length in bytes; 0 where its end is not there yet."""
        line = _line(buffer, place)
        open_ = not last and place + len(line) == len(buffer) and not line.endswith(b"\n")  # more of it may come
        if len(line) > LONGEST:
            return Record([], too_long(), 1), len(line) - (open_ and line.endswith(b"\r"))  # the rest is skipped
        if open_:
            return NOTHING
        if b'"' in line:
            return self._quoted(buffer, place, line, last=last)
        fault = readable(line)
        if fault is not None:
            return Record([], fault, 1), len(line)
        return Record(line.decode().rstrip("\r\n").split(self._delimiter), None, 1), len(line)

    def _quoted(self, buffer: bytes, place: int, line: bytes, *, last: bool) -> tuple[Record, int]:
        """Read a record with quotes, which may go on over several lines.

        Where something is wrong with its quotes the first line is at fault, and the next one starts afresh.
        """
        end = min(len(buffer), place + LONGEST)
        found, at, code = self._split(buffer, place, end, last=last and end == len(buffer))
        if code == "unclosed-quote" and not last and end == len(buffer) and end - place < LONGEST:
            return NOTHING  # the closing quote may still come
        if code == "unknown":
            return NOTHING
        if code:
            return Record([], readable(line) or Fault("", _quotes(code, line)), 1), len(line)
        text = buffer[place:at]
        if _lines(text) > MOST_LINES:  # two quotes that have nothing to do with each other, and rows between them
            return Record([], readable(line) or Fault("", _quotes("unclosed-quote", line)), 1), len(line)
        fault = readable(text)
        if fault is not None:
            return Record([], fault, _lines(text)), len(text)
        return Record([field.decode() for field in found], None, _lines(text)), len(text)

    def _split(self, buffer: bytes, at: int, end: int, *, last: bool) -> tuple[list[bytes], int, str]:
        """Return the fields of a record, where it ends, and the code of what is wrong with its quotes.

        A record that does not end before `end` has a quote that is not closed, unless `end` is the end of all.
        """
        found: list[bytes] = []
        while True:
            quoted = buffer.startswith(b'"', at, end)
            match = (QUOTED if quoted else UNQUOTED[self._delimiter]).match(buffer, at, end)
            if match is None or (match.end() == end and not last):
                return found, end, "unclosed-quote"
            found.append(match[1].replace(b'""', b'"') if quoted else match[0])
            at = match.end()
            if at == end:
                return found, at, ""
            if buffer[at] in b"\r\n":
                if buffer[at : at + 2] == b"\r\n":
                    at += 1
                elif buffer[at] == 13 and at + 1 == len(buffer) and not last:
                    return found, end, "unknown"  # a line feed may still come
                return found, at + 1, ""
            if buffer[at] != ord(self._delimiter):
                return found, at, "bad-quotes"
            at += 1


def _with_last(stream: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield each piece, and whether it is the last."""
    following = next(stream, None)
    while following is not None:
        piece, following = following, next(stream, None)
        yield piece, following is None


def _rest(buffer: bytes, place: int, *, last: bool) -> tuple[int, bool]:
    """Return where the rest of a line ends, and whether still more of it may come."""
    feed = buffer.find(b"\n", place)
    back = buffer.find(b"\r", place, feed if feed >= 0 else len(buffer))
    ends = [end for end in (feed, back) if end >= 0]
    end = 1 + min(ends) + (0 <= back == feed - 1) if ends else len(buffer)
    if end == len(buffer) and not last and not buffer.endswith(b"\n"):
        return end - buffer.endswith(b"\r"), True  # a line feed may still come
    return end, False


def _line(buffer: bytes, place: int) -> bytes:
    """Return the line at `place`, with its end."""
    match = LINE.match(buffer, place)
    return b"" if match is None else match[0]


def _lines(text: bytes) -> int:
    """Return the number of lines: of line feeds, carriage returns, and both together."""
    bytes_ = np.frombuffer(text, dtype=np.uint8)
    ends = int(np.count_nonzero(bytes_ == 10) + np.count_nonzero(bytes_ == 13)) - text.count(b"\r\n")
    return ends + (len(text) > 0 and text[-1] not in b"\r\n")


def readable(line: bytes) -> Fault | None:
    """Return what keeps a line from being a text at all."""
    if b"\0" in line:
        return Fault(
            "",
            refusal(
                "nul-byte",
                "a row holds a NUL byte",
                where="",
                got=shorten(line),
                expected="a text",
                remedy="find what wrote it: the file may be damaged, or not be a text at all",
            ),
        )
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return Fault(
            "",
            refusal(
                "not-utf-8",
                "a row is not UTF-8",
                where="",
                got=f"{shorten(line[max(0, error.start - 20) : error.end + 20])}",
                expected="a text in UTF-8",
                remedy="convert the file, for example: iconv -f ISO-8859-1 -t UTF-8",
            ),
        )
    return None


def too_long() -> Fault:
    """Return the fault of a line that is longer than any report."""
    return Fault(
        "",
        refusal(
            "line-too-long",
            "a line is longer than any report",
            where="",
            got=f"more than {LONGEST:,} bytes",
            expected=f"at most {LONGEST:,} bytes",
            remedy="check the file's line breaks; long outputs are shorter as hexadecimal digits",
        ),
    )


def _quotes(code: str, line: bytes) -> IntakeError:
    return refusal(
        code,
        CAUSES[code],
        where="",
        got=shorten(line.decode()),
        expected='quotes around a whole field, and "" for a quote within it',
        remedy="correct the row",
    )
