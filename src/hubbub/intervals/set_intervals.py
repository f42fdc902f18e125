"""The share of any set of values, with its interval, from one vector and one matrix: `set_shares`.

With s the scores of `linear_scores` and H the mean information of what users sent, v = H^-1 (mean score of the
users) is an estimate of theta **without bias for every theta**, zeros and all. Its entries may be negative; they sum
to 1. The share of a set is a sum over v, its variance a sum over the covariance of v. Because nothing enforces signs,
the error is a plain sum over users, close to normal, however many true shares are 0: intervals that respect signs have
to be simulated for each set.

A user who sends several outputs counts with the sum of their scores, so that it does not matter how the outputs of one
user depend on each other. The covariance is the empirical one around what v predicts; for single unary, hashed and
subset reports, which are too many to count in pairs of values, it is the model's. Four more users, who answer as the
reference does, keep a value that nobody reported from having no variance at all (after Agresti and Coull). Statements
about many sets at once reach farther into the tails, where that is not enough: they add some users to each output as
well (`spare`).

Up to 2,000 values the covariance is a matrix. Beyond, it has to have a structure, and is a `CompactCovariance`: of
frequency oracles a diagonal and few dyads (`oracle_shares`), of noise on a line or a map local (`local_shares`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy import sparse

from hubbub.core.arrays import Codes, Floats, Positions, frozen
from hubbub.core.progress import Progress, stepwise
from hubbub.core.serialization import Portable
from hubbub.core.text import listed
from hubbub.core.threads import threads_for
from hubbub.intervals.compact_covariance import CompactCovariance
from hubbub.intervals.linear_scores import Scores, SetScores, scores_of_sent
from hubbub.intervals.local_shares import ListedOutputs, has_neighbours, local_shares
from hubbub.intervals.oracle_shares import OracleSums, oracle_sums
from hubbub.mechanisms import DBitFlip, Mechanism
from hubbub.mechanisms.sketches import Sketch
from hubbub.outputs.output_enumeration import can_list
from hubbub.outputs.sent_outputs import enumerate_sent
from hubbub.reports import BitSums, Block, Joint, Reports, Singles

MAX_MATRIX_VALUES = 2_000  # a square matrix over as many values takes 32 MB
MAX_VALUES = 10_000  # more are too many for the page as well
MAX_LISTED_ENTRIES = 200_000_000  # of the chances of all outputs, where noise is local (1.6 GB)
MAX_JOINT_WORK = 4e11  # multiplications for users with several outputs, some ten seconds
EVEN_PART = 0.1  # of the reference is spread evenly over all values
MIN_EIGENVALUE = 1e-10  # of the scaled information, relative to the largest: below, rounding would decide
ADDED_USERS = 4.0  # who answer as the reference does
CHUNK_ENTRIES = 4_000_000  # worked on at a time
MAX_SUM_ERROR = 1e-6  # of shares that sum to 1
INDISTINGUISHABLE = "the reports cannot tell some values apart, or so weakly that rounding would decide"


@dataclass(frozen=True, eq=False)
class SetShares(Portable):
    """An estimate of all shares that is linear in the reports, and its covariance."""

    centre: Floats  # may be negative; sums to 1
    covariance: Floats | CompactCovariance
    condition: float | None  # the information about the best determined direction, relative to the worst determined one
    left_out: str = ""  # the mechanisms whose reports are left out, as they have no linear estimate

    def interval(self, positions: Positions, level: float) -> tuple[float, float, float]:
        """Return low, share and high for the joint share of the values at some positions.

        The share is clipped to between 0 and 1 first, which only moves it towards the truth.
        """
        share = min(1.0, max(0.0, float(self.centre[positions].sum())))
        reach = normal_quantile(level) * self.deviation(positions)
        return max(0.0, share - reach), share, min(1.0, share + reach)

    def weighted_intervals(self, weights: Floats, level: float) -> tuple[Floats, Floats]:
        """Return the low and the high ends for weighted sums of shares, one for each row of weights from 0 to 1.

        As with sets, the sum is first clipped to what any distribution can have.
        """
        least, most = weights.min(axis=1), weights.max(axis=1)
        sums = np.clip(weights @ self.centre, least, most)
        reach = normal_quantile(level) * self.weighted_deviations(weights)
        return np.maximum(least, sums - reach), np.minimum(most, sums + reach)

    def weighted_deviations(self, weights: Floats) -> Floats:
        """Return the standard deviations of weighted sums of shares, one for each row of weights from 0 to 1."""
        if isinstance(self.covariance, CompactCovariance):
            return self.covariance.weighted_deviations(weights)
        variances: Floats = ((weights @ self.covariance) * weights).sum(axis=1)
        return np.sqrt(np.maximum(0.0, variances))

    @property
    def matrix(self) -> Floats:
        """The covariance, written out."""
        return self.covariance.matrix() if isinstance(self.covariance, CompactCovariance) else self.covariance

    def deviation(self, positions: Positions) -> float:
        """Return the standard deviation of the joint share of the values at some positions."""
        if isinstance(self.covariance, CompactCovariance):
            return self.covariance.deviation(positions)
        return math.sqrt(max(0.0, float(self.matrix[np.ix_(positions, positions)].sum())))

    @property
    def deviations(self) -> Floats:
        """The standard deviations of all single values."""
        if isinstance(self.covariance, CompactCovariance):
            return self.covariance.deviations()
        return np.sqrt(np.maximum(0.0, np.diagonal(self.matrix)))

    @property
    def running_deviations(self) -> Floats:
        """The standard deviations of the shares up to each value."""
        if isinstance(self.covariance, CompactCovariance):
            return self.covariance.running_deviations()
        return np.sqrt(np.maximum(0.0, np.diagonal(np.cumsum(np.cumsum(self.matrix, axis=0), axis=1))))


def normal_quantile(level: float) -> float:
    """Return the number of deviations within which a normal number lies with probability `level`."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


