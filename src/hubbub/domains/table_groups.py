"""The values of an attribute as rows of a table: each by itself, or several together where they are too many."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.domains.base import Domain

MAX_GROUPS = 20  # rows of a table that people read


class ValueGroup(NamedTuple):
    """Values of an attribute that a table shows in one row: their name, and their positions."""

    title: str
    positions: Positions


def table_groups(domain: Domain, shares: Floats, most: int = MAX_GROUPS) -> tuple[ValueGroup, ...]:
    """Return at most so many groups that divide the values, in their order.

    Values on a line go together with their neighbours; of others, those with the largest shares stay by themselves,
    and the last group is the rest.

    >>> from hubbub.domains import Categories, Integers
    >>> [group.title for group in table_groups(Integers(18, 27), np.full(10, 0.1), 4)]
    ['18 to 20', '21 to 23', '24 to 26', '27']
    >>> [group.title for group in table_groups(Categories(["a", "b", "c", "d"]), np.array([0.1, 0.4, 0.2, 0.3]), 3)]
    ['b', 'd', '2 others']
    """
    count = len(domain)
    if count <= most:
        return tuple(ValueGroup(domain.title(place), np.array([place])) for place in range(count))
    if domain.places is not None:
        size = math.ceil(count / most)
        runs = [np.arange(start, min(start + size, count)) for start in range(0, count, size)]
        return tuple(ValueGroup(_run_title(domain, run), run) for run in runs)
    kept = np.sort(np.argsort(-shares, kind="stable")[: most - 1])
    alone = [ValueGroup(domain.title(place), np.array([place])) for place in kept.tolist()]
    rest = np.setdiff1d(np.arange(count), kept)
    return (*alone, ValueGroup(f"{rest.size:,} others", rest))


def _run_title(domain: Domain, run: Positions) -> str:
    """Return the first and the last of neighbours on a line, or the ends of their bins."""
    first, last = int(run[0]), int(run[-1])
    if domain.intervals is not None:
        return f"{domain.intervals[first, 0]:g} to {domain.intervals[last, 1]:g}"
    return domain.title(first) if first == last else f"{domain.title(first)} to {domain.title(last)}"
