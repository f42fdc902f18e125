"""A channel kept as a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from hubbub.channels.base import CHUNK_ENTRIES, Channel, LogColumns, check_entries
from hubbub.channels.rounding import RoundingBound, entry_error, gamma
from hubbub.core.arrays import Floats, Positions, frozen

MAX_SUMMED_PATTERNS = 65_536  # in one product


class DenseChannel(Channel):
    """A stored matrix with the log of each column's scale, and exact logarithms where `log_columns` gives them."""

    def __init__(
        self, matrix: Floats, log_scale: Floats, log_columns: LogColumns | None = None, *, terms: int = 1
    ) -> None:
        self.values, self.patterns = matrix.shape
        self._log_columns = log_columns  # exact where exp has underflowed to 0
        self._terms = terms  # logarithms that were added for each entry
        self.matrix, self.log_scale = frozen(matrix), frozen(log_scale)

    @classmethod
    def from_logs(
        cls, values: int, patterns: int, log_columns: Callable[[slice | Positions], Floats], *, terms: int = 1
    ) -> DenseChannel:
        """Return the matrix of likelihoods whose logarithms are given, each column scaled to a maximum of 1."""
        # Some patterns at a time: what it takes to compute logs need not fit beside the matrix.
        check_entries(values, patterns)
        matrix, log_scale = np.empty((values, patterns)), np.zeros(patterns)
        step = max(1, CHUNK_ENTRIES // max(1, values))
        for first in range(0, patterns, step):
            part = slice(first, min(first + step, patterns))
            logs = log_columns(part)
            top = logs.max(axis=0)
            log_scale[part] = np.where(np.isfinite(top), top, 0.0)  # an impossible column stays all zero
            matrix[:, part] = np.exp(logs - log_scale[part])
        return cls(matrix, log_scale, log_columns, terms=terms)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return theta @ self.matrix

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio, some patterns at a time where they are many: rounding then has a smaller bound."""
        if self.patterns <= MAX_SUMMED_PATTERNS:
            return ratio @ self.matrix.T
        gathered = np.zeros((*ratio.shape[:-1], self.values))
        for first in range(0, self.patterns, MAX_SUMMED_PATTERNS):
            part = slice(first, first + MAX_SUMMED_PATTERNS)
            gathered += ratio[..., part] @ self.matrix[:, part].T
        return gathered

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the bound for sums over some patterns at a time."""
        sums = -(-self.patterns // MAX_SUMMED_PATTERNS)
        return RoundingBound(gamma(min(int(np.count_nonzero(ratio)), MAX_SUMMED_PATTERNS) + sums + 4))

    @cached_property
    def entry_rounding(self) -> float:
        """From the smallest entry that is not 0."""
        least, step = 1.0, max(1, CHUNK_ENTRIES // max(1, self.patterns))
        for first in range(0, self.values, step):
            some = self.matrix[first : first + step]
            least = min(least, float(some.min(initial=1.0, where=some > 0.0)))
        return entry_error(float(np.abs(self.log_scale).max(initial=0.0)) - math.log(least), self._terms)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return np.asarray(np.einsum("xi,xi,i->x", self.matrix, self.matrix, weights))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        chosen: Floats = self.matrix[positions]
        return chosen

    def dense(self) -> Floats:
        """Return the matrix itself."""
        return self.matrix

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g as it was given, also where exp has flushed it to 0."""
        return super().log_columns(patterns) if self._log_columns is None else self._log_columns(patterns)
