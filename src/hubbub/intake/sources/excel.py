"""Sheets of Excel workbooks (.xlsx) as sources: the header in the first row that holds something, one report per row.

A workbook has no columns of one type: a column of whole numbers becomes one here (3.0, as numbers are stored there, is
3), and mixed ones become texts. Dates are written as in ISO 8601. Rows that are empty are no rows.
"""

from __future__ import annotations

import datetime
import hashlib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError  # the error alone

import numpy as np

from hubbub.core.errors import IntakeError, shorten
from hubbub.core.text import listed, plural
from hubbub.intake.reject_causes import CAUSES, Fault, refusal, row_fault
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.file_source import FileSource, file_errors
from hubbub.intake.sources.xlsx_scan import SheetScan, check_archive, column_letters, scan_sheet

EXCEL_EXTENSION = ".xlsx"
OTHER_WORKBOOKS = (".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
BATCH_ROWS = 100_000
MAX_CELLS = 50_000_000  # from the first cell to the last, empty ones included
MAX_EXACT_NUMBER = 10**15  # Excel keeps 15 digits of a number
MAX_NAMED_RANGES = 3


@dataclass(frozen=True)
class _Sheet:
    """A sheet: its cells row by row from the first row on, merged cells, and what a separate scan found."""

    name: str
    cells: list[list[Any]]
    merged: list[tuple[tuple[int, int], tuple[int, int]]]
    scan: SheetScan
    visible: list[str]  # the names of all sheets that can be seen


class ExcelSource(FileSource):
    """One sheet of a workbook: the one that is named, or the first that is not hidden."""

    unit = "row"
    column_remedy = "name one column {} in the first row"

    def __init__(self, path: Path, sheet: str | None = None) -> None:
        super().__init__(path)
        self._sheet_name = sheet
        if sheet is not None:
            self.name = f"{path}#{sheet}"

    @property
    def identity(self) -> object:
        """The file behind all links, and the sheet."""
        return super().identity, self._sheet.name

    def digest(self) -> str:
        """Return a digest of the file's bytes and the sheet's name: each sheet has rows of its own."""
        return hashlib.sha256(f"{super().digest()}#{self._sheet.name}".encode()).hexdigest()

    @property
    def path_digest(self) -> str:
        """A digest of the full path and the sheet's name."""
        return hashlib.sha256(f"{super().path_digest}#{self._sheet.name}".encode()).hexdigest()[:32]

    def header(self) -> list[str]:
        """Return the entries of the first row that holds something, up to the last."""
        if not self._sheet.scan.filled:
            return []
        names = [_text(entry) or "" for entry in self._row(self._sheet.scan.filled[0])]
        while names and not names[-1]:
            names.pop()
        return names

    def notes(self, wanted: Sequence[str]) -> list[str]:
        """Return what people may not see, or not expect, in the sheet that is read."""
        sheet, notes = self._sheet, []
        if self._sheet_name is None and len(sheet.visible) > 1:
            notes.append(
                f"{self.name}: sheet {sheet.name} of {listed(sheet.visible, most=5)} is read; name another one as "
                f"{self.path.name}#SHEET"
            )
        places = [self.header().index(name) for name in wanted]
        merged = [
            f"{column_letters(left)}{top + 1}:{column_letters(right)}{bottom + 1}"
            for (top, left), (bottom, right) in sheet.merged
            if any(left <= place <= right for place in places)
        ]
        if merged:
            cells = listed(merged, most=MAX_NAMED_RANGES)
            notes.append(f"{self.name}: of merged cells ({cells}) only the first has an entry, the others are empty")
        if count := sheet.scan.hidden_rows:
            notes.append(
                f"{self.name}: {plural(count, 'hidden row')} of the sheet {'is' if count == 1 else 'are'} read"
            )
        return notes

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows that are not empty."""
        import pyarrow as pa

        names, filled = self.header(), self._sheet.scan.filled[1:]
        columns = [names.index(name) for name in wanted]
        forms = [self._time_form(column) for column in columns]
        for first in range(0, len(filled), BATCH_ROWS):
            numbers = filled[first : first + BATCH_ROWS]  # counted by the scan, apart from the cells
            faults: list[tuple[int, Fault]] = []
            kept: list[tuple[int, list[Any]]] = []
            for number in numbers:
                row = self._row(number)
                fault = self._fault(number, row, len(names), dict(zip(columns, wanted, strict=True)))
                if fault is not None:
                    faults.append((number, fault))
                elif any(entry != "" for entry in row):  # a row that only the scan has is lost, and is noticed
                    kept.append((number, [row[column] for column in columns]))
            entries = zip(*(entries for _, entries in kept), strict=True) if kept else ((),) * len(wanted)
            arrays = {
                name: pa.chunked_array([_array(list(column), form)])
                for name, column, form in zip(wanted, entries, forms, strict=True)
            }
            self.done = (first + len(numbers)) / len(filled)
            places = np.array([number for number, _ in kept], dtype=np.int64)
            yield Rows(len(numbers), arrays, numbers[0], places, tuple(faults))

    def _row(self, number: int) -> list[Any]:
        """Return the entries of a row, as many as the widest row has; empty ones are empty texts."""
        row = self._sheet.cells[number - 1] if number <= len(self._sheet.cells) else []
        return [*row, *[""] * (self._sheet.scan.columns - len(row))]

    def _time_form(self, column: int) -> str:
        """Return how finely the times of a column are written, all alike: midnight is a time among times."""
        cells = (row[column] for row in self._sheet.cells if column < len(row))
        times = [entry.time() for entry in cells if isinstance(entry, datetime.datetime)]
        if not any(time != datetime.time() for time in times):
            return ""
        return "microseconds" if any(time.microsecond for time in times) else "seconds"

    def _fault(self, number: int, row: list[Any], width: int, wanted: dict[int, str]) -> Fault | None:
        """Return why a row cannot be read; None if it can."""
        for column, name in wanted.items():
            error = self._sheet.scan.faulty.get((number, column))
            if error is not None:
                return _cell_fault(f"{column_letters(column)}{number}", name, error)
            entry = row[column]
            if isinstance(entry, float) and entry.is_integer() and abs(entry) >= MAX_EXACT_NUMBER:
                return row_fault(
                    "rounded-number",
                    "a number has more digits than Excel keeps",
                    got=f"{entry:.0f}",
                    expected="whole numbers of up to 15 digits, or texts",
                    remedy="format the column as text before the numbers are entered or imported",
                    column=name,
                )
        beyond = [entry for entry in row[width:] if entry != ""]
        if not beyond:
            return None
        return row_fault(
            "too-many-fields",
            "the row has an entry in a column without a name",
            got=shorten(beyond[0]),
            expected=f"entries in the {plural(width, 'column')} that the header names",
            remedy="name the column in the first row, or remove the entry",
        )

    @cached_property
    def _sheet(self) -> _Sheet:
        from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

        with self._errors(), file_errors(self.path):
            check_archive(self.path)
            workbook = CalamineWorkbook.from_path(self.path)
            tables = [each for each in workbook.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
            visible = [each.name for each in tables if each.visible == SheetVisibleEnum.Visible]
            names = [each.name for each in tables]
            if self._sheet_name is not None and self._sheet_name not in names:
                raise refusal(
                    "no-table",
                    "the workbook has no such sheet",
                    where=str(self.path),
                    got=shorten(self._sheet_name),
                    expected=f"one of {shorten(names, 200)}",
                    remedy=f"name a sheet as {self.path.name}#SHEET, spelt as in the workbook",
                )
            if not (visible or self._sheet_name):
                raise zipfile.BadZipFile("no sheet with cells that can be seen")
            name = self._sheet_name or visible[0]
            scan = scan_sheet(self.path, name)
            rows = scan.filled[-1] if scan.filled else 0
            if rows * scan.columns > MAX_CELLS:
                raise refusal(
                    "corrupt-file",
                    "a cell is far away from the others",
                    where=f"{self.path}, sheet {name}",
                    got=f"entries up to row {rows:,} and column {column_letters(scan.columns - 1)}",
                    expected=f"at most {MAX_CELLS:,} cells from the first to the last",
                    remedy="delete the rows or columns beyond the table, and save the workbook",
                )
            sheet = workbook.get_sheet_by_name(name)
            cells = sheet.to_python(skip_empty_area=False) if scan.filled else []
            return _Sheet(name, cells, sheet.merged_cell_ranges or [], scan, visible)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what goes wrong while the workbook is opened as an IntakeError."""
        from python_calamine import CalamineError, PasswordError

        try:
            yield
        except IntakeError:
            raise
        except (CalamineError, zipfile.BadZipFile, ParseError, LookupError, ValueError, RuntimeError) as error:
            locked = isinstance(error, PasswordError)
            raise refusal(
                "corrupt-file",
                "the workbook is locked with a password" if locked else "the workbook cannot be read",
                where=str(self.path),
                got="an encrypted file" if locked else shorten(str(error), 150),
                expected="a complete Excel workbook (.xlsx)",
                remedy="save it without a password" if locked else "open it in a spreadsheet program and save it again",
            ) from None


def _cell_fault(cell: str, column: str, error: str) -> Fault:
    if error:
        return row_fault(
            "spreadsheet-error",
            CAUSES["spreadsheet-error"],
            got=f"{error} in {cell}",
            expected="a number or text",
            remedy="correct the formula, or remove the row",
            column=column,
        )
    return row_fault(
        "unsaved-formula",
        CAUSES["unsaved-formula"],
        got=f"a formula in {cell} that was never computed",
        expected="a formula with its result, or the result itself",
        remedy="open the workbook in a spreadsheet program and save it: that computes the formulas",
        column=column,
    )


def _array(entries: list[Any], time_form: str) -> Any:
    """Return entries as an array: of whole numbers or floats if all are numbers, of texts otherwise."""
    import pyarrow as pa

    filled = [entry for entry in entries if entry != ""]
    if filled and all(type(entry) in (int, float) for entry in filled):
        whole = all(float(entry).is_integer() for entry in filled)
        kind = pa.int64() if whole else pa.float64()
        return pa.array([None if entry == "" else int(entry) if whole else float(entry) for entry in entries], kind)
    return pa.array([_text(entry, time_form) for entry in entries], pa.string())


def _text(entry: Any, time_form: str = "") -> str | None:
    """Return an entry as text; None where there is none. Days are written as times in a column that has times."""
    if entry == "":
        return None
    if isinstance(entry, bool):
        return str(entry).upper()  # as the program shows it
    if isinstance(entry, float) and entry.is_integer():
        return str(int(entry))
    if isinstance(entry, datetime.date):  # a time is one, too
        moment = datetime.datetime.combine(entry, getattr(entry, "time", datetime.time)())
        return moment.isoformat(timespec=time_form) if time_form else moment.date().isoformat()
    return str(entry)
