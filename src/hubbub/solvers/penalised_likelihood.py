"""Penalised likelihood of theta = softmax(u), on many weightings of the same patterns at once.

With f = theta G, D_x = sum_i w_i g_xi / f_i and n = sum_i w_i, the gradient of the log-likelihood in u is
theta (D - n), and its curvature, exactly where D = n and about so nearby,

    theta theta' C + diag(theta (n - D)),     C = sum_i w_i (g_i / f_i - D/n)(g_i / f_i - D/n)',

the first product entry by entry. Steps use the second part only where it is positive, so that the matrix is never
indefinite. C depends on theta only through the fitted f, on which all weightings agree but for chance: one C serves
them all. Steps need it only roughly; gradients are exact, and so is the point where the steps end.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, Positions
from hubbub.core.threads import processors
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.solvers.penalties import Penalty

MIN_STEP_GAIN_NATS = 3e-3  # below which a step is not worth making
MAX_STEPS = 30
MAX_LOG_CHANGE = 4.0  # of a probability, in one step
MIN_RISE, SHRINK_FACTOR, MAX_SHRINKS = 1e-4, 0.4, 20  # of the line search
RELATIVE_RIDGE = 1e-8  # of the diagonal: u is free up to a constant
MIN_THREADED_VALUES = 150  # from which on solving the systems in threads pays
MAX_CURVATURE_WORK = 1e9  # multiplications up to which C is computed anew at each step
MAX_CURVATURE_PATTERNS = 20_000  # that C is computed from


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
        self._recomputes_curvature = float(channel.entries) * channel.values <= MAX_CURVATURE_WORK
        self._curvature = self._mean_curvature(0, np.maximum(channel.forward(pilot), MIN_PLAIN_PROBABILITY))

    def fit(self, penalty: Penalty, start: Floats) -> tuple[Floats, Floats]:
        """Return u and theta at the maximum of each row's penalised likelihood that is near its start."""
        state = self._at(np.arange(len(start)), start.copy(), penalty)
        u, theta = state.u.copy(), state.theta.copy()
        for _ in range(MAX_STEPS):
            ratio = self._channel.backward(self._weights[state.rows] / state.fitted)
            pull = state.theta * (ratio - self._totals[state.rows, None])
            slope = pull - penalty.gradient(state.u)
            step = self._steps(state, pull, slope, penalty)
            moved = self._search(state, step, np.einsum("bx,bx->b", slope, step), penalty)
            u[state.rows], theta[state.rows] = state.u, state.theta
            state = state.only(moved)
            if state.rows.size == 0:
                break
        return u, theta

    def _at(self, rows: Positions, u: Floats, penalty: Penalty) -> RowStates:
        theta = np.exp(u - u.max(axis=1, keepdims=True))
        theta /= theta.sum(axis=1, keepdims=True)
        fitted = np.maximum(self._channel.forward(theta), MIN_PLAIN_PROBABILITY)
        likelihood = np.einsum("bi,bi->b", self._weights[rows], np.log(fitted))
        return RowStates(rows, u, likelihood - penalty.value(u), theta, fitted)

    def _steps(self, state: RowStates, pull: Floats, slope: Floats, penalty: Penalty) -> Floats:
        if self._recomputes_curvature:
            self._curvature = self._mean_curvature(int(state.rows[0]), state.fitted[0])
        places = np.diag_indices(state.u.shape[1])

        def solve(place: int) -> Floats:
            theta = state.theta[place]
            matrix = self._curvature * (self._totals[state.rows[place]] * theta)[:, None]
            matrix *= theta
            matrix += penalty.curvature(state.u[place])
            matrix[places] += np.maximum(-pull[place], 0.0)
            matrix[places] += RELATIVE_RIDGE * float(matrix[places].max())
            return _solve(matrix, slope[place])

        if state.u.shape[1] < MIN_THREADED_VALUES or state.rows.size == 1 or processors() == 1:
            return np.stack([solve(place) for place in range(state.rows.size)])
        with ThreadPoolExecutor(min(processors(), state.rows.size)) as pool:
            return np.stack(list(pool.map(solve, range(state.rows.size))))

    def _search(self, state: RowStates, step: Floats, gain: Floats, penalty: Penalty) -> NDArray[np.bool_]:
        """Shorten each row's step until it is an improvement; return which rows moved and are not yet finished."""
        length = np.minimum(1.0, MAX_LOG_CHANGE / np.maximum(np.abs(step).max(axis=1), MIN_PLAIN_PROBABILITY))
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


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve for one right side; the matrix is overwritten. Fall back on its diagonal if it is not positive definite."""
    from scipy.linalg.lapack import dposv

    diagonal = matrix.diagonal().copy()
    _, step, failed = dposv(matrix.T, right, lower=0, overwrite_a=1)
    return np.asarray(step) if not failed else right / diagonal
