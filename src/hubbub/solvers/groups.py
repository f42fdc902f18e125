"""Groups of values: a vector that consists of several distributions, one after the other.

Solvers keep the sum of each group at 1 by a border of the Newton system. With one group, of all values, this is the
plain sum over a distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, Positions


@dataclass(frozen=True)
class Groups:
    """Where each group starts, in ascending order; it ends where the next one starts."""

    starts: tuple[int, ...]

    def sums(self, numbers: Floats) -> Floats:
        """Return the sum over each group, along the last axis."""
        return np.asarray(np.add.reduceat(numbers, self.starts, axis=-1))

    def least(self, numbers: Floats) -> Floats:
        """Return the smallest number of each group."""
        return np.asarray(np.minimum.reduceat(numbers, self.starts))

    def largest(self, numbers: Floats) -> Floats:
        """Return the largest number of each group."""
        return np.asarray(np.maximum.reduceat(numbers, self.starts))

    def spread(self, numbers: Floats, size: int) -> Floats:
        """Return a vector of `size` with the number of its group at each place."""
        return np.repeat(numbers, self._lengths(size))

    def normalised(self, numbers: Floats) -> Floats:
        """Return the numbers divided by the sum of their group."""
        return np.asarray(numbers / self.spread(self.sums(numbers), numbers.size))

    def among(self, chosen: Positions) -> Groups:
        """Return where each group starts among some of the places, which are in ascending order."""
        return Groups(tuple(np.searchsorted(chosen, self.starts).tolist()))

    def borders(self, size: int) -> Floats:
        """Return a row for each group: 1 at its places, 0 elsewhere."""
        return np.repeat(np.eye(len(self.starts)), self._lengths(size), axis=1)

    def _lengths(self, size: int) -> Positions:
        return np.diff(self.starts, append=size)


ONE_GROUP = Groups((0,))
