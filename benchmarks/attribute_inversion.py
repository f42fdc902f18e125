"""Marginals of several attributes by inversion, as the literature states it; nothing here depends on hubbub.

The ways to report, for d attributes with k_1, ..., k_d values and a budget epsilon of each user:

* SPL: every attribute with epsilon / d;
* SMP: one attribute, chosen at random and named, with epsilon;
* RS+FD: one attribute, chosen at random and not named, with the amplified log(d (e^epsilon - 1) + 1); all others are
  fakes: uniform values for k-RR (RS+FD[GRR]), unary rows of uniform values (RS+FD[UE-r]) or of no value (RS+FD[UE-z]).

From Arcolezi, Couchot, Al Bouna and Xiao, "Random sampling plus fake data: multidimensional frequency estimates with
local differential privacy" (CIKM 2021), and for fakes with any distribution from Arcolezi, Gambs, Couchot and
Palamidessi, "On the risks of collecting multidimensional data under local differential privacy" (VLDB 2023). Of a value
with share f, a report supports it with probability

    s = (q + f (p - q)) / d + (d - 1) / d Q

where p and q are the chances that a report about the attribute supports the true value and another one, and Q that a
fake does. Hence (d s - q - (d - 1) Q) / (p - q) is unbiased for f, with variance d^2 s (1 - s) / (n (p - q)^2). SPL is
d = 1 with all n users, and SMP is d = 1 with the users who chose the attribute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def amplified(epsilon: float, attributes: int) -> float:
    """Return the epsilon that RS+FD spends on the attribute that is not a fake."""
    return math.log(attributes * math.expm1(epsilon) + 1.0)


@dataclass(frozen=True)
class Oracle:
    """The chances that a report supports the true value (p) and another one (q)."""

    p: float
    q: float

    @classmethod
    def grr(cls, epsilon: float, values: int) -> Oracle:
        """k-ary randomized response: a report supports the value that it names."""
        weight = math.exp(epsilon)
        return cls(weight / (weight + values - 1), 1.0 / (weight + values - 1))

    @classmethod
    def oue(cls, epsilon: float) -> Oracle:
        """Optimized unary encoding: a report supports the values whose bits are ones."""
        return cls(0.5, 1.0 / (math.exp(epsilon) + 1.0))

    def of_fakes(self, fakes: Floats) -> Floats:
        """Return how often fakes support each value, if fake values are drawn like `fakes` and then randomized."""
        return self.q + fakes * (self.p - self.q)


@dataclass(frozen=True)
class Inversion:
    """How the shares of one attribute follow from the number of reports that support each value."""

    oracle: Oracle
    attributes: int = 1  # among which the true one is hidden: 1 for SPL and SMP
    fakes: Floats | float = 0.0  # Q: how often a fake supports each value

    def shares(self, supporting: Floats, users: int) -> Floats:
        """Return the unbiased estimates, some of which may be negative."""
        p, q, others = self.oracle.p, self.oracle.q, self.attributes - 1
        return (self.attributes * supporting / users - q - others * self.fakes) / (p - q)

    def supported(self, shares: Floats) -> Floats:
        """Return s, the probability that a report supports each value."""
        own = self.oracle.q + shares * (self.oracle.p - self.oracle.q)
        return (own + (self.attributes - 1) * self.fakes) / self.attributes

    def variances(self, shares: Floats, users: int) -> Floats:
        """Return the variances of the estimates, for the true shares."""
        s = self.supported(shares)
        return self.attributes**2 * s * (1.0 - s) / (users * (self.oracle.p - self.oracle.q) ** 2)


def rs_fd_grr(epsilon: float, sides: Sequence[int], attribute: int) -> Inversion:
    """Return RS+FD[GRR] of one attribute: fakes are uniform."""
    values = sides[attribute]
    return Inversion(Oracle.grr(amplified(epsilon, len(sides)), values), len(sides), 1.0 / values)


def rs_fd_ue_r(epsilon: float, sides: Sequence[int], attribute: int) -> Inversion:
    """Return RS+FD[OUE-r] of one attribute: fakes are unary rows of uniform values."""
    oracle = Oracle.oue(amplified(epsilon, len(sides)))
    return Inversion(oracle, len(sides), oracle.q + (oracle.p - oracle.q) / sides[attribute])


def rs_fd_ue_z(epsilon: float, sides: Sequence[int]) -> Inversion:
    """Return RS+FD[OUE-z] of any attribute: fakes are unary rows of no value."""
    oracle = Oracle.oue(amplified(epsilon, len(sides)))
    return Inversion(oracle, len(sides), oracle.q)


def clipped(shares: Floats) -> Floats:
    """Return a distribution: negative shares are 0, the others divided by their sum, as multi-freq-ldpy does."""
    kept = shares.clip(0.0)
    return kept / kept.sum()


def projected(shares: Floats) -> Floats:
    """Return the closest distribution, by the Euclidean distance."""
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, shares.size + 1)
    return (shares - excess[np.flatnonzero(ordered > excess)[-1]]).clip(0.0)


# -- the exact guarantee of RS+FD --------------------------------------------------------------------------------------


def rs_fd_matrix(tables: Sequence[Floats], fakes: Sequence[Floats]) -> Floats:
    """Return P(all outputs | all values), with one axis for each attribute's value, then one for each one's output.

    `tables` has P(output | value) of each attribute, and `fakes` the distribution of its outputs when it is a fake.
    """
    count = len(tables)
    total = np.zeros(())
    for chosen, table in enumerate(tables):
        term = np.full((1,) * 2 * count, 1.0 / count)
        for place in range(count):
            shape = [1] * 2 * count
            shape[count + place] = -1
            if place == chosen:
                shape[place] = table.shape[0]
                shape[count + place] = table.shape[1]
                term = term * table.reshape(shape)
            else:
                term = term * fakes[place].reshape(shape)
        total = total + term
    return total


def log_ratios(matrix: Floats) -> tuple[float, float]:
    """Return the largest log-ratio of an output's probabilities: of any inputs, and of some that differ in one."""
    count = matrix.ndim // 2
    inputs = tuple(range(count))
    anywhere = math.log((matrix.max(axis=inputs) / matrix.min(axis=inputs)).max())
    ones = [math.log((matrix.max(axis=place) / matrix.min(axis=place)).max()) for place in inputs]
    return anywhere, max(ones)


