"""The best weights of given columns: a convex program, solved by Newton's method along a central path.

    minimise F(w)   subject to   sum_j w_j r_j = 1,   sum_j w_j cost_j <= budget,   w >= 0

The multipliers of the constraints are what new columns are priced with. Goals that add up over outputs make this a
linear program, which HiGHS solves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog, nnls

from hubbub.core.arrays import Floats
from hubbub.designing.central_path import CentralPath
from hubbub.designing.information_goals import InformationGoal, basis_of_changes

TINY = 1e-300  # instead of 0, where it divides
STARTED = 1e-3  # of the largest weight, or of equal ones: what every column starts with
SUMS = 1e-8  # how far the first weights' sums may be from 1
MIN_LEFT = 1e-3  # of the budget, at the start
LINEAR_TOLERANCES: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of columns, with the multipliers of the sums and of the budget."""

    weights: Floats
    sums: Floats
    budget: float


def start_weights(columns: Floats, costs: Floats | None = None, budget: float = np.inf) -> Floats | None:
    """Return weights with sums 1 and some mass on every column; None if no weights keep the budget."""
    count = len(columns)
    if costs is None or not np.isfinite(budget):
        found, residual = nnls(columns.T, np.ones(columns.shape[1]))
        return None if residual > SUMS else np.asarray(np.maximum(found, STARTED * found.max()))
    solved = linprog(costs, A_eq=columns.T, b_eq=np.ones(columns.shape[1]), method="highs")
    if solved.status != 0 or float(np.asarray(solved.fun)) > budget * (1 + 1e-12):
        return None
    return np.asarray(np.maximum(np.asarray(solved.x), STARTED / count))


def best_linear_weights(columns: Floats, costs: Floats) -> Weights:
    """Return the weights with the least total cost."""
    # The solver's tolerances are absolute, and columns may differ by little: what they differ in is scaled up.
    size = max(float(np.abs(costs).max()), TINY)
    basis = basis_of_changes(columns.shape[1])
    changes = columns @ basis
    spread = max(float(np.abs(changes).max()), TINY)
    rows = np.vstack([columns.mean(axis=1), changes.T / spread])
    right = np.append(1.0, np.zeros(basis.shape[1]))
    solved = linprog(costs / size, A_eq=rows, b_eq=right, method="highs", options=LINEAR_TOLERANCES)
    if solved.status != 0:
        raise ArithmeticError(f"no weights were found: {solved.message}")
    marginals = size * np.asarray(solved.eqlin.marginals)
    sums = marginals[0] / len(basis) + basis @ (marginals[1:] / spread)
    return Weights(np.maximum(np.asarray(solved.x), 0.0), sums, 0.0)


def best_weights(
    goal: InformationGoal,
    columns: Floats,
    start: Floats,
    *,
    tolerance: float,
    barrier: float = 0.1,
    costs: Floats | None = None,
    budget: float = np.inf,
) -> Weights:
    """Return weights within about `tolerance` (relative) of the best for these columns.

    `barrier` is how far the path starts from the optimum, relative to the value: little where the start is good.
    """
    sums = goal.images(columns).mean(axis=0).T
    features = goal.features(columns)
    if costs is None or not np.isfinite(budget):
        path = CentralPath(goal, features, sums, np.ones(len(sums)))
        point, multipliers = path.follow(start, barrier=barrier, tolerance=tolerance)
        return Weights(point, multipliers, 0.0)
    # One more variable, the part of the budget that is not spent; the row is scaled to numbers of about 1.
    scale = max(float(np.abs(costs).max()), budget, TINY)
    rows = np.zeros((len(sums) + 1, len(start) + 1))
    rows[:-1, :-1], rows[-1, :-1], rows[-1, -1] = sums, costs / scale, 1.0
    left = max((budget - float(costs @ start)) / scale, MIN_LEFT * budget / scale)
    path = CentralPath(goal, features, rows, np.append(np.ones(len(sums)), budget / scale))
    point, multipliers = path.follow(np.append(start, left), barrier=barrier, tolerance=tolerance)
    return Weights(point[:-1], multipliers[:-1], -float(multipliers[-1]) / scale)
