"""The variance of matrix inversion, before negative shares are cut off or projected: it is linear, with a closed form.

With q the probabilities of the outputs and v = q^ B + c the inverted shares of n users' outputs,

    Var v_x = (sum_z q_z B_zx^2 - (sum_z q_z B_zx)^2) / n,

which is the diagonal of A^-T (diag(q) - q q') A^-1 / n where B is the inverse of the matrix A, and of the same with the
weighted left inverse where outputs outnumber values. The outputs of frequency
oracles (k-RR, RAPPOR, OUE, subset selection, local hashing) support sets of values, with probability p the true value
and with probability q any other one. A share s_x = q + theta_x (p - q) of the reports then supports x, and

    Var v_x = s_x (1 - s_x) / (n (p - q)^2).

For k-RR, OUE and the others these are the published variances. Simulated studies are compared with them where there are
enough users: with few users and rare values most studies err less than the formula says and some far more, so that the
mean of a hundred studies says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.mechanisms import HadamardResponse, RandomizedResponse
from hubbub.mechanisms.frequency_oracle import FrequencyOracle, SetValuedOracle, Support
from hubbub.mechanisms.sketches import Sketch
from hubbub.planning.pattern_simulation import PatternTable

MAX_MATRIX_VALUES = 2_000  # of a matrix that is inverted here
MAX_CONDITION = 1e8  # beyond this condition number, rounding would dominate
MAX_KURTOSIS_PER_USER = 0.1  # kurtosis of one user's error over users; below it, a study's error is nearly normal


@dataclass(frozen=True, eq=False)
class InversionMap:
    """Inversion as a linear map from the shares of enumerated outputs to values, and its variance."""

    table: PatternTable
    map: Floats  # outputs by values
    offset: float

    @classmethod
    def of(cls, table: PatternTable) -> InversionMap | None:
        """Return the inversion of one report per user; None where there is none."""
        mechanism, values = table.mechanism, len(table.mechanism.domain)
        if table.members is not None:
            return None
        if isinstance(mechanism, FrequencyOracle):
            return cls._of_oracle(mechanism, table)
        if len(table.codes) < values or table.codes.ndim != 1 or values > MAX_MATRIX_VALUES:
            return None
        matrix = table.matrix()
        if len(table.codes) == values:
            if np.linalg.cond(matrix) > MAX_CONDITION:
                return None
            return cls(table, np.linalg.inv(matrix)[table.codes].astype(np.float64), 0.0)
        fitted = matrix.mean(axis=0)  # more outputs than values: weighted as at equal shares (weighted_inversion)
        if not fitted.min() > 0.0 or np.linalg.cond(matrix / np.sqrt(fitted)) > MAX_CONDITION:
            return None
        inverse = np.linalg.pinv((matrix / np.sqrt(fitted)).T).T / np.sqrt(fitted)[:, None]
        return cls(table, inverse.astype(np.float64), 0.0)  # patterns are in the order of outputs

    @classmethod
    def _of_oracle(cls, mechanism: FrequencyOracle, table: PatternTable) -> InversionMap | None:
        """Return how many outputs hold each value, less those that would without it."""
        true, other = mechanism.support
        if isinstance(mechanism, HadamardResponse | Sketch):
            held = np.stack([mechanism.support_counts(table.codes[[at]], np.ones(1)) for at in range(len(table.codes))])
            constant = mechanism.unbiased_shares(np.zeros(held.shape[1]), 1.0)
            linear = [mechanism.unbiased_shares(own, 1.0) - constant for own in np.eye(held.shape[1])]
            return cls(table, held @ np.stack(linear) + constant, 0.0)
        supported = _supported_values(mechanism, table)
        return None if supported is None else cls(table, supported / (true - other), -other / (true - other))

    def apply(self, counts: Floats) -> Floats:
        """Return the inverted shares of each study, which may be negative."""
        return np.asarray((counts / counts.sum(axis=1, keepdims=True)) @ self.map + self.offset)

    def variance(self, truth: Floats, users: int) -> Floats:
        """Return the closed form for each value."""
        shares = self.table.shares(truth)
        return np.asarray((shares @ self.map**2 - (shares @ self.map) ** 2) / users)

    def kurtosis(self, truth: Floats) -> float:
        """Return E|Y|^4 / (E|Y|^2)^2 for the error Y of one user's inverted output."""
        shares = self.table.shares(truth)
        squares = ((self.map + self.offset - truth) ** 2).sum(axis=1)
        mean = float(shares @ squares)
        return float(shares @ squares**2) / mean**2 if mean > 0.0 else np.inf


def _supported_values(mechanism: FrequencyOracle, table: PatternTable) -> Floats | None:
    """Return which outputs (rows) support which values (columns)."""
    size = len(mechanism.domain)
    if isinstance(mechanism, SetValuedOracle):
        return np.unpackbits(mechanism.sets(table.codes), axis=1, count=size).astype(np.float64)
    if isinstance(mechanism, RandomizedResponse):
        return np.eye(size)[table.codes]
    return None


def support_variance(support: Support, truth: Floats, users: int) -> Floats:
    """Return s (1 - s) / (n (p - q)^2) for each value."""
    true, other = support
    supported = other + truth * (true - other)
    return np.asarray(supported * (1.0 - supported) / (users * (true - other) ** 2))


def support_kurtosis(support: Support, truth: Floats) -> float:
    """Return an upper bound on the kurtosis for a frequency oracle: the largest square over the mean square."""
    true, other = support
    supported = other + truth * (true - other)
    mean = float((supported * (1.0 - supported)).sum())
    return float((np.maximum(supported, 1.0 - supported) ** 2).sum()) / mean if mean > 0.0 else np.inf


def deviation_ratio(squares: Floats, variance: Floats) -> float | None:
    """Return the simulated over the predicted standard deviation, from the squared errors of each study."""
    predicted = float(variance.sum())
    if squares.size == 0 or not predicted > 0.0:
        return None
    return float(np.sqrt(squares.mean() / predicted))
