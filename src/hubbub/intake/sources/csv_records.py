"""Where the records of a piece of CSV end, found with whole-array operations and apart from any parser.

What looks like plain CSV here is left to a fast parser, and its rows are counted against this. Anything else (a quote
in an odd place, a NUL byte, bytes that are no UTF-8, a lone carriage return, a record that is too long) is read slowly,
record by record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.intake.sources.text_files import MOST_LINES

NEWLINE, RETURN, QUOTE = 10, 13, 34
MARK = b"\xef\xbb\xbf"


class Layout(NamedTuple):
    """Where whole records end, and how many there are."""

    end: int  # bytes up to which records are whole
    records: int  # that are not blank; blank lines count too where `blank` says so
    lines: int  # lines of the text up to `end`
    starts: Positions | None  # the line on which each record starts (from 0), where that is not simply its number
    quoted: bool


def layout(piece: bytes, delimiter: int, longest: int, *, last: bool, blank: bool) -> Layout | None:
    """Return the layout of the whole records in `piece`; None where it is not plain CSV.

    `longest` is how many bytes a record may have. `last` says that no more will come: the last record may lack its line
    break. `blank` says that blank lines are records (of a single empty field).
    """
    if b"\0" in piece or piece.startswith(MARK):  # which a parser would drop, at the beginning of any piece
        return None
    found = (
        _quoted(piece, delimiter, longest, last=last, blank=blank)
        if b'"' in piece
        else _unquoted(piece, longest, last=last, blank=blank)
    )
    return found if found is not None and _is_text(piece, found.end) else None


def _is_text(piece: bytes, end: int) -> bool:
    """Whether all is UTF-8, also in columns that no parser looks at."""
    if piece.isascii():
        return True
    try:
        str(memoryview(piece)[:end], "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _all_short(piece: bytes, end: int, longest: int) -> bool:
    """Whether no line has more bytes than `longest`: one that has lies over the whole of a stretch half as long."""
    step = max(1, longest // 2)
    for start in range(0, end, step):
        if piece.find(b"\n", start, min(start + step, end)) < 0:
            before, after = piece.rfind(b"\n", 0, start), piece.find(b"\n", start, end)
            if (end if after < 0 else after + 1) - before - 1 > longest:
                return False
    return True


def _unquoted(piece: bytes, longest: int, *, last: bool, blank: bool) -> Layout | None:
    end = len(piece) if last else piece.rfind(b"\n") + 1
    if not _all_short(piece, end, longest):
        return None
    bytes_ = np.frombuffer(piece, dtype=np.uint8, count=end)
    breaks = bytes_ == NEWLINE
    gaps = piece.startswith((b"\n", b"\r\n")) or bool((breaks[1:] & breaks[:-1]).any())
    if b"\r" in piece:
        returns = bytes_ == RETURN
        if (returns[:-1] & ~breaks[1:]).any() or (end > 0 and piece[end - 1] == RETURN):
            return None  # a carriage return by itself
        gaps = gaps or bool((breaks[:-2] & returns[1:-1]).any())
    lines = int(np.count_nonzero(breaks)) + (end > 0 and piece[end - 1] != NEWLINE)
    if blank or not gaps:
        return Layout(end, lines, lines, None, quoted=False)
    return _with_gaps(bytes_, np.flatnonzero(breaks), lines)


def _with_gaps(bytes_: NDArray[np.uint8], ends: Positions, lines: int) -> Layout:
    """Return the layout of a text without quotes, some of whose lines are blank."""
    starts, ends = _records(bytes_, ends)
    kept = np.flatnonzero(ends > starts)
    return Layout(bytes_.size, kept.size, lines, kept, quoted=False)


def _records(bytes_: NDArray[np.uint8], ends: Positions) -> tuple[Positions, Positions]:
    """Return where records start, and where their content ends (before a carriage return)."""
    if bytes_.size and (ends.size == 0 or ends[-1] != bytes_.size - 1):
        ends = np.append(ends, bytes_.size)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    return starts, ends - ((ends > starts) & (bytes_[np.maximum(ends - 1, 0)] == RETURN))


def _quoted(piece: bytes, delimiter: int, longest: int, *, last: bool, blank: bool) -> Layout | None:
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
    around = np.zeros(256, dtype=bool)
    around[[delimiter, NEWLINE, RETURN, QUOTE]] = True
    opening, closing = quotes[::2], quotes[1::2]
    before, after = bytes_[np.maximum(opening - 1, 0)], bytes_[np.minimum(closing + 1, end - 1)]
    if not (around[before] | (opening == 0)).all() or not (around[after] | (closing == end - 1)).all():
        return None  # a quote within a text, or a text after a quote
    returns = np.flatnonzero(bytes_ == RETURN)
    lone = returns[(returns + 1 >= end) | (bytes_[np.minimum(returns + 1, end - 1)] != NEWLINE)]
    if lone.size:
        return None  # also within quotes: it ends a line
    starts, stops = _records(bytes_, ends[ends < end])
    if np.diff(np.append(starts, end)).max(initial=0) > longest:
        return None
    lines = int(breaks.size) + (end > 0 and piece[end - 1] != NEWLINE)
    if (np.diff(np.append(np.searchsorted(breaks, starts), lines)) > MOST_LINES).any():
        return None
    kept = np.arange(starts.size) if blank else np.flatnonzero(stops > starts)
    return Layout(end, kept.size, lines, np.searchsorted(breaks, starts[kept]), quoted=True)
