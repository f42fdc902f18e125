"""One writer at a time: locks of the operating system, which end with the process that holds them.

The lock is taken on a file of its own, by `filelock.lock_descriptor`: flock on Unix, LockFileEx on Windows. Of that
library we use this function alone. Its `FileLock` leaves the file behind on some systems and versions, remembers locks
by path and thread, and falls back to a file that merely exists where the system has no locks: a killed process would
leave that behind, and nobody could tell.

Windows locks the first byte of the file, and nobody else can read that byte meanwhile. The process that holds the
lock is therefore named from the second byte on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from hubbub.core.errors import IntakeError
from hubbub.core.paths import check_replaceable, hidden_neighbour, write_error

WAIT = "wait for it to end, or write under another name"
OPEN = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
OWNER = 1  # the byte from which on the process is named
REMOVES_OPEN_FILES = os.name != "nt"


@contextmanager
def exclusive_lock(path: Path, remedy: str = WAIT) -> Iterator[None]:
    """Be the only one who writes `path`, or say which process does, and what to do about it. Never waits.

    What a killed process had begun to write beside `path` is removed.
    """
    check_replaceable(path)
    lock = hidden_neighbour(path, "lock")
    handle = _locked(lock, path, remedy)
    try:
        with suppress(OSError):
            hidden_neighbour(path, "part").unlink()
        yield
    finally:
        remove_lock(lock, handle)


def take_lock(handle: int) -> bool:
    """Lock an open file; False where somebody else holds the lock."""
    return bool(lock_descriptor(handle, blocking=False))


def has_name(lock: Path, handle: int) -> bool:
    """Whether an open file is still the one of that name: a lock on a file without a name keeps nobody out."""
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except FileNotFoundError:
        return False


def remove_lock(lock: Path, handle: int) -> None:
    """Remove the file of a lock that is held, and let go of it.

    Where open files can be removed, the name goes first: otherwise somebody might lock the file in between, and lose
    its name to us. Windows does not remove a file that anybody has open, so that there it must be closed first.
    """
    if REMOVES_OPEN_FILES:
        _remove(lock)
        os.close(handle)
    else:
        os.close(handle)
        _remove(lock)


def _remove(lock: Path) -> None:
    with suppress(OSError):
        lock.unlink()


def _locked(lock: Path, path: Path, remedy: str) -> int:
    """Return the open file that holds the lock."""
    while True:
        try:
            handle = os.open(lock, OPEN | os.O_CREAT, 0o666)
        except OSError as error:
            raise write_error(path, error) from None
        try:
            if not take_lock(handle):
                raise _held(path, _owner(handle), remedy)
            if has_name(lock, handle):
                _name_owner(handle)
                return handle
        except OSError as error:
            os.close(handle)
            raise write_error(path, error) from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # whoever had the lock has removed the file that we opened: once more, with a new one


def _name_owner(handle: int) -> None:
    with suppress(OSError):  # who it is only makes a message better
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, f"\n{os.getpid()}\n".encode())


def _owner(handle: int) -> str:
    """Return the process that holds a lock; nothing where it has not said so yet."""
    try:
        os.lseek(handle, OWNER, os.SEEK_SET)
        text = os.read(handle, 20).decode(errors="replace")
    except OSError:
        return ""
    return text.partition("\n")[0]  # below may be the rest of a killed one's


def _held(path: Path, owner: str, remedy: str) -> IntakeError:
    return IntakeError(
        "another process is writing this file",
        where=str(path),
        got=f"process {owner}" if owner else "a process that has just begun",
        expected="one writer at a time",
        remedy=remedy,
        code="locked",
    )
