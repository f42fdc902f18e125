"""Standard errors of linear statistics, from the Fisher information of the reports at the estimate that is shown.

The information per user about theta is the mean over users of

* the sum over all outputs z of g_z g_z' / f_z, with f = theta G, where a user sent one output and all outputs can be
  listed: those that nobody sent count as well. A report that lacks attributes counts with the outputs of those it has;
* g_i g_i' / f_i^2 for the pattern i that the user sent, otherwise (sets, hashes, several outputs, sums of bits).

Both have the same mean. At a maximum with f = q, such as that of randomized response without zeros, they are equal.
Elsewhere the first does not depend on which rare outputs happen to be missing, and it is what textbooks write down.

With M = I + 1 1' and n users, the covariance of shares whose sum is 1 is (M^-1 - M^-1 1 1' M^-1 / 1' M^-1 1) / n.

**Survey weights.** With A the information of the weighted likelihood and B the covariance of its score over the sampled
units, the covariance is A^-1 B A^-1 over the effective number of users, A^-1 being the bracket above.

**Zeros.** All values count, those with an estimate of 0 included: nobody knows that a share is 0. The standard error is
the textbook's, that of an estimate without signs; where neighbours are hard to tell apart, it may be far larger than an
interval, which uses that no share is negative. If the estimate gives an output probability 0 (without noise, or with a
matrix that has zeros), the information about the values behind it is infinite, and the formula says 0: such a
standard error is not a number here.

**Rank.** A statistic is determined if its weights are in the range of M, and others need not be. Rows and columns are
scaled to a diagonal of 1 first; eigenvalues below 1e-10 of the largest count as 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.validation import DEFAULT_SEED
from hubbub.intervals.deviance_cutoff import information_per_user, score_covariance
from hubbub.intervals.linear_scores import SMALLEST_FIT
from hubbub.intervals.set_intervals import MIN_EIGENVALUE
from hubbub.likelihood import Likelihood
from hubbub.likelihood.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.outputs.sent_outputs import enumerate_sent
from hubbub.reports import Block, Reports, Singles

MAX_INFORMED_VALUES = 1_500  # over which the information is decomposed: about a second
MAX_UNDETERMINED_PART = 1e-6  # of scaled weights, in directions that the reports say nothing about: more than rounding
MAX_ZERO_VARIANCE = 1e-12  # per user, relative to the squared range of the weights

TOO_MANY_VALUES = f"More than {MAX_INFORMED_VALUES:,} values are too many to compute standard errors."
UNDETERMINED = (
    "The reports do not determine it: they cannot tell some values apart, or so weakly that rounding would decide."
)
IMPOSSIBLE_REPORTS = "The estimate gives some reports probability 0, or nearly: there is no information at it."
INFINITE_INFORMATION = "The estimate gives some outputs probability 0, where the information is infinite."
OF_BOOTSTRAP = "The bootstrap has no standard error of its own: method='profile' returns one."


class StandardErrors(NamedTuple):
    """The standard error of each statistic; NaN where there is none, with the reason (otherwise empty)."""

    numbers: Floats
    reasons: tuple[str, ...]

    @classmethod
    def missing(cls, count: int, reason: str) -> StandardErrors:
        """Return standard errors that are not numbers, all for the same reason."""
        return cls(np.full(count, np.nan), (reason,) * count)

    def of_difference(self, other: StandardErrors) -> StandardErrors:
        """Return those of the differences of the same statistics between independent reports."""
        reasons = (own or theirs for own, theirs in zip(self.reasons, other.reasons, strict=True))
        return StandardErrors(np.hypot(self.numbers, other.numbers), tuple(reasons))


def standard_errors(reports: Reports, theta: Floats, statistics: Sequence[Floats]) -> StandardErrors:
    """Return the standard errors of some statistics, given by their weights, at the estimate theta."""
    if theta.size > MAX_INFORMED_VALUES:
        return StandardErrors.missing(len(statistics), TOO_MANY_VALUES)
    point = Likelihood.of(reports).at(theta)
    if (point.fitted[point.likelihood.sent] <= MIN_PLAIN_PROBABILITY).any():
        return StandardErrors.missing(len(statistics), IMPOSSIBLE_REPORTS)
    weights = np.array(statistics)
    if reports.survey is None:
        information, covariance = fisher_information(reports, theta), None
    else:
        information, covariance = (
            information_per_user(point, np.random.default_rng(DEFAULT_SEED)),
            score_covariance(point),
        )
    variances, undetermined = variances_per_user(information, theta, weights, covariance)
    ranges = np.ptp(weights, axis=1)
    numbers, reasons = np.sqrt(variances / reports.effective_users), [""] * len(statistics)
    for index in np.flatnonzero(ranges > 0.0).tolist():  # the sum of all shares is known
        if undetermined[index]:
            numbers[index], reasons[index] = math.nan, UNDETERMINED
        elif variances[index] <= MAX_ZERO_VARIANCE * ranges[index] ** 2:
            numbers[index], reasons[index] = math.nan, INFINITE_INFORMATION
    return StandardErrors(numbers, tuple(reasons))


def fisher_information(reports: Reports, theta: Floats) -> Floats:
    """Return the information per user about theta, a matrix over values."""
    information, others = np.zeros((theta.size, theta.size)), list[Block]()
    for block in reports.blocks:
        sent = (
            enumerate_sent(block.mechanism, block.codes, float(block.users), reports.domain.among)
            if isinstance(block, Singles)
            else None
        )
        if sent is None:
            others.append(block)
            continue
        for own in sent:
            columns = own.outputs.probabilities
            fitted = np.maximum(theta @ columns, SMALLEST_FIT)
            information += block.weights[own.rows].sum() * ((columns / fitted) @ columns.T)
    if others:
        rest = reports if len(others) == len(reports.blocks) else replace(reports, blocks=tuple(others))
        likelihood = Likelihood.of(rest)
        sample = np.random.default_rng(DEFAULT_SEED)  # of users, where their patterns are too many
        information += likelihood.total * information_per_user(likelihood.at(theta), sample)
    return information / reports.users


def variances_per_user(
    information: Floats, theta: Floats, weights: Floats, covariance: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the variance of each row of weights if shares sum to 1, and whether the information leaves it open.

    `covariance` is that of the score, where it is not the information (survey weights).
    """
    moments = information + 1.0  # the sum of the shares, as if it had been observed
    scale = 1.0 / np.sqrt(np.diagonal(moments))
    eigenvalues, vectors = np.linalg.eigh(moments * scale * scale[:, None])
    kept = eigenvalues > MIN_EIGENVALUE * eigenvalues[-1]
    centred = (weights - (weights @ theta)[:, None]) * scale  # a constant changes no variance
    parts = centred @ vectors
    undetermined = np.linalg.norm(parts[:, ~kept], axis=1) > MAX_UNDETERMINED_PART * np.linalg.norm(parts, axis=1)
    roots = np.sqrt(eigenvalues[kept])
    total = (scale @ vectors)[kept] / roots
    total /= np.linalg.norm(total)
    parts = parts[:, kept] / roots
    parts -= np.outer(parts @ total, total)
    if covariance is None:
        return np.asarray((parts**2).sum(axis=1)), np.asarray(undetermined)
    moves = ((parts / roots) @ vectors[:, kept].T) * scale
    return np.einsum("ij,jk,ik->i", moves, covariance, moves), np.asarray(undetermined)
