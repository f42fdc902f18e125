"""The protocol of channels: the likelihood of patterns as a linear operator over the domain.

A channel holds g[x, i] = P(pattern i | value x), with the scale of each pattern kept apart:

    g[x, i] = exp(log_scale[i]) * stored[x, i]

The scales keep products of thousands of probabilities, and outputs thousands of units away, from
underflowing. They cancel in the EM update and in the gap, and add a constant to the log-likelihood.

Stored entries are never negative and at most about 1, and `forward` of a distribution is not negative either: a
likelihood of -1e-17 would have no logarithm. `forward` and `backward` accept a leading batch axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import numpy as np
from scipy import sparse

from hubbub.channels.rounding import UNDERFLOW_NATS, RoundingBound, entry_error, gamma
from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import ReportsError

MAX_DENSE_ENTRIES = 250_000  # 2 MB: up to here a matrix is as quick as any structure
MAX_MATRIX_ENTRIES = 1_000_000_000  # 8 GB
MAX_PART_ENTRIES = 25_000_000  # 200 MB: of a matrix over some of the values
CHUNK_ENTRIES = 4_000_000  # worked on at a time

LogColumns = Callable[[Positions], Floats]  # log-likelihoods of some patterns, values by patterns


_structured_only = False


def prefers_matrix(entries: float, limit: float = MAX_DENSE_ENTRIES) -> bool:
    """Whether a channel with this many entries is better kept as a matrix than by its structure."""
    return entries <= (0 if _structured_only else limit)


@contextmanager
def structured_only() -> Iterator[None]:
    """Keep likelihoods by their structure at every size: for tests that compare them with small, exact matrices."""
    global _structured_only
    before, _structured_only = _structured_only, True
    try:
        yield
    finally:
        _structured_only = before


class Channel(ABC):
    """A linear operator from distributions over values to likelihoods of patterns."""

    values: int
    patterns: int
    log_scale: Floats
    value_groups: Positions | None = None  # of each value, where a mechanism treats only those of a group alike
    max_written_entries: ClassVar[int] = MAX_PART_ENTRIES  # entries up to which `part` writes the matrix out

    @abstractmethod
    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored: (..., values) to (..., patterns)."""

    @abstractmethod
    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio: (..., patterns) to (..., values)."""

    @abstractmethod
    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights: the diagonal of the likelihood's curvature."""

    @abstractmethod
    def rows(self, positions: Positions) -> Floats:
        """Return the stored rows of the values at `positions`, a matrix with a column for each pattern."""

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return how far `fitted`, the result of `forward` for one theta >= 0, may be from the exact sums.

        This bound and the next hold for sums of products in any order; channels that compute otherwise override them.
        """
        return RoundingBound(gamma(np.count_nonzero(theta) + 4))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return how far the result of `backward` for one ratio >= 0 may be from the exact sums."""
        return RoundingBound(gamma(np.count_nonzero(ratio) + 4))

    @property
    def entry_rounding(self) -> float:
        """How far stored entries may be from the mechanism's probabilities, up to the scale of each pattern."""
        return entry_error(float(np.abs(self.log_scale).max(initial=0.0)) + UNDERFLOW_NATS)

    def accurate_forward(self, theta: Floats) -> tuple[Floats, RoundingBound] | None:  # noqa: ARG002
        """Return `forward` for one theta >= 0 with less rounding, but slowly; None where there is no better way."""
        return None

    def merged(self) -> tuple[Channel, Positions] | None:
        """Return a channel of fewer patterns and the place of each pattern in it; None where all differ.

        Patterns whose likelihoods are proportional say the same about the values, and become one.
        """
        return None

    @property
    def local(self) -> bool:
        """Whether neighbouring values have similar likelihoods, so that `local_maxima` are few."""
        return False

    @property
    def entries(self) -> int:
        """The number of entries of the matrix that this channel stands for."""
        return self.values * self.patterns

    def part(self, positions: Positions) -> Channel:
        """Return the channel of some values, with the same patterns and scales: a matrix if that is small enough."""
        from hubbub.channels.composite import RestrictedChannel
        from hubbub.channels.dense import DenseChannel

        if positions.size * self.patterns <= self.max_written_entries:
            logs = self.log_columns
            return DenseChannel(self.rows(positions), self.log_scale, lambda patterns: logs(patterns)[positions])
        return RestrictedChannel(self, positions)

    def near_products(self, weights: Floats) -> sparse.csc_array | None:  # noqa: ARG002
        """Return the larger entries of stored diag(weights) stored', positive semidefinite; None where unknown."""
        return None

    def local_maxima(self, scores: Floats) -> Positions:
        """Return the values whose score no neighbour exceeds, where values have neighbours; all of them otherwise."""
        return np.arange(scores.size)

    def dense(self) -> Floats:
        """Return the stored matrix, values by patterns."""
        check_entries(self.values, self.patterns)
        return self.rows(np.arange(self.values))

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g of some patterns, with -inf where a value cannot give one."""
        logs = np.empty((self.values, patterns.size))
        step = max(1, CHUNK_ENTRIES // max(1, self.patterns))
        with np.errstate(divide="ignore"):
            for first in range(0, self.values, step):
                some = np.arange(first, min(first + step, self.values))
                logs[some] = np.log(self.rows(some)[:, patterns])
        logs += self.log_scale[patterns]
        return logs

    def log_dense(self) -> Floats:
        """Return log g, values by patterns."""
        check_entries(self.values, self.patterns)
        return self.log_columns(np.arange(self.patterns))


def line_maxima(scores: Floats) -> Positions:
    """Return the places of a line whose score neither neighbour exceeds."""
    around = np.pad(scores, 1, constant_values=-np.inf)
    return np.flatnonzero((scores >= around[:-2]) & (scores >= around[2:]))


def check_entries(values: int, patterns: int) -> None:
    """Refuse matrices that do not fit in memory, before they are built."""
    if values * patterns > MAX_MATRIX_ENTRIES:
        raise ReportsError(
            "the channel does not fit in memory",
            where="building the likelihood of the observed patterns",
            got=f"{values:,} values x {patterns:,} distinct patterns: {8e-9 * values * patterns:,.0f} GB",
            expected=f"at most {8e-9 * MAX_MATRIX_ENTRIES:,.0f} GB",
            remedy="use a coarser domain, or a mechanism with a structured channel (k-RR, geometric and Laplace noise "
            "on lines and whole grids, Square Wave, unary, hashed, Hadamard response, sketches)",
        )
