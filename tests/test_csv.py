"""The CSV reader against an independent one, on drawn texts: no row is lost, and every line has its number.

The reader hands plain pieces to a fast parser and parses the rest record by record. The result must not depend on where
the pieces are cut, nor on which of the two ways was taken.
"""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hubbub.intake.sources import csv_reader, text_files
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.csv_reader import CsvSource
from hubbub.intake.sources.csv_records import find_records
from hubbub.intake.sources.json_lines import JsonLinesSource
from strategies import examples

Found = list[tuple[int, list[str] | str]]  # the line, and the fields or the code of what is wrong
WHOLE = 1 << 25


# -- an independent reader: one byte after the other, over the whole text at once --------------------------------


def reference(body: bytes, separator: str, width: int, longest: int, line: int) -> Found:
    """Return what is to be found in `body`, whose first line has the number `line`."""
    found: Found = []
    place = 0
    while place < len(body):
        stop = line_end(body, place)
        content = body[place:stop].rstrip(b"\r\n")
        if stop - place > longest:
            found.append((line, "line-too-long"))
            place, line = stop, line + 1
            continue
        if not content and width > 1:
            place, line = stop, line + 1
            continue
        fields, after = walk(body, place, separator.encode(), longest) if b'"' in content else ([], 0)
        if isinstance(fields, str):
            found.append((line, wrong_bytes(content) or fields))
            after = stop
        else:
            record = body[place:after] if after else content
            fields = fields if after else content.split(separator.encode())
            bad = wrong_bytes(record)
            if bad:
                found.append((line, bad))
            elif len(fields) != width:
                found.append((line, "too-few-fields" if len(fields) < width else "too-many-fields"))
            else:
                found.append((line, [field.decode() for field in fields]))
            after = after or stop
        while place < after:
            place, line = line_end(body, place), line + 1
    return found


def line_end(body: bytes, place: int) -> int:
    while place < len(body) and body[place] not in (10, 13):
        place += 1
    return min(len(body), place + (2 if body[place : place + 2] == b"\r\n" else 1))


def wrong_bytes(content: bytes) -> str:
    if 0 in content:
        return "nul-byte"
    return "" if content.decode(errors="replace").encode() == content else "not-utf-8"


def walk(body: bytes, start: int, separator: bytes, longest: int) -> tuple[list[bytes] | str, int]:
    """Return the fields of a record with quotes and where the next one starts, or what is wrong with the quotes."""
    fields: list[bytes] = []
    field, state, place = bytearray(), "start", start
    while True:
        if place == len(body):
            return ("unclosed-quote", 0) if state == "quoted" else ([*fields, bytes(field)], place)
        if place == start + longest:
            return "unclosed-quote", 0
        byte = body[place : place + 1]
        if state == "quoted":
            if byte == b'"':
                state = "closing"
            else:
                field += byte
        elif byte == b'"' and state in ("start", "closing"):
            field += byte if state == "closing" else b""
            state = "quoted"
        elif byte in (b"\r", b"\n"):
            return [*fields, bytes(field)], line_end(body, place)
        elif byte == separator:
            fields.append(bytes(field))
            field, state = bytearray(), "start"
        elif state == "closing":
            return "bad-quotes", 0
        else:
            field += byte
            state = "plain"
        place += 1


# -- the reader under test ------------------------------------------------------------------------------------------


