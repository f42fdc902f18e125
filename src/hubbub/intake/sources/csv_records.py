"""Where the records of a CSV text end, found in two ways: for a whole piece at once, and record by record.

`find_records` looks at a piece with whole-array operations and accepts plain CSV only. Everything else (a quote in an
odd place, a NUL byte, bytes that are not UTF-8, a lone carriage return, a record that is too long) goes through
`parse_record`, which is slow and finds out what is wrong with each record.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import CAUSES, Fault, row_fault
from hubbub.intake.sources import text_files
from hubbub.intake.sources.text_files import long_line_fault, undecodable_fault

NEWLINE, RETURN, QUOTE = 10, 13, 34
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_RECORD_LINES = 100  # enough for a comment, too few for half a file between two stray quotes
QUOTED_FIELD = re.compile(rb'"((?:[^"]++|"")*+)"')
UNQUOTED_FIELD = {separator: re.compile(rb"[^%b\r\n]*+" % separator.encode()) for separator in ",\t;|"}
LINE = re.compile(rb"[^\r\n]*+(?:\r\n|\r|\n|\Z)")


class Layout(NamedTuple):
    """Where the whole records of a piece end, and how many there are."""

    end: int  # the number of bytes up to the end of the last whole record
    records: int  # blank lines included only where they are records
    lines: int  # up to `end`
    starts: Positions | None  # the line on which each record starts (from 0); None if that is the record's number
    quoted: bool


def find_records(piece: bytes, delimiter: int, *, last: bool, blank: bool) -> Layout | None:
    """Return the layout of the whole records in `piece`; None if it is not plain CSV.

    `last` says that no more text follows, so that the last record may lack its line break. `blank` says that blank
    lines are records (of a single empty field).
    """
    if b"\0" in piece or piece.startswith(BYTE_ORDER_MARK):  # Arrow drops the mark, at the start of any piece
        return None
    find = _find_quoted if b'"' in piece else _find_unquoted
    layout = find(piece, delimiter, last=last, blank=blank)
    return layout if layout is not None and _is_utf8(piece, layout.end) else None


def _is_utf8(piece: bytes, end: int) -> bool:
    """Whether the whole text is UTF-8, even in columns that are not parsed."""
    if piece.isascii():
        return True
    try:
        str(memoryview(piece)[:end], "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _has_long_line(piece: bytes, end: int) -> bool:
    """Whether a line is too long: such a line covers the whole of some stretch half as long as the limit."""
    longest = text_files.MAX_LINE_BYTES
    step = max(1, longest // 2)
    for start in range(0, end, step):
        if piece.find(b"\n", start, min(start + step, end)) < 0:
            before, after = piece.rfind(b"\n", 0, start), piece.find(b"\n", start, end)
            if (end if after < 0 else after + 1) - before - 1 > longest:
                return True
    return False


def _find_unquoted(piece: bytes, _: int, *, last: bool, blank: bool) -> Layout | None:
    end = len(piece) if last else piece.rfind(b"\n") + 1
    if _has_long_line(piece, end):
        return None
    bytes_ = np.frombuffer(piece, dtype=np.uint8, count=end)
    breaks = bytes_ == NEWLINE
    has_blank_lines = piece.startswith((b"\n", b"\r\n")) or bool((breaks[1:] & breaks[:-1]).any())
    if b"\r" in piece:
        returns = bytes_ == RETURN
        if (returns[:-1] & ~breaks[1:]).any() or (end > 0 and piece[end - 1] == RETURN):
            return None  # a lone carriage return
        has_blank_lines = has_blank_lines or bool((breaks[:-2] & returns[1:-1]).any())
    lines = int(np.count_nonzero(breaks)) + (end > 0 and piece[end - 1] != NEWLINE)
    if blank or not has_blank_lines:
        return Layout(end, lines, lines, None, quoted=False)
    starts, stops = _record_bounds(bytes_, np.flatnonzero(breaks))
    filled = np.flatnonzero(stops > starts)
    return Layout(end, filled.size, lines, filled, quoted=False)


def _find_quoted(piece: bytes, delimiter: int, *, last: bool, blank: bool) -> Layout | None:
    bytes_ = np.frombuffer(piece, dtype=np.uint8)
    quotes, breaks = np.flatnonzero(bytes_ == QUOTE), np.flatnonzero(bytes_ == NEWLINE)
    outside = np.searchsorted(quotes, breaks) % 2 == 0  # an even number of quotes before: not within a quoted field
    ends = breaks[outside]
    if last:
        if quotes.size % 2:
            return None
        end = bytes_.size
    else:
        if ends.size == 0:
            return None
        end = int(ends[-1]) + 1
    bytes_, quotes, breaks = bytes_[:end], quotes[quotes < end], breaks[breaks < end]
    may_touch_quote = np.zeros(256, dtype=bool)
    may_touch_quote[[delimiter, NEWLINE, RETURN, QUOTE]] = True
    opening, closing = quotes[::2], quotes[1::2]
    before, after = bytes_[np.maximum(opening - 1, 0)], bytes_[np.minimum(closing + 1, end - 1)]
    if (
        not (may_touch_quote[before] | (opening == 0)).all()
        or not (may_touch_quote[after] | (closing == end - 1)).all()
    ):
        return None  # a quote within a field, or text after a closing quote
    returns = np.flatnonzero(bytes_ == RETURN)
    lone = returns[(returns + 1 >= end) | (bytes_[np.minimum(returns + 1, end - 1)] != NEWLINE)]
    if lone.size:
        return None  # within quotes, too: it ends a line
    starts, stops = _record_bounds(bytes_, ends[ends < end])
    if np.diff(np.append(starts, end)).max(initial=0) > text_files.MAX_LINE_BYTES:
        return None
    lines = int(breaks.size) + (end > 0 and piece[end - 1] != NEWLINE)
    if (np.diff(np.append(np.searchsorted(breaks, starts), lines)) > MAX_RECORD_LINES).any():
        return None
    kept = np.arange(starts.size) if blank else np.flatnonzero(stops > starts)
    return Layout(end, kept.size, lines, np.searchsorted(breaks, starts[kept]), quoted=True)


def _record_bounds(bytes_: NDArray[np.uint8], ends: Positions) -> tuple[Positions, Positions]:
    """Return where records start, and where their content ends (before a carriage return)."""
    if bytes_.size and (ends.size == 0 or ends[-1] != bytes_.size - 1):
        ends = np.append(ends, bytes_.size)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    return starts, ends - ((ends > starts) & (bytes_[np.maximum(ends - 1, 0)] == RETURN))


class Record(NamedTuple):
    """One record: its fields or what is wrong with it, and the number of lines it takes."""

    fields: list[str]
    fault: Fault | None
    lines: int


INCOMPLETE = Record([], None, 0), 0  # the end of the record has not been read yet


def parse_record(buffer: bytes, place: int, delimiter: str, *, last: bool) -> tuple[Record, int]:
    """Return the record at `place` and its length in bytes; 0 if its end is not in the buffer yet.

    A record that cannot be parsed says what is wrong with it.
    """
    line = first_line(buffer, place)
    is_open = not last and place + len(line) == len(buffer) and not line.endswith(b"\n")  # more may follow
    if len(line) > text_files.MAX_LINE_BYTES:
        # The rest of the line is skipped.
        return Record([], long_line_fault(), 1), len(line) - (is_open and line.endswith(b"\r"))
    if is_open:
        return INCOMPLETE
    if b'"' in line:
        return _parse_quoted(buffer, place, delimiter, line, last=last)
    fault = undecodable_fault(line)
    if fault is not None:
        return Record([], fault, 1), len(line)
    return Record(line.decode().rstrip("\r\n").split(delimiter), None, 1), len(line)


def _parse_quoted(buffer: bytes, place: int, delimiter: str, line: bytes, *, last: bool) -> tuple[Record, int]:
    """Parse a record with quotes, which may span several lines.

    If its quotes are wrong, the first line alone is at fault, and the next line starts a new record.
    """
    longest = text_files.MAX_LINE_BYTES
    end = min(len(buffer), place + longest)
    fields, stop, code = _split(buffer, place, end, delimiter, last=last and end == len(buffer))
    if code == "unclosed-quote" and not last and end == len(buffer) and end - place < longest:
        return INCOMPLETE  # the closing quote may still come
    if code == "incomplete":
        return INCOMPLETE
    record = buffer[place:stop]
    if not code and count_lines(record) > MAX_RECORD_LINES:
        code = "unclosed-quote"  # two quotes that have nothing to do with each other, and rows between them
    if code:
        return Record([], undecodable_fault(line) or _quotes_fault(code, line), 1), len(line)
    lines, fault = count_lines(record), undecodable_fault(record)
    if fault is not None:
        return Record([], fault, lines), len(record)
    return Record([field.decode() for field in fields], None, lines), len(record)


def _split(buffer: bytes, place: int, end: int, delimiter: str, *, last: bool) -> tuple[list[bytes], int, str]:
    """Return the fields of a record, where it ends, and the code of what is wrong with its quotes.

    A record that does not end before `end` has an unclosed quote, unless `end` is the end of the text.
    """
    fields: list[bytes] = []
    while True:
        is_quoted = buffer.startswith(b'"', place, end)
        match = (QUOTED_FIELD if is_quoted else UNQUOTED_FIELD[delimiter]).match(buffer, place, end)
        if match is None or (match.end() == end and not last):
            return fields, end, "unclosed-quote"
        fields.append(match[1].replace(b'""', b'"') if is_quoted else match[0])
        place = match.end()
        if place == end:
            return fields, place, ""
        if buffer[place] in b"\r\n":
            if buffer[place : place + 2] == b"\r\n":
                place += 1
            elif buffer[place] == RETURN and place + 1 == len(buffer) and not last:
                return fields, end, "incomplete"  # a line feed may still come
            return fields, place + 1, ""
        if buffer[place] != ord(delimiter):
            return fields, place, "bad-quotes"
        place += 1


def _quotes_fault(code: str, line: bytes) -> Fault:
    return row_fault(
        code,
        CAUSES[code],
        got=shorten(line.decode()),
        expected='quotes around a whole field, and "" for a quote inside it',
        remedy="correct the row",
    )


def first_line(buffer: bytes, place: int = 0) -> bytes:
    """Return the line at `place`, with its line break."""
    match = LINE.match(buffer, place)
    return b"" if match is None else match[0]


def end_of_line(buffer: bytes, place: int, *, last: bool) -> tuple[int, bool]:
    """Return where the line at `place` ends, and whether more of it may follow."""
    feed = buffer.find(b"\n", place)
    back = buffer.find(b"\r", place, feed if feed >= 0 else len(buffer))
    breaks = [position for position in (feed, back) if position >= 0]
    end = 1 + min(breaks) + (0 <= back == feed - 1) if breaks else len(buffer)
    if end == len(buffer) and not last and not buffer.endswith(b"\n"):
        return end - buffer.endswith(b"\r"), True  # a line feed may still come
    return end, False


def count_lines(text: bytes) -> int:
    """Return the number of lines, which end in a line feed, a carriage return, or both."""
    bytes_ = np.frombuffer(text, dtype=np.uint8)
    ends = int(np.count_nonzero(bytes_ == NEWLINE) + np.count_nonzero(bytes_ == RETURN)) - text.count(b"\r\n")
    return ends + (len(text) > 0 and text[-1] not in b"\r\n")
