"""Penalised likelihood of theta = softmax(u), on many weightings of the same patterns at once.

With f = theta G, D_x = sum_i w_i g_xi / f_i and n = sum_i w_i, the gradient of the log-likelihood in u is
theta (D - n), and its curvature

    theta theta' (sum_i w_i g_i g_i' / f_i^2 - n) + diag(theta (n - D)),

the first product entry by entry. Newton's steps are solved for all weightings at once by conjugate gradients, which
need nothing but products with the channel and with the penalty's curvature. They are few because the systems are
preconditioned by one factorisation: that of a matrix which is never indefinite, at the first weighting and at a point
nearby, kept as long as it serves. Weightings agree on f but for chance, and so on the matrix

    C = sum_i w_i (g_i / f_i - D/n)(g_i / f_i - D/n)' / n

that the factorisation uses in place of the first one above. Gradients are exact, and so is the point where the steps
end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, Positions
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.solvers.penalties import Penalty

MIN_STEP_GAIN_NATS = 3e-3  # below which a step is not worth making
MAX_STEPS = 30
MAX_LOG_RISE = 4.0  # of a probability, in one step; it may fall by any factor
MIN_RISE, SHRINK_FACTOR, MAX_SHRINKS = 1e-4, 0.4, 20  # of the line search
RELATIVE_RIDGE = 1e-8  # of the diagonal: u is free up to a constant
MAX_CONJUGATE_STEPS, MAX_RESIDUAL = 30, 0.3  # the latter relative to the slope, in the norm of the preconditioner
MAX_STEPS_OF_FACTOR = 3  # conjugate steps that a factorisation may take before a new one is made
MAX_PATTERNS_PER_VALUE = 2  # up to which products with the channel are quicker than with C
MAX_CURVATURE_PATTERNS = 20_000  # that C is computed from

Operator = Callable[[Floats], Floats]  # on rows


@dataclass
class RowStates:
    """The iterates of some rows (weightings), and their penalised likelihoods."""

    rows: Positions
    u: Floats
    value: Floats
    theta: Floats
    fitted: Floats

    def only(self, some: Positions | NDArray[np.bool_]) -> RowStates:
        """Return the states of some of the rows."""
        return RowStates(self.rows[some], self.u[some], self.value[some], self.theta[some], self.fitted[some])

    def replace(self, some: Positions, states: RowStates) -> None:
        """Replace some of the rows."""
        self.u[some], self.value[some] = states.u, states.value
        self.theta[some], self.fitted[some] = states.theta, states.fitted


class PenalisedLikelihoods:
    """The log-likelihoods of some weightings (rows), as functions of u."""

    def __init__(self, channel: Channel, weights: Floats, pilot: Floats) -> None:
        """Prepare the curvature; `pilot` is a distribution that roughly fits the first row."""
        self._channel, self._weights = channel, weights
        self._totals = weights.sum(axis=1)
        self._curvature = self._mean_curvature(0, np.maximum(channel.forward(pilot), MIN_PLAIN_PROBABILITY))

    def fit(
        self, penalty: Penalty, start: Floats, can_give_up: Callable[[Floats], bool] | None = None
    ) -> tuple[Floats, Floats]:
        """Return u and theta at the maximum of each row's penalised likelihood that is near its start.

        `can_give_up` is asked after each step, with what is fitted to the patterns (rows by patterns).
        """
        state = self._at(np.arange(len(start)), start.copy(), penalty)
        u, theta, fitted = state.u.copy(), state.theta.copy(), state.fitted.copy()
        precondition, conjugate_steps = None, 0
        for _ in range(MAX_STEPS):
            ratio = self._channel.backward(self._weights[state.rows] / state.fitted)
            pull = state.theta * (ratio - self._totals[state.rows, None])
            slope = pull - penalty.gradient(state.u)
            if precondition is None or conjugate_steps > MAX_STEPS_OF_FACTOR:
                precondition = self._preconditioner(state, pull, penalty)
            step, conjugate_steps = solve_by_conjugate_gradients(
                self._curvature_product(state, pull, penalty), precondition, slope
            )
            moved = self._search(state, step, np.einsum("bx,bx->b", slope, step), penalty)
            u[state.rows], theta[state.rows], fitted[state.rows] = state.u, state.theta, state.fitted
            state = state.only(moved)
            if state.rows.size == 0 or (can_give_up is not None and can_give_up(fitted)):
                break
        return u, theta

    def values(self, penalty: Penalty, u: Floats) -> Floats:
        """Return the penalised likelihoods of the first rows."""
        return self._at(np.arange(len(u)), u, penalty).value

    def _at(self, rows: Positions, u: Floats, penalty: Penalty) -> RowStates:
        theta = np.exp(u - u.max(axis=1, keepdims=True))
        theta /= theta.sum(axis=1, keepdims=True)
        fitted = np.maximum(self._channel.forward(theta), MIN_PLAIN_PROBABILITY)
        likelihood = np.einsum("bi,bi->b", self._weights[rows], np.log(fitted))
        return RowStates(rows, u, likelihood - penalty.value(u), theta, fitted)

    def _curvature_product(self, state: RowStates, pull: Floats, penalty: Penalty) -> Operator:
        """Return products with the curvature of each row, which may be indefinite."""
        theta, totals = state.theta, self._totals[state.rows, None]
        penalised = penalty.curvature_product(state.u)
        if self._channel.patterns > MAX_PATTERNS_PER_VALUE * self._channel.values:

            def likelihood(weighted: Floats) -> Floats:
                return totals * (weighted @ self._curvature)
        else:
            weights = self._weights[state.rows] / state.fitted**2

            def likelihood(weighted: Floats) -> Floats:
                spread = self._channel.backward(weights * self._channel.forward(weighted))
                return spread - totals * weighted.sum(axis=1, keepdims=True)

        bend = np.maximum(-pull, 0.0)
        return lambda v: theta * likelihood(theta * v) + bend * v + penalised(v)

    def _preconditioner(self, state: RowStates, pull: Floats, penalty: Penalty) -> Operator:
        """Return products with the inverse of a positive definite matrix that is close to the first row's curvature."""
        from scipy.linalg.lapack import dpotrf, dpotrs

        theta = state.theta[0]
        matrix = self._curvature * (self._totals[state.rows[0]] * theta)[:, None]
        matrix *= theta
        matrix += penalty.curvature(state.u[0])
        diagonal = np.einsum("xx->x", matrix)  # a view
        diagonal += np.maximum(-pull[0], 0.0)
        diagonal += RELATIVE_RIDGE * float(diagonal.max())
        kept = diagonal.copy()
        factor, failed = dpotrf(matrix.T, lower=0, overwrite_a=1)
        if failed:
            return lambda rows: rows / kept
        return lambda rows: np.asarray(dpotrs(factor, rows.T, lower=0)[0].T)

    def _search(self, state: RowStates, step: Floats, gain: Floats, penalty: Penalty) -> NDArray[np.bool_]:
        """Shorten each row's step until it is an improvement; return which rows moved and are not yet finished."""
        change = step - np.einsum("bx,bx->b", state.theta, step)[:, None]  # of log theta
        length = np.minimum(1.0, MAX_LOG_RISE / np.maximum(change.max(axis=1), MIN_PLAIN_PROBABILITY))
        moving = gain > MIN_STEP_GAIN_NATS
        waiting = moving.copy()
        for _ in range(MAX_SHRINKS):
            some = np.flatnonzero(waiting)
            if some.size == 0:
                break
            trial = self._at(state.rows[some], state.u[some] + length[some, None] * step[some], penalty)
            better = trial.value >= state.value[some] + MIN_RISE * length[some] * gain[some]
            state.replace(some[better], trial.only(better))
            waiting[some[better]] = False
            length[some[~better]] *= SHRINK_FACTOR
        return moving & ~waiting

    def _mean_curvature(self, row: int, fitted: Floats) -> Floats:
        """Return C / n at a row's fitted; if there are many patterns, from an even selection of them."""
        shares = self._weights[row] / self._totals[row]
        if fitted.size <= MAX_CURVATURE_PATTERNS:
            ratio = self._channel.dense() / fitted
        else:
            chosen = np.unique(np.linspace(0, fitted.size - 1, MAX_CURVATURE_PATTERNS).astype(np.int64))
            logs = self._channel.log_columns(chosen) - self._channel.log_scale[chosen]
            ratio = np.exp(logs, out=logs) / fitted[chosen]
            shares = shares[chosen] / max(float(shares[chosen].sum()), MIN_PLAIN_PROBABILITY)
        ratio -= (ratio @ shares)[:, None]
        ratio *= np.sqrt(shares)
        return np.asarray(ratio @ ratio.T)


