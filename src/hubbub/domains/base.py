"""What every domain offers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from hubbub.client import MAX_VALUES
from hubbub.core.arrays import Array, Floats, Positions, as_array, plain
from hubbub.core.errors import DomainError, shorten
from hubbub.core.portable import Portable

MOST_DISTANCES = 20_000  # a distance matrix of this side takes 3.2 GB


class Domain(Portable, ABC):
    """A finite set of values, each known by its label, in a fixed order.

    Estimates, matrices and distances are aligned with `labels`; `index` turns labels into positions.
    """

    @property
    @abstractmethod
    def labels(self) -> Array:
        """The values, in order (read-only)."""

    @property
    @abstractmethod
    def unit(self) -> str | None:
        """The unit of `distances`, or None where values have no distance to speak of."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def find(self, values: object) -> Positions:
        """Return positions, -1 for a value that is not in the domain; the shape of `values` is kept."""

    @abstractmethod
    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return the distances of the values at positions `rows` to those at positions `columns`."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """The largest distance between two values."""

    @abstractmethod
    def describe(self) -> str:
        """One line for messages: what the values are."""

    def title(self, position: int) -> str:
        """Return the value at `position` as people read it in a table."""
        return str(self.labels[position])

    def index(self, values: object) -> Positions:
        """Return the positions (0 to len - 1) of `values`; one that is not in the domain is an error."""
        array = as_array(values)
        positions = self.find(array)
        outside = positions < 0
        if outside.any():
            place = int(np.argmax(outside.ravel()))
            many = int(np.count_nonzero(outside))
            raise DomainError(
                "a value is not in the domain" if many == 1 else f"{many} values are not in the domain",
                where=f"values, position {place}",
                got=shorten(plain(array.ravel()[place])),
                expected=self.describe(),
                remedy="correct the value, or build the domain so that it includes it",
            )
        return positions[()]

    def distances(self) -> Floats:
        """Return the full matrix of distances between values."""
        if len(self) > MOST_DISTANCES:
            raise DomainError(
                "the matrix of distances would not fit",
                where="distances()",
                got=f"{len(self):,} values",
                expected=f"at most {MOST_DISTANCES:,}",
                remedy="use a coarser domain, or distances_between(rows, columns) for the values you need",
            )
        everything = np.arange(len(self))
        return self.distances_between(everything, everything)


def check_size(size: int, what: str) -> None:
    """Refuse domains with fewer than two values (nothing to estimate) or more than fit in memory."""
    if size < 2:
        raise DomainError(
            "a domain needs at least two values",
            where=what,
            got=f"{size} value" + ("" if size == 1 else "s"),
            expected="2 or more distinct values",
            remedy="add the values that users may hold; with a single one there is nothing to estimate",
        )
    if size > MAX_VALUES:
        raise DomainError(
            "the domain is too large",
            where=what,
            got=f"{size:,} values",
            expected=f"at most {MAX_VALUES:,}",
            remedy="use coarser values: wider bins or larger cells",
        )
