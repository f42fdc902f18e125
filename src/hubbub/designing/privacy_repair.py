"""A mechanism that keeps privacy bounds exactly, close to a matrix that almost does.

Let V >= 0 have almost the row sums 1 and columns almost in K = {v >= 0 : v_x <= e^(b_xy) v_y}. Three steps:

1. Each column is raised to the least one in K above it: w_y = max_x e^(-b_xy) v_x. By the triangle inequality of b it
   is in K.
2. Row sums are now 1 + d_x, with small d of both signs. All is divided by 1 + eta, so that the rows lack
   r_x = (eta - d_x) / (1 + eta), where eta is the least number for which r itself is in K:
   eta >= d_x, and eta >= (d_y - e^(-b_xy) d_x) / (1 - e^(-b_xy)) for all x, y.
3. r, which is in K, is added to the output where it costs least. Sums of members of K are members.

No step subtracts numbers of similar size except that for r; r is therefore raised into K once more, so all bounds
hold to a few units in the last place of every entry, however small it is.
"""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats


def repaired(matrix: Floats, bounds: Floats, costs: Floats) -> Floats:
    """Return a row-stochastic matrix that keeps the bounds; `costs` say where the least is lost.

    Bounds are positive off the diagonal, symmetric, and obey the triangle inequality; they may be infinite.
    """
    factors = np.exp(-bounds)
    raised = _raised(np.maximum(matrix, 0.0), factors)
    excess = raised.sum(axis=1) - 1.0
    needed = excess[None, :] - factors * excess[:, None]
    np.fill_diagonal(needed, -np.inf)
    spread = -np.expm1(-bounds)
    np.fill_diagonal(spread, 1.0)
    eta = max(float(excess.max()), float((needed / spread).max()))
    missing = _raised(np.maximum(eta - excess, 0.0)[:, None], factors)
    cheapest = int(np.argmin(missing[:, 0] @ costs))
    raised[:, cheapest] += missing[:, 0]
    result: Floats = raised / (1.0 + eta)
    return result


def largest_violation(matrix: Floats, bounds: Floats) -> float:
    """Return the largest A[x, z] / (e^(b_xy) A[y, z]) - 1, at least 0; where A[y, z] is 0, A[x, z] must be, too."""
    factors = np.exp(-bounds)
    worst = 0.0
    for column in matrix.T:
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 is no violation, 1 / 0 is an infinite one
            ratios = factors * column[:, None] / column
        worst = max(worst, float(np.nanmax(ratios)) - 1.0)
    return worst


def _raised(columns: Floats, factors: Floats) -> Floats:
    """Return the least columns of K above the given ones."""
    raised = np.empty_like(columns)
    for output in range(columns.shape[1]):
        raised[:, output] = (factors * columns[:, output]).max(axis=1)
    return raised
