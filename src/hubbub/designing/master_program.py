"""The best weights of given columns: a convex program, solved by Newton's method along a central path.

    minimise F(w)   subject to   sum_j w_j r_j = 1,   sum_j w_j cost_j <= budget,   w >= 0

The multipliers of the constraints are what new columns are priced with. Goals that add up over outputs make this a
linear program, which HiGHS solves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog, nnls

from hubbub.core.arrays import Floats
from hubbub.designing.information_goals import InformationGoal, basis_of_changes

MAX_STEPS = 120
FRACTION_TO_BOUNDARY = 0.95
PATH_FACTOR = 0.15  # by which the barrier falls
CENTRED = 0.05  # Newton's decrement, per column and unit of the barrier, at which the barrier falls
SUFFICIENT_DECREASE = 1e-4
SHORTEST_STEP = 1e-9
REGULARISATIONS = (1e-13, 1e-10, 1e-7)  # relative, of systems that several equal columns make singular
FEASIBLE = 1e-10  # how far sums may be from 1
LINEAR_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of columns, with the multipliers of the sums and of the budget."""

    weights: Floats
    sums: Floats
    budget: float
    steps: int


def start_weights(columns: Floats, costs: Floats | None = None, budget: float = np.inf) -> Floats | None:
    """Return weights with sums 1 and some mass on every column; None if no weights keep the budget."""
    count = len(columns)
    if costs is None or not np.isfinite(budget):
        found, residual = nnls(columns.T, np.ones(columns.shape[1]))
        return None if residual > 1e-8 else np.maximum(found, 1e-3 * found.max())
    solved = linprog(costs, A_eq=columns.T, b_eq=np.ones(columns.shape[1]), method="highs")
    if solved.status != 0 or solved.fun > budget * (1 + 1e-12):
        return None
    return np.maximum(solved.x, 1e-3 / count)


def best_linear_weights(columns: Floats, costs: Floats) -> Weights:
    """Return the weights with the least total cost."""
    # The solver's tolerances are absolute, and columns may differ by little: what they differ in is scaled up.
    size = max(float(np.abs(costs).max()), 1e-300)
    basis = basis_of_changes(columns.shape[1])
    changes = columns @ basis
    spread = max(float(np.abs(changes).max()), 1e-300)
    rows = np.vstack([columns.mean(axis=1), changes.T / spread])
    right = np.append(1.0, np.zeros(basis.shape[1]))
    solved = linprog(costs / size, A_eq=rows, b_eq=right, method="highs", options=LINEAR_TOLERANCES)
    if solved.status != 0:
        raise ArithmeticError(f"no weights were found: {solved.message}")
    marginals = size * np.asarray(solved.eqlin.marginals)
    sums = marginals[0] / len(basis) + basis @ (marginals[1:] / spread)
    return Weights(np.maximum(solved.x, 0.0), sums, 0.0, int(solved.nit))


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
    features = goal.features(columns)
    count, size = columns.shape
    rows = goal.images(columns).mean(axis=0).T
    right = np.ones(size)
    limited = costs is not None and np.isfinite(budget)
    weights = start
    if limited:  # one more variable, the part of the budget that is not spent
        scale = max(float(np.abs(costs).max()), budget, 1e-300)
        rows = np.vstack([np.hstack([rows, np.zeros((size, 1))]), np.append(costs, 1.0 * scale)[None, :] / scale])
        right = np.append(right, budget / scale)
        weights = np.append(weights, max((budget - float(costs @ start)) / scale, 1e-3 * budget / scale))

    def at(point: Floats) -> tuple[float, Floats, Floats]:
        here = goal.derivatives(features, point[:count])
        if not limited:
            return here.value, here.gradient, here.hessian
        hessian = np.zeros((count + 1, count + 1))
        hessian[:count, :count] = here.hessian
        return here.value, np.append(here.gradient, 0.0), hessian

    def value_at(point: Floats) -> float:
        return goal.value(goal.information(features, point[:count]))

    value, gradient, hessian = at(weights)
    barrier = barrier * abs(value) / weights.size
    multipliers = np.zeros(right.size)
    step = 0
    for step in range(1, MAX_STEPS + 1):
        system = hessian + np.diag(barrier / weights**2)
        scaling = 1 / np.sqrt(np.diag(system))
        factor = _factor(scaling[:, None] * system * scaling)
        if factor is None:
            break
        slope = gradient - barrier / weights
        to_rows = scaling[:, None] * cho_solve(factor, scaling[:, None] * rows.T)
        to_slope = scaling * cho_solve(factor, scaling * slope)
        lacking = right - rows @ weights
        schur = rows @ to_rows
        solution = np.linalg.lstsq(schur, lacking + rows @ to_slope, rcond=1e-14)[0]
        multipliers = solution
        direction = to_rows @ solution - to_slope
        shrinking = direction < 0
        longest = np.min(-weights[shrinking] / direction[shrinking]) if shrinking.any() else np.inf
        length = min(1.0, FRACTION_TO_BOUNDARY * float(longest))
        decrement = float(direction @ (system @ direction))
        merit = value - barrier * np.log(weights).sum()
        descent = float(slope @ direction)
        infeasible = float(np.abs(lacking).max()) > FEASIBLE
        while length > SHORTEST_STEP:
            moved = weights + length * direction
            after = value_at(moved[:count]) - barrier * np.log(moved).sum()
            # Towards feasible sums the goal may grow.
            if infeasible or after <= merit + SUFFICIENT_DECREASE * length * descent + 1e-13 * abs(merit):
                weights = moved
                break
            length /= 2
        value, gradient, hessian = at(weights)
        is_centred = decrement <= CENTRED * barrier * weights.size or length <= SHORTEST_STEP
        if is_centred and not infeasible:
            if barrier * weights.size <= tolerance * abs(value):
                break
            barrier *= PATH_FACTOR
    spent = 0.0
    if limited:
        spent = -float(multipliers[-1]) / scale
        multipliers = multipliers[:-1]
    return Weights(weights[:count], multipliers, spent, step)


def _factor(matrix: Floats) -> tuple[Floats, bool] | None:
    """Return the Cholesky factor with the least regularisation that it takes; None if even the most is too little."""
    for regularisation in REGULARISATIONS:
        try:
            factor: tuple[Floats, bool] = cho_factor(matrix + regularisation * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            continue
        return factor
    return None
