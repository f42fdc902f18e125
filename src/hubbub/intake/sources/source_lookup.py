"""From an argument to sources: a file, a folder, a pattern, the address of a table in a database, a table in memory."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path

from hubbub.core.errors import IntakeError, SettingError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.column_names import OWN_NAMES, ColumnNames
from hubbub.intake.sources.csv_header import DELIMITERS
from hubbub.intake.sources.csv_reader import CsvSource
from hubbub.intake.sources.database import DatabaseSource
from hubbub.intake.sources.database_address import is_address, parse_address
from hubbub.intake.sources.excel import EXCEL_EXTENSION, OTHER_WORKBOOKS, ExcelSource
from hubbub.intake.sources.file_source import COMPRESSIONS, FileSource, check_file
from hubbub.intake.sources.frames import FrameSource, is_frame
from hubbub.intake.sources.json_lines import JSON_EXTENSIONS, JsonLinesSource
from hubbub.intake.sources.packed_bytes import packed_roles
from hubbub.intake.sources.parquet_arrow import ARROW_EXTENSIONS, PARQUET_EXTENSIONS, ArrowSource, ParquetSource
from hubbub.intake.stamps import ENDING as STAMP
from hubbub.intake.study import Study
from hubbub.reports.validation import no_reports

READERS: dict[str, Callable[[Path], Source]] = {
    **dict.fromkeys(PARQUET_EXTENSIONS, ParquetSource),
    **dict.fromkeys(ARROW_EXTENSIONS, ArrowSource),
    **dict.fromkeys(JSON_EXTENSIONS, JsonLinesSource),
    EXCEL_EXTENSION: ExcelSource,
}
SHEET = re.compile(rf"(?P<path>.+{re.escape(EXCEL_EXTENSION)})#(?P<sheet>.+)", re.IGNORECASE | re.DOTALL)
EXTENSIONS = [*DELIMITERS, *READERS]
EXPECTED_EXTENSION = f"one of {', '.join(EXTENSIONS)}; text files also with .gz or .zst"
EQUAL_FILES = ("skip", "count")


def sources_of(argument: object, study: Study, columns: ColumnNames = OWN_NAMES) -> list[Source]:
    """Return the sources that an argument names, each once; `columns` are the names of their columns."""
    is_list = (
        isinstance(argument, Sequence | Iterator) and not isinstance(argument, str | bytes) and not is_frame(argument)
    )
    entries: list[object] = list(argument) if is_list else [argument]  # type: ignore[call-overload]
    if not entries:
        raise no_reports("read_reports(source)")
    sources = [source for entry in entries for source in _sources_of_entry(entry, study)]
    by_identity: dict[object, list[str]] = defaultdict(list)
    for source in sources:
        source.columns = columns
        by_identity[source.identity].append(source.name)
    for names in by_identity.values():
        if len(names) > 1:
            raise refusal(
                "named-twice",
                "a source is named several times",
                where=", ".join(dict.fromkeys(names)),
                got=f"{len(names)} times",
                expected="each file or table once: its rows would be counted several times",
                remedy="name it once",
            )
    return sources


def _sources_of_entry(entry: object, study: Study) -> list[Source]:
    if is_frame(entry):
        return [FrameSource(entry)]
    if isinstance(entry, Path):
        entry = str(entry)
    if not isinstance(entry, str):
        raise refusal(
            "not-a-source",
            "not a source of reports",
            where="read_reports(source)",
            got=shorten(entry),
            expected="a path, the address of a table, a table (pandas, polars, pyarrow), or a list of these",
            remedy="for outputs in memory, use hubbub.Reports.from_outputs(mechanism, outputs)",
        )
    if is_address(entry):
        return [DatabaseSource(parse_address(entry))]
    if _sheet_of(entry) is not None:
        return [table_source(entry)]
    packed = packed_roles(study.mechanisms)
    raw_numbers = study.domain.raw_locator is not None
    return [_file_source(path, packed=packed, raw_numbers=raw_numbers) for path in _paths_of(entry)]


def table_source(text: str) -> Source:
    """Return one file, or a sheet of a workbook, as a table of anything."""
    sheet = _sheet_of(text)
    if sheet is None:
        return _file_source(Path(text))
    check_file(sheet[0])
    return ExcelSource(*sheet)


def _sheet_of(text: str) -> tuple[Path, str] | None:
    """Return the workbook and the sheet that a text such as answers.xlsx#Sheet1 names; None for a plain path."""
    named = SHEET.fullmatch(text)
    if named is None or os.path.exists(text):  # noqa: PTH110  # never raises, whatever the path
        return None
    return Path(named["path"]), named["sheet"]


