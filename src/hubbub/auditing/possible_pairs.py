"""The pair of possible combinations with the largest sum of scores, one score for each attribute.

Where combinations are impossible, the worst values of all attributes need not meet: the sum over attributes a of
S_a(x_a, y_a) has to be compared over pairs x, y of possible combinations. No pair with x has more than the sum of
max_y S_a(x_a, y), so combinations are taken in the order of this bound, until it is below a sum that was found.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress

MAX_PAIR_SCORES = 3_000_000_000  # scores of pairs that are looked up: some seconds
CACHED_ROWS = 1_024
PROGRESS_ROWS = 256  # between two steps of progress


@dataclass(frozen=True)
class PairScores:
    """Scores of pairs of one attribute's values: those of one value with all, and the largest of each value's."""

    row: Callable[[int], Floats]
    highest: Floats


@dataclass(frozen=True)
class LargestSum:
    """The pair with the largest sum that was found, None where there is none, and a bound: -inf without any pairs."""

    pair: tuple[int, int] | None
    bound: float


def table_scores(own: Floats, other: Floats) -> PairScores:
    """Return the scores max over z of own[x, z] - other[y, z], without outputs that neither value has (-inf)."""

    def row(value: int) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.asarray(np.fmax.reduce(own[value] - other, axis=1))

    with np.errstate(invalid="ignore"):
        highest: Floats = np.fmax.reduce(own - other.min(axis=0), axis=1)
    return PairScores(lru_cache(CACHED_ROWS)(row), highest)


def equal_scores(own: Floats, other: Floats) -> PairScores:
    """Return the same for an attribute that pairs have in common: the scores of each value with itself."""
    alike: Floats = np.max(own - other, axis=1)
    return PairScores(lambda value: np.broadcast_to(alike[value], alike.shape), alike)


def largest_sum(
    scores: Sequence[PairScores], places: Sequence[Positions], *, least: float = 0.0, groups: Positions | None = None
) -> Generator[Progress, None, LargestSum]:
    """Return the pair with the largest sum above `least`, and a bound of the sums of all pairs.

    The bound is the sum of that pair, or `least`, unless there are too many pairs to look at them all. `places` are the
    combinations' positions on each attribute; with `groups`, pairs are those of the same group.
    """
    highest = _sum([own.highest[at] for own, at in zip(scores, places, strict=True)])
    order, starts = np.arange(highest.size), np.array([0, highest.size])
    if groups is not None:
        order = np.argsort(groups, kind="stable")
        sizes = np.bincount(groups)
        starts = np.append(0, np.cumsum(sizes))
        highest = np.where(sizes[groups] > 1, highest, -np.inf)
        if sizes.max() == 1:
            return LargestSum(None, -np.inf)
    best, pair, looked_up = least, None, 0
    for step, first in enumerate(np.argsort(-highest, kind="stable").tolist()):
        if highest[first] <= best:
            break
        if looked_up > MAX_PAIR_SCORES:
            return LargestSum(pair, float(highest[first]))
        if step % PROGRESS_ROWS == 0:
            yield Progress(step, highest.size, "comparing possible combinations")
        group = 0 if groups is None else int(groups[first])
        others = order[starts[group] : starts[group + 1]]
        sums = _sum([own.row(int(at[first]))[at[others]] for own, at in zip(scores, places, strict=True)])
        looked_up += others.size * len(scores)
        largest = int(np.argmax(sums))
        if sums[largest] > best:
            best, pair = float(sums[largest]), (first, int(others[largest]))
    return LargestSum(pair, best)


def groups_without(places: Sequence[Positions], sides: Sequence[int], attribute: int) -> Positions:
    """Return groups of combinations that differ in one attribute alone, as a number for each combination."""
    rest = [(at, side) for own, (at, side) in enumerate(zip(places, sides, strict=True)) if own != attribute]
    cells = np.ravel_multi_index([at for at, _ in rest], [side for _, side in rest])
    return np.unique(cells, return_inverse=True)[1].ravel()


def _sum(terms: Sequence[Floats]) -> Floats:
    """Return the sum of terms, in their order: rounding then keeps a sum below that of larger terms."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
