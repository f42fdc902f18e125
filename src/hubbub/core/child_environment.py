"""The environment of Pythons that are started: they import nothing from the folder that they are started in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

SAFE_PATH = "PYTHONSAFEPATH"  # python -c and -m put the current folder first on sys.path, unless this is set

_lock = Lock()
_entered = 0
_before: str | None = None


@contextmanager
def no_imports_from_current_folder() -> Iterator[None]:
    """Start processes of `multiprocessing` in this block: its command is ``python -c "from multiprocessing..."``.

    In a folder that somebody else can write to, that would run his ``multiprocessing.py``. `multiprocessing` takes no
    environment, so the own one is changed, and restored when the last of several blocks ends. Once it runs, a process
    has the parent's `sys.path`. Where Python itself ignores its variables (``-E``), so do the processes.
    """
    global _entered, _before
    with _lock:
        if _entered == 0:
            _before = os.environ.get(SAFE_PATH)
            os.environ[SAFE_PATH] = "1"
        _entered += 1
    try:
        yield
    finally:
        with _lock:
            _entered -= 1
            if _entered == 0 and _before is None:
                os.environ.pop(SAFE_PATH, None)
            elif _entered == 0:
                os.environ[SAFE_PATH] = str(_before)
