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

from hubbub.errors import IntakeError, shorten
from hubbub.intake.causes import Fault, fields, refusal
from hubbub.intake.files import File
from hubbub.intake.layout import Layout, layout
from hubbub.intake.rows import Rows
from hubbub.intake.text import LONGEST, pieces

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 1 << 16  # bytes that are read record by record without further ado
ENDINGS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
QUOTED = re.compile(r'"((?:[^"]|"")*+)"')
LINE = re.compile(rb"[^\r\n]*+(?:\r\n|\r|\n|\Z)")


class Record(NamedTuple):
    """One record: its fields or what is wrong with it, and the lines it takes."""

    fields: list[str]
    fault: Fault | None
    lines: int


class Delimited(File):
    """A CSV or TSV file, perhaps compressed."""

    unit = "line"

    def __init__(self, path: Path, delimiter: str, *, packed: bool = False) -> None:
        super().__init__(path)
        self._delimiter = delimiter
        self._packed = packed  # are most outputs long and different?

    @cached_property
    def _head(self) -> Record:
        """The first record that is not blank, which names the columns; its lines are all lines up to its end."""
        buffer, skipped = b"", 0
        for piece in pieces(self.path):
            buffer += piece
            place = 0
            while place < len(buffer):
                line = _line(buffer, place)
                if line.strip(b"\r\n"):
                    found, _ = self._record(buffer, place, last=True)
                    return found._replace(lines=skipped + found.lines)
                place, skipped = place + len(line), skipped + 1
            buffer = b""
        return Record([], None, skipped)

    def header(self) -> list[str]:
        """Return the fields of the first line."""
        if self._head.fault is None and not self._head.fields:
            return []
        if self._head.fault is not None or not any(self._head.fields):
            raise refusal(
                "no-header",
                "the first line names no columns",
                where=self.name,
                got=self._head.fault.error.got if self._head.fault else "only separators",
                expected="a line with the names of the columns, such as: user,mechanism,output",
                remedy="add that line; in a file of outputs alone it is: output",
            )
        return list(self._head.fields)

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows, some tens of megabytes at a time."""
        names = self.header()
        line, buffer, skip, within = 1, b"", self._head.lines, False
        stream = pieces(self.path)
        following: bytes | None = next(stream, b"")
        while following is not None:
            piece, following = following, next(stream, None)
            last = following is None
            buffer = buffer + piece if buffer else piece
            while skip and buffer:
                cut = len(_line(buffer, 0))
                buffer, line, skip = buffer[cut:], line + 1, skip - 1
            if within:  # the rest of a line that was too long
                rest = _line(buffer, 0)
                within = not rest.endswith((b"\n", b"\r"))
                buffer = buffer[len(rest) :]
            while buffer:
                rows, end, lines = self._rows(buffer, line, names, wanted, last=last)
                if rows.counted:
                    yield rows
                if end == 0:
                    break
                within = not last and buffer[end - 1] not in b"\r\n"
                buffer, line = buffer[end:], line + lines

    def _rows(
        self, buffer: bytes, line: int, names: list[str], wanted: Sequence[str], *, last: bool
    ) -> tuple[Rows, int, int]:
        """Return the rows in `buffer`, or in its first half where something is wrong with the whole.

        Halving finds one bad line among a million without reading a million records slowly.
        """
        plain = layout(buffer, ord(self._delimiter), last=last, blank=len(names) == 1)
        if plain is not None and plain.end:
            table = self._parse(buffer, plain, names, wanted)
            if table is not None and table.num_rows == plain.records:
                places = None if plain.starts is None else line + plain.starts
                columns = dict(zip(wanted, table.columns, strict=True))
                return Rows(plain.records, columns, line, places), plain.end, plain.lines
        if len(buffer) > FEW:
            found = self._rows(buffer[: len(buffer) // 2], line, names, wanted, last=False)
            if found[1]:
                return found
        return self._slowly(buffer, line, names, wanted, last=last)

    def _parse(self, text: bytes, plain: Layout, names: list[str], wanted: Sequence[str]) -> pa.Table | None:
        """Return the wanted columns as texts, None where the parser finds something wrong."""
        import pyarrow as pa
        from pyarrow import csv

        # Columns are numbered: names that are not wanted may repeat. All are texts: 007 and 1e3 reach the checks as
        # they were written.
        short = pa.dictionary(pa.int32(), pa.string())
        kinds = {"mechanism": short, "output": pa.string() if self._packed else short, "user": pa.string()}
        numbers = {name: str(names.index(name)) for name in wanted}
        types = {number: kinds.get(name, short) for name, number in numbers.items()}
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
        """Read record by record; what is not whole at the end is left, unless it is the end."""
        import pyarrow as pa

        places, kept, faults = [], [], []
        place, start, continued = 0, line, 0
        numbers = [names.index(name) for name in wanted]
        while place < len(buffer):
            found, length = self._record(buffer, place, last=last)
            if length == 0:
                break
            if found.fault is None and found.fields == [""] and len(names) > 1:
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
        ended = line.endswith((b"\n", b"\r"))
        if line.endswith(b"\r") and place + len(line) == len(buffer) and not last:
            ended = False  # the line feed may still come
        if not ended and not last and len(line) <= LONGEST:
            return Record([], None, 0), 0
        if len(line) > LONGEST:
            return Record([], too_long(len(line)), 1), len(line)  # its rest, if it has one, is skipped
        if b'"' in line:
            return self._quoted(buffer, place, line, last=last)
        fault = readable(line)
        if fault is not None:
            return Record([], fault, 1), len(line)
        return Record(line.decode().rstrip("\r\n").split(self._delimiter), None, 1), len(line)

    def _quoted(self, buffer: bytes, place: int, line: bytes, *, last: bool) -> tuple[Record, int]:
        """Read a record with quotes, which may go on over several lines."""
        text, lines = line, 1
        while True:
            fault = readable(text)
            if fault is not None:
                return Record([], fault, 1), len(line)
            found = self._split(text.decode())
            if isinstance(found, list):
                return Record(found, None, lines), len(text)
            if found.code == "bad-quotes":
                return Record([], found, 1), len(line)
            more = _line(buffer, place + len(text))
            whole = more.endswith((b"\n", b"\r")) or last
            if not more or not whole or len(text) + len(more) > LONGEST:
                if not last and len(text) + len(more) <= LONGEST:
                    return Record([], None, 0), 0  # the closing quote may still come
                return Record([], found, 1), len(line)  # the quote is at fault: the next line starts afresh
            text, lines = text + more, lines + 1

    def _split(self, text: str) -> list[str] | Fault:
        """Return the fields of a record, or what is wrong with its quotes."""
        found, place, content = [], 0, text.rstrip("\r\n") if text.count('"') % 2 == 0 else text
        while True:
            if content.startswith('"', place):
                match = QUOTED.match(content, place)
                if match is None:
                    return Fault("", _quotes("unclosed-quote", "a quote is opened and never closed", text))
                found.append(match[1].replace('""', '"'))
                place = match.end()
                if place < len(content) and content[place] != self._delimiter:
                    return Fault("", _quotes("bad-quotes", "text follows a closing quote", text))
            else:
                end = content.find(self._delimiter, place)
                end = len(content) if end < 0 else end
                found.append(content[place:end].rstrip("\r\n") if end == len(content) else content[place:end])
                place = end
            if place >= len(content):
                return found
            place += 1
            if place == len(content):
                return [*found, ""]


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


def too_long(length: int) -> Fault:
    """Return the fault of a line that is longer than any report."""
    return Fault(
        "",
        refusal(
            "line-too-long",
            "a line is longer than any report",
            where="",
            got=f"{length:,} bytes",
            expected=f"at most {LONGEST:,} bytes",
            remedy="check the file's line breaks; long outputs are shorter as hexadecimal digits",
        ),
    )


def _quotes(code: str, what: str, text: str) -> IntakeError:
    return refusal(
        code,
        what,
        where="",
        got=shorten(text),
        expected='quotes around a whole field, and "" for a quote within it',
        remedy="correct the row",
    )