def grr_table(epsilon: float, values: int) -> Floats:
    """Return P(output | value) of k-ary randomized response."""
    oracle = Oracle.grr(epsilon, values)
    return np.where(np.eye(values, dtype=bool), oracle.p, oracle.q)


def unary_table(oracle: Oracle, values: int) -> Floats:
    """Return P(row of bits | value), and in a last line P(row of bits | no value)."""
    rows = (np.arange(2**values)[:, None] >> np.arange(values)) & 1
    ones = np.vstack([np.eye(values), np.zeros(values)])
    chances = oracle.q + ones * (oracle.p - oracle.q)
    return np.prod(np.where(rows[None] == 1, chances[:, None], 1.0 - chances[:, None]), axis=2)


def rs_fd_grr_ratios(epsilon: float, sides: Sequence[int]) -> tuple[float, float]:
    """Return both log-ratios of RS+FD[GRR] at a stated epsilon, from its full matrix."""
    inner = amplified(epsilon, len(sides))
    return log_ratios(
        rs_fd_matrix([grr_table(inner, side) for side in sides], [np.full(side, 1.0 / side) for side in sides])
    )


def rs_fd_oue_ratios(epsilon: float, sides: Sequence[int], fakes: str) -> tuple[float, float]:
    """Return both log-ratios of RS+FD[OUE-r] or RS+FD[OUE-z] ("r" or "z") at a stated epsilon, from its full matrix."""
    oracle = Oracle.oue(amplified(epsilon, len(sides)))
    tables = [unary_table(oracle, side) for side in sides]
    faked = [table[-1] if fakes == "z" else table[:-1].mean(axis=0) for table in tables]
    return log_ratios(rs_fd_matrix([table[:-1] for table in tables], faked))
