"""Errors of a maximum-likelihood estimate from filters in cohorts, which hold if the rest is not what we think.

At the maximum, with d_i(x) = P(report i | x) / P(report i), the information is J = sum of d_i d_i' over users, and
J theta = n 1. On vectors with sum 0 its inverse is C = J^-1 - theta theta' / n, over the values with a share. The
variance of the estimate is

    C B C,    B = J where the model is true,    B = sum over cohorts c of S_c S_c',   S_c = sum of (d_i - 1) over c.

Texts that are not listed have other bits in every cohort, so that cohorts are independent whatever these texts are:
if few of them are frequent, the second form holds where the first is too small. A share is given the larger of both
errors.

A value x without a share is added to those that have one: its variance is that of C for all of these together, and it
would get the share of one step towards the maximum, which is negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.mechanisms.bloom_rappor import BloomRappor
from hubbub.reports import Block, FilterSums, Joint, Singles

SMALLEST_SHARE = 1e-9  # below, a value has no share
MIN_COHORTS = 4  # whose scatter says anything
MAX_FLAT_EIGENVALUE = 1e-11


class CohortReports(NamedTuple):
    """The reports of one cohort."""

    block: Block
    weights: Floats
    filters: FilterSums | None  # where only sums are known: those of this cohort


@dataclass(frozen=True)
class ShareErrors:
    """Where each value's share would be without signs, and its errors by the model and by the scatter of cohorts."""

    centre: Floats
    model: Floats
    scatter: Floats | None
    cohorts: int

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return both ends: the wider of the two, cut at 0 and 1."""
        half = special.ndtri(0.5 + level / 2) * self.model
        if self.scatter is not None:
            half = np.maximum(half, special.stdtrit(self.cohorts - 1, 0.5 + level / 2) * self.scatter)
        return np.clip(self.centre - half, 0.0, 1.0), np.clip(self.centre + half, 0.0, 1.0)


def reports_by_cohort(blocks: tuple[Block, ...], mechanism: BloomRappor) -> Iterator[CohortReports]:
    """Yield the reports of each cohort; those of a user in several count for her first."""
    for block in blocks:
        if isinstance(block, Singles):
            cohorts = mechanism.bits_of(block.codes)[0]
            for cohort in np.unique(cohorts).tolist():
                own = cohorts == cohort
                part: Block = Singles(mechanism, frozen(block.codes[own]), frozen(block.counts[own]))
                yield CohortReports(part, part.weights, None)
        elif isinstance(block, Joint):
            (codes,) = (codes for _, codes in block.sources)
            cohorts = mechanism.bits_of(codes)[0]
            first = cohorts[block.repeats.indices[block.repeats.indptr[:-1]]]
            for cohort in np.unique(first).tolist():
                own = first == cohort
                part = Joint(block.sources, sparse.csr_array(block.repeats[own]), frozen(block.counts[own]))
                yield CohortReports(part, part.weights, None)
        elif isinstance(block, FilterSums):
            for cohort in np.flatnonzero(block.senders).tolist():
                only = np.arange(len(block.senders)) == cohort
                alone = FilterSums(mechanism, block.ones * only[:, None], block.senders * only)
                yield CohortReports(alone, alone.weights, alone)


def share_errors(blocks: tuple[Block, ...], mechanism: BloomRappor, theta: Floats) -> ShareErrors:
    """Return the errors of all values' shares at the maximum-likelihood estimate `theta`."""
    active = np.flatnonzero(theta > SMALLEST_SHARE)
    shares = theta[active] / theta[active].sum()
    beside, own = np.zeros((theta.size, active.size)), np.zeros(theta.size)  # of the information
    spread_beside, spread_own = np.zeros((theta.size, active.size)), np.zeros(theta.size)  # of the scores' variance
    scores: list[Floats] = []
    total = 0.0
    for part in reports_by_cohort(blocks, mechanism):
        kept = part.weights > 0
        rows = part.block.channel(None).rows(np.arange(theta.size))[:, kept]
        weights = part.weights[kept]
        ratios = rows / (shares @ rows[active])
        weighted = ratios * weights
        told = weighted @ ratios[active].T, (weighted * ratios).sum(axis=1)
        beside += told[0]
        own += told[1]
        scores.append(weighted.sum(axis=1) - weights.sum())
        total += float(weights.sum())
        if part.filters is not None:
            spread = _spread_of_sums(part.filters, mechanism, shares, active)
            told = spread[:, active], np.diag(spread)
        spread_beside += told[0]
        spread_own += told[1]
    return _errors(theta, active, shares, total, (beside, own), (spread_beside, spread_own), np.array(scores))


def _spread_of_sums(sums: FilterSums, mechanism: BloomRappor, shares: Floats, active: Positions) -> Floats:
    """Return the variance of the scores of one cohort's sums: bits of one user are not independent."""
    (cohort,) = np.flatnonzero(sums.senders).tolist()
    zero, one = (float(chance) for chance in mechanism.chances)
    filters = mechanism.mean_filters()[cohort]
    means = zero + (one - zero) * filters
    mean = shares @ means[active]
    both = (means[active] * shares[:, None]).T @ means[active]
    if mechanism.rest_position in active.tolist():
        any_bit, either = (1.0 - (1.0 - bit / mechanism.bits) ** mechanism.hashes for bit in (1, 2))
        share = float(shares[active == mechanism.rest_position][0])
        both += share * (one - zero) ** 2 * (2 * any_bit - either - any_bit**2)
    np.fill_diagonal(both, mean)
    slope = means / mean - (1.0 - means) / (1.0 - mean)  # of the score in the number of ones
    covariance = float(sums.senders[cohort]) * (both - np.outer(mean, mean))
    return np.asarray(slope @ covariance @ slope.T)


def _errors(
    theta: Floats,
    active: Positions,
    shares: Floats,
    total: float,
    information: tuple[Floats, Floats],
    variance: tuple[Floats, Floats],
    scores: Floats,
) -> ShareErrors:
    beside, own = information
    spread_beside, spread_own = variance
    inner = beside[active]
    inverse = np.linalg.pinv((inner + inner.T) / 2, rcond=MAX_FLAT_EIGENVALUE, hermitian=True)
    constrained = inverse - np.outer(shares, shares) / total
    # Weights of the scores in the share of each value: of the values with a share, and of the value itself.
    outer = beside @ inverse  # a' for each value
    slack = np.maximum(own - (outer * beside).sum(axis=1), total * MAX_FLAT_EIGENVALUE)
    missing = 1.0 - outer.sum(axis=1)
    lift = missing / slack
    scale = 1.0 / total + missing * lift
    of_own = 1.0 / slack - lift**2 / scale
    of_active = -outer / slack[:, None] - (lift / scale)[:, None] * (shares / total - outer * lift[:, None])
    of_active[active], of_own[active] = constrained, 0.0
    model = (
        ((of_active @ spread_beside[active]) * of_active).sum(axis=1)
        + 2.0 * of_own * (spread_beside * of_active).sum(axis=1)
        + of_own**2 * spread_own
    )
    influence = scores[:, active] @ of_active.T + scores * of_own
    count = len(scores)
    scatter = (influence**2).sum(axis=0) * count / max(1, count - 1)
    centre = np.where(theta > SMALLEST_SHARE, theta, of_own * scores.sum(axis=0))
    roots = [np.sqrt(np.maximum(part, 0.0)) for part in (model, scatter)]
    return ShareErrors(centre, roots[0], roots[1] if count >= MIN_COHORTS else None, count)
