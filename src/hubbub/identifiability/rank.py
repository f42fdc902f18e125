"""Ranks of the patterns' likelihoods, directions that no pattern depends on, and what rounding makes of zeros.

The sum of a distribution counts as one more pattern, with likelihood 1 for every value; [G 1] stands for both. The
patterns distinguish any two distributions on some values exactly if the rows of [G 1] of these values are linearly
independent.

**Scaling.** Each entry of G is known up to a few roundings, relative to itself. |E| <= r |B| for a matrix B >= 0
implies ||E|| <= r ||B||, whatever positive factors rows and columns have been given: singular values below
r ||B|| may be 0, all others are not. Patterns are divided by f_i = (theta G)_i and values by their largest
entry. What is left of theta_x is then y_x = theta_x max_i g_xi / f_i, the largest part that value x has in the
probability of any pattern (or of the sum): a number between 0 and 1 for rare and frequent values alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hubbub.channels import Channel
from hubbub.channels.base import MAX_PART_ENTRIES
from hubbub.core.arrays import Floats, Positions
from hubbub.likelihood import Point
from hubbub.reports import Reports
from hubbub.reports.blocks import Block, Joint, Singles

EPS = float(np.finfo(np.float64).eps)
ROUNDING = 16 * EPS  # of a likelihood, for each unit of its logarithm: from log, sum, difference, exp and quotients
PATTERNS_PER_VALUE = 4  # that are looked at first, if there are more
MAX_RANK_WORK = 5e10  # multiplications for the rank of a matrix, about ten seconds
NOTICED_ERRORS = 1.96  # standard errors: the two-sided 95% point of the normal distribution
MAX_COMPARED_VALUES = 2_000  # values among which the least visible direction is searched: some seconds
MAX_ZERO_ENTRY = 1e-9  # of a null direction, at most 1: smaller ones are rounding of a nearly singular matrix


@dataclass(frozen=True)
class PatternMatrix:
    """Rows of [G 1], scaled: no entry is above 1, and each row has one that is 1."""

    rows: Floats
    peaks: Floats  # the divisors of the rows
    rounding: float  # relative error of an entry

    @classmethod
    def of(cls, channel: Channel, values: Positions, theta: Floats, sent: Floats) -> PatternMatrix:
        """Return the rows of some values, with the patterns scaled by their probabilities under `theta`."""
        seen = sent > 0
        rows = np.ones((values.size, int(np.count_nonzero(seen)) + 1))
        rows[:, :-1] = channel.rows(values)[:, seen] / channel.forward(theta)[seen]
        peaks = rows.max(axis=1)
        rows /= peaks[:, None]
        rounding = ROUNDING * (1.0 + float(np.abs(channel.log_scale[seen]).max(initial=0.0)))
        return cls(rows, peaks, rounding)

    def take(self, positions: Positions) -> PatternMatrix:
        """Return some of the rows."""
        return PatternMatrix(self.rows[positions], self.peaks[positions], self.rounding)

    def rank(self) -> int:
        """Return how many singular values are larger than rounding."""
        return self._count(np.asarray(np.linalg.svd(self._square(), compute_uv=False), dtype=np.float64))

    def bases(self) -> tuple[Floats, Floats]:
        """Return orthonormal bases, as columns over the rows: of the row space, and of its null space."""
        _, singular_values, vectors = np.linalg.svd(self._square(), full_matrices=True)
        rank = self._count(singular_values)
        return vectors[:rank].T, vectors[rank:].T

    def _square(self) -> Floats:
        columns = self.rows.T
        return np.asarray(np.linalg.qr(columns, mode="r")) if columns.shape[0] > columns.shape[1] else columns

    def _count(self, singular_values: Floats) -> int:
        # The second part is the backward error of the decomposition itself.
        tolerance = (self.rounding + max(self.rows.shape) * EPS) * singular_values[0]
        return int(np.count_nonzero(singular_values > tolerance))

    def first_equal_rows(self) -> Positions:
        """Return for each row the position of the first row that equals it up to rounding (mostly its own).

        Rows are sorted by one number that unequal rows hardly ever share, and neighbours are compared. A missed pair
        does no harm: it is found again as a null direction, only not as cheaply.
        """
        mix = np.modf(np.arange(1, self.rows.shape[1] + 1) * ((math.sqrt(5.0) - 1.0) / 2.0))[0]
        order = np.argsort(self.rows @ mix, kind="stable")
        first = np.arange(order.size)
        for row, previous in zip(order[1:].tolist(), order[:-1].tolist(), strict=True):
            if np.abs(self.rows[row] - self.rows[previous]).max() <= 2 * self.rounding:
                first[row] = first[previous]
        least = np.full(order.size, order.size)
        np.minimum.at(least, first, np.arange(order.size))
        return least[first]


def has_full_rank(reports: Reports, values: Positions, theta: Floats) -> bool | None:
    """Whether no two distributions on these values give all patterns equal probabilities; None if too large to decide.

    Some of the patterns are enough if their columns have full rank (the paper's Theorem mlunique).
    """
    if values.size > int(np.count_nonzero(reports.weights)) + 1:
        return False
    thin = thin_patterns(reports, PATTERNS_PER_VALUE * values.size)
    for part in [thin] if thin is reports else [thin, reports]:
        if is_too_large(values.size, part.weights.size):
            return None
        if PatternMatrix.of(part.channel, values, theta, part.weights).rank() == values.size:
            return True
    return False


def is_too_large(values: int, patterns: int) -> bool:
    """Whether a matrix is too large to compute its rank."""
    multiplications = float(values) * min(values, patterns) * (values + patterns)
    return multiplications > MAX_RANK_WORK or values * patterns > MAX_PART_ENTRIES


def thin_patterns(reports: Reports, limit: int) -> Reports:
    """Return the reports with about `limit` of their patterns, evenly spaced; all of them if there are fewer."""
    share = limit / reports.weights.size
    return (
        reports
        if share >= 1.0
        else replace(reports, blocks=tuple(_thin_block(block, share) for block in reports.blocks))
    )


def _thin_block(block: Block, share: float) -> Block:
    size = block.weights.size
    picks = np.unique(np.linspace(0, size - 1, max(1, math.ceil(share * size))).astype(np.int64))
    if isinstance(block, Singles):
        return replace(block, codes=block.codes[picks], counts=block.counts[picks])
    if isinstance(block, Joint):
        return replace(block, repeats=block.repeats[picks], counts=block.counts[picks])
    return block  # sums of bits: two for each value


def invisible_direction(reports: Reports, theta: Floats) -> Floats | None:
    """Return a direction that changes no pattern's probability, with few values if possible; None if there is none.

    None also if the problem is too large.
    """
    patterns = int(np.count_nonzero(reports.weights))
    values = np.argsort(-theta, kind="stable")[: patterns + 2]  # one more than the rank that they can have
    if is_too_large(values.size, reports.weights.size):
        return None
    table = PatternMatrix.of(reports.channel, values, theta, reports.weights)
    first, direction = table.first_equal_rows(), np.zeros_like(theta)
    repeated = np.flatnonzero(first != np.arange(first.size))
    if repeated.size:
        direction[values[[first[repeated[0]], repeated[0]]]] = 1.0, -1.0
        return direction
    null_space = table.bases()[1]
    if null_space.shape[1] == 0:
        return None
    direction[values] = sparse_direction(null_space) / table.peaks
    return unit_exchange(direction)


def sparse_direction(basis: Floats) -> Floats:
    """Return a combination of directions (columns) with as many zeros as their number allows, less one."""
    from scipy.linalg import qr

    pivots = qr(basis.T, mode="r", pivoting=True)[1][: basis.shape[1]]
    return np.asarray(basis @ np.linalg.inv(basis[pivots])[:, 0])


def unit_exchange(direction: Floats) -> Floats:
    """Return a direction with sum of absolute values 2, so that it exchanges one unit of mass."""
    direction = np.where(np.abs(direction) > MAX_ZERO_ENTRY * np.abs(direction).max(), direction, 0.0)
    return np.asarray(direction * (2.0 / np.abs(direction).sum()))


def pair_direction(size: int, pair: Positions) -> Floats:
    """Return the direction that exchanges two values."""
    direction = np.zeros(size)
    direction[pair] = 1.0, -1.0
    return direction


def plausible_values(point: Point) -> Positions:
    """Return the values that may well have an even share, 1 / k: all others are known to have less.

    By the certificate (see `likelihood`), the log-likelihood of every distribution with share m or more at x is at
    least n m (1 - D_x) below the maximum. If that is noticed, it does not matter whether the little that such a value
    can have is exchanged for another's.
    """
    loss = point.likelihood.total * (1.0 - point.gradient) / point.theta.size
    return np.flatnonzero(loss <= NOTICED_ERRORS**2 / 2.0)


def least_visible_direction(reports: Reports, point: Point) -> tuple[Floats, float] | None:
    """Return the direction that the reports determine worst, and the share that is noticed along it; None if too large.

    With H = G diag(q / f^2) G' over the values in play, I(v) = v' H v. Let e be the smallest eigenvalue of H on vectors
    with sum 0. Since v'v <= max |v| sum |v| <= 2, its eigenvector has I(v) <= 2 e, and a pair of values, with v'v = 2,
    has at least that: the eigenvector is less visible than any pair. But people understand a pair more easily, so it is
    returned if even its complete exchange goes unnoticed. If patterns are many, H is that of some; the share, of all.
    """
    values = plausible_values(point)
    part = thin_patterns(reports, PATTERNS_PER_VALUE * values.size)
    if values.size > MAX_COMPARED_VALUES or is_too_large(values.size, part.weights.size):
        return None
    from scipy.linalg import eigh

    channel, sent = part.channel, part.weights > 0
    ratio = channel.rows(values)[:, sent] / channel.forward(point.theta)[sent]
    ratio *= np.sqrt(part.weights[sent] / part.weights.sum())
    hessian = ratio @ ratio.T
    diagonal = np.diag(hessian)
    pairs = diagonal[:, None] + diagonal[None, :] - 2.0 * hessian
    np.fill_diagonal(pairs, np.inf)
    first, second = np.unravel_index(int(np.argmin(pairs)), pairs.shape)
    centred = hessian - hessian.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    # The vector of ones has eigenvalue 0 now; any number above all others moves it out of the way.
    centred += float(diagonal.sum()) / values.size
    smallest = np.zeros_like(point.theta)
    smallest[values] = eigh(centred, subset_by_index=[0, 0])[1][:, 0]
    smallest[values] -= smallest[values].mean()
    pair = pair_direction(point.theta.size, values[[first, second]])
    noticed = _noticed_share(point, pair)
    if noticed >= 1.0:
        return pair, noticed
    direction = unit_exchange(smallest)
    return direction, _noticed_share(point, direction)


def _noticed_share(point: Point, direction: Floats) -> float:
    """Return the share 1.96 / sqrt(n I(v)), with I(v) = sum_i q_i ((v G)_i / f_i)^2."""
    sent = point.likelihood.sent
    moved = point.likelihood.channel.forward(direction)[sent] / point.fitted[sent]
    information = float(point.likelihood.weights[sent] @ moved**2)
    return NOTICED_ERRORS / math.sqrt(information) if information > 0.0 else math.inf
