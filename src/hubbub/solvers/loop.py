"""The one loop. A solver supplies a step and a rule for stopping; progress is yielded, never printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hubbub.core.arrays import Floats
from hubbub.likelihood import Evaluation

AnyPoint = TypeVar("AnyPoint", bound=Evaluation)  # a point: of reports in this process, or elsewhere

Step = Callable[
    [AnyPoint], "AnyPoint | Stride[AnyPoint]"
]  # a step with a memory of its own is an object that can be called
Rule = Callable[[Evaluation, Evaluation], bool]  # (before, after): is that enough?

PROGRESS_SECONDS = 0.1  # seconds between two reports of progress


@dataclass(frozen=True)
class SolverProgress:
    """Where a solver stands."""

    iteration: int
    log_likelihood: float
    max_iter: int


@dataclass(frozen=True)
class Stride(Generic[AnyPoint]):
    """Several iterations made in one go: the last iterate but one, the last, and how many they were."""

    before: AnyPoint
    point: AnyPoint
    iterations: int


@dataclass(frozen=True)
class Outcome(Generic[AnyPoint]):
    """Where a solver ended, and why."""

    point: AnyPoint
    iterations: int
    met: bool  # did the rule say stop?
    stalled: bool = False  # did the step find nothing better?
    path: tuple[tuple[float, Floats], ...] = field(default=(), repr=False)  # log-likelihood and theta of each iterate


def iterate(
    start: AnyPoint, step: Step[AnyPoint], rule: Rule, max_iter: int, *, keep: bool = False
) -> Generator[SolverProgress, None, Outcome[AnyPoint]]:
    """Step until the rule is met, nothing moves, or `max_iter` steps are done; yield progress now and then."""
    point, path = start, [(start.log_likelihood, start.theta)] if keep else []
    del start  # what a point has computed may be as large as the reports
    last_progress, iteration = time.monotonic(), 0
    while iteration < max_iter:
        moved = step(point)
        if not isinstance(moved, Stride):
            moved = Stride(point, moved, 1)
        point, iteration = moved.point, iteration + moved.iterations
        if keep:
            path.append((point.log_likelihood, point.theta))
        if rule(moved.before, point):
            return Outcome(point, iteration, met=True, path=tuple(path))
        if point is moved.before:
            return Outcome(point, iteration, met=False, stalled=True, path=tuple(path))
        del moved  # the point before is not needed any more
        if time.monotonic() - last_progress >= PROGRESS_SECONDS:
            yield SolverProgress(iteration, point.log_likelihood, max_iter)
            last_progress = time.monotonic()
    return Outcome(point, iteration, met=False, path=tuple(path))
