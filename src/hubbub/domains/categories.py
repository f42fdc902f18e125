"""Unordered values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.arrays import Array, Floats, Positions, as_array, frozen, plain, read_alike, refuse_rounded
from hubbub.core.errors import DomainError, shorten
from hubbub.domains.base import Domain, check_size


@dataclass(frozen=True)
class Categories(Domain):
    """Distinct labels without an order: texts or whole numbers.

    The distance between two different labels is 1, so that the earth mover's distance over categories
    is the total variation.

    >>> colours = Categories(["red", "green", "blue"])
    >>> colours.index(["blue", "red"])
    array([2, 0])
    """

    labels_: tuple[Hashable, ...]

    def __init__(self, labels: Iterable[Hashable]) -> None:
        if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
            raise DomainError(
                "categories need a list of labels",
                where="Categories(labels)",
                got=shorten(labels),
                expected="a list such as ['yes', 'no']",
                remedy="wrap the labels in a list",
            )
        if isinstance(labels, Set):
            raise DomainError(
                "the labels of a set have no order",
                where="Categories(labels)",
                got=shorten(labels),
                expected="a list: estimates and hashes follow its order",
                remedy="pass sorted(labels), in every program of the study",
            )
        given = tuple(plain(label) for label in labels)
        check_size(len(given), "Categories(labels)")
        for position, label in enumerate(given):
            if isinstance(label, bool) or not isinstance(label, str | int) or label == "":
                raise DomainError(
                    "a label is empty" if isinstance(label, str) else "a label is neither a text nor a whole number",
                    where=f"Categories(labels), position {position}",
                    got=shorten(label),
                    expected="a text that is not empty, or a whole number",
                    remedy="give every value a label of its own, as a text",
                )
        alike = read_alike(given)
        if alike is not None:
            raise DomainError(
                "a label appears twice",
                where=f"Categories(labels), position {alike[1]}",
                got=f"{given[alike[0]]!r} and {given[alike[1]]!r}",
                expected="labels that differ when written down",
                remedy="keep each label once",
            )
        object.__setattr__(self, "labels_", given)

    def __repr__(self) -> str:
        return f"Categories({shorten(list(self.labels_))})"

    def __len__(self) -> int:
        return len(self.labels_)

    @cached_property
    def labels(self) -> Array:
        """The labels in the order given."""
        array = np.empty(len(self.labels_), dtype=object)
        array[:] = self.labels_
        return frozen(array)

    @cached_property
    def _lookup(self) -> dict[Hashable, int]:
        return {label: position for position, label in enumerate(self.labels_)}

    @property
    def unit(self) -> None:
        """Categories have no unit: their distance is 0 or 1."""
        return

    @property
    def diameter(self) -> float:
        """1: two different labels are always at distance 1."""
        return 1.0

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        array = as_array(values)
        refuse_rounded(array, DomainError, where="values", expected=self.describe())
        lookup = self._lookup
        found = [
            -1 if isinstance(v, bool) or not isinstance(v, Hashable) else lookup.get(v, -1)
            for v in array.ravel().tolist()
        ]
        return np.array(found, dtype=np.int64).reshape(array.shape)

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return 0 from a label to itself, 1 to every other."""
        distances: Floats = (rows[:, None] != columns[None, :]).astype(np.float64)
        return distances

    def describe(self) -> str:
        """One line for messages."""
        return f"one of {len(self)} categories: {shorten(list(self.labels_), 80)}"
