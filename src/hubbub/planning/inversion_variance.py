"""Plain inversion, before anything is cut off or projected: it is linear, and its variance has a closed form.

With q the probabilities of the outputs and v = q^ B + c the inverted shares of n users' outputs,

    Var v_x = (sum_z q_z B_zx^2 - (sum_z q_z B_zx)^2) / n,

which is the diagonal of A^-T (diag(q) - q q') A^-1 / n where B is the inverse of the matrix A. Where outputs point at
sets of values (k-RR, RAPPOR, OUE, subset selection, local hashing), which they do with probability p at the true value
and q at another, a share s_x = q + theta_x (p - q) of the reports points at x, and

    Var v_x = s_x (1 - s_x) / (n (p - q)^2).

For k-RR, OUE and the others these are the published variances. What is simulated is held against them, where users are
many enough: with few, and rare values, most studies err less than the formula says and some by far more, so that a
hundred studies tell nothing of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.mechanisms import RandomizedResponse
from hubbub.mechanisms.frequency_oracle import FrequencyOracle, SetValuedOracle, Support
from hubbub.planning.pattern_simulation import PatternTable

MOST_VALUES = 2_000  # whose matrix is inverted here
STEEPEST = 1e8  # condition number beyond which rounding would be measured
NORMAL = 0.1  # the kurtosis of one user's error over the users, below which a study's error is nearly normal


@dataclass(frozen=True, eq=False)
class Inverse:
    """Inversion as a linear map from the shares of listed outputs to values, and the variance that theory gives it."""

    table: PatternTable
    map: Floats  # outputs by values
    offset: float

    @classmethod
    def of(cls, table: PatternTable) -> Inverse | None:
        """Return the inversion of one report per user; None where there is none."""
        mechanism, values = table.mechanism, len(table.mechanism.domain)
        if table.items is not None:
            return None
        if isinstance(mechanism, FrequencyOracle):
            true, other = mechanism.support
            holds = _holds(mechanism, table)
            return None if holds is None else cls(table, holds / (true - other), -other / (true - other))
        if len(table.codes) != values or table.codes.ndim != 1 or values > MOST_VALUES:
            return None
        matrix = mechanism.checked_matrix()
        if np.linalg.cond(matrix) > STEEPEST:
            return None
        return cls(table, np.linalg.inv(matrix)[table.codes].astype(np.float64), 0.0)

    def apply(self, counts: Floats) -> Floats:
        """Return the inverted shares of each study: they may be negative."""
        return np.asarray((counts / counts.sum(axis=1, keepdims=True)) @ self.map + self.offset)

    def variance(self, truth: Floats, users: int) -> Floats:
        """Return the closed form for each value."""
        if isinstance(self.table.mechanism, FrequencyOracle):
            return pointing_variance(self.table.mechanism.support, truth, users)
        shares = self.table.shares(truth)
        return np.asarray((shares @ self.map**2 - (shares @ self.map) ** 2) / users)

    def kurtosis(self, truth: Floats) -> float:
        """Return E|Y|^4 / (E|Y|^2)^2 for the error Y of one user's inverted output."""
        shares = self.table.shares(truth)
        squares = ((self.map + self.offset - truth) ** 2).sum(axis=1)
        mean = float(shares @ squares)
        return float(shares @ squares**2) / mean**2 if mean > 0.0 else np.inf


def _holds(mechanism: FrequencyOracle, table: PatternTable) -> Floats | None:
    """Return which outputs point at which values."""
    size = len(mechanism.domain)
    if isinstance(mechanism, SetValuedOracle):
        return np.unpackbits(mechanism.sets(table.codes), axis=1, count=size).astype(np.float64)
    if isinstance(mechanism, RandomizedResponse):
        return np.eye(size)[table.codes]
    return None


def pointing_variance(support: Support, truth: Floats, users: int) -> Floats:
    """Return s (1 - s) / (n (p - q)^2) for each value."""
    true, other = support
    pointed = other + truth * (true - other)
    return np.asarray(pointed * (1.0 - pointed) / (users * (true - other) ** 2))


def pointing_kurtosis(support: Support, truth: Floats) -> float:
    """Return a bound on the same where outputs point at sets: the largest square over the mean one."""
    true, other = support
    pointed = other + truth * (true - other)
    mean = float((pointed * (1.0 - pointed)).sum())
    return float((np.maximum(pointed, 1.0 - pointed) ** 2).sum()) / mean if mean > 0.0 else np.inf


def ratio(squares: Floats, variance: Floats) -> float | None:
    """Return the measured over the predicted standard deviation, from the squares of errors of each study."""
    predicted = float(variance.sum())
    if squares.size == 0 or not predicted > 0.0:
        return None
    return float(np.sqrt(squares.mean() / predicted))