class NoSetShares(NamedTuple):
    """Why there are no shares of sets, worded to follow "because"."""

    reason: str


@stepwise
def set_shares(
    reports: Reports, reference: Floats, *, spare: float = 0.0, partly: bool = False
) -> Generator[Progress, None, SetShares | NoSetShares]:
    """Return the estimate that gives an interval for any set of values, or why there is none.

    `reference` is an estimate of the distribution; the closer it is to the truth, the narrower the intervals. `spare`
    is how many users the covariance adds to each output that can be listed, and to each bit. With `partly`, reports
    without a linear estimate are left out where there are others, which `left_out` says.
    """
    size = len(reports.domain)
    base = (1.0 - EVEN_PART) * reference + EVEN_PART / size
    yield Progress(0, 1, "intervals of sets")
    if reports.survey is not None:
        return NoSetShares("users have survey weights")
    if size > MAX_VALUES:
        return NoSetShares(f"{size:,} values are too many to compute how their errors are correlated")
    if size > MAX_MATRIX_VALUES:
        return (yield from _structured_shares(reports, base))
    joint = sum(block.counts.size for block in reports.blocks if isinstance(block, Joint))
    if float(joint) * size * size > MAX_JOINT_WORK:
        return NoSetShares(f"{joint:,} patterns of several outputs over {size:,} values are too many")
    hashed = sum(len(block.codes) for block in reports.blocks if isinstance(block, Singles) and _is_multiplied(block))
    if float(hashed) * size * size > MAX_JOINT_WORK:
        return NoSetShares(f"{hashed:,} different reports over {size:,} values are too many")
    with threads_for(size * size * 100):
        return _shares(reports, base, spare, partly=partly)


def _is_multiplied(block: Singles) -> bool:
    """Whether the products of the scores of each report are added up."""
    return isinstance(block.mechanism, Sketch | DBitFlip) and not can_list(block.mechanism)


