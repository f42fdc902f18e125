"""A channel most of whose entries are 0."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hubbub.channels.base import Channel
from hubbub.channels.rounding import RoundingBound, entry_error, gamma
from hubbub.core.arrays import Floats, Positions, frozen

MAX_SPARSE_DENSITY = 0.1  # share of non-zero entries up to which a sparse matrix is quicker


class SparseChannel(Channel):
    """Likelihoods as a sparse matrix, each pattern's scaled to a maximum of 1."""

    def __init__(self, likelihoods: sparse.csr_array) -> None:
        self.values, self.patterns = likelihoods.shape
        top = np.asarray(likelihoods.max(axis=0).todense()).ravel()
        scale = np.where(top > 0, top, 1.0)  # an impossible column stays all zero
        self.log_scale = frozen(np.log(scale))
        self._by_value = sparse.csr_array(likelihoods / scale[None, :])
        self._by_pattern = sparse.csr_array(self._by_value.T)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        batch = np.atleast_2d(theta.reshape(-1, self.values))
        return np.reshape(np.asarray(self._by_pattern @ batch.T).T, (*theta.shape[:-1], self.patterns))

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        batch = np.atleast_2d(ratio.reshape(-1, self.patterns))
        return np.reshape(np.asarray(self._by_value @ batch.T).T, (*ratio.shape[:-1], self.values))

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for as many terms as a pattern has."""
        return RoundingBound(gamma(int(np.diff(self._by_pattern.indptr).max(initial=0)) + 4))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for as many terms as a value has."""
        return RoundingBound(gamma(int(np.diff(self._by_value.indptr).max(initial=0)) + 4))

    @property
    def entry_rounding(self) -> float:
        """Probabilities divided by the largest of their pattern."""
        return entry_error(0.0)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return np.asarray(self._by_value.power(2) @ weights)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        return np.asarray(self._by_value[positions].todense())
