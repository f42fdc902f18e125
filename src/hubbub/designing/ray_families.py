"""Extreme rays of a policy's cone: the columns of which all mechanisms are made.

A column of K that is not extreme is a sum of extreme ones. To report the extreme ones apart tells at least as much, so
that every goal here has an optimum that is made of extreme rays. How they are found depends on the policy:

* one bound for all pairs: rays have two levels, 1 and e^epsilon: 2^k - 2 of them;
* pairs that form a tree, such as the neighbours on a line: each pair is at its bound in one of two directions, so
  there are 2^(k - 1) rays;
* any other set of pairs: rays are vertices of a polytope, found one at a time by linear programs.

Rays are rows of arrays, scaled to mean 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from hubbub.core.arrays import Floats
from hubbub.designing.privacy_policy import PrivacyPolicy

MAX_LISTED_VALUES = 20  # whose rays are all compared: a million of them
RAYS_PER_BLOCK = 65_536
MAX_DINKELBACH_STEPS = 60
MAX_LOG_RATIO = 300.0  # of two entries of a ray: beyond it, numbers and their squares run out of range


class RayFamily(ABC):
    """The extreme rays of one policy."""

    def __init__(self, policy: PrivacyPolicy) -> None:
        self.policy = policy
        self.values = len(policy.domain)

    @property
    @abstractmethod
    def count(self) -> int | None:
        """How many rays there are; None if nobody counts them."""

    @abstractmethod
    def maximise(self, slopes: Floats) -> Floats:
        """Return, for each row of slopes c, the ray with the largest c . r among those of mean 1."""

    @property
    def is_listed(self) -> bool:
        """Whether the rays are few enough to compare them all."""
        return self.count is not None and self.count <= 2**MAX_LISTED_VALUES

    def blocks(self) -> Iterator[Floats]:
        """Yield all rays, a block at a time; only where they are listed."""
        count = self.count or 0
        for start in range(0, count, RAYS_PER_BLOCK):
            yield self._numbered(np.arange(start, min(start + RAYS_PER_BLOCK, count)))

    def sample(self, count: int, generator: np.random.Generator) -> Floats:
        """Return rays that are best in random directions."""
        return self.maximise(generator.standard_normal((count, self.values)))

    def flipped(self, ray: Floats) -> Floats:
        """Return rays that differ from one ray in a single step; none where there is no such thing."""
        return np.empty((0, ray.size))

    def _numbered(self, numbers: np.ndarray) -> Floats:
        raise NotImplementedError


class TwoLevelRays(RayFamily):
    """All pairs have one bound: a set of values has probability e^epsilon times that of the others."""

    def __init__(self, policy: PrivacyPolicy) -> None:
        super().__init__(policy)
        self.ratio = float(np.exp(policy.bounds[0, 1]))

    @property
    def count(self) -> int:
        """Every set but the empty one and that of all values, which tell nothing."""
        return int(2**self.values - 2)

    def maximise(self, slopes: Floats) -> Floats:
        """Try the values with the largest slopes, for each number of them: no other set can be better."""
        order = np.argsort(-slopes, axis=1, kind="stable")
        ranked = np.take_along_axis(slopes, order, axis=1)
        sizes = np.arange(1, self.values)
        gains = slopes.sum(axis=1, keepdims=True) + (self.ratio - 1) * np.cumsum(ranked, axis=1)[:, :-1]
        totals = self.values + (self.ratio - 1) * sizes
        best = 1 + np.argmax(gains / totals, axis=1)
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(self.values)[None, :], axis=1)
        return self._rays(ranks < best[:, None])

    def flipped(self, ray: Floats) -> Floats:
        """Move each value into the set or out of it."""
        inside = ray > ray.min() * (1 + 1e-12)
        moved = inside[None, :] ^ np.eye(self.values, dtype=bool)
        sizes = moved.sum(axis=1)
        return self._rays(moved[(sizes > 0) & (sizes < self.values)])

    def _numbered(self, numbers: np.ndarray) -> Floats:
        return self._rays(((numbers[:, None] + 1) >> np.arange(self.values)) & 1 == 1)

    def _rays(self, inside: np.ndarray) -> Floats:
        rays = np.where(inside, self.ratio, 1.0)
        return np.asarray(rays / rays.mean(axis=1, keepdims=True))


class TreeRays(RayFamily):
    """The pairs form a tree: along each of its edges a ray rises or falls by the whole bound."""

    def __init__(self, policy: PrivacyPolicy) -> None:
        super().__init__(policy)
        parents = np.full(self.values, -1)
        order = [0]
        neighbours: list[list[int]] = [[] for _ in range(self.values)]
        for first, second in policy.edges.tolist():
            neighbours[first].append(second)
            neighbours[second].append(first)
        for value in order:
            for other in neighbours[value]:
                if other != parents[value]:
                    parents[other] = value
                    order.append(other)
        self.order, self.parents = order, parents
        self.rises = np.array([policy.bounds[value, parents[value]] for value in range(self.values)])
        # below[x, y]: whether y is x, or hangs below it: what moves when the edge above x is turned round
        below = np.eye(self.values, dtype=bool)
        for value in reversed(order[1:]):
            below[parents[value]] |= below[value]
        self.below = below

    @property
    def count(self) -> int:
        """One ray for each direction of each edge."""
        return int(2 ** (self.values - 1))

    def maximise(self, slopes: Floats) -> Floats:
        """Solve max c . r / mean(r) by Dinkelbach's steps: each is exact in one pass from the leaves to the root."""
        levels = np.full(len(slopes), -np.inf)
        rays = np.ones((len(slopes), self.values))
        for _ in range(MAX_DINKELBACH_STEPS):
            new_levels = (slopes * rays).sum(axis=1) / rays.mean(axis=1)
            if (new_levels <= levels + 1e-13 * np.abs(new_levels)).all():
                break
            levels = np.maximum(levels, new_levels)
            worth = slopes - levels[:, None] / self.values  # of each value with what hangs below it
            logs = np.zeros_like(worth)  # by which the worth is to be multiplied: it may be too large for a number
            for value in reversed(self.order[1:]):
                parent = self.parents[value]
                turned = logs[:, value] + np.where(worth[:, value] >= 0, 1.0, -1.0) * self.rises[value]
                larger = np.maximum(logs[:, parent], turned)
                worth[:, parent] *= np.exp(logs[:, parent] - larger)
                worth[:, parent] += np.exp(turned - larger) * worth[:, value]
                logs[:, parent] = larger
            rays = self._rays(np.where(worth >= 0, 1.0, -1.0))
        return rays

    def flipped(self, ray: Floats) -> Floats:
        """Turn each edge round."""
        logs = np.log(ray)
        edges = np.array(self.order[1:])
        steps = logs[edges] - logs[self.parents[edges]]
        moved = logs[None, :] - 2 * steps[:, None] * self.below[edges]
        moved = np.exp(np.maximum(moved - moved.max(axis=1, keepdims=True), -MAX_LOG_RATIO))
        return np.asarray(moved / moved.mean(axis=1, keepdims=True))

    def _numbered(self, numbers: np.ndarray) -> Floats:
        signs = np.ones((len(numbers), self.values))
        signs[:, self.order[1:]] = 1.0 - 2.0 * ((numbers[:, None] >> np.arange(self.values - 1)) & 1)
        return self._rays(signs)

    def _rays(self, signs: Floats) -> Floats:
        logs = np.zeros_like(signs)
        for value in self.order[1:]:
            logs[:, value] = logs[:, self.parents[value]] + signs[:, value] * self.rises[value]
        # A ray that is raised to a level is in the cone, too.
        rays = np.exp(np.maximum(logs - logs.max(axis=1, keepdims=True), -MAX_LOG_RATIO))
        return np.asarray(rays / rays.mean(axis=1, keepdims=True))


