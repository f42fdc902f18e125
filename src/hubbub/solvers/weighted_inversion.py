"""Inversion of any reports: one linear, unbiased estimate from all mechanisms, each weighted by how much it tells.

**Value by value**, where all mechanisms are frequency oracles (their outputs are sets of values, or values under k-RR).
A share c_x of the outputs supports x, and u_x = (c_x - q) / (p - q) has mean theta_x. With several mechanisms, v is the
average of their u, each weighted by its number of outputs over the variance of one, s (1 - s) / (p - q)^2 with
s = q + (p - q) / k. There is no matrix: 100,000 values are inverted as quickly as they are counted.

**Weighted least squares** otherwise. The shares q_b of the outputs of mechanism b have the mean theta A_b and the
covariance (diag(f_b) - f_b f_b') / n_b, with f_b = theta A_b. Among shares that sum to 1, n_b diag(1 / f_b) is an
inverse of it, so that the best linear estimate solves

    min_v  sum_b n_b sum_z (q_bz - (v A_b)_z)^2 / f_bz.

Sets of values, of which there are too many to list, add n_b sum_x (u_bx - v_x)^2 over the variance above, and so do
answers about buckets, each bucket with the number of answers about it. A mechanism that cannot tell all values apart
contributes what it can tell.

**The right weights** would be those at the truth, which nobody knows. These are the weights at equal shares: they
depend on the mechanisms and on how many outputs each has, never on what was sent. So v is linear in the shares of
outputs, and its mean is theta for every theta and any number of users. Weights from a first estimate would be nearer to
the best ones, and correlated with what they weigh. For one square matrix, all weights give the same v.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.core.errors import EstimateError
from hubbub.core.text import plural
from hubbub.mechanisms import DBitFlip, Mechanism
from hubbub.mechanisms.frequency_oracle import FrequencyOracle, SetValuedOracle
from hubbub.outputs.output_enumeration import MAX_TABLE_ENTRIES
from hubbub.outputs.sent_outputs import enumerate_sent
from hubbub.reports import Joint, Reports
from hubbub.solvers.output_weights import WeightedOutputs, outputs_by_mechanism

INVERSION = 'estimate(method="inv", "inv-n", ...)'
OTHER_METHODS = 'use method="ibu" or "mle"'
MIN_TOLD = 1e-12  # of what an output without noise tells: less is nothing


class ValueByValue:
    """Inversion of frequency oracles, where no value needs another one."""

    def __init__(self, reports: Reports) -> None:
        self._kept = _kept_values(reports)
        self._sent = outputs_by_mechanism(reports, lambda mechanism, _: _oracle_noise(mechanism, self._kept.size))

    @staticmethod
    def applies(reports: Reports) -> bool:
        """Whether all mechanisms are frequency oracles."""
        return all(isinstance(mechanism, FrequencyOracle) for mechanism in reports.mechanisms)

    @cached_property
    def _parts(self) -> Floats:
        """The part of each mechanism in the average."""
        sizes = [own.total / _oracle_variance(own.mechanism, self._kept.size) for own in self._sent]
        return np.array(sizes) / math.fsum(sizes)

    @property
    def shares(self) -> Floats:
        """The unbiased shares."""
        unbiased = [_oracle_shares(own, self._kept) for own in self._sent]
        return unbiased[0] if len(unbiased) == 1 else np.asarray(self._parts @ np.stack(unbiased))

    @property
    def null_deviations(self) -> Floats:
        """The standard deviation of the share of a value that nobody holds, for each value."""
        variance = np.zeros(self._kept.size)
        for own, part in zip(self._sent, self._parts.tolist(), strict=True):
            variance += part**2 * own.mean_spread * _null_variance(own.mechanism, self.shares, self._kept)
        return np.sqrt(variance)


class LeastSquares:
    """Inversion of mechanisms whose outputs can be listed, and of sets of values beside them."""

    def __init__(self, reports: Reports) -> None:
        self._reports, self._kept = reports, _kept_values(reports)
        self._sent = outputs_by_mechanism(reports, self._noise)

    @cached_property
    def shares(self) -> Floats:
        """The unbiased shares; they are refused if some values cannot be told apart."""
        from scipy.linalg import lstsq

        size, epsilon = self._kept.size, float(np.finfo(np.float64).eps)
        matrix = self._weighted_matrix
        right = np.concatenate([own.right * own.roots for own in self._equations])
        solution, _, rank, _ = lstsq(matrix, right, cond=size * epsilon, check_finite=False, lapack_driver="gelsy")
        if rank < size:
            raise EstimateError(
                "these reports have no inverse: they cannot tell all values apart",
                where=" and ".join(dict.fromkeys(type(each).__name__ for each in self._reports.mechanisms)),
                got=f"rank {rank} for {size} values, and outputs of {len(matrix):,} kinds",
                expected=f"rank {size}",
                remedy=f"{OTHER_METHODS}; several distributions may fit equally well",
            )
        return np.asarray(solution, dtype=np.float64)

    @property
    def null_deviations(self) -> Floats:
        """The standard deviation of each share as it is: what it would be if nobody held the value is not known."""
        if any(isinstance(block, Joint) for block in self._reports.blocks):
            raise EstimateError(
                "the standard deviations of these shares are not known",
                where='estimate(method="base-cut")',
                got="users with several outputs, of mechanisms that are not all frequency oracles",
                expected="one output for each user, or frequency oracles alone",
                remedy='use method="norm-cut" or "inv-n"',
            )
        inverse = np.linalg.pinv(self._weighted_matrix)
        variance, start = np.zeros(self._kept.size), 0
        for own in self._equations:
            variance += own.variance(inverse[:, start : (start := start + own.right.size)] * own.roots)
        return np.sqrt(np.maximum(variance, 0.0))

    @cached_property
    def _weighted_matrix(self) -> Floats:
        """All equations, each times the root of its weight."""
        return np.concatenate([own.matrix * own.roots[:, None] for own in self._equations])

    @cached_property
    def _equations(self) -> list[_Equations]:
        """The equations of every mechanism."""
        equations = []
        for own in self._sent:
            if isinstance(own.mechanism, SetValuedOracle):
                equations.append(_set_equations(own, self._kept))
                continue
            codes = cast("Codes", own.codes)  # only sets have sums of bits
            if isinstance(own.mechanism, DBitFlip) and own.mechanism.outputs is None:
                equations.append(_answer_equations(own.mechanism, codes, own.counts, self._kept))
                continue
            for chances, counts in self._listed(own.mechanism, codes, own.counts):
                users, fitted = float(counts.sum()), chances.mean(axis=0)
                equations.append(_Equations(chances.T, counts / users, users / fitted, users, None))
        return equations

    def _listed(self, mechanism: Mechanism, codes: Codes, counts: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield the probabilities of all possible outputs and how many were sent, for each set of attributes sent."""
        sent = enumerate_sent(mechanism, codes, float(self._reports.users), self._reports.domain.among)
        if sent is None:
            raise EstimateError(
                "inversion needs all outputs of a mechanism",
                where=INVERSION,
                got=f"{type(mechanism).__name__} over {plural(len(mechanism.domain), 'value')}, with too many outputs",
                expected=f"a table of at most {MAX_TABLE_ENTRIES:,} probabilities",
                remedy=f"{OTHER_METHODS}, which need only the outputs that were sent",
            )
        for part in sent:
            chances = part.outputs.probabilities
            possible = chances.max(axis=0) > 0.0
            yield chances[:, possible], part.tally(codes, counts)[possible]

    def _noise(self, mechanism: Mechanism, codes: Codes) -> float:
        """Return the noise of an output: the value's variance over the information, averaged over contrasts, less 1."""
        size = self._kept.size
        if isinstance(mechanism, SetValuedOracle):
            return _oracle_noise(mechanism, size)
        if isinstance(mechanism, DBitFlip) and mechanism.outputs is None:
            each = int(mechanism.buckets or 2) / int(mechanism.bits or 1)  # outputs for one answer about a bucket
            return _answer_variance(mechanism) * each * size / max(1.0 - 1.0 / size, MIN_TOLD) - 1.0
        every = [
            float((chances**2 / chances.mean(axis=0)).sum())
            for chances, _ in self._listed(mechanism, codes, np.ones(len(codes)))
        ]
        told = (float(np.mean(every)) - size) / (size * max(size - 1.0, 1.0))
        return 1.0 / max(told, MIN_TOLD) - 1.0


