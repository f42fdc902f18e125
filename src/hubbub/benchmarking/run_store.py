"""A folder that keeps the runs of a benchmark as JSON lines, so that a later call goes on where one ended.

``settings.json`` says what all runs share. ``runs-00001.jsonl`` and so on hold finished runs: each file is written
whole, once, and never again, so that a killed process loses the runs of the last seconds, and nothing else.
"""

from __future__ import annotations

import errno
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from hubbub.benchmarking.contenders import RunRow
from hubbub.core.errors import IntakeError, SettingError, shorten
from hubbub.core.files import write_file
from hubbub.core.locks import exclusive_lock
from hubbub.core.paths import write_error

SETTINGS, LOCK = "settings.json", "runs"
CHUNK = re.compile(r"runs-(\d{5,})\.jsonl")
BUSY = "wait for it to end, or keep the runs in another folder"
FIELDS = {field.name for field in fields(RunRow)}
NO_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


class RunStore:
    """The runs in one folder, which belongs to this process while it is open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last = max((number for number, _ in self._chunks()), default=0)

    @classmethod
    @contextmanager
    def opened(cls, path: object, settings: Mapping[str, object]) -> Iterator[RunStore]:
        """Open a folder, made if it is not there; refuse one with runs of other settings."""
        folder = _folder(path)
        with exclusive_lock(folder / LOCK, BUSY):
            _check_settings(folder, settings)
            yield cls(folder)

    def rows(self) -> list[RunRow]:
        """Return all runs that are kept; what failed is no run, and tried again."""
        return [row for _, chunk in self._chunks() for row in _rows_of(chunk) if not row.failure]

    def add(self, rows: Sequence[RunRow]) -> None:
        """Keep finished runs, but for those that failed."""
        kept = [row for row in rows if not row.failure]
        if not kept:
            return
        self._last += 1
        lines = "".join(json.dumps(asdict(row), allow_nan=False, ensure_ascii=False) + "\n" for row in kept)
        write_file(self._folder / f"runs-{self._last:05}.jsonl", lines.encode(), replace=False)

    def _chunks(self) -> list[tuple[int, Path]]:
        found = [(CHUNK.fullmatch(path.name), path) for path in self._folder.iterdir()]
        return sorted((int(match[1]), path) for match, path in found if match)


def _folder(path: object) -> Path:
    """Return the folder of that name, which is there from now on."""
    if not isinstance(path, str | Path) or not str(path):
        raise _no_folder(shorten(path))
    folder = Path(path)
    try:
        if folder.is_file():
            raise _no_folder(f"the file {path}")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in NO_NAME:
            raise _no_folder(f"{shorten(str(path))}, {error.strerror}") from None
        raise write_error(folder, error) from None
    except SettingError:
        raise
    except ValueError as error:  # a NUL byte, or a letter that no file can have in its name
        raise _no_folder(f"{shorten(str(path))}, {error}") from None
    return folder


def _no_folder(got: str) -> SettingError:
    return SettingError(
        "runs are kept in a folder",
        where="benchmark(path=)",
        got=got,
        expected="the name of a folder, which is made if it does not exist",
        remedy="choose another name, or leave path out to keep nothing",
    )


def _check_settings(folder: Path, settings: Mapping[str, object]) -> None:
    place = folder / SETTINGS
    if not place.exists():
        if any(folder.iterdir()) and not all(path.name.startswith(".") for path in folder.iterdir()):
            raise SettingError(
                "this folder holds something else",
                where="benchmark(path=)",
                got=str(folder),
                expected="a new or empty folder, or one that a benchmark made",
                remedy="choose another folder",
            )
        write_file(place, (json.dumps(settings, indent=2) + "\n").encode(), remedy=BUSY)
        return
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))
        differing = [name for name in settings if kept[name] != settings[name]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _unreadable(place, str(error), "keep the runs in another folder") from None
    if differing:
        raise SettingError(
            f"the runs in this folder have another {differing[0]}",
            where="benchmark(path=)",
            got=f"{differing[0]} {settings[differing[0]]}",
            expected=f"{differing[0]} {kept[differing[0]]}, as in {place}",
            remedy="keep these runs in another folder; added mechanisms, methods, truths, users and runs may share one",
        )


def _rows_of(chunk: Path) -> Iterator[RunRow]:
    remedy = f"remove {chunk.name}: what it held is simulated again, and comes out the same"
    try:
        lines = chunk.read_bytes().splitlines()
    except OSError as error:
        raise _unreadable(chunk, f"{type(error).__name__}: {error}", remedy) from None
    for number, line in enumerate(lines, start=1):
        try:
            yield _row(json.loads(line))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            place = f"{chunk}, line {number}"
            raise _unreadable(place, f"{type(error).__name__}: {shorten(str(error), 200)}", remedy) from None


def _row(kept: Any) -> RunRow:
    """Return a row that was kept; a `ValueError` names the field that no benchmark would have written."""
    row = RunRow(**{name: kept[name] for name in FIELDS})
    is_right = {name: type(getattr(row, name)) is str for name in ("mechanism", "method", "truth", "failure")}
    is_right |= {"users": _is_count(row.users, 1), "run": _is_count(row.run, 0)}
    if not row.failure:
        is_right |= {"tv": _is_size(row.tv), "seconds": _is_size(row.seconds)}
        is_right |= {"emd": row.emd is None or _is_size(row.emd)}
    for name, right in is_right.items():
        if not right:
            raise ValueError(f"{name} is {getattr(row, name)!r}")
    return row


def _is_count(number: object, least: int) -> bool:
    return type(number) is int and number >= least


def _is_size(number: object) -> bool:
    return type(number) in (int, float) and 0.0 <= number < math.inf  # type: ignore[operator]


def _unreadable(place: Path | str, reason: str, remedy: str) -> IntakeError:
    return IntakeError(
        "the runs in this folder cannot be read",
        where=str(place),
        got=reason,
        expected="the file as a benchmark wrote it",
        remedy=remedy,
        code="damaged",
    )
