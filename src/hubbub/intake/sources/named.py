"""What a source may be: a file, a folder, a pattern, the address of a table in a database, a table in memory."""

from __future__ import annotations

import glob
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from hubbub.errors import shorten
from hubbub.intake.causes import refusal
from hubbub.intake.sources import columnar, delimited, jsonlines
from hubbub.intake.sources.columnar import Arrow, Parquet
from hubbub.intake.sources.database import is_address, open_address
from hubbub.intake.sources.delimited import Delimited
from hubbub.intake.sources.files import File
from hubbub.intake.sources.frame import Frame, is_frame
from hubbub.intake.sources.jsonlines import JsonLines
from hubbub.intake.sources.packing import is_packed
from hubbub.intake.sources.rows import Source
from hubbub.intake.sources.text import COMPRESSED, check_file
from hubbub.intake.stamps import ENDING as STAMP
from hubbub.intake.study import Study
from hubbub.reports.gather import no_reports

FORMATS = [*delimited.ENDINGS, *columnar.PARQUET, *columnar.ARROW, *jsonlines.ENDINGS]
EXPECTED = f"one of {', '.join(FORMATS)}; texts also with .gz or .zst"


def sources_of(given: object, study: Study) -> list[Source]:
    """Return the sources that an argument names, each once."""
    several = isinstance(given, Sequence | Iterator) and not isinstance(given, str | bytes) and not is_frame(given)
    listed: list[object] = list(given) if several else [given]  # type: ignore[call-overload]
    if not listed:
        raise no_reports("read_reports(source)")
    found = [source for one in listed for source in _named(one, study)]
    _refuse_twice(found)
    return found


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
    """Refuse sources that would count again: the same one by another name, or the same bytes in another file."""
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
    sizes: dict[int, list[File]] = defaultdict(list)
    for source in sources:
        if isinstance(source, File):
            sizes[source.weight()].append(source)
    for candidates in sizes.values():
        digests: dict[str, File] = {}
        for file in candidates if len(candidates) > 1 else []:
            twin = digests.setdefault(file.digest(), file)
            if twin is not file:
                raise refusal(
                    "same-content",
                    "two files hold exactly the same bytes",
                    where=f"{twin.name}, {file.name}",
                    got=f"{file.weight():,} bytes, all the same",
                    expected="each report once: rows of a copy would count again",
                    remedy="leave the copy out; if these are different users who sent the same, put them in one file",
                )
