"""Files as sources: their identity, their digest, and errors of the operating system in five parts."""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Source
from hubbub.intake.stamps import read_neighbour

UNCHANGING = ("st_dev", "st_ino", "st_size", "st_mtime_ns")  # of a file that nothing writes to
PIECE_BYTES = 1 << 22  # read at a time for a digest
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}  # by the file's last extension


class FileSource(Source):
    """A file, which must not change while it is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)
        self._status = check_file(path)

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes, as they are on the disk."""
        return file_digest(self.path)

    @property
    def path_digest(self) -> str:
        """A digest of the full path: the path itself may reveal more than a tally should."""
        return hashlib.sha256(os.fsencode(os.path.realpath(self.path))).hexdigest()[:32]

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself."""
        return (self.path,)

    @property
    def identity(self) -> object:
        """The file behind all links."""
        return self._status.st_dev, self._status.st_ino

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._status.st_size

    @property
    def size_in_bytes(self) -> int:
        """The size of the file."""
        return self.size()

    def stamp(self) -> Mapping[str, str] | None:
        """Return the stamp in the file next to this one: a text has no room for it."""
        return read_neighbour(self.path)

    @property
    def content_state(self) -> tuple[int, int]:
        """What changes when the file is written to: its size, and the time of the last change."""
        return self._status.st_size, self._status.st_mtime_ns

    def check_unchanged(self) -> None:
        """Refuse a file that was written to since it was opened."""
        now, before = check_file(self.path), self._status
        if any(getattr(now, part) != getattr(before, part) for part in UNCHANGING):
            raise self._changed(f"{now.st_size:,} bytes, {self.size():,} at the start")

    def check_state(self, state: tuple[int, ...]) -> None:
        """Refuse a file that has changed since the run began, perhaps on another machine."""
        if self.content_state != state:
            raise self._changed(f"{self.size():,} bytes, {state[0]:,} when the run began, or a later change")

    def _changed(self, got: str) -> IntakeError:
        return refusal(
            "changed-meanwhile",
            "the file changed while it was read",
            where=self.name,
            got=got,
            expected="a file that nothing writes to",
            remedy="wait until the file is complete, then read it again",
        )

    def _set_done(self, read: int) -> None:
        self.done = read / max(1, self.size())


def check_file(path: Path) -> os.stat_result:
    """Return the status of a file; refuse anything but a regular file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise refusal(
            "no-such-file",
            "there is no such file of reports",
            where=str(path),
            got="nothing at that path",
            expected="a file of reports, a folder of such files, or a pattern such as 'day-*.csv'",
            remedy="check the path and its permissions",
        ) from None
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        raise not_readable(path, error) from None
    if not stat.S_ISREG(status.st_mode):
        raise refusal(
            "not-a-file",
            "not a regular file",
            where=str(path),
            got="a folder" if stat.S_ISDIR(status.st_mode) else "a device, a pipe or a socket",
            expected="a file of reports",
            remedy="write the rows to a file first: it is read twice, once to see whether it was counted before",
        )
    return status


def file_digest(path: Path, size: int | None = None) -> str:
    """Return the SHA-256 of a file's bytes, or of the first `size` of them."""
    with file_errors(path), path.open("rb") as file:
        if size is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        while size > 0 and (piece := file.read(min(size, PIECE_BYTES))):
            digest.update(piece)
            size -= len(piece)
        return digest.hexdigest()


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Raise what goes wrong while a file is read as an IntakeError."""
    try:
        yield
    except (EOFError, zlib.error, OSError) as error:
        compression = COMPRESSIONS.get(path.suffix.lower())
        if isinstance(error, OSError) and (error.errno is not None or compression is None):  # the system's
            raise not_readable(path, error) from None
        raise refusal(
            "corrupt-compression",
            "the compressed file is damaged or truncated",
            where=str(path),
            got=str(error).partition("\n")[0],
            expected="a file" if compression is None else f"a complete {compression} file",
            remedy="copy it again, and compare its size with the original's",
        ) from None


def not_readable(path: Path, error: OSError | ValueError) -> IntakeError:
    """Return the error for a file that the operating system does not let us read."""
    return refusal(
        "not-readable",
        "the file cannot be read",
        where=str(path),
        got=getattr(error, "strerror", None) or str(error),
        expected="a file that this program may read",
        remedy="check the path, its permissions and the disk",
    )
