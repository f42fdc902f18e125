"""The one loop of all solvers: a solver supplies a step and a stopping rule, the loop yields progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hubbub.core.arrays import Floats
from hubbub.likelihood import Evaluation

AnyPoint = TypeVar("AnyPoint", bound=Evaluation)  # of reports in this process, or elsewhere

Step = Callable[[AnyPoint], "AnyPoint | Stride[AnyPoint]"]  # a step that keeps a state is a callable object
Rule = Callable[[Evaluation, Evaluation], bool]  # (before, after): whether to stop

PROGRESS_SECONDS = 0.1  # between two reports of progress


@dataclass(frozen=True)
class SolverProgress:
    """How far a solver has come."""

    iteration: int
    log_likelihood: float
    max_iter: int


@dataclass(frozen=True)
class Stride(Generic[AnyPoint]):
    """Several iterations in one call: the last iterate but one, the last, and the number of iterations."""

    before: AnyPoint
    point: AnyPoint
    iterations: int


@dataclass(frozen=True)
class Outcome(Generic[AnyPoint]):
    """Where a solver ended, and why."""

    point: AnyPoint
    iterations: int
    met: bool  # whether the rule was met
    stalled: bool = False  # whether the step made no further progress
    path: tuple[tuple[float, Floats], ...] = field(default=(), repr=False)  # log-likelihood and theta of each iterate


def iterate(
    start: AnyPoint, step: Step[AnyPoint], rule: Rule, max_iter: int, *, keep: bool = False
) -> Generator[SolverProgress, None, Outcome[AnyPoint]]:
    """Step until the rule is met, nothing moves, or `max_iter` steps are done; yield progress on the way."""
    point, path = start, [(start.log_likelihood, start.theta)] if keep else []
    del start  # the arrays that a point has computed may be as large as the reports
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
        del moved  # frees the previous point
        if time.monotonic() - last_progress >= PROGRESS_SECONDS:
            yield SolverProgress(iteration, point.log_likelihood, max_iter)
            last_progress = time.monotonic()
    return Outcome(point, iteration, met=False, path=tuple(path))
