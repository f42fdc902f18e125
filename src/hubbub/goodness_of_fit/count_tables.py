"""Counts whose chances follow from theta, to be held against them: cells of a table, and sums of bits.

* A `CountTable`: each user fell into one cell; the counts are multinomial with chances theta A. Outputs that can be
  listed, those nobody sent included, and pairs of outputs of one user, whose column is the product of two columns.
* `Moments`: for each bit, how many reports have a one there. Unary, hashed and subset reports are too many to list, but
  their sets hold value j with chance q + (p - q) theta_j, and the covariance of two bits is known as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Floats, Positions

ENOUGH = 5.0  # users expected in a cell from which chi-square is close (Cochran); cells with fewer are pooled
PILOT = 0.2  # of the users, who decide which cells are pooled
PLAIN = 1e-10  # eigenvalues of a covariance, relative to the largest, below which it is 0: a sum that is fixed

Text = Callable[[int], str]


class Whitened(NamedTuple):
    """What one table says of theta: residual = design' h + standard normal noise, in so many dimensions."""

    design: Floats  # values by coordinates
    residual: Floats
    dimensions: int


@dataclass(frozen=True, eq=False)
class CountTable:
    """Users in cells: counts are multinomial with chances theta @ chances."""

    users: int
    counts: Floats
    chances: Floats  # values by cells
    text: Text  # of one cell as it was before pooling
    pool: Positions | None = None  # the cell that each of those went into

    def likelihood(self) -> tuple[Floats, Floats]:
        """Return columns and their weights, for an estimate of theta."""
        return self.chances, self.counts

    def expected(self, theta: Floats) -> Floats:
        """Return the counts that theta lets expect."""
        return self.users * (theta @ self.chances)

    def variance(self, theta: Floats) -> Floats:
        """Return the variances of the counts."""
        fitted = theta @ self.chances
        return self.users * fitted * (1.0 - fitted)

    def pooled(self, theta: Floats) -> CountTable | None:
        """Return the table with small cells pooled, by what theta lets expect; None where fewer than two remain.

        Adding columns of a channel gives a channel: the model stays exact.
        """
        pool = pools(self.expected(theta))
        size = int(pool.max()) + 1
        if size < 2:
            return None
        if size == pool.size:
            return self
        gather = sparse.csr_array((np.ones(pool.size), (np.arange(pool.size), pool)), shape=(pool.size, size))
        counts, chances = np.asarray(self.counts @ gather), np.asarray(self.chances @ gather)
        return replace(self, counts=counts, chances=chances, pool=pool)

    def has_small_cells(self, theta: Floats) -> bool:
        """Whether cells have to be pooled, by what theta lets expect."""
        return bool((self.expected(theta) < ENOUGH).any())

    def split(self, rng: np.random.Generator) -> tuple[CountTable, CountTable]:
        """Return a part of the users, drawn at random, and the others: two tables that know nothing of each other."""
        drawn = rng.binomial(self.counts.astype(np.int64), PILOT).astype(np.float64)
        some = int(drawn.sum())
        return replace(self, users=some, counts=drawn), replace(
            self, users=self.users - some, counts=self.counts - drawn
        )

    def whitened(self, theta: Floats) -> Whitened:
        """Return design and residual of Pearson's chi-square: covariance diag(f) - ff', on vectors with sum 0."""
        root = np.sqrt(np.maximum(theta @ self.chances, 1.0 / self.users))  # a new fit may have emptied a cell
        residual = (self.counts - self.expected(theta)) / (math.sqrt(self.users) * root)
        return Whitened(self.chances / root, residual, root.size - 1)

    def words(self, cell: int) -> str:
        """Return what a cell holds."""
        if self.pool is None:
            return self.text(cell)
        members = np.flatnonzero(self.pool == cell)
        few = ", ".join(self.text(int(member)) for member in members[:3])
        return few if members.size <= 3 else f"{few}, ... ({members.size} together)"

    @property
    def explains_anything(self) -> bool:
        """Whether every distribution of cells has a theta: some value gives each cell with certainty."""
        certain = self.chances.max(axis=0) > 1.0 - PLAIN
        return bool((certain | (self.chances.max(axis=0) == 0.0)).all())


@dataclass(frozen=True, eq=False)
class Moments(CountTable):
    """Ones of each bit over users: means theta @ chances, and known covariances.

    Bits i and j are both one with chance other + (own - other) (theta_i + theta_j): `own` where one of them is the
    value's own bit, `other` where none is.
    """

    own: float = 0.0
    other: float = 0.0
    kept: Positions | None = None  # the bits of the values that theta is over

    def likelihood(self) -> tuple[Floats, Floats]:
        """Return columns as if each bit came from a user of its own: consistent, and all that is needed."""
        columns = np.concatenate([self.chances, 1.0 - self.chances], axis=1)
        return columns, np.concatenate([self.counts, self.users - self.counts])

    def _covariance(self, theta: Floats) -> Floats:
        mean = theta @ self.chances
        shares = np.zeros(mean.size)
        shares[slice(None) if self.kept is None else self.kept] = theta
        both = self.other + (self.own - self.other) * (shares[:, None] + shares[None, :])
        np.fill_diagonal(both, mean)
        return both - mean[:, None] * mean[None, :]

    def variance(self, theta: Floats) -> Floats:
        """Return the variances of the sums."""
        mean = theta @ self.chances
        return self.users * mean * (1.0 - mean)

    def has_small_cells(self, theta: Floats) -> bool:  # noqa: ARG002  # bits are left out, not pooled
        """Bits are never pooled."""
        return False

    def pooled(self, theta: Floats) -> Moments | None:
        """Leave out bits with too few ones, or zeros, for sums to be near normal; None where none remains."""
        return self if (self.variance(theta) >= ENOUGH).any() else None

    def whitened(self, theta: Floats) -> Whitened:
        """Return design and residual divided by a root of the covariance."""
        useful = self.variance(theta) >= ENOUGH
        sizes, axes = np.linalg.eigh(self._covariance(theta)[np.ix_(useful, useful)])
        free = sizes > PLAIN * sizes[-1]
        root = axes[:, free] / np.sqrt(sizes[free])
        residual = (self.counts - self.expected(theta))[useful] @ root / math.sqrt(self.users)
        return Whitened(self.chances[:, useful] @ root, residual, int(free.sum()))

    @property
    def explains_anything(self) -> bool:
        """Sums of noisy bits have limits."""
        return False


def pools(expected: Floats) -> Positions:
    """Return for each cell where it goes: those with fewer than ENOUGH are joined with the next such ones."""
    pool = np.full(expected.size, -1, dtype=np.int64)
    large = np.flatnonzero(expected >= ENOUGH)
    pool[large] = np.arange(large.size)
    last, held, count = -1, 0.0, large.size
    for cell in np.flatnonzero(expected < ENOUGH):
        pool[cell] = count
        held += float(expected[cell])
        if held >= ENOUGH:
            last, held, count = count, 0.0, count + 1
    if (pool == count).any():  # what remains is too little: it joins the pool before, or the smallest cell
        pool[pool == count] = last if last >= 0 else (int(np.argmin(expected[large])) if large.size else 0)
    return pool
