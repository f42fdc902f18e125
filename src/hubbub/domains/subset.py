"""A part of another domain, as `Reports.restrict` returns it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Array, Floats, Positions, frozen
from hubbub.core.errors import shorten
from hubbub.domains.base import Domain

if TYPE_CHECKING:
    from hubbub.domains.grid import Grid

MAX_EXACT_DIAMETER_VALUES = 2000


@dataclass(frozen=True)
class Subset(Domain):
    """Some values of `whole`, in its order, with its labels and distances.

    Unlike other domains, a subset may have a single value: so may the set of observed values.

    Parameters
    ----------
    whole
        The domain that this is a part of.
    kept
        Positions in `whole`, increasing.
    """

    whole: Domain
    kept: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Subset({len(self)} of {self.whole!r})"

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def unrestricted(self) -> Domain:
        """`whole`."""
        return self.whole

    @cached_property
    def positions(self) -> Positions:
        """The positions in `whole` of the kept values."""
        return frozen(np.array(self.kept, dtype=np.int64))

    @property
    def among(self) -> Positions:
        """The positions in `whole` of the kept values."""
        return self.positions

    @cached_property
    def labels(self) -> Array:
        """The kept values."""
        return frozen(self.whole.labels[self.positions])

    def title(self, position: int) -> str:
        """Return the title in `whole`."""
        return self.whole.title(self.kept[position])

    def area_title(self, positions: Positions) -> str:
        """Return the title of the area in `whole`."""
        return self.whole.area_title(self.positions[positions])

    def label_array(self, values: object) -> Array:
        """Return labels as `whole` reads them."""
        return self.whole.label_array(values)

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        inside = self.whole.find(values)
        position_of = np.full(len(self.whole) + 1, -1, dtype=np.int64)  # the last entry answers for -1
        position_of[self.positions] = np.arange(len(self))
        return position_of[inside]

    @property
    def unit(self) -> str | None:
        """The unit of `whole`."""
        return self.whole.unit

    @cached_property
    def diameter(self) -> float:
        """The largest distance among the kept values (for large subsets, that of `whole`)."""
        return float(self.distances().max()) if len(self) <= MAX_EXACT_DIAMETER_VALUES else self.whole.diameter

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return the distances in `whole`."""
        return self.whole.distances_between(self.positions[rows], self.positions[columns])

    def squared_distance(self, first: int, second: int) -> Fraction:
        """Return the squared distance in `whole`."""
        return self.whole.squared_distance(self.kept[first], self.kept[second])

    @property
    def is_equidistant(self) -> bool:
        """As in `whole`."""
        return self.whole.is_equidistant

    @property
    def places(self) -> Floats | None:
        """The places of the kept values."""
        return self._part_of(self.whole.places)

    @property
    def intervals(self) -> Floats | None:
        """The intervals of the kept values."""
        return self._part_of(self.whole.intervals)

    @property
    def grid(self) -> Grid | None:
        """The grid of `whole`."""
        return self.whole.grid

    @property
    def coordinates(self) -> Floats | None:
        """The coordinates of the kept values."""
        return self._part_of(self.whole.coordinates)

    @property
    def steps(self) -> Positions | None:
        """The lattice steps of the kept values."""
        return self._part_of(self.whole.steps)

    def _part_of(self, rows: Array | None) -> Array | None:
        return None if rows is None else rows[self.positions]

    def describe(self) -> str:
        """Return one line for messages."""
        return f"one of the {len(self)} values kept: {shorten(self.labels.tolist())}"
