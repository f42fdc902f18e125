"""Files of a search for words: its settings, and the table of what devices sent."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.client import MAX_STUDY_BYTES, ClientError, read_file
from hubbub.core.errors import MechanismError, StudyError, restated, shorten
from hubbub.core.text import listed, renaming
from hubbub.discovery import PrefixSearch
from hubbub.discovery.collected_outputs import COUNTED_ALONE, ORIGIN, RowsOrigin
from hubbub.intake.reading_notes import unused_notes
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.file_source import check_file, file_digest, not_readable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

COLUMNS = ("round", "output")
FORM = "a JSON file with the settings of a search, as PrefixSearch.to_json() returns them"
REQUIRED = ("alphabet", "length", "epsilon")


def read_search(path: str | Path) -> PrefixSearch:
    """Return the search that a file describes."""
    try:
        content = read_file(path, MAX_STUDY_BYTES, "search file", "JSON", "write search.to_json() to a file")
        settings = json.loads(content, object_pairs_hook=_without_repeated_names)
    except ClientError as error:
        raise restated(error, StudyError) from None
    except _RepeatedNameError as error:
        raise _no_search(path, "the search file has an entry twice", str(error), "keep one of them") from None
    except (ValueError, RecursionError) as error:  # neither UTF-8 nor JSON
        raise _no_search(path, "the search file is not JSON", shorten(str(error))) from None
    if not isinstance(settings, dict):
        raise _no_search(path, "the search file holds no settings", shorten(settings))
    known = [field.name for field in fields(PrefixSearch)]
    unknown = [name for name in settings if name not in known]
    missing = [name for name in REQUIRED if name not in settings]
    if unknown or missing:
        got = f"unknown {listed(unknown)}" if unknown else f"no {listed(missing)}"
        remedy = renaming(unknown, [name for name in known if name not in settings], "write search.to_json() to a file")
        raise _no_search(path, "the search file has other settings", got, remedy)
    try:
        return PrefixSearch(**settings)
    except MechanismError as error:
        raise restated(error, StudyError, where=f"{path}, {error.where}") from None


class _RepeatedNameError(ValueError):
    """A name that is there twice: one of its two values would be ignored."""


def _without_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise _RepeatedNameError(f"{shorten(repeated)} more than once")
    return dict(pairs)


@dataclass(frozen=True)
class SearchOutputs:
    """The columns `round` and `output` of files, one below the other, and where each row is."""

    table: pa.Table
    origin: RowsOrigin

    def to_pandas(self) -> pd.DataFrame:
        """Return what `discover` takes; it names rows by their files, and says which columns were not used."""
        frame: pd.DataFrame = self.table.to_pandas()
        frame.attrs[ORIGIN] = self.origin
        return frame


def read_search_outputs(paths: Sequence[str | Path]) -> SearchOutputs:
    """Return what devices sent, from CSV and Parquet files; each file is read once."""
    import pyarrow as pa

    files = [Path(path) for path in paths]
    _refuse_repeated_files(files)
    tables, unused = [], []
    for path in files:
        table, others = _read_outputs(path)
        tables.append(table)
        unused.append((str(path), others))
    ends = list(accumulate(table.num_rows for table in tables))

    def place_of(position: int) -> str:
        number = bisect_right(ends, position)
        return _place(files[number], position - (ends[number] - tables[number].num_rows))

    notes = tuple(f"{note}: {COUNTED_ALONE}" for note in unused_notes(unused, users=True))
    return SearchOutputs(pa.concat_tables(tables), RowsOrigin(place_of, notes))


def _refuse_repeated_files(paths: Sequence[Path]) -> None:
    """Refuse a file under two names, and a copy: seeds are random, so that equal files are of the same people."""
    statuses = [check_file(path) for path in paths]
    sizes = Counter(status.st_size for status in statuses)
    first: dict[object, Path] = {}
    for path, status in zip(paths, statuses, strict=True):
        marks: list[object] = [(status.st_dev, status.st_ino)]
        if sizes[status.st_size] > 1:
            marks.append(file_digest(path))
        other = next((first[mark] for mark in marks if mark in first), None)
        if other is not None:
            is_copy = marks[0] not in first
            raise refusal(
                "same-content" if is_copy else "named-twice",
                "two files contain exactly the same bytes" if is_copy else "the same input is there twice",
                where="hubbub discover",
                got=", ".join(dict.fromkeys([str(other), str(path)])),
                expected="each file once: its people would be counted several times",
                remedy="leave one of them out, or name the file that was meant",
            )
        first.update(dict.fromkeys(marks, path))


def _place(path: Path, row: int) -> str:
    """Return where a row of a file is; the place of a line is looked up only when it is told."""
    if path.suffix.lower() != ".csv":
        return f"{path}, row {row + 1}"
    with path.open(encoding="latin-1") as file:  # the header is the first of the lines that are not empty
        filled = (line for line, text in enumerate(file, 1) if text != "\n")
        return f"{path}, line {_item(filled, row + 1)}"


def _item(lines: Iterator[int], number: int) -> int:
    return next(line for place, line in enumerate(lines) if place == number)


def _read_outputs(path: Path) -> tuple[pa.Table, list[str]]:
    """Return the two columns of a file, and the names of the others."""
    import pyarrow as pa

    readers = {".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix.lower() not in readers:
        raise refusal(
            "unknown-format",
            "a file of another format",
            where=str(path),
            got=path.suffix or "no ending",
            expected="a file that ends in .csv or .parquet, with the columns round and output",
            remedy="write the reports as CSV or Parquet",
        )
    try:
        table = readers[path.suffix.lower()](path)
        names = table.column_names
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise refusal(
                "no-column",
                f"there is no column {listed(missing)}",
                where=str(path),
                got=shorten(names),
                expected="columns round and output (seed:bucket)",
                remedy=renaming(names, missing, "collect what WordClient.privatize returns"),
            )
        _refuse_repeated_columns(path, names)
        columns = [_whole_rounds(path, table["round"]), table["output"].cast(pa.string())]
        return pa.table(columns, names=list(COLUMNS)), [name for name in names if name not in COLUMNS]
    except pa.ArrowException as error:
        raise refusal(
            "corrupt-file",
            "the file is not a table of reports",
            where=str(path),
            got=shorten(str(error)),
            expected="whole numbers in the column round, and texts in the column output",
            remedy="write one row for each person: what WordClient.privatize returns",
        ) from None
    except OSError as error:
        raise not_readable(path, error) from None


def _refuse_repeated_columns(path: Path, names: list[str]) -> None:
    repeated = next((name for name in COLUMNS if names.count(name) > 1), None)
    if repeated is not None:
        raise refusal(
            "repeated-column",
            f"there are several columns {repeated}",
            where=str(path),
            got=shorten(names),
            expected=f"one column {repeated}",
            remedy="keep one of them under that name, and rename the others",
        )


def _whole_rounds(path: Path, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return rounds as numbers, empty ones included; a text that is none is told with its row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return column.cast(pa.int64())
    texts = pc.utf8_trim_whitespace(column)
    place = pc.index(pc.fill_null(pc.match_substring_regex(texts, "^[+-]?[0-9]{1,18}$"), True), False).as_py()
    if place >= 0:
        raise refusal(
            "not-a-number",
            "the round is not a whole number",
            where=f"{_place(path, place)}, column round",
            got=shorten(column[place].as_py()),
            expected="the number of a round, from 1",
            remedy="write one row for each person: what WordClient.privatize returns",
        )
    return pc.replace_substring(texts, "+", "").cast(pa.int64())


def _read_csv(path: Path) -> pa.Table:
    from pyarrow import csv

    texts = csv.ConvertOptions(
        column_types={"round": "string", "output": "string"}, strings_can_be_null=True, null_values=[""]
    )
    return csv.read_csv(path, convert_options=texts)


def _read_parquet(path: Path) -> pa.Table:
    from pyarrow import parquet

    return parquet.ParquetFile(path).read()


def _no_search(path: str | Path, what: str, got: str, remedy: str = "write search.to_json() to a file") -> StudyError:
    return StudyError(what, where=str(path), got=got, expected=FORM, remedy=remedy)