def _structured_shares(reports: Reports, base: Floats) -> Generator[Progress, None, SetShares | NoSetShares]:
    """Return the estimate of thousands of values, if the mechanisms allow it."""
    sums = oracle_sums(reports.blocks, base, reports.domain.among)
    if sums is not None:
        return _oracle_shares(sums, reports.users, base)
    size, domain = len(reports.domain), reports.domain
    tables: list[ListedOutputs] = []
    for block in reports.blocks:
        if not isinstance(block, Singles):
            return NoSetShares(f"{size:,} values are too many for users who sent several outputs")
        sent = (
            enumerate_sent(block.mechanism, block.codes, float(reports.users), domain.among, MAX_LISTED_ENTRIES)
            if has_neighbours(domain)
            else None
        )
        if sent is None:
            name = type(block.mechanism).__name__
            return NoSetShares(f"{size:,} values are too many for the outputs of {name}")
        tables += [ListedOutputs(part.outputs.probabilities, part.tally(block.codes, block.weights)) for part in sent]
    found = yield from local_shares(domain, tables, base, ADDED_USERS)
    if found is None or not abs(float(found.centre.sum()) - 1.0) <= MAX_SUM_ERROR:
        return NoSetShares(f"the noise reaches too far to tell {size:,} values apart")
    return SetShares(frozen(found.centre), found.covariance, None)


def _oracle_shares(sums: Sequence[OracleSums], users: int, base: Floats) -> SetShares | NoSetShares:
    """Return the estimate from frequency oracles: as `_shares`, with a diagonal and dyads for each matrix."""
    information = sum((part.information for part in sums[1:]), sums[0].information) * (1.0 / users)
    inverse = information.inverse()
    centre = inverse @ (np.sum([part.total for part in sums], axis=0) / users)
    scatter = sum((part.scatter(centre) for part in sums[1:]), sums[0].scatter(centre)) * (1.0 / users)
    added = inverse.plus(-np.ones((1, 1)), base) * (ADDED_USERS / users)
    covariance = (inverse.around(scatter) + added) * (1.0 / users)
    nothing = np.zeros_like(base)
    compact = CompactCovariance(
        numbers=np.arange(base.size),
        diagonal=covariance.diagonal,
        offsets=np.zeros(0, dtype=np.int64),
        bands=np.zeros((0, base.size)),
        factors=covariance.factors,
        core=covariance.core,
        left_out=nothing,
        inexact=nothing,
    )
    if not np.isfinite(compact.deviations()).all() or not abs(float(centre.sum()) - 1.0) <= MAX_SUM_ERROR:
        return NoSetShares(INDISTINGUISHABLE)
    return SetShares(frozen(centre), compact, None)


def _shares(reports: Reports, base: Floats, spare: float, *, partly: bool = False) -> SetShares | NoSetShares:
    users, size = 0, base.size
    among = reports.domain.among
    parts: list[_BlockSums] = []
    left_out: list[str] = []
    for block in reports.blocks:
        part = _block_sums(block, base, float(reports.users), among, spare)
        if part is None:
            left_out.append(" and ".join(type(mechanism).__name__ for mechanism in block.mechanisms))
            continue
        parts.append(part)
        users += block.users
    kinds = listed(list(dict.fromkeys(left_out))) if left_out else ""
    if left_out and not (partly and parts):
        return NoSetShares(f"the outputs of {kinds} are too many to list")
    information = sum((part.information for part in parts), np.zeros((size, size))) / users
    inverted = _inverse(information, base)
    if inverted is None:
        return NoSetShares(INDISTINGUISHABLE)
    inverse, condition = inverted
    centre = inverse @ (sum((part.total for part in parts), np.zeros(size)) / users)
    scatter = sum((part.scatter(centre) for part in parts), np.zeros((size, size)))
    matrix = inverse @ (scatter / users) @ inverse
    outputs = float((information @ base).mean())  # sent by a user, on average
    matrix += ADDED_USERS / users * (inverse - np.outer(base, base) / outputs)
    matrix = (matrix + matrix.T) / (2.0 * users)
    if not np.isfinite(matrix).all() or abs(float(centre.sum()) - 1.0) > MAX_SUM_ERROR:
        return NoSetShares(INDISTINGUISHABLE)
    return SetShares(frozen(centre), frozen(matrix), condition, kinds)


def _inverse(information: Floats, base: Floats) -> tuple[Floats, float] | None:
    """Return the inverse and its condition number; None where it would be mostly rounding.

    Scaled by the reference, the largest eigenvalue is the number of outputs of a user.
    """
    from scipy.linalg import cho_factor, cho_solve, eigvalsh

    root = np.sqrt(base)
    scale = np.outer(root, root)
    scaled = information * scale
    if not np.isfinite(scaled).all():
        return None
    eigenvalues = eigvalsh(scaled)
    if not eigenvalues[0] > MIN_EIGENVALUE * eigenvalues[-1]:
        return None
    try:
        inverse = cho_solve(cho_factor(scaled), np.eye(base.size))
    except LinAlgError:
        return None
    return inverse * scale, float(eigenvalues[-1] / eigenvalues[0])


