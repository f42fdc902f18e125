"""The linear estimate of thousands of values from frequency oracles, whose matrices are a diagonal plus few dyads.

The same estimate and covariance as in `set_intervals`, from scores as in `linear_scores` (`SetScores`), for k-RR,
unary, hashed and subset reports, one output for each user. k-RR counts as a mechanism whose sets hold one value each.
It is the only one whose pairs are known without counting, because there are none: its covariance is the empirical one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.goodness_of_fit.ancillary_statistics import PairProbabilities, SetMechanism, pair_probabilities
from hubbub.intervals.diagonal_plus_dyads import DiagonalPlusDyads
from hubbub.intervals.linear_scores import MAX_FIXED_VARIANCE
from hubbub.mechanisms import RandomizedResponse
from hubbub.reports import BitSums, Block, Singles

OracleMechanism = SetMechanism | RandomizedResponse


class OracleSums(NamedTuple):
    """Sums over the users of one block, as in `set_intervals`."""

    total: Floats  # of the scores
    information: DiagonalPlusDyads
    scatter: Callable[[Floats], DiagonalPlusDyads]  # of the users' scores, around what a distribution predicts


def oracle_sums(blocks: Sequence[Block], base: Floats, among: Positions | None) -> list[OracleSums] | None:
    """Return the sums of each block; None if some user sent several outputs, or an output of another mechanism."""
    sums = []
    for block in blocks:
        if not isinstance(block, BitSums | Singles) or not isinstance(block.mechanism, OracleMechanism):
            return None
        if isinstance(block, BitSums):
            held, users = block.ones.astype(np.float64), float(block.users)
        else:
            held, users = block.mechanism.support_counts(block.codes, block.weights), float(block.weights.sum())
        sums.append(_sums(block.mechanism, held if among is None else held[among], users, base))
    return sums


def _sums(mechanism: OracleMechanism, held: Floats, users: float, base: Floats) -> OracleSums:
    true, other = mechanism.support
    ones = np.ones_like(base)
    spread = _covariance(mechanism, other + (true - other) * base, base)
    unbiased = (held - users * other) / (true - other)  # its mean is users times theta

    def observed(centre: Floats) -> DiagonalPlusDyads:
        """Return the covariance of u among these users."""
        if isinstance(mechanism, RandomizedResponse):
            share, predicted = held / users, other + (true - other) * centre
            around = np.array([[-1.0, 0.0], [0.0, 1.0]])
            return DiagonalPlusDyads(share, np.stack([share, share - predicted]), around) * (true - other) ** -2
        share = (held + 2.0) / (users + 4.0)  # where values vary more than the reference predicts, they count so
        own = share * (1.0 - share) / (true - other) ** 2
        variances = spread.diagonal + np.einsum("rx,rs,sx->x", spread.factors, spread.core, spread.factors)
        return spread.scaled(np.sqrt(np.maximum(1.0, own / variances)))

    if float((spread @ ones).sum()) <= MAX_FIXED_VARIANCE * float(spread.diagonal.sum()):
        slope = spread.plus(np.ones((1, 1)), base).inverse()  # second moments: u sums to 1 in every report
        return OracleSums(slope @ unbiased, slope * users, lambda centre: slope.around(observed(centre)) * users)
    inverse = spread.inverse()
    tilt = inverse @ base
    information = inverse.plus(np.array([[0.0, -1.0], [-1.0, 1.0 + float(base @ tilt)]]), tilt, ones)
    turned = inverse @ (unbiased - users * base)  # the score is (1 - 1 theta0') C^-1 (u - theta0) + 1

    def scatter(centre: Floats) -> DiagonalPlusDyads:
        inner = inverse.around(observed(centre))
        bent = inner @ base
        return inner.plus(np.array([[0.0, -1.0], [-1.0, float(base @ bent)]]), bent, ones) * users

    return OracleSums(turned - float(base @ turned) + users, information * users, scatter)


def _covariance(mechanism: OracleMechanism, held: Floats, theta: Floats) -> DiagonalPlusDyads:
    """Return the covariance of u under theta, as `linear_scores.covariance_of_sets` does for all pairs."""
    true, other = mechanism.support
    pair = PairProbabilities(0.0, 0.0) if isinstance(mechanism, RandomizedResponse) else pair_probabilities(mechanism)
    rise = pair.own - pair.neither
    core = np.array([[pair.neither, rise, 0.0], [rise, 0.0, 0.0], [0.0, 0.0, -1.0]])
    diagonal = held - pair.neither - 2.0 * rise * theta
    return DiagonalPlusDyads(diagonal, np.stack([np.ones_like(theta), theta, held]), core) * (true - other) ** -2
