"""Log-linear models of a table: log theta is a sum of terms, each of which depends on a few attributes alone.

With one term for each attribute they are independent; with one for each pair, no three of them interact. A distribution
of the model is found from its margins by iterative proportional fitting: one margin after the other is set right by
multiplying. Combinations that are impossible stay so, and independence is then quasi-independence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains.product_shape import ProductShape

MAX_SWEEPS, SWEEP_TOL = 1_000, 1e-13  # of iterative proportional fitting; the largest change of a share, relative


@dataclass(frozen=True, eq=False)
class LogLinearModel:
    """The distributions over a product whose logarithms are sums of terms of some margins (sets of attributes)."""

    shape: ProductShape
    margins: tuple[tuple[int, ...], ...]

    def m_step(self, theta: Floats, shares: Floats) -> Floats:
        """Return theta (rows by values, of the model), after each margin in turn was set to that of `shares`.

        In an update of EM this raises the likelihood, and where margins do not overlap, all is done by it.
        """
        theta, shares = self.shape.boxed(theta), self.shape.boxed(shares)
        for margin in self.margins:
            theta = theta * self._ratio(shares, theta, margin)
        return self.shape.unboxed(theta)

    def with_margins_of(self, theta: Floats) -> Floats:
        """Return the distributions of the model that have the margins of theta (rows by values).

        Of all with these margins, they have the largest entropy: they assume no more about how attributes go together.
        """
        start = fitted = np.full_like(theta, 1.0 / self.shape.values)
        for _ in range(MAX_SWEEPS):
            start, fitted = fitted, self.m_step(fitted, theta)
            if np.abs(fitted - start).max() <= SWEEP_TOL * fitted.max():
                break
        return np.asarray(fitted / fitted.sum(axis=1, keepdims=True))

    def _ratio(self, above: Floats, below: Floats, margin: Sequence[int]) -> Floats:
        others = tuple(place + 1 for place in range(len(self.shape.sides)) if place not in margin)
        wanted, present = above.sum(axis=others, keepdims=True), below.sum(axis=others, keepdims=True)
        return np.asarray(np.divide(wanted, present, out=np.zeros_like(wanted), where=present > 0.0))
