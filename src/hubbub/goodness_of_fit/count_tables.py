"""Tables of counts whose probabilities follow from theta: cells of users, and sums of bits.

* `CountTable`: each user falls into one cell, and the counts are multinomial with probabilities theta A. The cells are
  all outputs that can be listed, those nobody sent included, or pairs of outputs of one user, whose column is the
  product of two columns.
* `BitMoments`: for each bit, how many reports have a one there. Unary, hashed and subset reports are too many to list,
  but their sets hold value j with probability q + (p - q) theta_j, and the covariance of two bits is known as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Floats, Positions
from hubbub.outputs.output_enumeration import CellText

MIN_CELL_USERS = 5.0  # expected users in a cell above which chi-square is accurate (Cochran); smaller cells are pooled
PILOT_SHARE = 0.2  # of the users, who decide which cells are pooled
MAX_ZERO_EIGENVALUE = 1e-10  # of a covariance, relative to the largest: below, a sum is constant
MAX_NAMED_CELLS = 3  # of a pooled cell


class Whitened(NamedTuple):
    """A table near theta: residual = design' h + standard normal noise, in `dimensions` dimensions."""

    design: Floats  # values by coordinates
    residual: Floats
    dimensions: int


@dataclass(frozen=True, eq=False)
class CountTable:
    """Users in cells: the counts are multinomial with probabilities theta @ probabilities."""

    users: int
    counts: Floats
    probabilities: Floats  # values by cells
    text: CellText  # of a cell as it was before pooling
    pool: Positions | None = None  # the pooled cell that each of those went into

    def likelihood(self) -> tuple[Floats, Floats]:
        """Return columns and their weights, for an estimate of theta."""
        return self.probabilities, self.counts

    def expected(self, theta: Floats) -> Floats:
        """Return the counts that theta predicts."""
        return self.users * (theta @ self.probabilities)

    def variance(self, theta: Floats) -> Floats:
        """Return the variances of the counts."""
        fitted = theta @ self.probabilities
        return self.users * fitted * (1.0 - fitted)

    def pooled(self, theta: Floats) -> CountTable | None:
        """Return the table with the cells pooled that are small under theta; None if fewer than two remain.

        Adding columns of a channel gives a channel: the model stays exact.
        """
        pool = pools(self.expected(theta))
        size = int(pool.max()) + 1
        if size < 2:
            return None
        if size == pool.size:
            return self
        gather = sparse.csr_array((np.ones(pool.size), (np.arange(pool.size), pool)), shape=(pool.size, size))
        counts, probabilities = np.asarray(self.counts @ gather), np.asarray(self.probabilities @ gather)
        return replace(self, counts=counts, probabilities=probabilities, pool=pool)

    def has_small_cells(self, theta: Floats) -> bool:
        """Whether cells are small under theta and have to be pooled."""
        return bool((self.expected(theta) < MIN_CELL_USERS).any())

    def split(self, rng: np.random.Generator) -> tuple[CountTable, CountTable]:
        """Return a pilot sample of the users, drawn at random, and the others: two independent tables."""
        drawn = rng.binomial(self.counts.astype(np.int64), PILOT_SHARE).astype(np.float64)
        size = int(drawn.sum())
        rest = replace(self, users=self.users - size, counts=self.counts - drawn)
        return replace(self, users=size, counts=drawn), rest

    def whitened(self, theta: Floats) -> Whitened:
        """Return design and residual of Pearson's chi-square: covariance diag(f) - ff', on vectors with sum 0."""
        root = np.sqrt(np.maximum(theta @ self.probabilities, 1.0 / self.users))  # a new fit may have emptied a cell
        residual = (self.counts - self.expected(theta)) / (math.sqrt(self.users) * root)
        return Whitened(self.probabilities / root, residual, root.size - 1)

    def cell_text(self, cell: int) -> str:
        """Return what a cell holds, in words."""
        if self.pool is None:
            return self.text(cell)
        members = np.flatnonzero(self.pool == cell)
        first = ", ".join(self.text(int(member)) for member in members[:MAX_NAMED_CELLS])
        return first if members.size <= MAX_NAMED_CELLS else f"{first}, ... ({members.size} together)"

    @property
    def explains_anything(self) -> bool:
        """Whether some theta fits any counts exactly: each cell has a value that always leads to it."""
        certain = self.probabilities.max(axis=0) > 1.0 - MAX_ZERO_EIGENVALUE
        return bool((certain | (self.probabilities.max(axis=0) == 0.0)).all())


