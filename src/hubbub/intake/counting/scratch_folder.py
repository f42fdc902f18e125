"""A folder for temporary files that does not outlive its run by much: what a killed run left, the next one removes.

Rows that are put aside say who sent what; they must not lie about because a process was killed. Beside each folder
stands a file that its process has locked. It is made before the folder and removed after it, so that a kill at any
moment leaves a file without a lock, by which the rest is found.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hubbub.core.locks import OPEN_FLAGS, has_name, remove_lock, take_lock

PREFIX = "hubbub-rows-"
ENDING = ".lock"


class ScratchFolder:
    """A new folder among the temporary files (TMPDIR), kept as long as its process lives."""

    def __init__(self) -> None:
        sweep()
        self._lock, self._handle = _locked()
        self.path = self._lock.with_suffix("")
        try:
            self.path.mkdir(mode=0o700)
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        _remove(self._lock, self._handle)


def sweep() -> None:
    """Remove the folders of our own runs that were killed: their locks went with them."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*{ENDING}"):
        with suppress(OSError):  # it is gone, somebody else's, or in use
            if hasattr(os, "getuid") and lock.lstat().st_uid != os.getuid():
                continue
            handle = os.open(lock, OPEN_FLAGS)
            try:
                locked = take_lock(handle)
            except OSError:
                locked = False
            if locked:
                _remove(lock, handle)
            else:
                os.close(handle)


def _locked() -> tuple[Path, int]:
    """Return a new file that is locked, and its handle."""
    while True:
        handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=ENDING)
        try:
            if take_lock(handle) and has_name(Path(name), handle):
                return Path(name), handle
        except OSError:
            os.close(handle)
            raise
        os.close(handle)  # another run took it for a killed one's before we had locked it


def _remove(lock: Path, handle: int) -> None:
    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    remove_lock(lock, handle)