@contextmanager
def sizes(piece: int = WHOLE, few: int = 1 << 16, longest: int = 1 << 21) -> Iterator[None]:
    """Cut texts into small pieces, read little of them slowly, and take short lines for long ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "PIECE_BYTES", piece)
        patch.setattr(text_files, "MAX_LINE_BYTES", longest)
        patch.setattr(csv_reader, "SLOW_BYTES", few)
        yield


def read(content: bytes, separator: str, wanted: Sequence[str] | None = None, ending: str = ".csv") -> Found:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"drawn{ending}"
        path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
        source = CsvSource(path, separator)
        names = source.header()
        return together(list(source.rows(wanted or names)), wanted or names)


def together(batches: list[Rows], wanted: Sequence[str]) -> Found:
    found: Found = []
    for rows in batches:
        assert rows.counted == rows.parsed + len(rows.faults)
        columns = [rows.columns[name].to_pylist() for name in wanted]
        places = [rows.first + row if rows.places is None else int(rows.places[row]) for row in range(rows.parsed)]
        some: Found = [(place, list(row)) for place, row in zip(places, zip(*columns, strict=True), strict=True)]
        some += [(place, fault.code) for place, fault in rows.faults]
        found += sorted(some, key=lambda one: one[0])
    lines = [line for line, _ in found]
    assert all(before < after for before, after in pairwise(lines)), "places do not increase"
    return found


# Every byte that means something, and some that do not.
TOKENS = [b",", b"\t", b'"', b'""', b"\n", b"\r\n", b"\r", b"a", b"7", b" ", "é".encode(), "😀".encode()]
ODD = [b"\0", b"\xff", b"\xef\xbb\xbf", b"\xc3", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b'","', b'"\n', b'\n"', b"\n\n"]
BODIES = st.lists(st.sampled_from(TOKENS + ODD), max_size=40).map(b"".join)
PLAIN = st.lists(st.sampled_from([b"a,b\n", b"7,\n", b'"x","y"\r\n', b'"1\n2",""\n', b"\n"]), max_size=12).map(b"".join)
HEADERS = st.sampled_from(
    [b"x,y\n", b"x,y\r\n", b"x,y\r", b'\n\r\n"x",y\n', b"\xef\xbb\xbfx,y\n", b"x\n", b"\r\rx\r\n"]
)
CUTS = st.sampled_from([7, 8, 9, 16, 64, 1000, WHOLE])
FEWS = st.sampled_from([1, 8, 40, 1 << 16])


def head_of(header: bytes) -> tuple[int, int]:
    """Return how many columns a header names, and the line after it."""
    lines = header.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").count(b"\n") + header.replace(
        b"\r\n", b""
    ).count(b"\r")
    return 1 + header.count(b","), lines + 1


@examples(400)
@given(
    HEADERS,
    st.one_of(BODIES, st.tuples(PLAIN, BODIES, PLAIN).map(b"".join)),
    CUTS,
    FEWS,
    st.sampled_from([30, 1 << 21]),
)
@example(b"x,y\n", b'a,"b\nc,d\ne,f\n', 7, 8, 1 << 21)
@example(b"x\n", b"a" * 40 + b"\r\nb\n", 7, 8, 30)
@example(b"x\n", b"a" * 40 + b"\rb\n", 7, 8, 30)
@example(b"x,y\n", b'""\n1,2\n', WHOLE, 1 << 16, 1 << 21)
@example(b"x,y\n", b"\xef\xbb\xbfa,b\n", 7, 1, 1 << 21)
def test_any_bytes_are_read_as_one_byte_after_the_other(
    header: bytes, body: bytes, piece: int, few: int, longest: int
) -> None:
    width, line = head_of(header)
    if header.endswith(b"\r") and body.startswith(b"\n"):
        header += b"\n"  # the two belong together
        body = body[1:]
    with sizes(piece, few, longest):
        assert read(header + body, ",") == reference(body, ",", width, longest, line)


@examples(150)
@given(BODIES, CUTS)
def test_texts_with_tabs_are_read_as_those_with_commas(body: bytes, piece: int) -> None:
    with sizes(piece, 8):
        assert read(b"x\ty\n" + body, "\t", ending=".tsv") == reference(body, "\t", 2, 1 << 21, 2)


@examples(100)
@given(BODIES, CUTS, st.sampled_from(";|"))
def test_texts_with_semicolons_and_bars_are_read_as_those_with_commas(body: bytes, piece: int, separator: str) -> None:
    body = body.replace(b",", separator.encode())
    with sizes(piece, 8):
        assert read(f"x{separator}y\n".encode() + body, ",") == reference(body, separator, 2, 1 << 21, 2)


@examples(150)
@given(st.tuples(PLAIN, BODIES, PLAIN).map(b"".join), CUTS)
def test_what_is_not_wanted_is_checked_too(body: bytes, piece: int) -> None:
    """A column that nobody reads does not decide which way a row is read."""
    with sizes(piece, 8):
        reports = read(b"x,y\n" + body, ",", ["y"])
    expected = [(line, row if isinstance(row, str) else row[1:]) for line, row in reference(body, ",", 2, 1 << 21, 2)]
    assert reports == expected


@examples(100)
@given(st.tuples(PLAIN, BODIES, PLAIN).map(b"".join))
def test_both_ways_of_reading_agree(body: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.csv"
        path.write_bytes(b"x,y\n" + body)
        source = CsvSource(path, ",")
        quick = together(list(source.rows(["x", "y"])), ["x", "y"])
        slow, _, _ = source._parse_slowly(body, 2, ["x", "y"], last=True)
        assert quick == together([slow], ["x", "y"])


FIELDS = st.text(st.sampled_from([*'ab7 ,"\t', "\n", "\r", "é", "😀"]), max_size=6)


@examples(200)
@given(
    st.integers(1, 3).flatmap(lambda width: st.lists(st.lists(FIELDS, min_size=width, max_size=width), max_size=12)),
    st.sampled_from([("\n", csv.QUOTE_ALL), ("\r\n", csv.QUOTE_MINIMAL), ("\r\n", csv.QUOTE_ALL)]),
    CUTS,
    st.sampled_from([".csv", ".csv.gz"]),
)
def test_what_the_standard_library_writes_is_read(
    rows: list[list[str]], style: tuple[str, int], piece: int, ending: str
) -> None:
    newline, quoting = style
    names = [f"c{place}" for place in range(len(rows[0]) if rows else 1)]
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator=newline, quoting=quoting).writerows([names, *rows])  # type: ignore[arg-type]
    written = file.getvalue()
    assert list(csv.reader(io.StringIO(written, newline=""), strict=True))[1:] == rows
    with sizes(piece, 8):
        reports = read(written.encode(), ",", ending=ending)
    assert [row for _, row in reports] == rows


@examples(150)
@given(st.data())
def test_one_changed_byte_costs_no_row_far_from_it(data: st.DataObject) -> None:
    """Rows before the line with the change stay as they are, and so do those after it, but for what a quote opens."""
    lines = data.draw(st.lists(st.sampled_from([b"a,b\n", b"c,\n", b'd,"e"\n', b"1,2\r\n"]), min_size=3, max_size=30))
    body = b"".join(lines)
    place = data.draw(st.integers(0, len(body) - 1))
    byte = data.draw(st.sampled_from([b"x", b",", b"\0", b"\xff", b"\r", b"\n", b""]))
    changed = body[:place] + byte + body[place + 1 :]
    with sizes(data.draw(CUTS), 8):
        found = dict(read(b"x,y\n" + changed, ","))
    before = dict(reference(body, ",", 2, 1 << 21, 2))
    at = 2 + body[:place].count(b"\n")
    moved = changed.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") - body.count(b"\n")
    for line, row in before.items():
        if line < at:
            assert found[line] == row
        elif line > at + 2:
            assert found[line + moved] == row


@pytest.mark.slow
def test_a_file_of_bad_lines_is_read_in_one_go_through_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lines are bad, no byte is looked at more than a few times."""
    looked = 0

    def counting(piece: bytes, delimiter: int, *, last: bool, blank: bool) -> object:
        nonlocal looked
        looked += len(piece)
        return find_records(piece, delimiter, last=last, blank=blank)

    monkeypatch.setattr(csv_reader, "find_records", counting)
    path = tmp_path / "bad.csv"
    path.write_bytes(b"x,y\n" + b"1,2,3\n" * 400_000)
    faults = sum(len(rows.faults) for rows in CsvSource(path, ",").rows(["x"]))
    assert faults == 400_000
    assert looked < 8 * path.stat().st_size


