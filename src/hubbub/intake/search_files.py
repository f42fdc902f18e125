"""Files of a search for words: its settings, and the table of what devices sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.client import MAX_STUDY_BYTES, ClientError, read_file
from hubbub.core.errors import MechanismError, StudyError, restated, shorten
from hubbub.core.text import listed, renaming
from hubbub.discovery import PrefixSearch
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.file_source import check_file, not_readable

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("round", "output")
FORM = "a JSON file with the settings of a search, as PrefixSearch.to_json() returns them"
REQUIRED = ("alphabet", "length", "epsilon")


def read_search(path: str | Path) -> PrefixSearch:
    """Return the search that a file describes."""
    try:
        content = read_file(path, MAX_STUDY_BYTES, "search file", "JSON", "write search.to_json() to a file")
        settings = json.loads(content)
    except ClientError as error:
        raise restated(error, StudyError) from None
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


def read_search_outputs(paths: Sequence[str | Path]) -> pa.Table:
    """Return the columns `round` and `output` of CSV and Parquet files, one below the other."""
    import pyarrow as pa

    return pa.concat_tables([_read_outputs(Path(path)) for path in paths])


def _read_outputs(path: Path) -> pa.Table:
    import pyarrow as pa

    check_file(path)
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
        missing = [name for name in COLUMNS if name not in table.column_names]
        if missing:
            raise refusal(
                "no-column",
                f"there is no column {listed(missing)}",
                where=str(path),
                got=shorten(table.column_names),
                expected="columns round and output (seed:bucket)",
                remedy=renaming(table.column_names, missing, "collect what WordClient.privatize returns"),
            )
        types = pa.schema([("round", pa.int64()), ("output", pa.string())])
        return table.select(COLUMNS).cast(types)
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


def _read_csv(path: Path) -> pa.Table:
    from pyarrow import csv

    texts = csv.ConvertOptions(column_types={"round": "int64", "output": "string"}, strings_can_be_null=True)
    return csv.read_csv(path, convert_options=texts)


def _read_parquet(path: Path) -> pa.Table:
    from pyarrow import parquet

    return parquet.ParquetFile(path).read()


def _no_search(path: str | Path, what: str, got: str, remedy: str = "write search.to_json() to a file") -> StudyError:
    return StudyError(what, where=str(path), got=got, expected=FORM, remedy=remedy)