def _paths_of(text: str) -> list[Path]:
    """Return the files that a path, a folder or a pattern names."""
    path = Path(text)
    exists = os.path.exists(path)  # noqa: PTH110  # never raises, whatever the path
    is_folder = exists and path.is_dir()
    if is_folder:
        hidden = (".", "_")
        paths = sorted(entry for entry in path.iterdir() if not entry.name.startswith(hidden))
    elif not exists and glob.has_magic(text):
        matches = map(Path, sorted(glob.glob(text, recursive=True)))  # noqa: PTH207
        paths = [match for match in matches if not match.is_dir()]
    else:
        return [path]
    paths = [entry for entry in paths if not entry.name.endswith(STAMP)]
    if not paths:
        raise refusal(
            "no-files",
            "there are no files",
            where=text,
            got="nothing in the folder" if is_folder else "no file that matches the pattern",
            expected="at least one file of reports",
            remedy=f"check the path; files that end in {STAMP} or (in a folder) start with . or _ are left out",
        )
    return paths


def _file_source(path: Path, *, packed: Container[str] = (), raw_numbers: bool = False) -> Source:
    check_file(path)
    if path.name.lower().endswith(".tally.parquet"):
        raise refusal(
            "not-a-source",
            "a tally is not a file of reports",
            where=str(path),
            got="reports that have already been counted",
            expected="reports as they were sent",
            remedy="add tallies up with hubbub merge; keep tallies and reports in different folders",
        )
    extension = extension_of(path)
    if extension in DELIMITERS:
        return CsvSource(path, DELIMITERS[extension], packed=packed, raw_numbers=raw_numbers)
    if extension in READERS:
        return READERS[extension](path)
    raise refusal(
        "unknown-format",
        "files with this extension are not read",
        where=str(path),
        got="".join(path.suffixes[-2:]) or "no extension",
        expected=EXPECTED_EXTENSION,
        remedy="open it in its program and save it as .xlsx"
        if extension in OTHER_WORKBOOKS
        else "rename the file, or convert it",
    )


def extension_of(path: Path) -> str:
    """Return the extension that says how a file is written, in lower case and without that of a compressor."""
    extension = path.suffix.lower()
    if extension not in COMPRESSIONS:
        return extension
    extension = Path(path.stem).suffix.lower()
    # Parquet and Arrow compress their own content.
    return "" if extension in (*PARQUET_EXTENSIONS, *ARROW_EXTENSIONS, EXCEL_EXTENSION) else extension


def check_equal_files(equal_files: object) -> None:
    """Refuse a value of `equal_files` that has no meaning."""
    if equal_files not in (None, *EQUAL_FILES):
        raise SettingError(
            "equal_files must be skip or count",
            where="--equal-files",
            got=shorten(equal_files),
            expected="skip if files with the same bytes are copies, count if different people sent the same",
            remedy="leave it out: the run then stops if two files have the same bytes",
        )


def without_copies(sources: list[Source], equal_files: str | None = None) -> tuple[list[Source], list[str]]:
    """Return the sources to read, and the names of copies that are left out.

    `equal_files` says whether files with exactly the same bytes are copies (``"skip"``: the first is read) or come from
    different people (``"count"``: all are read); without it they are refused.
    """
    check_equal_files(equal_files)
    if equal_files == "count":
        return sources, []
    sizes = Counter(source.size() for source in sources if isinstance(source, FileSource))
    first_by_digest: dict[str, FileSource] = {}
    kept: list[Source] = []
    skipped: list[str] = []
    for source in sources:
        if isinstance(source, FileSource) and sizes[source.size()] > 1:
            first = first_by_digest.setdefault(source.digest(), source)
            if first is not source:
                if equal_files is None:
                    raise same_content(source, f"{first.name}, {source.name}", f"{source.size():,} equal bytes")
                skipped.append(source.name)
                continue
        kept.append(source)
    return kept, skipped


def same_content(source: FileSource, where: str, got: str) -> IntakeError:
    """Return the error for a file that may be a copy of another: its bytes alone do not say."""
    return refusal(
        "same-content",
        "two files contain exactly the same bytes",
        where=where,
        got=got,
        expected="each report once: a copy must not be counted again, and equal reports of different people must be",
        remedy=f"use --equal-files skip if {source.path.name} is a copy, --equal-files count if different people sent "
        "the same",
    )
