"""Unordered values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from hubbub.core.arrays import (
    Array,
    Floats,
    Positions,
    as_array,
    frozen,
    plain,
    position_of_label,
    read_alike,
    refuse_rounded,
)
from hubbub.core.errors import DomainError, shorten
from hubbub.domains.base import Domain, check_size


@dataclass(frozen=True)
class Categories(Domain):
    """Distinct labels without an order: texts or whole numbers.

    The distance between two different labels is 1, so that the earth mover's distance over categories
    is the total variation.

    Parameters
    ----------
    labels
        At least two texts or whole numbers that differ when written down (1 and "1" do not). Their order is that of
        estimates and hashes, so that every program of a study needs the same one.

    Raises
    ------
    DomainError
        If there are fewer than two labels, two read alike, or one is empty or neither a text nor a whole number.

    Examples
    --------
    >>> import hubbub as hb
    >>> colours = hb.Categories(["red", "green", "blue"])
    >>> colours.index(["blue", "red"])
    array([2, 0])
    """

    labels_: tuple[Hashable, ...]

    def __init__(self, labels: Iterable[Hashable]) -> None:
        where = "Categories(labels)"
        if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
            expected = "a list such as ['yes', 'no']"
            remedy = "wrap the labels in a list"
            raise DomainError(
                "labels must be a list", where=where, got=shorten(labels), expected=expected, remedy=remedy
            )
        if isinstance(labels, Set):
            expected = "a list: estimates and hashes follow its order"
            remedy = "pass sorted(labels), in every program of the study"
            what = "the labels of a set have no order"
            raise DomainError(what, where=where, got=shorten(labels), expected=expected, remedy=remedy)
        kept = tuple(plain(label) for label in labels)
        check_size(len(kept), where)
        for position, label in enumerate(kept):
            if isinstance(label, bool) or not isinstance(label, str | int) or label == "":
                what = (
                    "a label is empty" if isinstance(label, str) else "a label is neither a string nor a whole number"
                )
                expected, remedy = "a text that is not empty, or a whole number", "name every value by a text"
                where = f"{where}, position {position}"
                raise DomainError(what, where=where, got=shorten(label), expected=expected, remedy=remedy)
        alike = read_alike(kept)
        if alike is not None:
            got, where = f"{kept[alike[0]]!r} and {kept[alike[1]]!r}", f"{where}, position {alike[1]}"
            expected, remedy = "labels that differ when written down", "keep each label once"
            raise DomainError("a label appears twice", where=where, got=got, expected=expected, remedy=remedy)
        object.__setattr__(self, "labels_", kept)

    def __repr__(self) -> str:
        return f"Categories({shorten(list(self.labels_))})"

    def __len__(self) -> int:
        return len(self.labels_)

    @cached_property
    def labels(self) -> Array:
        """The labels, in the order given."""
        array = np.empty(len(self.labels_), dtype=object)
        array[:] = self.labels_
        return frozen(array)

    @cached_property
    def _position_of(self) -> dict[Hashable, int]:
        return {label: position for position, label in enumerate(self.labels_)}

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        array = as_array(values)
        refuse_rounded(array, DomainError, where="values", expected=self.describe())
        position_of = self._position_of
        values = array.ravel().tolist()
        if set(map(type, values)) <= {str, int}:
            found: Iterable[int] = map(position_of.get, values, repeat(-1))
        else:
            found = (position_of_label(position_of, value) for value in values)
        return np.fromiter(found, np.int64, array.size).reshape(array.shape)

    @property
    def unit(self) -> None:
        """Categories have no unit: their distance is 0 or 1."""
        return

    @property
    def diameter(self) -> float:
        """1: two different labels are always at distance 1."""
        return 1.0

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return 0 from a label to itself, 1 to every other."""
        distances: Floats = (rows[:, None] != columns[None, :]).astype(np.float64)
        return distances

    def squared_distance(self, first: int, second: int) -> Fraction:
        """Return 0 or 1."""
        return Fraction(int(first != second))

    @property
    def least_distance(self) -> float:
        """1: two different labels are always at distance 1."""
        return 1.0

    @property
    def is_equidistant(self) -> bool:
        """Yes."""
        return True

    def fields(self) -> dict[str, Any]:
        """Return the labels, as study files hold them."""
        return {"labels": self.labels.tolist()}

    def describe(self) -> str:
        """Return one line for messages."""
        return f"one of {len(self)} categories: {shorten(list(self.labels_), 80)}"
