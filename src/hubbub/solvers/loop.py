"""The one loop. A solver supplies a step and a rule for stopping; progress is yielded, never printed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from hubbub.likelihood import Point

Step = Callable[[Point], Point]
Rule = Callable[[Point, Point], bool]  # (before, after): is that enough?


@dataclass(frozen=True)
class Progress:
    """Where a solver stands."""

    iteration: int
    log_likelihood: float
    max_iter: int


@dataclass(frozen=True)
class Outcome:
    """Where a solver ended, and why."""

    point: Point
    iterations: int
    met: bool  # did the rule say stop?
    stalled: bool = False  # did the step find nothing better?
    path: tuple[Point, ...] = field(default=(), repr=False)


def iterate(
    start: Point, step: Step, rule: Rule, max_iter: int, *, keep: bool = False, every: int = 50
) -> Generator[Progress, None, Outcome]:
    """Step until the rule is met, nothing moves, or `max_iter` steps are done; yield progress now and then."""
    point, path = start, [start] if keep else []
    for iteration in range(1, max_iter + 1):
        before, point = point, step(point)
        if keep:
            path.append(point)
        if rule(before, point):
            return Outcome(point, iteration, met=True, path=tuple(path))
        if point is before:
            return Outcome(point, iteration, met=False, stalled=True, path=tuple(path))
        if iteration % every == 0:
            yield Progress(iteration, point.log_likelihood, max_iter)
    return Outcome(point, max_iter, met=False, path=tuple(path))