class _Equations(NamedTuple):
    """Linear equations for the shares, with the weight of each."""

    matrix: Floats  # equations by values
    right: Floats
    weights: Floats
    users: float
    variances: Floats | None  # of the right sides of independent equations; None: these are shares of all outputs

    @property
    def roots(self) -> Floats:
        """The square roots of the weights."""
        return np.sqrt(self.weights)

    def variance(self, inverse: Floats) -> Floats:
        """Return the variance of what a matrix (values by equations) makes of the right sides."""
        if self.variances is not None:
            return np.asarray(inverse**2 @ self.variances)
        return np.asarray((inverse**2 @ self.right - (inverse @ self.right) ** 2) / self.users)


def _set_equations(own: WeightedOutputs, kept: Positions) -> _Equations:
    """Return u_x = v_x for each value."""
    shares = _oracle_shares(own, kept)
    weights = np.full(kept.size, own.total / _oracle_variance(own.mechanism, kept.size))
    single = cast("FrequencyOracle", own.mechanism).share_variance(shares)
    least = np.maximum(_null_variance(own.mechanism, shares, kept) - shares**2, 0.0)  # noise may carry shares far away
    variances = np.maximum(single, least) / own.total
    return _Equations(np.eye(kept.size), shares, weights, own.total, variances)


