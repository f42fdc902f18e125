"""Symmetric matrices that are a diagonal plus few dyads: covariances and information of frequency oracles.

Sums, inverses and products A S A of such matrices are of the same kind, so that thousands of values take no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats


@dataclass(frozen=True, eq=False)
class DiagonalPlusDyads:
    """diag(d) + F' C F, with the rows of F as factors."""

    diagonal: Floats
    factors: Floats  # rank by values
    core: Floats  # rank by rank, symmetric

    def __add__(self, other: DiagonalPlusDyads) -> DiagonalPlusDyads:
        """Return the sum."""
        ranks = len(self.core), len(other.core)
        core = np.zeros((sum(ranks), sum(ranks)))
        core[: ranks[0], : ranks[0]], core[ranks[0] :, ranks[0] :] = self.core, other.core
        return DiagonalPlusDyads(self.diagonal + other.diagonal, np.concatenate([self.factors, other.factors]), core)

    def __mul__(self, factor: float) -> DiagonalPlusDyads:
        """Return a multiple."""
        return DiagonalPlusDyads(factor * self.diagonal, self.factors, factor * self.core)

    def __matmul__(self, right: Floats) -> Floats:
        """Return the product with a vector, or with the columns of a matrix."""
        diagonal = self.diagonal if right.ndim == 1 else self.diagonal[:, None]
        return np.asarray(diagonal * right + self.factors.T @ (self.core @ (self.factors @ right)))

    def plus(self, core: Floats, *factors: Floats) -> DiagonalPlusDyads:
        """Return the sum with F' C F for other factors."""
        return self + DiagonalPlusDyads(np.zeros_like(self.diagonal), np.stack(factors), core)

    def scaled(self, factor: Floats) -> DiagonalPlusDyads:
        """Return the product with diag(factor) from both sides."""
        return DiagonalPlusDyads(factor**2 * self.diagonal, factor * self.factors, self.core)

    def inverse(self) -> DiagonalPlusDyads:
        """Return the inverse, by Woodbury's identity."""
        spread = self.factors / self.diagonal
        square = np.eye(len(self.core)) + self.core @ (spread @ self.factors.T)
        core = -np.linalg.solve(square, self.core)
        return DiagonalPlusDyads(1.0 / self.diagonal, spread, (core + core.T) / 2)

    def around(self, inner: DiagonalPlusDyads) -> DiagonalPlusDyads:
        """Return the product A S A, with A this matrix and S the inner one.

        With A = a + F' C F and S = s + G' K G, it is a^2 s + F' C (a s F) + (a s F)' C F + F' C F s F' C F and
        (A G') K (A G')'.
        """
        weighted = self.diagonal * inner.diagonal * self.factors
        rank = len(self.core)
        core = np.zeros((2 * rank, 2 * rank))
        core[:rank, rank:], core[rank:, :rank] = self.core, self.core
        core[:rank, :rank] = self.core @ (self.factors * inner.diagonal @ self.factors.T) @ self.core
        own = DiagonalPlusDyads(self.diagonal**2 * inner.diagonal, np.concatenate([self.factors, weighted]), core)
        return own + DiagonalPlusDyads(np.zeros_like(self.diagonal), (self @ inner.factors.T).T, inner.core)
