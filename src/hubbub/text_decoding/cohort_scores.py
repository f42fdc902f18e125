"""Errors of a maximum-likelihood estimate from filters in cohorts, which hold if the rest is not what we think.

At the maximum, with d_i(x) = P(report i | x) / P(report i), the information is J = sum of d_i d_i' over users, the
score s = sum of (d_i - 1), and C the inverse of J on vectors with sum 0. One step without signs leads to theta + C s,
which is not biased, as the sum of many shares is that cannot be negative. Its variance is

    C B C,    B = J where the model is true,    B = sum over cohorts c of s_c s_c',   s_c = sum of (d_i - 1) over c.

Texts that are not listed have other bits in every cohort, so that cohorts are independent whatever these texts are:
if few of them are frequent, the second form holds where the first is too small. A share is given the larger of both
errors.

With nearly as many candidates as bits, or more, reports cannot tell all of them apart without signs. Candidates without
a share are then taken for absent, and a value without a share is added to those that have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from hubbub.core.arrays import Floats, frozen
from hubbub.mechanisms.bloom_rappor import BloomRappor
from hubbub.reports import Block, FilterSums, Joint, Singles

SMALLEST_SHARE = 1e-9  # below, a value has no share
MIN_COHORTS = 4  # whose scatter says anything
MAX_TOLD_SHARE = 0.8  # of the bits: up to so many values all shares are told apart, as google/rappor has it
MAX_FLAT_EIGENVALUE = 1e-11


class CohortReports(NamedTuple):
    """The reports of one cohort."""

    block: Block
    weights: Floats
    filters: FilterSums | None  # where only sums are known: those of this cohort


@dataclass(frozen=True)
class ShareErrors:
    """Each value's share, what it would be without signs, and its errors by the model and by the scatter of cohorts."""

    shares: Floats
    centre: Floats
    model: Floats
    scatter: Floats | None
    cohorts: int

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return both ends: the wider of the two, cut at 0 and 1, with the share inside."""
        half = special.ndtri(0.5 + level / 2) * self.model
        if self.scatter is not None:
            half = np.maximum(half, special.stdtrit(self.cohorts - 1, 0.5 + level / 2) * self.scatter)
        low, high = np.clip(self.centre - half, 0.0, 1.0), np.clip(self.centre + half, 0.0, 1.0)
        return np.minimum(low, self.shares), np.maximum(high, self.shares)


@dataclass
class _CohortSums:
    """The information, the variance of scores by the model, and the scores of cohorts."""

    information: Floats
    variance: Floats
    scores: list[Floats]
    total: float = 0.0


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
    size = theta.size
    sums = _CohortSums(np.zeros((size, size)), np.zeros((size, size)), [])
    for part in reports_by_cohort(blocks, mechanism):
        kept = part.weights > 0
        rows = part.block.channel(None).rows(np.arange(size))[:, kept]
        distinct, place = np.unique(rows, axis=0, return_inverse=True)  # candidates with the same filter
        place = place.ravel()
        ratios = distinct / (np.bincount(place, weights=theta, minlength=len(distinct)) @ distinct)
        weighted = ratios * part.weights[kept]
        told = (weighted @ ratios.T)[np.ix_(place, place)]
        sums.information += told
        sums.scores.append(weighted.sum(axis=1)[place] - part.weights[kept].sum())
        sums.total += float(part.weights[kept].sum())
        sums.variance += told if part.filters is None else _spread_of_sums(part.filters, mechanism, theta)
    if size <= MAX_TOLD_SHARE * mechanism.bits * len(sums.scores):
        return _errors(theta, sums, _inverse_with_sum_0(sums.information))
    return _errors(theta, sums, _inverse_among_shares(theta, sums))


def _spread_of_sums(sums: FilterSums, mechanism: BloomRappor, theta: Floats) -> Floats:
    """Return the variance of the scores of one cohort's sums: bits of one user are not independent."""
    (cohort,) = np.flatnonzero(sums.senders).tolist()
    zero, one = (float(chance) for chance in mechanism.chances)
    means = zero + (one - zero) * mechanism.mean_filters()[cohort]
    mean = theta @ means
    both = (means * theta[:, None]).T @ means
    any_bit, either = (1.0 - (1.0 - bit / mechanism.bits) ** mechanism.hashes for bit in (1, 2))
    shared = (one - zero) ** 2 * (2 * any_bit - either - any_bit**2)  # of two bits of a random filter
    both += float(theta[mechanism.rest_position]) * shared
    np.fill_diagonal(both, mean)
    slope = means / mean - (1.0 - means) / (1.0 - mean)  # of the score in the number of ones
    covariance = float(sums.senders[cohort]) * (both - np.outer(mean, mean))
    return np.asarray(slope @ covariance @ slope.T)


def _inverse_with_sum_0(information: Floats) -> Floats:
    """Return the inverse on vectors with sum 0."""
    inverse = np.linalg.pinv((information + information.T) / 2, rcond=MAX_FLAT_EIGENVALUE, hermitian=True)
    across = inverse.sum(axis=1)
    return np.asarray(inverse - np.outer(across, across) / across.sum())


def _inverse_among_shares(theta: Floats, sums: _CohortSums) -> Floats:
    """Return for each value its line of the inverse over the values that have a share, and itself."""
    active = np.flatnonzero(theta > SMALLEST_SHARE)
    shares, information = theta[active] / theta[active].sum(), sums.information
    inner = information[np.ix_(active, active)]
    inverse = np.linalg.pinv((inner + inner.T) / 2, rcond=MAX_FLAT_EIGENVALUE, hermitian=True)
    beside = information[:, active]
    outer = beside @ inverse
    slack = np.maximum(np.diag(information) - (outer * beside).sum(axis=1), sums.total * MAX_FLAT_EIGENVALUE)
    missing = 1.0 - outer.sum(axis=1)
    lift = missing / slack
    scale = 1.0 / sums.total + missing * lift  # the inverse maps ones to shares / total
    lines = np.zeros_like(information)
    lines[:, active] = -outer / slack[:, None] - (lift / scale)[:, None] * (shares / sums.total - outer * lift[:, None])
    lines[np.arange(theta.size), np.arange(theta.size)] = 1.0 / slack - lift**2 / scale
    lines[np.ix_(active, active)] = inverse - np.outer(shares, shares) / sums.total
    return lines


def _errors(theta: Floats, sums: _CohortSums, inverse: Floats) -> ShareErrors:
    """Return the step without signs, and both errors; line x of `inverse` has the weights of scores in share x."""
    scores = np.array(sums.scores)
    model = ((inverse @ sums.variance) * inverse).sum(axis=1)
    influence = scores @ inverse.T
    influence -= influence.mean(axis=0)
    count = len(scores)
    scatter = (influence**2).sum(axis=0) * count / max(1, count - 1)
    roots = [np.sqrt(np.maximum(part, 0.0)) for part in (model, scatter)]
    centre = theta + inverse @ scores.sum(axis=0)
    return ShareErrors(theta, centre, roots[0], roots[1] if count >= MIN_COHORTS else None, count)
