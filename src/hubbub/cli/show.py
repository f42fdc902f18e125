"""Consoles and progress. Results go to standard output, everything else to standard error."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from hubbub.solvers import Progress as Step

T = TypeVar("T")


def out() -> Console:
    """Return the console for results."""
    return Console(highlight=False)


def err() -> Console:
    """Return the console for progress and messages."""
    return Console(stderr=True, highlight=False)


@contextmanager
def waiting(what: str) -> Iterator[Progress]:
    """Show a spinner and the time while something runs."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=err(), transient=True) as progress:
        progress.add_task(what, total=None)
        yield progress


def follow(run: Generator[Step, None, T], what: str) -> T:
    """Drain a solver, showing where it stands."""
    with waiting(what) as progress:
        task = progress.task_ids[0]
        while True:
            try:
                step = next(run)
            except StopIteration as done:
                result: T = done.value
                return result
            progress.update(
                task, description=f"{what}: {step.iteration:,} iterations, log-likelihood {step.log_likelihood:,.2f}"
            )
