"""Paths of files to be written, and the errors for those that cannot be."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from hubbub.core.errors import IntakeError

UNTOUCHED = "the old file, if any, is untouched"
FULL_DISK = (errno.ENOSPC, errno.EDQUOT)


def real_path(path: Path) -> Path:
    """Return the file behind all links: the file is replaced, not the link, and has one lock under all names."""
    return Path(os.path.realpath(path))


def hidden_neighbour(path: Path, ending: str) -> Path:
    """Return the path of a hidden file beside `path`: ``.NAME.part`` while it is written, ``.NAME.lock`` for its lock.

    Raises an `IntakeError` for a path that is not the name of a file.
    """
    if not path.name or "\0" in str(path):
        raise write_error(path, OSError(errno.EINVAL, "not the name of a file"))
    real = real_path(path)
    return real.with_name(f".{real.name}.{ending}")


def check_replaceable(path: Path) -> None:
    """Refuse to replace a read-only file, or something that is not a file."""
    try:
        status = real_path(path).stat()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        raise write_error(path, error if isinstance(error, OSError) else OSError(str(error))) from None
    is_file = stat.S_ISREG(status.st_mode)
    if is_file and status.st_mode & 0o222 and os.access(real_path(path), os.W_OK):
        return
    kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device, a pipe or a socket"
    raise IntakeError(
        "the file is read-only" if is_file else "something else has this name",
        where=str(path),
        got=f"permissions {stat.filemode(status.st_mode)}" if is_file else kind,
        expected="a file that may be written to, or none",
        remedy=f"choose another name, or allow it with chmod u+w; {UNTOUCHED}" if is_file else "choose another name",
        code="not-written",
    )


def write_error(path: Path, error: OSError) -> IntakeError:
    """Return the error for a file that cannot be written; nothing at its path has changed."""
    full = error.errno in FULL_DISK
    return IntakeError(
        "the disk is full" if full else "the file cannot be written",
        where=str(path),
        got=error.strerror or str(error),
        expected="room for the whole file beside the old one" if full else "a path in a folder that exists",
        remedy=f"make room, then run the same command again: {UNTOUCHED}"
        if full
        else f"check the folder, its permissions and the disk; {UNTOUCHED}",
        code="out-of-space" if full else "not-written",
    )
