"""Files that are whole or not there: written beside, made durable, then moved into place; one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hubbub.errors import IntakeError
from hubbub.intake.causes import refusal


@contextmanager
def replacing(path: Path, keep: Callable[[], bool] = lambda: True) -> Iterator[IO[bytes]]:
    """Write a file that takes the place of `path` at the end, at one stroke and for good.

    The bytes are on the disk before the name is theirs, and the name is on the disk before this returns: a crash at any
    moment leaves the old file or the new one. Whatever goes wrong, the old one stays and nothing is left beside it. If
    `keep` says so at the end, nothing is written after all.
    """
    part = _beside(path, "part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if keep():
            part.replace(path)
        else:
            part.unlink()
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise unwritten(path, error) from None
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _beside(path: Path, ending: str) -> Path:
    """Return the name of a hidden file in the same folder."""
    if not path.name or "\0" in str(path):
        raise unwritten(path, OSError(errno.EINVAL, "not the name of a file"))
    return path.with_name(f".{path.name}.{ending}")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def unwritten(path: Path, error: OSError) -> IntakeError:
    """Return the error for a file that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return refusal(
        "out-of-space" if full else "not-written",
        "the disk is full" if full else "the file cannot be written",
        where=str(path),
        got=error.strerror or str(error),
        expected="room for the whole file beside the old one" if full else "a path in a folder that exists",
        remedy="make room, then run the same command again: what was there before is untouched"
        if full
        else "check the folder and its permissions; what was there before is untouched",
    )


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Be the only one who writes `path`, or say who else does.

    The lock goes with the process, so that a killed one leaves none behind.
    """
    lock = _beside(path, "lock")
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise unwritten(path, error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 20, 0).decode(errors="replace").strip()
            os.close(handle)
            raise refusal(
                "locked",
                "another process is writing this tally",
                where=str(path),
                got=f"process {owner}" if owner else "a process that has just begun",
                expected="one writer at a time",
                remedy="wait for it to end, or collect into another tally and merge the two",
            ) from None
        try:  # whoever had the lock may have removed the file that we waited on
            same = os.fstat(handle).st_ino == lock.stat().st_ino
        except FileNotFoundError:
            same = False
        if same:
            break
        os.close(handle)
    try:
        with suppress(OSError):
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(handle)
