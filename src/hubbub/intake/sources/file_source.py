"""What all files of reports have in common."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.sources.text_files import check_file, file_digest
from hubbub.intake.stamps import read_neighbour


class File(Source):
    """A file, which must not change while it is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self._found = check_file(path)

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes, as they lie on the disk."""
        return file_digest(self.path)

    @property
    def place(self) -> str:
        """A digest of the file's full path: paths may say more than a tally should."""
        return hashlib.sha256(os.fsencode(os.path.realpath(self.path))).hexdigest()[:32]

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself."""
        return (self.path,)

    @property
    def identity(self) -> object:
        """The file behind all links."""
        return self._found.st_dev, self._found.st_ino

    def weight(self) -> int:
        """Return the size of the file."""
        return self._found.st_size

    def stamp(self) -> Mapping[str, str] | None:
        """Return the stamp that lies beside the file: a text has no place for it."""
        return read_neighbour(self.path)

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since it was first looked at."""
        now = check_file(self.path)
        if _state(now) != _state(self._found):
            raise self._changed(f"{now.st_size:,} bytes, {self._found.st_size:,} at the start")

    @property
    def content_state(self) -> tuple[int, int]:
        """What changes when somebody writes to the file: its size, and the time of the last change."""
        return self._found.st_size, self._found.st_mtime_ns

    def check_is(self, state: tuple[int, ...]) -> None:
        """Refuse a file that is another one than when a run began, perhaps on another machine."""
        if self.content_state != state:
            raise self._changed(f"{self._found.st_size:,} bytes, {state[0]:,} when the run began, or a later change")

    def _changed(self, got: str) -> IntakeError:
        return refusal(
            "changed-meanwhile",
            "the file changed while it was read",
            where=self.name,
            got=got,
            expected="a file that nobody writes to any more",
            remedy="wait until it is complete, then collect it",
        )


def _state(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
