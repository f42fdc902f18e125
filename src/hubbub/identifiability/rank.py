"""What patterns can tell apart: ranks, directions that no pattern sees, and how rounding is told from zero.

The sum of a distribution is one more pattern, with likelihood 1 for every value; [G 1] stands for both. No two
distributions on some values look the same exactly if the rows of [G 1] that belong to these values are linearly
independent.

**Scaling.** Each entry of G is known up to a few roundings, relative to itself. |E| <= r |B| for a matrix B >= 0
implies ||E|| <= r ||B||, whatever positive factors rows and columns have been given: singular values below
r ||B|| cannot be told from 0, all others can. Patterns are divided by f_i = (theta G)_i and values by their largest
entry. What is left of theta_x is then y_x = theta_x max_i g_xi / f_i, the largest part that value x has in the
probability of any pattern (or of the sum): a number between 0 and 1 for rare and frequent values alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
WIDE = 4  # patterns for each value that are looked at first, where there are more
MOST_RANKED = 5e10  # multiplications for the rank of a matrix, about ten seconds
NOTICED = 1.96  # standard errors: the two-sided 95% point of the normal distribution
MOST_COMPARED = 2_000  # values among which the direction that is seen least is looked for: some seconds
STILL = 1e-9  # entries of a null direction, at most 1, that are 0 up to the rounding of a nearly singular matrix


@dataclass(frozen=True)
class PatternMatrix:
    """Rows of [G 1], scaled: no entry is above 1, and each row has one that is 1."""

    rows: Floats
    peaks: Floats  # what the rows have been divided by
    rounding: float  # relative error of an entry

    @classmethod
    def of(cls, channel: Channel, values: Positions, theta: Floats, sent: Floats) -> PatternMatrix:
        """Return the rows of some values, the patterns scaled by what `theta` fits to them."""
        seen = sent > 0
        rows = np.ones((values.size, int(np.count_nonzero(seen)) + 1))
        rows[:, :-1] = channel.rows(values)[:, seen] / channel.forward(theta)[seen]
        peaks = rows.max(axis=1)
        rows /= peaks[:, None]
        rounding = ROUNDING * (1.0 + float(np.abs(channel.log_scale[seen]).max(initial=0.0)))
        return cls(rows, peaks, rounding)

    def some(self, places: Positions) -> PatternMatrix:
        """Return some of the rows."""
        return PatternMatrix(self.rows[places], self.peaks[places], self.rounding)

    def rank(self) -> int:
        """Return how many singular values are not 0 up to rounding."""
        return self._count(np.asarray(np.linalg.svd(self._square(), compute_uv=False), dtype=np.float64))

    def bases(self) -> tuple[Floats, Floats]:
        """Return orthonormal bases, as columns over the rows: of what patterns see, and of what no pattern sees."""
        _, sizes, axes = np.linalg.svd(self._square(), full_matrices=True)
        rank = self._count(sizes)
        return axes[:rank].T, axes[rank:].T

    def _square(self) -> Floats:
        across = self.rows.T
        return np.asarray(np.linalg.qr(across, mode="r")) if across.shape[0] > across.shape[1] else across

    def _count(self, sizes: Floats) -> int:
        # The second part is the backward error of the decomposition itself.
        return int(np.count_nonzero(sizes > (self.rounding + max(self.rows.shape) * EPS) * sizes[0]))

    def twins(self) -> Positions:
        """Return for each row the place of the first row that equals it up to rounding (its own, mostly).

        Rows are sorted by one number that unequal rows hardly ever share, and neighbours compared. A pair that
        escapes is no harm: it is found again as a null direction, only not as cheaply.
        """
        mix = np.modf(np.arange(1, self.rows.shape[1] + 1) * ((math.sqrt(5.0) - 1.0) / 2.0))[0]
        order = np.argsort(self.rows @ mix, kind="stable")
        first = np.arange(order.size)
        for place, before in zip(order[1:].tolist(), order[:-1].tolist(), strict=True):
            if np.abs(self.rows[place] - self.rows[before]).max() <= 2 * self.rounding:
                first[place] = first[before]
        least = np.full(order.size, order.size)
        np.minimum.at(least, first, np.arange(order.size))
        return least[first]


def independent(reports: Reports, values: Positions, theta: Floats) -> bool | None:
    """Whether no two distributions on these values give all patterns equal probabilities; None: too large to tell.

    Some of the patterns are enough if their columns alone have full rank (the paper's Theorem mlunique).
    """
    if values.size > int(np.count_nonzero(reports.weights)) + 1:
        return False
    for part in _parts(reports, WIDE * values.size):
        if too_large(values.size, part.weights.size):
            return None
        if PatternMatrix.of(part.channel, values, theta, part.weights).rank() == values.size:
            return True
    return False


def too_large(values: int, patterns: int) -> bool:
    """Whether the rank of so large a matrix is not computed."""
    work = float(values) * min(values, patterns) * (values + patterns)
    return work > MOST_RANKED or values * patterns > MAX_PART_ENTRIES


def fewer(reports: Reports, most: int) -> Reports:
    """Return the reports with about `most` of their patterns, evenly spaced; all of them where they are fewer."""
    share = most / reports.weights.size
    return reports if share >= 1.0 else replace(reports, blocks=tuple(_thinned(b, share) for b in reports.blocks))


def _thinned(block: Block, share: float) -> Block:
    size = block.weights.size
    picks = np.unique(np.linspace(0, size - 1, max(1, math.ceil(share * size))).astype(np.int64))
    if isinstance(block, Singles):
        return replace(block, codes=block.codes[picks], counts=block.counts[picks])
    if isinstance(block, Joint):
        return replace(block, repeats=block.repeats[picks], counts=block.counts[picks])
    return block  # sums of bits: two for each value


def _parts(reports: Reports, most: int) -> Iterator[Reports]:
    part = fewer(reports, most)
    yield part
    if part is not reports:
        yield reports


def unseen(reports: Reports, theta: Floats) -> Floats | None:
    """Return a direction that no pattern sees, with few values if possible; None where there is none, or too large."""
    patterns = int(np.count_nonzero(reports.weights))
    values = np.argsort(-theta, kind="stable")[: patterns + 2]  # one more than the rank that they can have
    if too_large(values.size, reports.weights.size):
        return None
    table = PatternMatrix.of(reports.channel, values, theta, reports.weights)
    twins, direction = table.twins(), np.zeros_like(theta)
    others = np.flatnonzero(twins != np.arange(twins.size))
    if others.size:
        direction[values[[twins[others[0]], others[0]]]] = 1.0, -1.0
        return direction
    free = table.bases()[1]
    if free.shape[1] == 0:
        return None
    direction[values] = simple(free) / table.peaks
    return unit(direction)


def simple(free: Floats) -> Floats:
    """Return a combination of directions (columns) with as many zeros as their number allows, less one."""
    from scipy.linalg import qr

    pivots = qr(free.T, mode="r", pivoting=True)[1][: free.shape[1]]
    return np.asarray(free @ np.linalg.inv(free[pivots])[:, 0])


def unit(direction: Floats) -> Floats:
    """Return a direction with sum of absolute values 2, so that it exchanges one unit of mass."""
    direction = np.where(np.abs(direction) > STILL * np.abs(direction).max(), direction, 0.0)
    return np.asarray(direction * (2.0 / np.abs(direction).sum()))


def apart(size: int, pair: Positions) -> Floats:
    """Return the direction that exchanges two values."""
    direction = np.zeros(size)
    direction[pair] = 1.0, -1.0
    return direction


def in_play(point: Point) -> Positions:
    """Return the values that may well hold a fair share, 1 / k: all others are known to hold less.

    By the certificate (see `likelihood`), the log-likelihood of every distribution with share m or more at x lies at
    least n m (1 - D_x) below the maximum. Where that is noticed, it is of no account whether what little such a value
    can have is exchanged for another's.
    """
    loss = point.likelihood.total * (1.0 - point.gradient) / point.theta.size
    return np.flatnonzero(loss <= NOTICED**2 / 2.0)


def least_seen(reports: Reports, point: Point) -> tuple[Floats, float] | None:
    """Return the direction that the reports see least, and the share that is noticed along it; None if too large.

    With H = G diag(q / f^2) G' over the values in play, I(v) = v' H v. Let e be the smallest eigenvalue of H on vectors
    with sum 0. Since v'v <= max |v| sum |v| <= 2, its eigenvector has I(v) <= 2 e, and a pair of values, with v'v = 2,
    has at least that: the eigenvector is seen less than any pair. But a pair says more to people, and is returned where
    even its complete exchange goes unnoticed. Where patterns are many, H is that of some; the share is that of all.
    """
    values = in_play(point)
    part = fewer(reports, WIDE * values.size)
    if values.size > MOST_COMPARED or too_large(values.size, part.weights.size):
        return None
    from scipy.linalg import eigh

    channel, sent = part.channel, part.weights > 0
    ratio = channel.rows(values)[:, sent] / channel.forward(point.theta)[sent]
    ratio *= np.sqrt(part.weights[sent] / part.weights.sum())
    hessian = ratio @ ratio.T
    own = np.diag(hessian)
    pairs = own[:, None] + own[None, :] - 2.0 * hessian
    np.fill_diagonal(pairs, np.inf)
    one, other = np.unravel_index(int(np.argmin(pairs)), pairs.shape)
    centred = hessian - hessian.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    # The vector of ones has eigenvalue 0 now; any number above all others moves it out of the way.
    centred += float(own.sum()) / values.size
    smallest = np.zeros_like(point.theta)
    smallest[values] = eigh(centred, subset_by_index=[0, 0])[1][:, 0]
    smallest[values] -= smallest[values].mean()
    pair = apart(point.theta.size, values[[one, other]])
    blind = _noticed(point, pair)
    return (pair, blind) if blind >= 1.0 else (unit(smallest), _noticed(point, unit(smallest)))


def _noticed(point: Point, direction: Floats) -> float:
    """Return the share 1.96 / sqrt(n I(v)), with I(v) = sum_i q_i ((v G)_i / f_i)^2."""
    sent = point.likelihood.sent
    moved = point.likelihood.channel.forward(direction)[sent] / point.fitted[sent]
    counted = float(point.likelihood.weights[sent] @ moved**2)
    return NOTICED / math.sqrt(counted) if counted > 0.0 else math.inf
