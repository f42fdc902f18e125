"""The two questions of a plan: how large the error will be, and what it takes to make it small enough."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from hubbub.planning.candidates import Candidate
from hubbub.planning.found import Needed, Setting
from hubbub.planning.truths import Truth
from hubbub.sampling import Randomness
from hubbub.solvers.stages import Stage


def simulating(
    candidates: Sequence[Candidate],
    users: Sequence[int],
    truths: Sequence[Truth],
    *,
    method: str = "auto",
    distance: str = "tv",
    runs: int | None = None,
    rng: Randomness = None,
    level: float = 0.95,
    widths: bool = True,
) -> Generator[Stage, None, tuple[Setting, ...]]:
    """Return the error of every candidate with every number of users, yielding progress on the way."""
    raise NotImplementedError


def needing(
    candidates: Sequence[Candidate],
    target: float,
    truths: Sequence[Truth],
    *,
    users: int | None = None,
    method: str = "auto",
    distance: str = "tv",
    confidence: float = 0.5,
    runs: int | None = None,
    rng: Randomness = None,
) -> Generator[Stage, None, tuple[Needed, ...]]:
    """Return the users that every candidate needs for a target, or the epsilon where `users` is given."""
    raise NotImplementedError
