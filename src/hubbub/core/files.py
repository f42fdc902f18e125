"""Atomic writing of files: to a hidden neighbour, made durable, then renamed.

All of hubbub's files are written here. After a crash, a full disk or an interrupt there is the old file or
the new one, never a part of it. The next process that writes the file removes what a killed one left beside it.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hubbub.core.errors import IntakeError
from hubbub.core.locks import WAIT_REMEDY, exclusive_lock
from hubbub.core.paths import hidden_neighbour, real_path, write_error

RETRY_REMEDY = "check the disk, then run the same command again"
NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class NameTakenError(FileExistsError):
    """Something has the name of a file that must be new."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def write_file(
    path: Path, content: bytes, *, replace: bool = True, private: bool = False, remedy: str = WAIT_REMEDY
) -> None:
    """Write a whole file under its lock; where another process is writing it, `remedy` says what to do.

    With ``replace=False`` an existing file is never replaced: that is a `NameTakenError`. A `private` file can be read
    by its owner alone, where the system can say so.
    """
    if not replace and os.path.lexists(path):
        raise NameTakenError(path)
    with exclusive_lock(path, remedy), atomic_write(path, replace=replace) as file:
        if private and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), stat.S_IRUSR | stat.S_IWUSR)
        file.write(content)


@contextmanager
def atomic_write(path: Path, *, replace: bool = True, keep: Callable[[], bool] = lambda: True) -> Iterator[IO[bytes]]:
    """Write a file that appears at `path` at the end, whole and durable. Call this under its `exclusive_lock`.

    The bytes are on the disk before the file is renamed, and the name is on the disk before this returns. If anything
    fails, the old file stays and nothing is left beside it. With ``replace=False`` a file that exists already, or
    appears meanwhile, stays too: that is a `NameTakenError`. If `keep` returns False at the end, nothing is written.
    """
    part, real = hidden_neighbour(path, "part"), real_path(path)
    try:
        with part.open("xb") as file:  # never through a link that somebody put there
            _keep_mode(real, file)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not keep():
            part.unlink()
        elif replace:
            part.replace(real)
        else:
            _add(part, path)
    except OSError as error:
        _discard(part)
        if isinstance(error, NameTakenError):
            raise
        raise write_error(path, error) from None
    except BaseException:
        _discard(part)
        raise
    sync_folder(
        path, RETRY_REMEDY if replace else f"check the disk; remove {path.name} before you run the same command again"
    )


class KeptOpen(io.RawIOBase):
    """A file that Arrow may write to and close: it stays open until its bytes are on the disk."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: Any) -> int:
        """Write some bytes."""
        return self._file.write(data)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._file.tell()

    def writable(self) -> bool:
        """Yes."""
        return True


def sync_folder(path: Path, remedy: str = RETRY_REMEDY) -> None:
    """Make the name of a file durable, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows opens no folders
        return
    try:
        handle = os.open(real_path(path).parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot
            return
        raise IntakeError(
            "the file is written, but the disk does not confirm that it is durable",
            where=str(path),
            got=error.strerror or str(error),
            expected="a folder that can be made durable (fsync)",
            remedy=remedy,
            code="not-written",
        ) from None


def _add(part: Path, path: Path) -> None:
    """Give a finished file its name, unless something has that name.

    Except on Windows, a rename would silently replace a file that appeared meanwhile; a hard link does not.
    """
    if os.path.lexists(path):
        raise NameTakenError(path)
    real = real_path(path)
    try:
        if os.name == "nt":
            part.rename(real)
        else:
            os.link(part, real)
            _discard(part)
    except FileExistsError:
        raise NameTakenError(path) from None
    except OSError as error:
        if os.name == "nt" or error.errno not in NO_HARD_LINKS:
            raise
        part.replace(real)  # our lock keeps other runs away: without hard links nothing more can be done


def _discard(part: Path) -> None:
    with suppress(OSError):
        part.unlink()


def _keep_mode(real: Path, file: IO[bytes]) -> None:
    """Give a new file the permissions of the old one, so that nobody else can read it."""
    if not hasattr(os, "fchmod"):
        return
    try:
        mode = stat.S_IMODE(real.stat().st_mode)
    except FileNotFoundError:
        return
    with suppress(PermissionError):  # on file systems that have none
        os.fchmod(file.fileno(), mode)