class PolytopeRays(RayFamily):
    """Any other policy: the best ray for given slopes is a vertex that a linear program finds."""

    def __init__(self, policy: PrivacyPolicy) -> None:
        super().__init__(policy)
        first, second = policy.edges.T
        factor = np.exp(-policy.bounds[first, second])  # at most 1, so that coefficients stay moderate
        row = np.arange(len(first))
        shape = (len(first), self.values)
        lower = sparse.csr_array((factor, (row, first)), shape=shape) - sparse.csr_array(
            (np.ones(len(row)), (row, second)), shape=shape
        )
        upper = sparse.csr_array((factor, (row, second)), shape=shape) - sparse.csr_array(
            (np.ones(len(row)), (row, first)), shape=shape
        )
        self._limits = sparse.csr_array(sparse.vstack([lower, upper]))
        self._mean = np.full((1, self.values), 1.0 / self.values)
        self._factors = np.exp(-np.minimum(policy.bounds, MAX_LOG_RATIO))

    @property
    def count(self) -> None:
        """Nobody counts them."""

    def maximise(self, slopes: Floats) -> Floats:
        """Solve one linear program for each row."""
        return np.stack([self._vertex(row) for row in slopes])

    def _vertex(self, slopes: Floats) -> Floats:
        size = np.abs(slopes).max() or 1.0
        solved = linprog(  # type: ignore[call-overload]  # which takes sparse arrays, too
            -slopes / size,
            A_ub=self._limits,
            b_ub=np.zeros(self._limits.shape[0]),
            A_eq=self._mean,
            b_eq=[1.0],
            method="highs-ds",
        )
        if solved.x is None:
            raise ArithmeticError(f"no column was found: {solved.message}")
        return self._exact(solved.x)

    def _exact(self, ray: Floats) -> Floats:
        """Repair what the solver's tolerance left: the smallest ray above, which is in the cone to the last digits.

        Entries below the tolerance become what the bounds make of the others. (The largest ray below would make of all
        others what the bounds make of an entry that is wrongly 0.)
        """
        repaired = (self._factors * np.maximum(ray, 0.0)[None, :]).max(axis=1)
        return np.asarray(repaired / repaired.mean())


def rays_of(policy: PrivacyPolicy) -> RayFamily:
    """Return the family of rays that fits a policy."""
    if policy.is_exchangeable:
        return TwoLevelRays(policy)
    return TreeRays(policy) if policy.is_tree else PolytopeRays(policy)
