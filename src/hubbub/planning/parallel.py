"""Run tasks in threads and yield their progress."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, NamedTuple, TypeVar

from hubbub.core.progress import Progress, map_steps
from hubbub.core.threads import processors, threads_for

T = TypeVar("T")

PROGRESS_STEPS = 1_000
PREPARING = Progress(0, PROGRESS_STEPS, "preparing the simulation")
PAUSE_SECONDS = 0.2  # between two reports of progress


class Cancelled(Exception):  # noqa: N818  # not an error: nobody waits for the result any more
    """The work was cancelled."""


class Task(NamedTuple, Generic[T]):
    """A piece of work, which reports the share that is done; its estimated cost in seconds; and a description."""

    run: Callable[[Callable[[float], None]], T]
    cost: float
    description: str


def run_parallel(tasks: Sequence[Task[T]]) -> Generator[Progress, None, list[T]]:
    """Run all tasks, as many at a time as there are processors; yield progress, return their results in order."""
    total = sum(task.cost for task in tasks) or 1.0
    shares = [0.0] * len(tasks)
    is_cancelled = False

    def run(number: int) -> T:
        def report(share: float) -> None:
            if is_cancelled:
                raise Cancelled
            shares[number] = max(shares[number], min(share, 1.0))

        with threads_for(0):  # the tasks themselves run in parallel
            report(0.0)
            return tasks[number].run(report)

    def progress() -> Progress:
        done = sum(task.cost * share for task, share in zip(tasks, shares, strict=True)) / total
        running = [task.description for task, future in zip(tasks, futures, strict=True) if future.running()]
        return Progress(int(PROGRESS_STEPS * done), PROGRESS_STEPS, running[0] if running else "simulating")

    futures: list[Future[T]] = []
    pool = ThreadPoolExecutor(max(1, min(processors(), len(tasks))))
    try:
        futures += [pool.submit(run, number) for number in range(len(tasks))]
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=PAUSE_SECONDS)
            for future in finished:
                shares[futures.index(future)] = 1.0
                future.result()  # an error ends everything at once
            yield progress()
    finally:
        is_cancelled = True
        pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures]


def as_part(run: Generator[Progress, None, T], number: int, parts: int) -> Generator[Progress, None, T]:
    """Run one of several parts, counted from 0, and yield the progress of the whole."""
    if parts == 1:
        return run
    return as_share(run, number / parts, (number + 1) / parts, f"part {number + 1} of {parts}: ")


def as_share(
    run: Generator[Progress, None, T], first: float, last: float, prefix: str = ""
) -> Generator[Progress, None, T]:
    """Run what goes from one share of the whole to another, and yield the progress of the whole."""

    def of_the_whole(step: Progress) -> Progress:
        share = first + (last - first) * step.done / step.total
        return Progress(int(PROGRESS_STEPS * share), PROGRESS_STEPS, prefix + step.what)

    return map_steps(run, of_the_whole)
