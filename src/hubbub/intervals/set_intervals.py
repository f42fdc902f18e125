"""The share of any set of values, with its interval, from one vector and one matrix: `set_shares`.

With s the scores of `linear_scores` and H the mean information of what users sent, v = H^-1 (mean score of the
users) is an estimate of theta **without bias for every theta**, zeros and all. Its entries may be negative, and sum
to 1. A set's share is a sum over v, its variance a sum over the covariance of v. Because nothing keeps the signs
right, the error is a plain sum over users, close to normal, however many true shares are 0: intervals that respect
signs have to be simulated for each set.

A user who sends several outputs counts with the sum of their scores, so that it does not matter how outputs of one
user depend on each other. The covariance is that of the users as they are, around what v lets expect; sets from
single reports, which are too many to look at in pairs, have the model's. Four users more, who answer as the
reference does, keep a value that nobody reported from having no variance at all (after Agresti and Coull).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy import sparse

from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.portable import Portable
from hubbub.core.threads import threads_for
from hubbub.intervals.linear_scores import Scores, SetScores, scores_of
from hubbub.reports import BitSums, Block, Joint, Reports, Singles

MOST_VALUES = 2_000  # a matrix of that side takes 32 MB
MOST_WORK = 4e11  # multiplications for users with several outputs, some ten seconds
EVEN = 0.1  # of the reference is spread evenly over all values
CLEAR = 1e-10  # the least eigenvalue of the scaled information that rounding leaves alone
FURTHER = 4.0  # users more, who answer as the reference does
PART = 4_000_000  # entries worked on at a time
UNTOLD = "the reports cannot tell some values from others, or so little that rounding would decide"


@dataclass(frozen=True, eq=False)
class SetShares(Portable):
    """An estimate of all shares that is linear in the reports, and its covariance."""

    centre: Floats  # may be negative; sums to 1
    matrix: Floats
    condition: float  # how many times less the reports say of the least seen direction than of the best seen one

    def interval(self, positions: Positions, level: float) -> tuple[float, float, float]:
        """Return low, share and high for the joint share of the values at some positions.

        The share is put between 0 and 1 first: that only moves it towards the truth.
        """
        from scipy.special import ndtri

        share = min(1.0, max(0.0, float(self.centre[positions].sum())))
        deviation = math.sqrt(max(0.0, float(self.matrix[np.ix_(positions, positions)].sum())))
        reach = float(ndtri(0.5 + level / 2)) * deviation
        return max(0.0, share - reach), share, min(1.0, share + reach)


class Untold(NamedTuple):
    """Why there are no shares of sets, to be read after "because"."""

    reason: str


def set_shares(reports: Reports, reference: Floats) -> SetShares | Untold:
    """Return what gives an interval for any set of values, or why there is no such thing.

    `reference` is an estimate of the distribution; the closer it is to the truth, the narrower are the intervals.
    """
    size = len(reports.domain)
    if size > MOST_VALUES:
        return Untold(f"a matrix over {size:,} values is too large")
    joint = sum(block.counts.size for block in reports.blocks if isinstance(block, Joint))
    if float(joint) * size * size > MOST_WORK:
        return Untold(f"{joint:,} patterns of several outputs over {size:,} values are too many")
    with threads_for(size * size * 100):
        return _shares(reports, (1.0 - EVEN) * reference + EVEN / size)


def _shares(reports: Reports, base: Floats) -> SetShares | Untold:
    users, size = reports.users, base.size
    among = reports.domain.among
    parts: list[_Part] = []
    for block in reports.blocks:
        part = _part(block, base, float(users), among)
        if part is None:
            kinds = " and ".join(type(mechanism).__name__ for mechanism in block.mechanisms)
            return Untold(f"the outputs of {kinds} are too many to list")
        parts.append(part)
    information = sum((part.information for part in parts), np.zeros((size, size))) / users
    found = _inverse(information, base)
    if found is None:
        return Untold(UNTOLD)
    inverse, condition = found
    centre = inverse @ (sum((part.total for part in parts), np.zeros(size)) / users)
    scatter = sum((part.scatter(centre) for part in parts), np.zeros((size, size)))
    matrix = inverse @ (scatter / users) @ inverse
    outputs = float((information @ base).mean())  # of a user, on average
    matrix += FURTHER / users * (inverse - np.outer(base, base) / outputs)
    matrix = (matrix + matrix.T) / (2.0 * users)
    if not np.isfinite(matrix).all() or abs(float(centre.sum()) - 1.0) > 1e-6:
        return Untold(UNTOLD)
    return SetShares(frozen(centre), frozen(matrix), condition)


def _inverse(information: Floats, base: Floats) -> tuple[Floats, float] | None:
    """Return the inverse, and how well determined it is; None where it would be rounding.

    Scaled by the reference, the largest eigenvalue is the number of outputs of a user.
    """
    from scipy.linalg import cho_factor, cho_solve, eigvalsh

    root = np.sqrt(base)
    scale = np.outer(root, root)
    scaled = information * scale
    if not np.isfinite(scaled).all():
        return None
    values = eigvalsh(scaled)
    if not values[0] > CLEAR * values[-1]:
        return None
    try:
        inverse = cho_solve(cho_factor(scaled), np.eye(base.size))
    except LinAlgError:
        return None
    return inverse * scale, float(values[-1] / values[0])


class _Part(NamedTuple):
    """What the users of one block add."""

    block: Block
    scores: tuple[Scores, ...]  # one for each mechanism
    total: Floats  # of the scores
    information: Floats  # the sum over users

    def scatter(self, centre: Floats) -> Floats:
        """Return the sum over users of the squares of their scores, around what `centre` lets expect."""
        block = self.block
        if isinstance(block, Joint):
            return _scatter_of_joint(block, self.scores, centre)
        (own,) = self.scores
        if isinstance(block, BitSums) and isinstance(own, SetScores):
            return own.scatter_of_held(block.ones.astype(np.float64), float(block.users))
        assert isinstance(block, Singles)  # noqa: S101  # there are three kinds of blocks
        return own.scatter(block.codes, block.weights, centre)


def _part(block: Block, base: Floats, users: float, among: Positions | None) -> _Part | None:
    if isinstance(block, BitSums):
        sets = SetScores(block.mechanism, base, among)
        total = sets.total_of_held(block.ones.astype(np.float64), float(block.users))
        return _Part(block, (sets,), total, block.users * sets.information)
    found = [scores_of(mechanism, base, users, among) for mechanism in block.mechanisms]
    scores = tuple(one for one in found if one is not None)
    if len(scores) < len(found):
        return None
    if isinstance(block, Singles):
        own = scores[0]
        return _Part(block, scores, own.total(block.codes, block.weights), block.users * own.information)
    assert isinstance(block, Joint)  # noqa: S101  # there are three kinds of blocks
    sent = np.asarray(block.weights @ block.repeats)  # how often each item was sent in all
    starts = np.cumsum([0, *(len(codes) for _, codes in block.sources)])
    counts = [sent[first:last] for first, last in pairwise(starts)]
    codes = [codes for _, codes in block.sources]
    total = sum((one.total(*each) for one, *each in zip(scores, codes, counts, strict=True)), np.zeros(base.size))
    information = sum(
        (count.sum() * one.information for one, count in zip(scores, counts, strict=True)),
        np.zeros((base.size, base.size)),
    )
    return _Part(block, scores, total, information)


def _scatter_of_joint(block: Joint, scores: tuple[Scores, ...], centre: Floats) -> Floats:
    """Add up over users the squares of their sums of scores, some patterns at a time."""
    size = centre.size
    found = np.zeros((size, size))
    starts = np.cumsum([0, *(len(codes) for _, codes in block.sources)])
    step = max(1, PART // size)
    for first in range(0, block.counts.size, step):
        repeats = sparse.csr_array(block.repeats[first : first + step])
        sums = np.zeros((repeats.shape[0], size))
        for own, (_, codes), start, end in zip(scores, block.sources, starts[:-1], starts[1:], strict=True):
            mine = sparse.csc_array(repeats[:, start:end])
            sent = np.flatnonzero(np.diff(mine.indptr))
            apart = own.of(codes[sent]) - (own.information @ centre)[:, None]
            sums += mine[:, sent] @ apart.T
        found += (sums * block.weights[first : first + step, None]).T @ sums
    return found
