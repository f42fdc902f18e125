"""The number of threads for each kind of work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

P = TypeVar("P")
T = TypeVar("T")

MAX_SERIAL_ENTRIES = 4_000_000  # of a matrix up to which one thread is as quick as several


def processors() -> int:
    """Return how many processors this process may use."""
    if _shares_the_machine:
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _OneThread:
    """Limits linear algebra to one thread while at least one block has entered it; blocks may nest or overlap."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entered = 0
        self._limit: AbstractContextManager[object] = nullcontext()

    def __enter__(self) -> None:
        with self._lock:
            self._entered += 1
            if self._entered == 1:
                self._limit = _libraries().limit(limits=1, user_api="blas")
                self._limit.__enter__()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0:
                self._limit.__exit__(None, None, None)


_one_thread = _OneThread()


def threads_for(entries: int) -> AbstractContextManager[object]:
    """Return a context in which linear algebra uses one thread for small work, and its default for large work.

    NumPy and SciPy have a pool of threads each, which wait by spinning: on a busy machine of two cores, small
    products took a hundred times as long with two threads as with one.
    """
    return _one_thread if entries <= MAX_SERIAL_ENTRIES else nullcontext()


def threads_up_to(count: int) -> AbstractContextManager[object]:
    """Return a context in which linear algebra uses up to `count` threads."""
    limit: AbstractContextManager[object] = _libraries().limit(limits=count, user_api="blas")
    return limit


def limit_threads_per_step(run: Generator[P, None, T], entries: int) -> Generator[P, None, T]:
    """Run each step under `threads_for(entries)`; between steps the limit does not apply to the caller."""
    while True:
        with threads_for(entries):
            try:
                progress = next(run)
            except StopIteration as done:
                result: T = done.value
                return result
        yield progress


_shares_the_machine = False


def use_one_thread_from_now_on() -> None:
    """Use one thread from now on: this process is one of several that share the machine."""
    global _shares_the_machine
    _shares_the_machine = True
    _one_thread.__enter__()  # for good


@cache
def _libraries() -> ThreadpoolController:
    import scipy.linalg.lapack  # noqa: F401  # SciPy has its own BLAS, which must be loaded to be limited
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def read_ahead(batches: Iterator[T], most: int = 2) -> Iterator[T]:
    """Yield what `batches` yields, computed in a thread of its own, at most `most` batches ahead."""
    end = object()
    with ThreadPoolExecutor(1) as thread:
        ahead = deque(thread.submit(next, batches, end) for _ in range(most))
        try:
            while (batch := ahead.popleft().result()) is not end:
                ahead.append(thread.submit(next, batches, end))
                yield cast("T", batch)
        finally:
            for future in ahead:
                future.cancel()
            with suppress(RuntimeError):  # Python is about to end, and the thread has ended already
                thread.submit(getattr(batches, "close", lambda: None)).result()  # in the thread that began it
