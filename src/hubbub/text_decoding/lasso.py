"""google/rappor's way: LASSO on the bits' counts without their noise, and least squares on what it selects.

With Y_cj = (share of ones in bit j of cohort c - p*) / (q* - p*), where p* and q* are the probabilities of a one for a
zero and for a one of the filter, E Y = X theta: column x of X holds the filters of candidate x in all cohorts. LASSO
minimises

    |Y - a - X b|^2 / (2 n) + lambda sum b    over a and b >= 0

for a hundred lambdas, from the first that selects nothing down, as R's glmnet does, and its last fit selects the
candidates with b > 0. Weighted least squares on these, b >= 0 and sum b <= 1, are the shares, and ordinary ones give
the standard errors; a candidate is reported if its p-value, of b > 0, is below alpha over the number of candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from hubbub.core.arrays import Floats, Positions
from hubbub.mechanisms.bloom_rappor import BloomRappor

LAMBDAS = 100
LEAST_LAMBDA, LEAST_LAMBDA_OF_MANY = 1e-4, 1e-2  # relative to the first, with fewer candidates than bits, and with more
MAX_SELECTED = 500
MAX_SELECTED_SHARE = 0.8  # of the bits: more would fit noise
CONVERGED = 1e-7  # relative to the variance of Y, as in glmnet
MAX_ROUNDS = 10_000
SUM_WEIGHT = 1e4  # with which the sum of the shares is kept at 1, where it would be larger
LARGEST_CONDITION = 1e10


class LassoShares(NamedTuple):
    """What LASSO and least squares say about each candidate; `selected` are those that LASSO took."""

    shares: Floats
    errors: Floats
    p_values: Floats
    selected: Positions
    error_of_sum: float


class BitCounts(NamedTuple):
    """Shares of ones, and the number of users, of each cohort that has any."""

    ones: Floats
    users: Floats
    cohorts: Positions


def lasso_shares(mechanism: BloomRappor, candidates: Positions, counts: BitCounts) -> LassoShares:
    """Return the shares of candidates, by their positions in the domain."""
    zero, one = (float(chance) for chance in mechanism.chances)
    design = mechanism.mean_filters(candidates)[counts.cohorts].transpose(0, 2, 1).reshape(-1, candidates.size)
    response = ((counts.ones - zero) / (one - zero)).ravel()
    clipped = zero + (one - zero) * np.clip(response, 0.0, 1.0)
    deviations = np.sqrt(clipped * (1.0 - clipped) / np.repeat(counts.users, mechanism.bits)) / (one - zero)
    selected = np.flatnonzero(lasso(design, response) > 0.0)
    shares, errors = np.zeros(candidates.size), np.full(candidates.size, np.nan)
    p_values, of_sum = np.ones(candidates.size), np.nan
    if selected.size:
        columns, target = design[:, selected] / deviations[:, None], response / deviations
        shares[selected] = bounded_shares(columns, target)
        free, covariance = least_squares(columns, target)
        errors[selected] = np.sqrt(np.diag(covariance))
        p_values[selected] = special.ndtr(-free / errors[selected])
        of_sum = float(np.sqrt(max(covariance.sum(), 0.0)))
    return LassoShares(shares, errors, p_values, selected, of_sum)


def lasso(design: Floats, response: Floats) -> Floats:
    """Return the coefficients of the last lambda: not standardised, with an intercept, and none negative."""
    from hubbub.text_decoding.lasso_loops import descend

    bits, candidates = design.shape
    centred, target = design - design.mean(axis=0), response - response.mean()
    products, gram = centred.T @ target / bits, centred.T @ centred / bits
    largest = float(products.max(initial=0.0))
    least = LEAST_LAMBDA if bits >= candidates else LEAST_LAMBDA_OF_MANY
    most = int(min(MAX_SELECTED, bits * MAX_SELECTED_SHARE))
    kept = np.zeros(candidates)
    if largest <= 0.0:
        return kept
    tolerance = CONVERGED * float(target @ target) / bits
    current, ever = kept.copy(), np.zeros(candidates, dtype=bool)
    for penalty in largest * np.geomspace(1.0, least, LAMBDAS):
        current = descend(gram, products, current.copy(), float(penalty), tolerance, MAX_ROUNDS)
        ever |= current > 0.0
        if ever.sum() > most:
            break
        kept = current
    return kept


def bounded_shares(columns: Floats, target: Floats) -> Floats:
    """Return least squares with coefficients that are not negative, and a sum of at most 1."""
    free, _ = optimize.nnls(columns, target)
    if free.sum() <= 1.0:
        return np.asarray(free)
    weight = SUM_WEIGHT * float(np.abs(columns).max())
    extended = np.vstack([columns, np.full(columns.shape[1], weight)])
    bounded, _ = optimize.nnls(extended, np.append(target, weight))
    return np.asarray(bounded)


def least_squares(columns: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Return coefficients and their covariance, for deviations of 1."""
    inverse = np.linalg.pinv(columns.T @ columns, rcond=1.0 / LARGEST_CONDITION, hermitian=True)
    covariance = np.asarray(inverse, dtype=np.float64)
    return covariance @ (columns.T @ target), covariance
