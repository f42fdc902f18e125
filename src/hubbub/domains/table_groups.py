"""The values of an attribute as rows of a table: each by itself, or several together where they are too many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.domains.base import Domain
from hubbub.domains.product import Product

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


class CrossedShares(NamedTuple):
    """Shares of two attributes together, by their groups: one down the side, the other along the top."""

    joint: Floats
    possible: NDArray[np.bool_]  # False where every combination is impossible


def crossed_shares(
    product: Product, shares: Floats, rows: tuple[str, Sequence[ValueGroup]], columns: tuple[str, Sequence[ValueGroup]]
) -> CrossedShares:
    """Return the shares of two attributes of a product, each given by its name and its groups.

    >>> from hubbub.domains import Categories
    >>> people = Product(tea=Categories(["yes", "no"]), town=Categories(["a", "b"]))
    >>> halves = [ValueGroup("first", np.array([0])), ValueGroup("second", np.array([1]))]
    >>> crossed_shares(people, np.array([0.1, 0.2, 0.3, 0.4]), ("town", halves), ("tea", halves)).joint
    array([[0.1, 0.3],
           [0.2, 0.4]])
    """
    places = dict(zip(product.attributes, product.coordinates_of(np.arange(len(product))), strict=True))
    shape = (len(rows[1]), len(columns[1]))
    cells = np.ravel_multi_index([_group_numbers(groups)[places[name]] for name, groups in (rows, columns)], shape)
    size = shape[0] * shape[1]
    joint = np.bincount(cells, weights=shares, minlength=size).astype(np.float64)
    return CrossedShares(joint.reshape(shape), (np.bincount(cells, minlength=size) > 0).reshape(shape))


def _group_numbers(groups: Sequence[ValueGroup]) -> Positions:
    """Return the number of the group of each value."""
    numbers = np.empty(sum(group.positions.size for group in groups), dtype=np.int64)
    for number, group in enumerate(groups):
        numbers[group.positions] = number
    return numbers


def attribute_groups(product: Product, shares: Floats) -> dict[str, tuple[ValueGroup, ...]]:
    """Return the groups of each attribute, by the shares of the product's values."""
    return {
        name: table_groups(domain, product.margin([name]).sums(shares)) for name, domain in product.attributes.items()
    }
