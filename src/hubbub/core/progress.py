"""Progress of long computations, which yield it; callers show it.

A function that may take long is written once, as a generator that yields `Progress` and returns its result, and
decorated with `stepwise`: ``f(...)`` then runs in silence and returns the result, ``f.steps(...)`` is the generator.
"""

from __future__ import annotations

import functools
import inspect
import re
import time
from collections.abc import Callable, Generator
from typing import NamedTuple, ParamSpec, Protocol, TypeVar, cast

Arguments = ParamSpec("Arguments")
Step = TypeVar("Step")
StepOut = TypeVar("StepOut", covariant=True)
NewStep = TypeVar("NewStep")
Result = TypeVar("Result")
ResultOut = TypeVar("ResultOut", covariant=True)

MIN_FORECAST_SECONDS = 2.0  # after which the time left is estimated


class Progress(NamedTuple):
    """How many steps are done, of how many, and what is being done now."""

    done: int
    total: int
    what: str


class Stepwise(Protocol[Arguments, StepOut, ResultOut]):
    """A function that runs in silence, and whose `steps` yield progress on the way to the same result."""

    __name__: str

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> ResultOut:
        """Run to the end and return the result."""

    def steps(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Generator[StepOut, None, ResultOut]:
        """Yield progress; the generator's return value is the result."""


def stepwise(work: Callable[Arguments, Generator[Step, None, Result]]) -> Stepwise[Arguments, Step, Result]:
    """Return a function that runs the generator function `work` in silence, with `work` itself as its `steps`.

    >>> @stepwise
    ... def add(*numbers: int) -> Generator[Progress, None, int]:
    ...     total = 0
    ...     for place, number in enumerate(numbers):
    ...         yield Progress(place, len(numbers), "adding")
    ...         total += number
    ...     return total
    >>> add(1, 2, 3), [step.done for step in add.steps(1, 2, 3)]
    (6, [0, 1, 2])
    """

    @functools.wraps(work)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return finish(work(*args, **kwargs))

    # What `help` and editors show: the result, not the generator that yields progress on the way to it.
    declared = inspect.signature(work)
    result = re.sub(r"^Generator\[.*, None, (.*)\]$", r"\1", str(declared.return_annotation))
    setattr(run, "__signature__", declared.replace(return_annotation=result))  # noqa: B010 (functions declare no such attribute)
    setattr(run, "steps", work)  # noqa: B010
    return cast("Stepwise[Arguments, Step, Result]", run)


def finish(run: Generator[Step, None, Result], tell: Callable[[Step], object] = lambda _: None) -> Result:
    """Run a generator to its end, handing each step to `tell`, and return its result."""
    while True:
        try:
            step = next(run)
        except StopIteration as done:
            result: Result = done.value
            return result
        tell(step)


def map_steps(
    run: Generator[Step, None, Result], change: Callable[[Step], NewStep]
) -> Generator[NewStep, None, Result]:
    """Run a generator with each of its steps changed: part of a longer computation names its progress after itself."""
    while True:
        try:
            step = next(run)
        except StopIteration as done:
            result: Result = done.value
            return result
        yield change(step)


class Forecast:
    """The time that work will still take, from the progress it has made since its present phase began.

    A phase ends where the number of steps changes, or fewer are done than before: one computation may read, then solve.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first = self._last = Progress(0, 0, "")
        self._start = clock()

    def after(self, step: Progress) -> str:
        """Return the time left in words; nothing as long as nobody can know it."""
        if step.total != self._last.total or step.done < self._last.done:
            self._first, self._start = step, self._clock()
        self._last = step
        seconds, done = self._clock() - self._start, step.done - self._first.done
        if seconds < MIN_FORECAST_SECONDS or done <= 0 or step.done >= step.total:
            return ""
        return time_left(seconds * (step.total - step.done) / done)


def time_left(seconds: float) -> str:
    """Return the time left in words.

    >>> time_left(5.2), time_left(240.0)
    ('about 5 s left', 'about 4 minutes left')
    """
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    if seconds < 5_400:
        return f"about {round(seconds / 60)} minutes left"
    return f"about {seconds / 3600:.1f} hours left"
