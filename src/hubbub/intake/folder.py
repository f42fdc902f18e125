"""A folder for temporary files that does not outlive its run by much: what a killed run left, the next one removes.

Rows that are put aside say who sent what; they must not lie about because a process was killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "hubbub-rows-"
LOCK = "in-use"


class Folder:
    """A new folder among the temporary files (TMPDIR), locked as long as its process lives."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            sweep()
            new = self.path / f"{LOCK}.new"
            self._handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX)
                new.rename(self.path / LOCK)  # under the name that others look for it is locked from the first moment
            except OSError:
                os.close(self._handle)
                raise
        except OSError:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._handle)


def sweep() -> None:
    """Remove the folders of our own runs that were killed: their locks went with them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
