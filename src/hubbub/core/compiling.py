"""Loops compiled by Numba, with the settings that it needs before it is loaded."""

from __future__ import annotations

import math
import os

# Before Numba starts its threads: threads that wait by spinning keep the processor from those with work. On a busy
# machine of two cores that made loops a hundred times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from collections.abc import Callable
from threading import Lock
from types import FunctionType
from typing import Any, cast

from numba import config, njit, set_num_threads

# Of a loop, up to which one thread is as quick as several; where there is but one, loops are not compiled for several.
MAX_SERIAL_STEPS = 2_000_000.0 if vars(config)["NUMBA_NUM_THREADS"] > 1 else math.inf


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function, and cache the result on disk where that is possible."""
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # a package that cannot be written to, and no folder for a cache either
        return njit(**options)(function)


_several_threads = Lock()
_forked = False


def _after_fork() -> None:
    # A child process must not touch the threads that its parent had started: GNU OpenMP would end it.
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Loop:
    """A loop compiled twice: for one thread, which short loops use, and for all threads."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        # Compiled code is kept on disk under the function's name: two kinds need two names.
        own = cast(FunctionType, function)
        twin = FunctionType(own.__code__, own.__globals__, own.__name__)
        twin.__module__, twin.__qualname__ = own.__module__, f"{own.__qualname__}_in_one_thread"
        # Other threads run meanwhile: those of a cluster's worker must answer its scheduler.
        self._single = compiled(twin, nogil=True, **options)
        self._several = compiled(function, nogil=True, parallel=True, **options)
        self.__doc__ = function.__doc__

    def __call__(self, work: int, *arguments: Any) -> Any:
        """Run; `work` is about the number of its steps."""
        if _forked or work <= MAX_SERIAL_STEPS:
            return self._single(*arguments)
        with _several_threads:  # one loop at a time uses them: some of Numba's thread pools cannot be shared
            return self._several(*arguments)


def use_threads(count: int) -> None:
    """Let loops that this thread starts use up to `count` threads."""
    set_num_threads(min(count, int(vars(config)["NUMBA_NUM_THREADS"])))


def loop(**options: Any) -> Callable[[Callable[..., Any]], Loop]:
    """Compile a function with `prange` loops."""
    return lambda function: Loop(function, **options)