def solve_by_conjugate_gradients(product: Operator, precondition: Operator, right: Floats) -> tuple[Floats, int]:
    """Return a rough solution for each row, and in how many steps it was found.

    A row ends early where its matrix turns out to be indefinite; what it has by then is a direction of ascent.
    """
    solution, residual = np.zeros_like(right), right.copy()
    direction = preconditioned = precondition(residual)
    size = np.einsum("bx,bx->b", residual, preconditioned)
    goal, active = MAX_RESIDUAL**2 * size, size > 0.0
    steps = 0
    while steps < MAX_CONJUGATE_STEPS and active.any():
        image = product(direction)
        bend = np.einsum("bx,bx->b", direction, image)
        active &= bend > 0.0
        if steps == 0:  # downhill all the way: follow the preconditioned slope
            solution[bend <= 0.0] = direction[bend <= 0.0]
        length = np.where(active, size / np.where(active, bend, 1.0), 0.0)
        solution += length[:, None] * direction
        residual -= length[:, None] * image
        preconditioned = precondition(residual)
        before, size = size, np.einsum("bx,bx->b", residual, preconditioned)
        active &= size > goal
        direction = preconditioned + np.where(active, size / np.where(active, before, 1.0), 0.0)[:, None] * direction
        steps += 1
    return solution, steps
