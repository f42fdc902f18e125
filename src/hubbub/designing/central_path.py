"""A convex goal of weights under linear equations: Newton's method along the central path.

    minimise F(w)   subject to   A w = b,   w >= 0

by minimising F(w) - t sum_j log w_j for smaller and smaller t. Columns of A beyond the goal's weights are slack.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hubbub.core.arrays import Floats
from hubbub.designing.information_goals import InformationGoal

MAX_STEPS = 120
FRACTION_TO_BOUNDARY = 0.95
PATH_FACTOR = 0.15  # by which the barrier falls
CENTRED = 0.05  # Newton's decrement, per variable and unit of the barrier, at which the barrier falls
SUFFICIENT_DECREASE = 1e-4
SHORTEST_STEP = 1e-9
ROUNDING = 1e-13  # relative to the merit
REGULARISATIONS = (1e-13, 1e-10, 1e-7)  # relative, of systems that several equal columns make singular
INDEPENDENT = 1e-14  # equations that follow from others, as those of mirrored values do
FEASIBLE = 1e-10  # how far equations may be from holding


class CentralPath:
    """One program: the goal, the features of its columns, and the equations."""

    def __init__(self, goal: InformationGoal, features: Floats, rows: Floats, right: Floats) -> None:
        self.goal, self.features, self.rows, self.right = goal, features, rows, right
        self.count = features.shape[1]

    def follow(self, start: Floats, *, barrier: float, tolerance: float) -> tuple[Floats, Floats]:
        """Return the last point, within about `tolerance` of the optimum, and the multipliers of the equations.

        Tolerance and the first barrier are relative to the goal's value.
        """
        point, multipliers = start, np.zeros(self.right.size)
        value, gradient, hessian = self._at(point)
        weight = barrier * abs(value) / point.size
        for _ in range(MAX_STEPS):
            system = hessian + np.diag(weight / point**2)
            newton = self._newton(system, gradient - weight / point, self.right - self.rows @ point)
            if newton is None:
                break
            direction, multipliers = newton
            decrement = float(direction @ (system @ direction))
            is_feasible = float(np.abs(self.right - self.rows @ point).max()) <= FEASIBLE
            length = self._length(point, value, gradient, direction, weight, must_fall=is_feasible)
            point = point + length * direction
            value, gradient, hessian = self._at(point)
            if is_feasible and (decrement <= CENTRED * weight * point.size or length == 0):
                if weight * point.size <= tolerance * abs(value):
                    break
                weight *= PATH_FACTOR
        return point, multipliers

    def _at(self, point: Floats) -> tuple[float, Floats, Floats]:
        """Return the goal with its derivatives, which are 0 in slack."""
        here = self.goal.derivatives(self.features, point[: self.count])
        slack = point.size - self.count
        return here.value, np.pad(here.gradient, (0, slack)), np.pad(here.hessian, (0, slack))

    def _newton(self, system: Floats, slope: Floats, lacking: Floats) -> tuple[Floats, Floats] | None:
        """Return the direction to the barrier's minimum under the equations, and their multipliers."""
        scaling = 1 / np.sqrt(np.diag(system))
        factor = _factor(scaling[:, None] * system * scaling)
        if factor is None:
            return None
        to_rows = scaling[:, None] * cho_solve(factor, scaling[:, None] * self.rows.T)
        to_slope = scaling * cho_solve(factor, scaling * slope)
        solved = np.linalg.lstsq(self.rows @ to_rows, lacking + self.rows @ to_slope, rcond=INDEPENDENT)[0]
        multipliers: Floats = solved.astype(np.float64)
        return to_rows @ multipliers - to_slope, multipliers

    def _length(
        self, point: Floats, value: float, gradient: Floats, direction: Floats, weight: float, *, must_fall: bool
    ) -> float:
        """Return how far to go: all variables stay positive, and the merit falls; 0 if no step is good.

        Where the equations do not hold yet, the merit may rise.
        """
        shrinking = direction < 0
        longest = float(np.min(-point[shrinking] / direction[shrinking])) if shrinking.any() else np.inf
        length = min(1.0, FRACTION_TO_BOUNDARY * longest)
        merit = value - weight * float(np.log(point).sum())
        descent = float((gradient - weight / point) @ direction)
        while length > SHORTEST_STEP:
            moved = point + length * direction
            after = self.goal.value(self.goal.information(self.features, moved[: self.count]))
            after -= weight * float(np.log(moved).sum())
            if np.isfinite(after) and not must_fall:
                return length
            if after <= merit + SUFFICIENT_DECREASE * length * descent + ROUNDING * abs(merit):
                return length
            length /= 2
        return 0.0


def _factor(matrix: Floats) -> tuple[Floats, bool] | None:
    """Return the Cholesky factor with the least regularisation that it takes; None if even the most is too little."""
    for regularisation in REGULARISATIONS:
        try:
            factor: tuple[Floats, bool] = cho_factor(matrix + regularisation * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            continue
        return factor
    return None
