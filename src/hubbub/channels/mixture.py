"""Patterns that may have come about in several ways: the sum of several channels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hubbub.channels.base import CHUNK_ENTRIES, Channel
from hubbub.channels.kronecker import KroneckerChannel
from hubbub.channels.rounding import RoundingBound, gamma
from hubbub.core.arrays import Floats, Positions, frozen


class MixtureChannel(Channel):
    """The sum of products over the same values and patterns; each has the probability of its way as a factor."""

    def __init__(self, terms: Sequence[KroneckerChannel]) -> None:
        self.terms = tuple(terms)
        self.values, self.patterns = self.terms[0].values, self.terms[0].patterns
        scales = np.stack([term.log_scale for term in self.terms])
        self.log_scale = frozen(scales.max(axis=0))
        self._shares = np.exp(scales - self.log_scale)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return np.asarray(sum(own * term.forward(theta) for term, own in zip(self.terms, self._shares, strict=True)))

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return np.asarray(sum(term.backward(own * ratio) for term, own in zip(self.terms, self._shares, strict=True)))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        return np.asarray(sum(own * term.rows(positions) for term, own in zip(self.terms, self._shares, strict=True)))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights: squares of terms, and twice the product of each pair of terms."""
        if self._pairs is None:
            return self._squares_of_rows(weights)
        total = np.zeros(self.values)
        for term, own in zip(self.terms, self._shares, strict=True):
            total += term.squares(own**2 * weights)
        for (first, second), product in self._pairs.items():
            total += 2.0 * product.backward(self._shares[first] * self._shares[second] * weights)
        return total

    @cached_property
    def _pairs(self) -> dict[tuple[int, int], Channel] | None:
        """The products of each pair of terms, up to their scales; None where two terms share an axis."""
        products: dict[tuple[int, int], Channel] = {}
        for pair in itertools.combinations(range(len(self.terms)), 2):
            product = self.terms[pair[0]].times(self.terms[pair[1]])
            if product is None:
                return None
            products[pair] = product
        return products

    def _squares_of_rows(self, weights: Floats) -> Floats:
        """Return the squares from some rows at a time."""
        gathered = np.empty(self.values)
        step = max(1, CHUNK_ENTRIES // max(1, self.patterns))
        for first in range(0, self.values, step):
            some = np.arange(first, min(first + step, self.values))
            gathered[some] = self.rows(some) ** 2 @ weights
        return gathered

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:
        """Return the largest bound of a term, and that of adding them up."""
        return self._added([term.forward_rounding(theta, fitted) for term in self.terms])

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the largest bound of a term, and that of adding them up."""
        pairs = zip(self.terms, self._shares, strict=True)
        return self._added([term.backward_rounding(own * ratio) for term, own in pairs])

    def _added(self, bounds: Sequence[RoundingBound]) -> RoundingBound:
        adding = 1.0 + gamma(len(bounds) + 4)
        return RoundingBound(max(bound.relative for bound in bounds) * adding + adding - 1.0)

    @property
    def entry_rounding(self) -> float:
        """The largest of all terms, and that of adding them up."""
        return max(term.entry_rounding for term in self.terms) + gamma(len(self.terms) + 20.0)
