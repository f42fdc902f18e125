"""A part of another domain, as `Reports.restrict` gives it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.arrays import Array, Floats, Positions, frozen
from hubbub.core.errors import shorten
from hubbub.domains.base import Domain


@dataclass(frozen=True)
class Subset(Domain):
    """Some values of `whole`, in its order; labels and distances are those of `whole`.

    Unlike a domain that people define, a subset may have a single value: the set of observed values can.
    """

    whole: Domain
    kept: tuple[int, ...]  # positions in `whole`, increasing

    @cached_property
    def positions(self) -> Positions:
        """The positions in `whole` of the kept values."""
        return frozen(np.array(self.kept, dtype=np.int64))

    def title(self, position: int) -> str:
        """Return the title in `whole`."""
        return self.whole.title(self.kept[position])

    def __repr__(self) -> str:
        return f"Subset({len(self)} of {self.whole!r})"

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def labels(self) -> Array:
        """The kept values."""
        return frozen(self.whole.labels[self.positions])

    @property
    def unit(self) -> str | None:
        """The unit of `whole`."""
        return self.whole.unit

    @cached_property
    def diameter(self) -> float:
        """The largest distance among the kept values (for large subsets, that of `whole`)."""
        return float(self.distances().max()) if len(self) <= 2000 else self.whole.diameter

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        inside = self.whole.find(values)
        place = np.full(len(self.whole) + 1, -1, dtype=np.int64)  # the last entry answers for -1
        place[self.positions] = np.arange(len(self))
        return place[inside]

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return the distances in `whole`."""
        return self.whole.distances_between(self.positions[rows], self.positions[columns])

    def describe(self) -> str:
        """One line for messages."""
        return f"one of the {len(self)} values kept: {shorten(self.labels.tolist())}"
