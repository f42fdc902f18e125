"""The header of a CSV or TSV file: the names of its columns, and the separator between them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.csv_records import count_lines, first_line, parse_record
from hubbub.intake.sources.text_files import read_pieces, with_last

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}  # by the file's extension
SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
EXPECTED = "a line with the names of the columns, such as: user,mechanism,output"


class CsvHeader(NamedTuple):
    """The names of the columns, and how many lines and bytes come before the first row (blank lines included)."""

    names: list[str]
    lines: int
    size: int


def read_header(path: Path, delimiter: str) -> CsvHeader:
    """Return the header: the first record that is not blank. A blank file has no names."""
    buffer, lines, size = b"", 0, 0
    for piece, last in with_last(read_pieces(path)):
        buffer += piece
        blank = len(buffer) - len(buffer.lstrip(b"\r\n"))
        if blank == len(buffer) and not last:
            blank -= 1  # a line feed may still follow a carriage return
        lines, size, buffer = lines + count_lines(buffer[:blank]), size + blank, buffer[blank:]
        if not buffer.strip(b"\r\n"):
            continue
        record, length = parse_record(buffer, 0, delimiter, last=last)
        if length == 0:
            continue  # the header goes on in the next piece
        where = f"{path}, line {lines + 1}"
        if record.fault is not None or len(record.fields) == 1:
            _check_separator(first_line(buffer), delimiter, path, where)
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
        return CsvHeader(record.fields, lines + record.lines, size + length)
    return CsvHeader([], lines, size)


def _check_separator(line: bytes, delimiter: str, path: Path, where: str) -> None:
    """Refuse a header of one column if another separator would make several columns of it, none without a name.

    A column name that contains such a character itself has to be quoted.
    """
    extensions = {delimiter: extension for extension, delimiter in reversed(DELIMITERS.items())}
    for separator, plural in SEPARATORS.items():
        if separator == delimiter:
            continue
        try:
            text = line.decode().rstrip("\r\n")
            fields = next(csv.reader([text], delimiter=separator, strict=True), [])
        except (UnicodeDecodeError, csv.Error):  # the line was not written with this separator
            continue
        if len(fields) > 1 and all(field.strip() for field in fields):
            remedy = (
                f"rename the file: for {plural} the extension is {extensions[separator]}"
                if separator in extensions
                else f"write it with commas, in Python for example: import pandas; pandas.read_csv({path.name!r}, "
                f"sep={separator!r}, dtype=str, keep_default_na=False).to_csv('commas.csv', index=False)"
            )
            what, expected = f"the columns are separated by {plural}", f"{SEPARATORS[delimiter]} between columns"
            raise refusal("wrong-separator", what, where=where, got=shorten(text), expected=expected, remedy=remedy)
