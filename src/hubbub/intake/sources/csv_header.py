"""The header of a CSV or TSV file: the names of its columns, and the separator between them."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

from hubbub.core.errors import shorten
from hubbub.core.text import listed
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.csv_records import count_lines, first_line, parse_record
from hubbub.intake.sources.text_files import read_pieces, with_last

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}  # by the file's extension
SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
SEPARATOR_LINE = re.compile(rb'"?sep=(.)"?(?:\r\n|\r|\n)', re.IGNORECASE)  # above the header: written for Excel
EXPECTED = "a line with the names of the columns, such as: user,mechanism,output"


class CsvHeader(NamedTuple):
    """The names of the columns, and how many lines and bytes come before the first row (blank lines included)."""

    names: list[str]
    lines: int
    size: int
    delimiter: str


def read_header(path: Path, delimiter: str) -> CsvHeader:
    """Return the header: the first record that is not blank. A blank file has no names.

    `delimiter` is what the file's extension says. A header that has a single column by it, and several by one other
    separator, is written with that one. A first line ``sep=;``, which Excel understands, decides it, too.
    """
    buffer, lines, size = b"", 0, 0
    for piece, last in with_last(read_pieces(path)):
        buffer += piece
        blank = len(buffer) - len(buffer.lstrip(b"\r\n"))
        if blank == len(buffer) and not last:
            blank -= 1  # a line feed may still follow a carriage return
        lines, size, buffer = lines + count_lines(buffer[:blank]), size + blank, buffer[blank:]
        if not buffer.strip(b"\r\n"):
            continue
        where = f"{path}, line {lines + 1}"
        line = first_line(buffer)
        if match := SEPARATOR_LINE.fullmatch(line):
            if line.endswith(b"\r") and len(line) == len(buffer) and not last:
                continue  # a line feed may still follow
            delimiter = _stated_separator(match[1], where)
            lines, size, buffer = lines + 1, size + len(line), buffer[len(line) :]
            where = f"{path}, line {lines + 1}"
        elif parse_record(buffer, 0, delimiter, last=last)[1] == 0:
            continue  # the header goes on in the next piece
        else:
            delimiter = _likely_separator(buffer, delimiter, path, where, last=last)
        record, length = parse_record(buffer, 0, delimiter, last=last)
        if length == 0:
            if last:
                break
            continue
        if record.fault is not None:
            error = record.fault.error
            what = f"the header cannot be read: {error.what}"
            raise refusal("no-header", what, where=where, got=error.got, expected=EXPECTED, remedy=error.remedy)
        if not any(record.fields):
            raise refusal(
                "no-header",
                "the header names no columns",
                where=where,
                got="only separators",
                expected=EXPECTED,
                remedy="add a header; if the file holds nothing but outputs, the header is: output",
            )
        return CsvHeader(record.fields, lines + record.lines, size + length, delimiter)
    return CsvHeader([], lines, size, delimiter)


def _stated_separator(separator: bytes, where: str) -> str:
    """Return the separator that a line ``sep=;`` states."""
    if separator.decode("latin-1") in SEPARATORS:
        return separator.decode()
    raise refusal(
        "wrong-separator",
        "columns are separated by something else than a separator",
        where=where,
        got=shorten(separator),
        expected=f"one of {', '.join(SEPARATORS.values())}",
        remedy="write the file with commas or semicolons between columns",
    )


def _likely_separator(buffer: bytes, delimiter: str, path: Path, where: str, *, last: bool) -> str:
    """Return the separator of a header: another than expected if by that one it has several columns, all with names.

    A column name that contains such a character itself has to be quoted. A header with several columns by more than one
    separator is refused.
    """
    record, _ = parse_record(buffer, 0, delimiter, last=last)
    if record.fault is None and len(record.fields) > 1:
        return delimiter
    line = first_line(buffer)
    found = []
    for separator in SEPARATORS:
        try:
            text = line.decode().rstrip("\r\n")
            fields = next(csv.reader([text], delimiter=separator, strict=True), [])
        except (UnicodeDecodeError, csv.Error):  # the line was not written with this separator
            continue
        if separator != delimiter and len(fields) > 1 and all(field.strip() for field in fields):
            found.append(separator)
    if len(found) > 1:
        names = listed([SEPARATORS[separator] for separator in found], word="or")
        raise refusal(
            "wrong-separator",
            f"the columns may be separated by {names}",
            where=where,
            got=shorten(line.decode().rstrip("\r\n")),
            expected=f"{SEPARATORS[delimiter]} between columns",
            remedy=f"put quotes around names, or write the file with commas, in Python for example: import pandas; "
            f"pandas.read_csv({path.name!r}, sep={found[0]!r}, dtype=str, keep_default_na=False).to_csv('commas.csv', "
            "index=False)",
        )
    return found[0] if found else delimiter
