"""How many threads work on what."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

SMALL_WORK = 4_000_000  # entries of a matrix up to which one thread is as quick as several
SMALL_LOOP = 2_000_000  # steps of a compiled loop, likewise


def processors() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def threads_for(entries: int) -> AbstractContextManager[object]:
    """Return a context in which linear algebra uses one thread if the work is small, and what it likes otherwise.

    NumPy and SciPy bring a pool of threads each, which wait by spinning: on a busy machine of two cores, small
    products took a hundred times as long with two threads as with one.
    """
    return _libraries().limit(limits=1, user_api="blas") if entries <= SMALL_WORK else nullcontext()


@contextmanager
def compiled_threads(work: int) -> Iterator[None]:
    """Let compiled loops run in one thread if they are short: to wake others would take longer."""
    import numba

    before = numba.get_num_threads()
    if work <= SMALL_LOOP:
        numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


@cache
def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
