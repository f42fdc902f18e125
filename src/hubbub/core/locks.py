"""One writer at a time: locks of the operating system, which end with the process that holds them.

The lock is taken on a separate file by `filelock.lock_descriptor`: flock on Unix, LockFileEx on Windows. This is the
only function of that library in use. Its `FileLock` leaves the file behind on some systems and versions, remembers
locks by path and thread, and falls back to a file that merely exists where the system has no locks: a killed process
would leave that file behind, and it would look like a lock.

Windows locks the first byte of the file, and other processes cannot read that byte meanwhile. The name of the
process that holds the lock therefore starts at the second byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from hubbub.core.errors import IntakeError
from hubbub.core.paths import check_replaceable, hidden_neighbour, write_error

WAIT_REMEDY = "wait for it to end, or write under another name"
OPEN_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
OWNER_OFFSET = 1  # the byte at which the name of the process starts
REMOVES_OPEN_FILES = os.name != "nt"


@contextmanager
def exclusive_lock(path: Path, remedy: str = WAIT_REMEDY) -> Iterator[None]:
    """Hold the lock on writing `path`; if another process holds it, raise an error that names it. Never waits.

    What a killed process left beside `path` is removed.
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
    """Lock an open file; False if another process holds the lock."""
    return bool(lock_descriptor(handle, blocking=False))


def has_name(lock: Path, handle: int) -> bool:
    """Whether an open file still has that name: a lock on a file without a name keeps nobody out."""
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except FileNotFoundError:
        return False


def remove_lock(lock: Path, handle: int) -> None:
    """Remove the file of a lock that is held, and release the lock.

    Where open files can be removed, the file is removed first: otherwise another process might lock it in between, and
    then lose it. Windows does not remove open files, so that there it must be closed first.
    """
    if not REMOVES_OPEN_FILES:
        os.close(handle)
    with suppress(OSError):
        lock.unlink()
    if REMOVES_OPEN_FILES:
        os.close(handle)


def _locked(lock: Path, path: Path, remedy: str) -> int:
    """Return the open file that holds the lock."""
    while True:
        try:
            handle = os.open(lock, OPEN_FLAGS | os.O_CREAT, 0o666)
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
        os.close(handle)  # its last holder has removed the file that we opened: try again with a new one


def _name_owner(handle: int) -> None:
    with suppress(OSError):  # the name only improves a message
        os.lseek(handle, 0, os.SEEK_SET)
        os.write(handle, f"\n{os.getpid()}\n".encode())


def _owner(handle: int) -> str:
    """Return the process that holds a lock; an empty text if it has not written its name yet."""
    try:
        os.lseek(handle, OWNER_OFFSET, os.SEEK_SET)
        text = os.read(handle, 20).decode(errors="replace")
    except OSError:
        return ""
    return text.partition("\n")[0]  # a killed process may have left a longer name


def _held(path: Path, owner: str, remedy: str) -> IntakeError:
    return IntakeError(
        "another process is writing this file",
        where=str(path),
        got=f"process {owner}" if owner else "a process that has just begun",
        expected="one writer at a time",
        remedy=remedy,
        code="locked",
    )
