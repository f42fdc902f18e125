"""Penalised likelihood of theta = softmax(u), on many weightings of the same patterns at once.

With f = theta G, D_x = sum_i w_i g_xi / f_i and n = sum_i w_i, the gradient of the log-likelihood in u is
theta (D - n), and its curvature, exactly where D = n and about so nearby,

    theta theta' C + diag(theta (n - D)),     C = sum_i w_i (g_i / f_i - D/n)(g_i / f_i - D/n)',

the first product entry by entry. Steps take the second part where it is positive: what is left is never indefinite. C
depends on theta through the fitted f alone, and on f all weightings agree but for chance: one C serves them all. Steps
need it roughly; gradients are exact, so that the end is.
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

MIN_GAIN_NATS = 3e-3  # nats that a step may still gain, when it is not worth making
MAX_STEPS = 30
MAX_LOG_CHANGE = 4.0  # the most that a logarithm may change in one step
MIN_RISE, SHRINK_FACTOR, MAX_SHRINKS = 1e-4, 0.4, 20  # of the line search
RELATIVE_RIDGE = 1e-8  # relative to the diagonal: u is free up to a constant
MIN_THREADED_VALUES = 150  # values from which solving the systems in threads pays
MAX_CURVATURE_WORK = 1e9  # multiplications up to which C is made anew at each step
MAX_CURVATURE_PATTERNS = 20_000  # of which C is made


@dataclass
class RowStates:
    """Where some rows stand."""

    rows: Positions
    u: Floats
    value: Floats
    theta: Floats
    fitted: Floats

    def only(self, some: Positions | NDArray[np.bool_]) -> RowStates:
        """Return some of the rows."""
        return RowStates(self.rows[some], self.u[some], self.value[some], self.theta[some], self.fitted[some])

    def replace(self, some: Positions, other: RowStates) -> None:
        """Take over some rows from another state."""
        self.u[some], self.value[some] = other.u, other.value
        self.theta[some], self.fitted[some] = other.theta, other.fitted


class PenalisedLikelihoods:
    """The log-likelihoods of some weightings (rows), as functions of u."""

    def __init__(self, channel: Channel, weights: Floats, pilot: Floats) -> None:
        """`pilot` is a distribution that explains the first row's reports about well."""
        self._channel, self._weights = channel, weights
        self._totals = weights.sum(axis=1)
        self._recomputes_curvature = float(channel.entries) * channel.values <= MAX_CURVATURE_WORK
        self._curvature = self._mean_curvature(0, np.maximum(channel.forward(pilot), MIN_PLAIN_PROBABILITY))

    def fit(self, penalty: Penalty, start: Floats) -> tuple[Floats, Floats]:
        """Return u and theta with the highest penalised likelihood of each row, near a start for each."""
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
        """Go along each row's step, less far until it is better there; return who moved, and has farther to go."""
        length = np.minimum(1.0, MAX_LOG_CHANGE / np.maximum(np.abs(step).max(axis=1), MIN_PLAIN_PROBABILITY))
        moving = gain > MIN_GAIN_NATS
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
        """Return C / n at what a row has fitted; of many patterns only some are taken, evenly."""
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
    """Solve for one right side; the matrix is overwritten."""
    from scipy.linalg.lapack import dposv

    diagonal = matrix.diagonal().copy()
    _, step, failed = dposv(matrix.T, right, lower=0, overwrite_a=1)
    return np.asarray(step) if not failed else right / diagonal
