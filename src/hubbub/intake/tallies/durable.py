"""Files that are whole or not there: written beside, made durable, then moved into place; one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hubbub.errors import IntakeError
from hubbub.intake.causes import refusal

UNTOUCHED = "what was there before is untouched"
WAIT = "wait for it to end, or collect into another tally and merge the two"


@contextmanager
def replacing(path: Path, keep: Callable[[], bool] = lambda: True) -> Iterator[IO[bytes]]:
    """Write a file that takes the place of `path` at the end, at one stroke and for good.

    The bytes are on the disk before the name is theirs, and the name is on the disk before this returns: a crash at any
    moment leaves the old file or the new one. Whatever goes wrong, the old one stays and nothing is left beside it. If
    `keep` says so at the end, nothing is written after all. To be called by who is `alone` with the path.
    """
    part, real = _beside(path, "part"), _real(path)
    try:
        with part.open("xb") as file:  # never through a link that somebody put there
            _keep_mode(real, file)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if keep():
            part.replace(real)
        else:
            part.unlink()
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise unwritten(path, error) from None
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    sync_folder(path)


class Quiet:
    """A file that Arrow writes to and leaves open: it is closed by who opened it, once its bytes are on the disk."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        """Write some bytes."""
        return self._file.write(data)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._file.tell()

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Flush, and leave the file open."""
        self.flush()

    def readable(self) -> bool:
        """No."""
        return False

    def writable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """No."""
        return False


def sync_folder(path: Path) -> None:
    """Make the name of a file durable."""
    try:
        handle = os.open(_real(path).parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOTSUP):  # file systems without such a thing say so
            return
        raise refusal(
            "not-written",
            "the file is written, but the disk does not confirm that it will last",
            where=str(path),
            got=error.strerror or str(error),
            expected="a folder that can be made durable (fsync)",
            remedy="check the disk, then run the same command again: no file is counted twice",
        ) from None


def unwritten(path: Path, error: OSError) -> IntakeError:
    """Return the error for a file that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return refusal(
        "out-of-space" if full else "not-written",
        "the disk is full" if full else "the file cannot be written",
        where=str(path),
        got=error.strerror or str(error),
        expected="room for the whole file beside the old one" if full else "a path in a folder that exists",
        remedy=f"make room, then run the same command again: {UNTOUCHED}"
        if full
        else f"check the folder, its permissions and the disk; {UNTOUCHED}",
    )


@contextmanager
def alone(path: Path, remedy: str = WAIT) -> Iterator[None]:
    """Be the only one who writes `path`, or say who else does, and what to do about it.

    The lock goes with the process, so that a killed one leaves none behind; what it had begun to write is removed.
    """
    _check_replaceable(path)
    lock = _beside(path, "lock")
    handle = _locked(lock, path, remedy)
    try:
        with suppress(OSError):
            _beside(path, "part").unlink()
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(handle)


def _locked(lock: Path, path: Path, remedy: str) -> int:
    """Return the open file that holds the lock."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            raise unwritten(path, error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), lock.stat()):
                with suppress(OSError):  # who it is only makes a message better
                    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
                return handle
        except BlockingIOError:
            owner = _owner(handle)
            os.close(handle)
            raise refusal(
                "locked",
                "another process is writing this file",
                where=str(path),
                got=f"process {owner}" if owner else "a process that has just begun",
                expected="one writer at a time",
                remedy=remedy,
            ) from None
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(handle)
            raise unwritten(path, error) from None
        os.close(handle)  # whoever had the lock has removed the file that we opened: once more, with a new one


def _owner(handle: int) -> str:
    try:
        return (
            os.pread(handle, 20, 0).decode(errors="replace").partition("\n")[0]
        )  # below may be the rest of a killed one's
    except OSError:
        return ""


def _real(path: Path) -> Path:
    """Return the file behind all links: it is replaced, not the link, and has one lock by whatever name."""
    return Path(os.path.realpath(path))


def _beside(path: Path, ending: str) -> Path:
    if not path.name or "\0" in str(path):
        raise unwritten(path, OSError(errno.EINVAL, "not the name of a file"))
    real = _real(path)
    return real.with_name(f".{real.name}.{ending}")


def _keep_mode(real: Path, file: IO[bytes]) -> None:
    """Give a new file the permissions of the old one: who may not read that may not read this."""
    try:
        mode = stat.S_IMODE(real.stat().st_mode)
    except FileNotFoundError:
        return
    with suppress(PermissionError):  # on file systems that have none
        os.fchmod(file.fileno(), mode)


def _check_replaceable(path: Path) -> None:
    """Refuse to put a file in the place of what is not one, or is not to be written to."""
    try:
        found = _real(path).stat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        raise unwritten(path, error if isinstance(error, OSError) else OSError(str(error))) from None
    plain = stat.S_ISREG(found.st_mode)
    if plain and found.st_mode & 0o222 and os.access(_real(path), os.W_OK):
        return
    kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device, a pipe or a socket"
    raise refusal(
        "not-written",
        "the file is read-only" if plain else "something else has this name",
        where=str(path),
        got=f"permissions {stat.filemode(found.st_mode)}" if plain else kind,
        expected="a file that may be written to, or none",
        remedy=f"choose another name, or allow it with chmod u+w; {UNTOUCHED}" if plain else "choose another name",
    )
