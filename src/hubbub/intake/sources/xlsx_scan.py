"""What the library that reads workbooks does not tell: which rows of a sheet hold something, errors, unsaved formulas.

An .xlsx file is a ZIP archive of XML. The sheet's XML is gone through once, apart from the library: its rows are
counted, cells with an error or a formula without a saved result (both are empty for the library) are found, and a stray
cell far away is noticed before the library reserves room for everything in between.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO
from xml.etree.ElementTree import Element, iterparse  # expat limits what entities expand to

MAX_UNPACKED_BYTES = 1 << 31
CELL_NAME = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


@dataclass
class SheetScan:
    """Rows are numbered from 1 as in the program, columns from 0."""

    filled: list[int] = field(default_factory=list)  # the rows that hold something, in order
    faulty: dict[tuple[int, int], str] = field(default_factory=dict)  # cells: the error, "" for an unsaved formula
    columns: int = 0  # up to the last cell that holds something
    hidden_rows: int = 0  # of those that hold something


def scan_sheet(path: Path, sheet: str) -> SheetScan:
    """Go through the XML of a sheet; wrong XML is a `ParseError`, and a missing part a `KeyError`."""
    with zipfile.ZipFile(path) as archive, archive.open(_part_of(archive, sheet)) as file:
        return _scan(file, _empty_texts(archive))


def check_archive(path: Path) -> None:
    """Raise a `BadZipFile` if a part of the archive is damaged, or all are too large: the library trusts them."""
    if not zipfile.is_zipfile(path):
        return  # an encrypted workbook is none: the library says what it is
    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > MAX_UNPACKED_BYTES:
            raise zipfile.BadZipFile(f"more than {MAX_UNPACKED_BYTES:,} bytes when unpacked")
        try:
            damaged = archive.testzip()
        except zlib.error as error:
            raise zipfile.BadZipFile(str(error)) from None
    if damaged is not None:
        raise zipfile.BadZipFile(f"{damaged} is damaged")


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]  # two editions of the standard have different namespaces


def _part_of(archive: zipfile.ZipFile, sheet: str) -> str:
    """Return the name of the part of the archive that holds a sheet."""
    with archive.open("xl/workbook.xml") as file:
        sheets = {
            element.get("name"): next((text for name, text in element.items() if name.endswith("}id")), "")
            for _, element in iterparse(file)  # noqa: S314
            if _tag(element) == "sheet"
        }
    with archive.open("xl/_rels/workbook.xml.rels") as file:
        targets = {element.get("Id"): element.get("Target", "") for _, element in iterparse(file)}  # noqa: S314
    return posixpath.normpath(posixpath.join("/xl", targets[sheets[sheet]])).lstrip("/")


def _empty_texts(archive: zipfile.ZipFile) -> set[str]:
    """Return the numbers of shared texts that are empty."""
    if "xl/sharedStrings.xml" not in archive.namelist():
        return set()
    with archive.open("xl/sharedStrings.xml") as file:
        texts = (element for _, element in iterparse(file) if _tag(element) == "si")  # noqa: S314
        return {str(number) for number, element in enumerate(texts) if not _has_text(element)}


def _has_text(element: Element) -> bool:
    return any(part.text for part in element.iter() if _tag(part) == "t")


def _scan(file: IO[bytes], empty_texts: set[str]) -> SheetScan:
    scan = SheetScan()
    number = 0
    for _, row in iterparse(file):  # noqa: S314
        if not row.tag.endswith("row"):
            if row.tag.endswith("sheetData"):
                break
            continue
        number, column, last = int(row.get("r", number + 1)), -1, 0
        for cell in row:
            match = CELL_NAME.fullmatch(cell.get("r", ""))
            column = _column_number(match[1]) if match else column + 1
            fault = _fault_of(cell)
            if fault is not None:
                scan.faulty[number, column] = fault
            if fault is not None or _is_filled(cell, empty_texts):
                last = column + 1
        if last:
            scan.filled.append(number)
            scan.columns = max(scan.columns, last)
            scan.hidden_rows += row.get("hidden") in ("1", "true")
        row.clear()
    return scan


def _is_filled(cell: Element, empty_texts: set[str]) -> bool:
    kind = cell.get("t", "n")
    for part in cell:
        tag = _tag(part)
        if tag == "is":
            return kind == "inlineStr" and _has_text(part)
        if tag == "v" and part.text:
            return kind != "e" and not (kind == "s" and part.text in empty_texts)
    return False


def _fault_of(cell: Element) -> str | None:
    """Return the error in a cell, "" for a formula without a saved result, None if there is nothing wrong."""
    kind = cell.get("t")
    if kind != "e" and (len(cell) == 0 or not cell[0].tag.endswith("f")):  # a formula comes first
        return None
    parts = {_tag(part): part.text or "" for part in cell}
    if kind == "e":
        return parts.get("v", "") or "an error"
    # Of a formula whose result is an empty text, the type says that there is one.
    return "" if "f" in parts and not parts.get("v") and kind != "str" else None


@cache
def _column_number(letters: str) -> int:
    """Return the number of a column from 0: A is 0, Z is 25, AA is 26."""
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def column_letters(number: int) -> str:
    """Return what the program calls a column.

    >>> column_letters(0), column_letters(25), column_letters(26)
    ('A', 'Z', 'AA')
    """
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
