"""A channel kept as a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from hubbub.channels.base import PART, Channel, LogColumns, check_entries
from hubbub.channels.rounding import Rounding, entries, gamma
from hubbub.core.arrays import Floats, Positions, frozen

MOST_IN_ONE_SUM = 65_536  # patterns that are added up in one product


class Stored(Channel):
    """A matrix as it is to be stored, with the log of each column's factor, and exact logarithms for those who ask."""

    def __init__(
        self, matrix: Floats, log_scale: Floats, log_columns: LogColumns | None = None, *, terms: int = 1
    ) -> None:
        self.values, self.patterns = matrix.shape
        self._log_columns = log_columns  # what exp has flushed to 0 can still be asked for
        self._terms = terms  # logarithms that were added for each entry
        self.matrix, self.log_scale = frozen(matrix), frozen(log_scale)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return theta @ self.matrix

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio, some patterns at a time where they are many: rounding then has a smaller bound."""
        if self.patterns <= MOST_IN_ONE_SUM:
            return ratio @ self.matrix.T
        gathered = np.zeros((*ratio.shape[:-1], self.values))
        for first in range(0, self.patterns, MOST_IN_ONE_SUM):
            part = slice(first, first + MOST_IN_ONE_SUM)
            gathered += ratio[..., part] @ self.matrix[:, part].T
        return gathered

    def backward_rounding(self, ratio: Floats) -> Rounding:
        """Return the bound for sums over some patterns at a time."""
        sums = -(-self.patterns // MOST_IN_ONE_SUM)
        return Rounding(gamma(min(int(np.count_nonzero(ratio)), MOST_IN_ONE_SUM) + sums + 4))

    @cached_property
    def entry_rounding(self) -> float:
        """From the smallest entry that is not 0."""
        least, step = 1.0, max(1, PART // max(1, self.patterns))
        for first in range(0, self.values, step):
            some = self.matrix[first : first + step]
            least = min(least, float(some.min(initial=1.0, where=some > 0.0)))
        return entries(float(np.abs(self.log_scale).max(initial=0.0)) - math.log(least), self._terms)

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


class Dense(Stored):
    """A matrix of likelihoods, one column for each pattern, each column scaled to a maximum of 1."""

    def __init__(
        self, values: int, patterns: int, log_columns: Callable[[slice | Positions], Floats], *, terms: int = 1
    ) -> None:
        # Some patterns at a time: what it takes to compute logs need not fit beside the matrix.
        check_entries(values, patterns)
        matrix, log_scale = np.empty((values, patterns)), np.zeros(patterns)
        step = max(1, PART // max(1, values))
        for first in range(0, patterns, step):
            part = slice(first, min(first + step, patterns))
            logs = log_columns(part)
            top = logs.max(axis=0)
            log_scale[part] = np.where(np.isfinite(top), top, 0.0)  # an impossible column stays all zero
            matrix[:, part] = np.exp(logs - log_scale[part])
        super().__init__(matrix, log_scale, log_columns, terms=terms)


class Chosen(Channel):
    """Some values of another channel, as an operator: what stands at the others is 0."""

    def __init__(self, whole: Channel, positions: Positions) -> None:
        self.values, self.patterns, self.log_scale = positions.size, whole.patterns, whole.log_scale
        self.whole, self.positions = whole, positions

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return self.whole.forward(self._spread(theta))

    def _spread(self, theta: Floats) -> Floats:
        spread = np.zeros((*theta.shape[:-1], self.whole.values))
        spread[..., self.positions] = theta
        return spread

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        chosen: Floats = self.whole.backward(ratio)[..., self.positions]
        return chosen

    def forward_rounding(self, theta: Floats, fitted: Floats) -> Rounding:
        """Return that of the other channel."""
        return self.whole.forward_rounding(self._spread(theta), fitted)

    def backward_rounding(self, ratio: Floats) -> Rounding:
        """Return that of the other channel."""
        relative, absolute = self.whole.backward_rounding(ratio)
        return Rounding(relative, absolute if isinstance(absolute, float) else absolute[self.positions])

    @property
    def entry_rounding(self) -> float:
        """That of the other channel."""
        return self.whole.entry_rounding

    def careful_forward(self, theta: Floats) -> tuple[Floats, Rounding] | None:
        """Return what the other channel knows."""
        return self.whole.careful_forward(self._spread(theta))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        chosen: Floats = self.whole.squares(weights)[self.positions]
        return chosen

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        return self.whole.rows(self.positions[positions])

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g of some patterns."""
        chosen: Floats = self.whole.log_columns(patterns)[self.positions]
        return chosen
