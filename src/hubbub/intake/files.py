"""What all files of reports have in common."""

from __future__ import annotations

import os
from pathlib import Path

from hubbub.intake.causes import refusal
from hubbub.intake.rows import Source
from hubbub.intake.text import check_file, file_digest


class File(Source):
    """A file, which must not change while it is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self._found = check_file(path)

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes, as they lie on the disk."""
        return file_digest(self.path)

    @property
    def identity(self) -> object:
        """The file behind all links."""
        return self._found.st_dev, self._found.st_ino

    def weight(self) -> int:
        """Return the size of the file."""
        return self._found.st_size

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since it was first looked at."""
        now = check_file(self.path)
        if _state(now) != _state(self._found):
            raise refusal(
                "changed-meanwhile",
                "the file changed while it was read",
                where=self.name,
                got=f"{now.st_size:,} bytes, {self._found.st_size:,} at the start",
                expected="a file that nobody writes to any more",
                remedy="wait until it is complete, then collect it",
            )


def _state(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