def _answer_equations(mechanism: DBitFlip, codes: Codes, counts: Floats, kept: Positions) -> _Equations:
    """Return for each bucket that was asked about: the share of ones, without the noise, is that of its values."""
    about, ones = mechanism.counts_by_bucket(codes, counts)
    asked, right = np.flatnonzero(about), 1.0 / (1.0 + math.exp(-mechanism.nats))
    held, wrong = ones[asked] / about[asked], 1.0 - right
    matrix = (mechanism.bucket_of(kept) == asked[:, None]).astype(np.float64)
    variances = held * (1.0 - held) / (right - wrong) ** 2 / about[asked]
    weights = about[asked] / _answer_variance(mechanism)
    return _Equations(matrix, (held - wrong) / (right - wrong), weights, float(counts.sum()), variances)


def _answer_variance(mechanism: DBitFlip) -> float:
    """Return the variance of what one answer says, if all buckets are equally frequent."""
    right = 1.0 / (1.0 + math.exp(-mechanism.nats))
    held = 1.0 - right + (2.0 * right - 1.0) / int(mechanism.buckets or 2)
    return held * (1.0 - held) / (2.0 * right - 1.0) ** 2


def _kept_values(reports: Reports) -> Positions:
    among = reports.domain.among
    return np.arange(len(reports.domain)) if among is None else among


def _oracle_shares(own: WeightedOutputs, kept: Positions) -> Floats:
    """Return u for the values that are kept."""
    oracle = cast("FrequencyOracle", own.mechanism)
    held = own.counts if own.codes is None else oracle.support_counts(own.codes, own.counts)
    return oracle.unbiased_shares(held, own.total)[kept]


def _null_variance(mechanism: Mechanism, shares: Floats, kept: Positions) -> Floats:
    """Return the variance of u_x of one output for each kept value, if nobody held it."""
    oracle = cast("FrequencyOracle", mechanism)
    every = np.zeros(len(oracle.domain))
    every[kept] = shares
    return oracle.null_variance(every)[kept]


def _oracle_variance(mechanism: Mechanism, size: int) -> float:
    """Return the variance of u_x of one output, if all values are equally frequent."""
    return float(cast("FrequencyOracle", mechanism).share_variance(np.array([1.0 / size]))[0])


def _oracle_noise(mechanism: Mechanism, size: int) -> float:
    """Return that variance over the variance of the value's own indicator, less 1."""
    return _oracle_variance(mechanism, size) * size / max(1.0 - 1.0 / size, MIN_TOLD) - 1.0
