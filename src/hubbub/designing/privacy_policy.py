"""Privacy policies: how much more likely an output may be for one value than for another.

A policy is a bound on the log-ratio of each pair of values. What mechanisms may do under it is a cone: the column of
every output, P(output | value) over the values, lies in ::

    K = { r >= 0 : r[x] <= exp(bounds[x, y]) r[y] for all x, y }

and a mechanism is a set of columns in K that sum to 1 for every value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import shortest_path

from hubbub.core.arrays import Floats, Positions
from hubbub.core.serialization import Portable
from hubbub.domains import Domain

PLAIN, METRIC, PAIRS = "plain", "metric", "pairs"
IMPLIED = 1e-9  # relative: a bound that a chain of others gives, up to rounding, adds nothing
# Designs keep this far below their bounds, so that rounding to whole numbers cannot carry a ratio above them.
ROUNDING_ROOM = 1e-9


@dataclass(frozen=True, eq=False)
class PrivacyPolicy(Portable):
    """Bounds on log-ratios between the values of a domain, closed under chains: b[x, z] <= b[x, y] + b[y, z].

    `bounds` is symmetric and finite, with zeros on its diagonal.
    """

    domain: Domain
    kind: str  # PLAIN, METRIC or PAIRS
    epsilon: float
    bounds: Floats

    @classmethod
    def plain(cls, domain: Domain, epsilon: float) -> PrivacyPolicy:
        """Return the policy of local differential privacy: one bound for all pairs."""
        size = len(domain)
        return cls(domain, PLAIN, epsilon, epsilon * (1.0 - np.eye(size)))

    @classmethod
    def metric(cls, domain: Domain, epsilon: float) -> PrivacyPolicy:
        """Return the policy of d-privacy: epsilon times the distance of a pair."""
        return cls(domain, METRIC, epsilon, epsilon * domain.distances())

    @classmethod
    def of_pairs(cls, domain: Domain, pairs: Mapping[tuple[int, int], float]) -> PrivacyPolicy:
        """Return the policy of pairs of positions, each with its own positive bound, in both directions.

        Values that no chain of pairs connects have an infinite bound, which callers must refuse.
        """
        size = len(domain)
        bounds = np.zeros((size, size))  # 0 where no pair is given
        for (first, second), bound in pairs.items():
            bounds[first, second] = bounds[second, first] = bound
        return cls(domain, PAIRS, max(pairs.values()), shortest_path(bounds, directed=False))

    @property
    def is_exchangeable(self) -> bool:
        """Whether all pairs have one bound, so that values may be permuted."""
        size = len(self.domain)
        others = self.bounds[~np.eye(size, dtype=bool)]
        return bool(np.ptp(others) <= IMPLIED * others.max()) if others.size else True

    @cached_property
    def edges(self) -> Positions:
        """The pairs (first < second) that imply all others, in rows."""
        size = len(self.domain)
        implied = np.zeros((size, size), dtype=bool)
        for middle in range(size):
            chain = self.bounds[:, middle, None] + self.bounds[None, middle, :]
            shorter = chain <= self.bounds * (1 + IMPLIED)
            shorter[middle, :] = shorter[:, middle] = False
            implied |= shorter
        return np.argwhere(np.triu(~implied, 1))

    @property
    def is_tree(self) -> bool:
        """Whether the edges form no circle, so that each of them is tight in one of two directions."""
        return len(self.edges) == len(self.domain) - 1

    def contains(self, columns: Floats, *, tolerance: float = 1e-9) -> bool:
        """Whether all columns (rows of the array) are in the cone, up to a relative tolerance."""
        for first, second in self.edges.tolist():
            limit = np.exp(self.bounds[first, second]) * (1 + tolerance)
            left, right = columns[:, first], columns[:, second]
            if (left > limit * right).any() or (right > limit * left).any():
                return False
        return bool((columns >= 0).all())

    def with_room(self, columns: Floats) -> Floats:
        """Return columns of the cone that are a little flatter, so that rounding leaves them within the bounds."""
        return np.asarray(columns ** (1 - ROUNDING_ROOM))
