"""Several tasks in threads, and how far they have come: in shares of the work, and in time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, NamedTuple, TypeVar

from hubbub.core.progress import Progress
from hubbub.core.threads import processors, threads_for

T = TypeVar("T")

STEPS = 1_000  # of the progress
PAUSE = 0.2  # seconds between two looks at it
SURE = 3.0  # seconds after which the time that is left can be guessed

Tell = Callable[[float], None]


class Stopped(Exception):  # noqa: N818  # not a mistake: nobody waits any more
    """The work is no longer wanted."""


class Task(NamedTuple, Generic[T]):
    """Something to be done, about how long it takes, and what it is called. It tells how far it has come."""

    run: Callable[[Tell], T]
    cost: float
    words: str


def working(tasks: Sequence[Task[T]]) -> Generator[Progress, None, list[T]]:
    """Do all tasks, as many at a time as there are processors; yield progress, return their results in order."""
    total = sum(task.cost for task in tasks) or 1.0
    shares = [0.0] * len(tasks)
    begun, stopped = time.monotonic(), False

    def run(place: int) -> T:
        def tell(share: float) -> None:
            if stopped:
                raise Stopped
            shares[place] = max(shares[place], min(share, 1.0))

        with threads_for(0):  # the tasks themselves are what runs side by side
            tell(0.0)
            return tasks[place].run(tell)

    def stage() -> Progress:
        done = sum(task.cost * share for task, share in zip(tasks, shares, strict=True)) / total
        under_way = [task.words for task, share, own in zip(tasks, shares, futures, strict=True) if own.running()]
        what = under_way[0] if under_way else "simulating"
        spent = time.monotonic() - begun
        if spent > SURE and done > 0.0:
            what += f"; {left_in_words(spent * (1.0 - done) / done)}"
        return Progress(int(STEPS * done), STEPS, what)

    futures: list[Future[T]] = []
    pool = ThreadPoolExecutor(max(1, min(processors(), len(tasks))))
    try:
        futures += [pool.submit(run, place) for place in range(len(tasks))]
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, timeout=PAUSE)
            for one in done:
                shares[futures.index(one)] = 1.0
                one.result()  # a mistake ends everything at once
            yield stage()
    finally:
        stopped = True
        pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures]


def in_part(run: Generator[Progress, None, T], number: int, parts: int) -> Generator[Progress, None, T]:
    """Do one of several parts, counted from 0, whose progress is that of the whole: it never goes back."""
    while True:
        try:
            stage = next(run)
        except StopIteration as end:
            result: T = end.value
            return result
        if parts == 1:
            yield stage
            continue
        share = (number + (stage.done / stage.total if stage.total else 0.0)) / parts
        yield Progress(int(STEPS * share), STEPS, f"part {number + 1} of {parts}: {stage.what}")


def left_in_words(seconds: float) -> str:
    """Return a time that is left as people say it."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    if seconds < 5_400:
        return f"about {round(seconds / 60)} minutes left"
    return f"about {seconds / 3600:.1f} hours left"