class _BlockSums(NamedTuple):
    """Sums over the users of one block."""

    total: Floats  # of the scores
    information: Floats
    scatter: Callable[[Floats], Floats]  # of the users' scores, around what a distribution predicts


class _Source(NamedTuple):
    """Outputs whose scores have one information: those of one mechanism, with the same attributes."""

    scores: Scores
    items: Positions  # their places among all outputs of the block
    codes: Codes
    counts: Floats  # how often users sent them


def _block_sums(block: Block, base: Floats, users: float, among: Positions | None, spare: float) -> _BlockSums | None:
    """Return the sums; None if some mechanism has too many outputs to list."""
    if isinstance(block, BitSums):
        scores = SetScores(block.mechanism, base, among)
        return _added([(scores, block.ones.astype(np.float64), float(block.users))], spare, None)
    sources = _sources(block, base, users, among)
    if sources is None:
        return None
    sums = [(own.scores, own.scores.tally(own.codes, own.counts), float(own.counts.sum())) for own in sources]
    return _added(sums, spare, partial(_scatter_of_joint, block, sources, spare) if isinstance(block, Joint) else None)


def _added(
    sums: Sequence[tuple[Scores, Floats, float]], spare: float, joint: Callable[[Floats], Floats] | None
) -> _BlockSums:
    """Add up the scores of tallied outputs; `joint` is the scatter where outputs are not each of another user."""
    size = len(sums[0][0].information)

    def scatter(centre: Floats) -> Floats:
        each = (own.scatter(tally, outputs, centre, spare=spare) for own, tally, outputs in sums)
        return sum(each, np.zeros((size, size)))

    total = sum((own.total(tally, outputs) for own, tally, outputs in sums), np.zeros(size))
    information = sum((outputs * own.information for own, _, outputs in sums), np.zeros((size, size)))
    return _BlockSums(total, information, joint or scatter)


def _sources(block: Block, base: Floats, users: float, among: Positions | None) -> list[_Source] | None:
    """Return the outputs of a block with their scores; None if some mechanism has too many to list."""
    sources: list[_Source] = []
    start = 0
    for mechanism, codes, counts in _sent_outputs(block):
        found = scores_of_sent(mechanism, codes, base, users, among)
        if found is None:
            return None
        sources += [_Source(scores, start + rows, codes[rows], counts[rows]) for scores, rows in found]
        start += len(codes)
    return sources


def _sent_outputs(block: Block) -> list[tuple[Mechanism, Codes, Floats]]:
    """Return the outputs of each mechanism, and how often users sent them."""
    if isinstance(block, Joint):
        starts = np.cumsum([len(codes) for _, codes in block.sources])[:-1]
        counts = np.split(np.asarray(block.weights @ block.repeats), starts)
        return [(mechanism, codes, sent) for (mechanism, codes), sent in zip(block.sources, counts, strict=True)]
    assert isinstance(block, Singles)  # noqa: S101  # there are three kinds of blocks
    return [(block.mechanism, block.codes, block.weights)]


def _scatter_of_joint(block: Joint, sources: Sequence[_Source], spare: float, centre: Floats) -> Floats:
    """Return the sum over users of the squares of their summed scores, some patterns at a time."""
    size = centre.size
    scatter = sum((own.scores.spare_scatter(spare, centre) for own in sources), np.zeros((size, size)))
    step = max(1, CHUNK_ENTRIES // size)
    for first in range(0, block.counts.size, step):
        repeats = sparse.csc_array(block.repeats[first : first + step])
        sums = np.zeros((repeats.shape[0], size))
        for own in sources:
            own_repeats = sparse.csc_array(repeats[:, own.items])
            sent = np.flatnonzero(np.diff(own_repeats.indptr))
            deviations = own.scores.of(own.codes[sent]) - (own.scores.information @ centre)[:, None]
            sums += own_repeats[:, sent] @ deviations.T
        scatter += (sums * block.weights[first : first + step, None]).T @ sums
    return scatter
