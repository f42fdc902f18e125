"""Many quadratic programs over one cone at once: the likelihood near a border, in the limit of many users.

With J the information per user, h the distance from a distribution times the square root of the number of users and s a
score drawn from N(0, J), twice the log-likelihood is, up to a constant, 2 s'h - h'Jh, over the h that keep
every probability at least 0. Deviances in the limit are differences of such maxima (Chernoff, 1954); a sample of
scores gives a sample of deviances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats

MAX_ITERATIONS = 60
MAX_SHORTFALL = 1e-3  # of a minimum: negligible beside a deviance of 4
BORDER_FRACTION = 0.99  # of the way to the border that a step may go
MAX_STACKED_VALUES = 40  # up to which inverting a stack of matrices is quicker than factorising each
MAX_ENTRIES_AT_ONCE = 40_000_000  # of all matrices in memory
# Equations are imposed by a penalty: where they leave a cone without an interior, multipliers would grow without end. A
# multiplier of 30, rare for scores of variance 1, costs 30^2 / 2e6, which is negligible beside a deviance of 4.
PENALTY = 1e6
MIN_RELATIVE_DIAGONAL = 1e-12  # of the largest diagonal entry, for scaling
RELATIVE_RIDGE = 1e-8  # of the diagonal: directions without information must not stop a factorisation
MIN_SLACK = 1e-12  # of slacks and prices that rounding would bring to 0

Solve = Callable[[Floats], Floats]


def cone_minima(hessian: Floats, scores: Floats, lower: Floats, equal: Floats) -> Floats:
    """Return min over h of h'Jh/2 - s'h subject to h >= lower and equal @ h = 0, for each row s of `scores`.

    `lower` must not be positive, so that 0 is allowed and no minimum is positive; -inf where there is no limit.
    """
    runs, values = scores.shape
    own = np.diag(hessian)
    scale = 1.0 / np.sqrt(np.maximum(own, MIN_RELATIVE_DIAGONAL * own.max()))
    rows = _orthonormal(equal * scale)
    matrix = hessian * scale * scale[:, None] + RELATIVE_RIDGE * np.eye(values)
    problem = _ConeProgram(matrix + PENALTY * (rows.T @ rows), lower / scale)
    step = max(1, MAX_ENTRIES_AT_ONCE // values**2)
    parts = [problem.minima(scores[first : first + step] * scale) for first in range(0, runs, step)]
    return np.minimum(np.concatenate(parts), 0.0) if parts else np.empty(0)


class _ConeProgram(NamedTuple):
    """The matrix and the lower limits, the same for all scores."""

    matrix: Floats
    lower: Floats

    def minima(self, scores: Floats) -> Floats:
        """Return the minimum for each row of `scores`, by Mehrotra's predictor and corrector."""
        bounded = np.isfinite(self.lower)
        limit = np.where(bounded, self.lower, 0.0)
        count = max(1, int(np.count_nonzero(bounded)))
        minima, running = np.zeros(len(scores)), np.arange(len(scores))
        step = np.tile(np.where(bounded, np.minimum(1.0, 1.0 + limit), 0.0), (len(scores), 1))  # a slack of at least 1
        prices = np.tile(bounded.astype(np.float64), (len(scores), 1))
        for _ in range(MAX_ITERATIONS):
            slack = np.where(bounded, np.maximum(step - limit, MIN_SLACK), 1.0)
            short = scores - step @ self.matrix
            minima[running] = -0.5 * np.einsum("bx,bx->b", short + scores, step)
            centre = (slack * prices).sum(axis=1) / count
            going = (count * centre > MAX_SHORTFALL) | (np.abs(short + prices).max(axis=1) > MAX_SHORTFALL / count)
            if not going.all():
                running, scores, step, prices = running[going], scores[going], step[going], prices[going]
                slack, short, centre = slack[going], short[going], centre[going]
            if running.size == 0:
                break
            solve = _solver(self.matrix, prices / slack)
            off = np.where(bounded, -slack * prices, 0.0)
            move = solve(short + prices + off / slack)
            change = np.where(bounded, (off - prices * move) / slack, 0.0)
            reach = np.minimum(_step_lengths(slack, move, bounded), _step_lengths(prices, change, bounded))[:, None]
            after = ((slack + reach * move) * (prices + reach * change) * bounded).sum(axis=1) / count
            target = (after / np.maximum(centre, MIN_SLACK)) ** 3 * centre  # 0 where nothing is limited
            off += np.where(bounded, target[:, None] - move * change, 0.0)
            move = solve(short + prices + off / slack)
            change = np.where(bounded, (off - prices * move) / slack, 0.0)
            # One length for both: in a quadratic program prices depend on steps, and different lengths can cycle.
            reach = np.minimum(_step_lengths(slack, move, bounded), _step_lengths(prices, change, bounded))
            reach = np.minimum(1.0, BORDER_FRACTION * reach)[:, None]
            step, prices = step + reach * move, prices + reach * change
            prices = np.where(bounded, np.maximum(prices, MIN_SLACK), 0.0)
        return minima


def _step_lengths(numbers: Floats, step: Floats, bounded: NDArray[np.bool_]) -> Floats:
    """Return for each row how far to go until a number becomes 0; at most 1,000."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steepest = np.where(bounded, -step / numbers, 0.0).max(axis=1)
    return np.asarray(1.0 / np.maximum(steepest, 1e-3))


def _solver(matrix: Floats, barrier: Floats) -> Solve:
    """Return the solver of matrix + diag(barrier), for each row of `barrier`."""
    runs, values = barrier.shape
    if values <= MAX_STACKED_VALUES:
        stack = np.tile(matrix, (runs, 1, 1))
        stack[:, np.arange(values), np.arange(values)] += barrier
        inverse = np.linalg.inv(stack)
        return lambda right: np.einsum("bxy,by->bx", inverse, right)
    from scipy.linalg.lapack import dpotrf, dpotrs

    factors, places = [], np.diag_indices(values)
    for row in barrier:
        own = matrix.copy()
        own[places] += row
        factors.append(dpotrf(own.T, lower=0, clean=0, overwrite_a=1)[0])
    return lambda right: np.stack([dpotrs(factor, row, lower=0)[0] for factor, row in zip(factors, right, strict=True)])


def _orthonormal(equal: Floats) -> Floats:
    """Return orthonormal rows with the same span as the equations."""
    if equal.size == 0:
        return equal
    _, sizes, rows = np.linalg.svd(equal, full_matrices=False)
    kept: Floats = rows[sizes > sizes[0] * 1e-10]
    return kept
