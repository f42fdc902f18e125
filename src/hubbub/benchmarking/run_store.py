"""A folder that keeps the runs of a benchmark as JSON lines, so that a later call goes on where one ended.

``settings.json`` says what all runs share. ``runs-00001.jsonl`` and so on hold finished runs: each file is written
whole, once, and never again, so that a killed process loses the runs of the last seconds, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path

from hubbub.benchmarking.contenders import RunRow
from hubbub.core.errors import IntakeError, SettingError, shorten
from hubbub.core.files import write_file
from hubbub.core.locks import exclusive_lock
from hubbub.core.paths import write_error

SETTINGS, LOCK = "settings.json", "runs"
CHUNK = re.compile(r"runs-(\d{5,})\.jsonl")
BUSY = "wait for it to end, or keep the runs in another folder"
FIELDS = {field.name for field in fields(RunRow)}


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
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder, error) from None
        with exclusive_lock(folder / LOCK, BUSY):
            _check_settings(folder, settings)
            yield cls(folder)

    def rows(self) -> list[RunRow]:
        """Return all runs that are kept."""
        return [row for _, chunk in self._chunks() for row in _rows_of(chunk)]

    def add(self, rows: Sequence[RunRow]) -> None:
        """Keep finished runs."""
        if not rows:
            return
        self._last += 1
        lines = "".join(json.dumps(asdict(row), allow_nan=False, ensure_ascii=False) + "\n" for row in rows)
        write_file(self._folder / f"runs-{self._last:05}.jsonl", lines.encode(), replace=False)

    def _chunks(self) -> list[tuple[int, Path]]:
        found = [(CHUNK.fullmatch(path.name), path) for path in self._folder.iterdir()]
        return sorted((int(match[1]), path) for match, path in found if match)


def _folder(path: object) -> Path:
    if isinstance(path, str | Path) and str(path) and not Path(path).is_file():
        return Path(path)
    raise SettingError(
        "runs are kept in a folder",
        where="benchmark(path=)",
        got=f"the file {path}" if isinstance(path, str | Path) and str(path) else shorten(path),
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
    try:
        for line in chunk.read_text(encoding="utf-8").splitlines():
            kept = json.loads(line)
            yield RunRow(**{name: kept[name] for name in FIELDS})
    except (OSError, ValueError, TypeError, KeyError) as error:
        remedy = f"remove {chunk.name}: what it held is simulated again, and comes out the same"
        raise _unreadable(chunk, f"{type(error).__name__}: {error}", remedy) from None


def _unreadable(path: Path, reason: str, remedy: str) -> IntakeError:
    return IntakeError(
        "the runs in this folder cannot be read",
        where=str(path),
        got=reason,
        expected="the file as a benchmark wrote it",
        remedy=remedy,
        code="damaged",
    )