@dataclass(frozen=True, eq=False)
class BitMoments(CountTable):
    """Ones of each bit over users: means theta @ probabilities, and known covariances.

    Bits i and j are both one with probability other + (own - other) (theta_i + theta_j): `own` if one of them is the
    bit of the user's value, `other` if neither is.
    """

    own: float = 0.0
    other: float = 0.0
    kept: Positions | None = None  # the bit of each value that theta is over

    def likelihood(self) -> tuple[Floats, Floats]:
        """Return columns as if each bit came from another user: consistent, and all that is needed."""
        columns = np.concatenate([self.probabilities, 1.0 - self.probabilities], axis=1)
        return columns, np.concatenate([self.counts, self.users - self.counts])

    def _covariance(self, theta: Floats) -> Floats:
        mean = theta @ self.probabilities
        shares = theta if self.kept is None else np.bincount(self.kept, weights=theta, minlength=mean.size)
        both = self.other + (self.own - self.other) * (shares[:, None] + shares[None, :])
        np.fill_diagonal(both, mean)
        return both - mean[:, None] * mean[None, :]

    def has_small_cells(self, theta: Floats) -> bool:  # noqa: ARG002  # bits are left out, not pooled
        """Bits are never pooled."""
        return False

    def pooled(self, theta: Floats) -> BitMoments | None:
        """Return the table, or None if every bit has too few ones or zeros for sums to be near normal."""
        return self if (self.variance(theta) >= MIN_CELL_USERS).any() else None

    def whitened(self, theta: Floats) -> Whitened:
        """Return design and residual divided by a root of the covariance, without bits that are nearly constant."""
        useful = self.variance(theta) >= MIN_CELL_USERS
        eigenvalues, eigenvectors = np.linalg.eigh(self._covariance(theta)[np.ix_(useful, useful)])
        free = eigenvalues > MAX_ZERO_EIGENVALUE * eigenvalues[-1]
        root = eigenvectors[:, free] / np.sqrt(eigenvalues[free])
        residual = (self.counts - self.expected(theta))[useful] @ root / math.sqrt(self.users)
        return Whitened(self.probabilities[:, useful] @ root, residual, int(free.sum()))

    @property
    def explains_anything(self) -> bool:
        """False: sums of noisy bits have limits."""
        return False


def pools(expected: Floats) -> Positions:
    """Return the pool of each cell: those below MIN_CELL_USERS are joined with the next such ones."""
    pool = np.full(expected.size, -1, dtype=np.int64)
    large = np.flatnonzero(expected >= MIN_CELL_USERS)
    pool[large] = np.arange(large.size)
    last, held, count = -1, 0.0, large.size
    for cell in np.flatnonzero(expected < MIN_CELL_USERS):
        pool[cell] = count
        held += float(expected[cell])
        if held >= MIN_CELL_USERS:
            last, held, count = count, 0.0, count + 1
    if (pool == count).any():  # the remainder is too small: it joins the pool before, or the smallest cell
        pool[pool == count] = last if last >= 0 else (int(np.argmin(expected[large])) if large.size else 0)
    return pool


def sum_by_position(positions: Positions, counts: Floats, size: int) -> Floats:
    """Add up counts by position."""
    return np.bincount(positions, weights=counts, minlength=size).astype(np.float64)