def test_the_share_that_was_read_grows_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "PIECE_BYTES", 10_000)
    for ending in (".csv", ".csv.gz"):
        path = tmp_path / f"r{ending}"
        content = b"x,y\n" + b"".join(b"%d,%d\n" % (row, row * row) for row in range(50_000))
        path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
        source = CsvSource(path, ",")
        shares = [source.done for _ in source.rows(["x"])]
        assert shares == sorted(shares)
        assert 0 < shares[0] < 0.2
        assert shares[-1] == 1.0


JSON_LINES = [
    b'{"x": 1}',
    b'{"x": "a\\nb"}',
    b"",
    b"  ",
    b"[1]",
    b'{"x": 2',
    b"\xff",
    b"\0",
    b'{"x": "' + b"y" * 40 + b'"}',
]


@examples(150)
@given(
    st.lists(st.tuples(st.sampled_from(JSON_LINES), st.sampled_from([b"\n", b"\r\n"])), max_size=15),
    st.booleans(),
    st.sampled_from([7, 8, 9, 31, 64, WHOLE]),
)
def test_json_lines_do_not_depend_on_pieces(drawn: list[tuple[bytes, bytes]], ended: bool, piece: int) -> None:
    """Rows are where Python's own splitting of lines has them; a line that is too long is one row, and is skipped."""
    body = b'{"x": 0}\n' + b"".join(line + end for line, end in drawn)
    body = body if ended else body.removesuffix(b"\n")
    with tempfile.TemporaryDirectory() as folder, sizes(piece, longest=30):
        path = Path(folder) / "drawn.jsonl"
        path.write_bytes(body)
        found = together(list(JsonLinesSource(path).rows(["x"])), ["x"])
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip() or len(line) > 30]
    assert [place for place, _ in found] == [number for number, _ in lines]
    for (_, row), (_, line) in zip(found, lines, strict=True):
        assert (row == "line-too-long") == (len(line) > 30)
        assert isinstance(row, list) == (line.strip() in JSON_LINES[:2] or line.strip() == b'{"x": 0}')
