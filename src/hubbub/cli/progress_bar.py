"""Progress at the terminal: what is being done, how much of it is done, the time it took and the time left."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeVar

from hubbub.cli.console import err
from hubbub.core.errors import HubbubWarning
from hubbub.core.progress import Forecast, Progress, finish

if TYPE_CHECKING:
    from hubbub.solvers import SolverProgress  # with NumPy and SciPy, for which `hubbub --version` should not wait

T = TypeVar("T")


def follow(run: Generator[SolverProgress | Progress, None, T], what: str, *, log: bool = False) -> T:
    """Run a computation to the end and show its progress where somebody watches a terminal.

    With `log`, what has no number of steps is printed as a line, and where nobody watches, each tenth of the work is.
    """
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as ProgressBar

    console = err()
    texts = (TextColumn("{task.description}", markup=False), TextColumn("{task.fields[left]}", markup=False))
    columns = (SpinnerColumn(), texts[0], BarColumn(bar_width=24), TimeElapsedColumn(), texts[1])
    bar = ProgressBar(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = bar.add_task(what, total=None, left="")
    forecast, tenths = Forecast(), 0

    def show(step: SolverProgress | Progress) -> None:
        nonlocal tenths
        if not isinstance(step, Progress):
            stand = f"{what}: {step.iteration:,} iterations, log-likelihood {step.log_likelihood:,.2f}"
            bar.update(task, description=stand, left="")
            return
        if log and step.total == 0:
            console.print(step.what, soft_wrap=True)
            return
        total = step.total or None  # 0: nobody knows how long it takes
        bar.update(task, description=step.what, completed=step.done, total=total, left=forecast.after(step))
        if log and not console.is_terminal:
            before, tenths = tenths, 10 * step.done // step.total
            if tenths > before:  # fewer: another kind of work has begun
                console.print(f"{100 * step.done // step.total}%: {step.what}", soft_wrap=True)

    with bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", HubbubWarning)  # commands print the notes of results
        return finish(run, show)
