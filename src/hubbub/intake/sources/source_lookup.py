"""What a source may be: a file, a folder, a pattern, the address of a table in a database, a table in memory."""

from __future__ import annotations

import glob
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from hubbub.core.errors import IntakeError, SettingError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources import csv_reader as delimited
from hubbub.intake.sources import json_lines as jsonlines
from hubbub.intake.sources import parquet_arrow as columnar
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.column_names import OWN_NAMES, ColumnNames
from hubbub.intake.sources.csv_reader import Delimited
from hubbub.intake.sources.database import is_address, open_address
from hubbub.intake.sources.file_source import File
from hubbub.intake.sources.frames import Frame, is_frame
from hubbub.intake.sources.json_lines import JsonLines
from hubbub.intake.sources.packed_columns import is_packed
from hubbub.intake.sources.parquet_arrow import Arrow, Parquet
from hubbub.intake.sources.text_files import COMPRESSED, check_file
from hubbub.intake.stamps import ENDING as STAMP
from hubbub.intake.study import Study
from hubbub.reports.validation import no_reports

FORMATS = [*delimited.ENDINGS, *columnar.PARQUET, *columnar.ARROW, *jsonlines.ENDINGS]
EQUAL_FILES = ("skip", "count")
EXPECTED = f"one of {', '.join(FORMATS)}; texts also with .gz or .zst"


def sources_of(given: object, study: Study, columns: ColumnNames = OWN_NAMES) -> list[Source]:
    """Return the sources that an argument names, each once; `columns` says what their columns are called."""
    several = isinstance(given, Sequence | Iterator) and not isinstance(given, str | bytes) and not is_frame(given)
    listed: list[object] = list(given) if several else [given]  # type: ignore[call-overload]
    if not listed:
        raise no_reports("read_reports(source)")
    sources = [source for entry in listed for source in _named(entry, study)]
    for source in sources:
        source.columns = columns
    _refuse_twice(sources)
    return sources


def _named(given: object, study: Study) -> list[Source]:
    if is_frame(given):
        return [Frame(given)]
    if isinstance(given, Path):
        given = str(given)
    if not isinstance(given, str):
        raise refusal(
            "not-a-source",
            "not a source of reports",
            where="read_reports(source)",
            got=shorten(given),
            expected="a path, the address of a table, a table (pandas, polars, pyarrow), or a list of these",
            remedy="for outputs in memory there is hubbub.Reports.from_outputs(mechanism, outputs)",
        )
    if is_address(given):
        return [open_address(given)]
    path = Path(given)
    if not _exists(path) and glob.has_magic(given):
        names = sorted(name for name in glob.glob(given, recursive=True) if _is_read(Path(name)))  # noqa: PTH207
        return [_file(Path(name), study) for name in _some(names, given)]
    if _exists(path) and path.is_dir():
        entries = sorted(entry for entry in path.iterdir() if _is_listed(entry))
        return [_file(Path(name), study) for name in _some([str(entry) for entry in entries], given)]
    return [_file(path, study)]


def _is_read(path: Path) -> bool:
    """Whether a file that fits a pattern is meant: folders and stamps are not."""
    return not path.name.endswith(STAMP) and not path.is_dir()


def _is_listed(entry: Path) -> bool:
    """Whether an entry of a folder is meant: hidden ones and stamps are not."""
    return not entry.name.startswith((".", "_")) and not entry.name.endswith(STAMP)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _some(names: list[str], given: str) -> list[str]:
    if not names:
        raise refusal(
            "no-files",
            "there are no files",
            where=given,
            got="nothing in the folder" if Path(given).is_dir() else "no file that fits the pattern",
            expected="at least one file of reports",
            remedy=f"check the path; names that start with . or _ are left out, and those that end in {STAMP}",
        )
    return names


def _file(path: Path, study: Study) -> Source:
    check_file(path)
    if path.name.lower().endswith(".tally.parquet"):
        raise refusal(
            "not-a-source",
            "a tally is not a file of reports",
            where=str(path),
            got="reports that were counted already",
            expected="reports as they came",
            remedy="add tallies up with hubbub merge; put a tally in another folder than the reports",
        )
    ending = ending_of(path)
    if ending in delimited.ENDINGS:
        packed = any(is_packed(mechanism) for mechanism in study.mechanisms.values())
        return Delimited(path, delimited.ENDINGS[ending], packed=packed)
    if ending in jsonlines.ENDINGS:
        return JsonLines(path)
    if ending in columnar.PARQUET:
        return Parquet(path)
    if ending in columnar.ARROW:
        return Arrow(path)
    raise refusal(
        "unknown-format",
        "the file's ending is not known",
        where=str(path),
        got="".join(path.suffixes[-2:]) or "no ending",
        expected=EXPECTED,
        remedy="rename the file, or convert it",
    )


def ending_of(path: Path) -> str:
    """Return the ending that says how a file is written, in small letters; that of a compressor is left out."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    ending = endings[-1] if endings else ""
    if ending in COMPRESSED:
        ending = endings[0] if len(endings) > 1 else ""
        if ending in (*columnar.PARQUET, *columnar.ARROW):
            ending = ""  # they are compressed inside
    return ending


def _refuse_twice(sources: list[Source]) -> None:
    """Refuse a source that is named twice, perhaps under two names."""
    seen: dict[object, list[Source]] = defaultdict(list)
    for source in sources:
        seen[source.identity].append(source)
    for same in seen.values():
        if len(same) > 1:
            raise refusal(
                "named-twice",
                "a file is named several times",
                where=", ".join(dict.fromkeys(source.name for source in same)),
                got=f"{len(same)} times",
                expected="each file once: its rows would count again and again",
                remedy="name it once",
            )


def check_equal_files(equal_files: object) -> None:
    """Refuse an answer that is none."""
    if equal_files not in (None, *EQUAL_FILES):
        raise SettingError(
            "equal_files must be skip or count",
            where="--equal-files",
            got=shorten(equal_files),
            expected="skip where files with the same bytes are copies, count where different people sent the same",
            remedy="leave it out to be asked where there are any",
        )


def without_copies(sources: list[Source], equal_files: str | None = None) -> tuple[list[Source], list[str]]:
    """Return the sources to read, and the names of copies that are left out.

    Of files with exactly the same bytes, `equal_files` says whether they are copies (``"skip"``: the first is read) or
    what different people sent (``"count"``: all are read); without it they are refused.
    """
    check_equal_files(equal_files)
    if equal_files == "count":
        return sources, []
    skipped: list[str] = []
    sizes = Counter(source.weight() for source in sources if isinstance(source, File))
    digests: dict[str, File] = {}
    kept: list[Source] = []
    for source in sources:
        if isinstance(source, File) and sizes[source.weight()] > 1:
            twin = digests.setdefault(source.digest(), source)
            if twin is not source:
                if equal_files is None:
                    raise same_content(
                        source, f"{twin.name}, {source.name}", f"{source.weight():,} bytes, all the same"
                    )
                skipped.append(source.name)
                continue
        kept.append(source)
    return kept, skipped


def same_content(source: File, where: str, got: str) -> IntakeError:
    """Return the error for a file that may be a copy of another one: its bytes alone do not tell."""
    return refusal(
        "same-content",
        "two files hold exactly the same bytes",
        where=where,
        got=got,
        expected="each report once: rows of a copy would count again, and people who sent the same must not be lost",
        remedy=f"say which is meant: --equal-files skip if {source.path.name} is a copy, --equal-files count if "
        "different people sent the same",
    )
