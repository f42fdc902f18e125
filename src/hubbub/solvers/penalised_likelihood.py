"""Penalised likelihood of theta = softmax(u), on many weightings of the same patterns at once.

With f = theta G, D_x = sum_i w_i g_xi / f_i and n = sum_i w_i, the gradient of the log-likelihood in u is
theta (D - n), and its curvature, exactly where D = n and about so nearby,

    n theta theta' C + diag(theta (n - D)),     C = sum_i w_i (g_i / f_i - D/n)(g_i / f_i - D/n)' / n,

the first product entry by entry. Steps use the second part only where it is positive, so that the matrix is never
indefinite. Newton's systems are solved for all weightings at once by conjugate gradients, which need nothing but
products with the channel and with the penalty's curvature. They are few because one factorisation preconditions all
systems: that of the first weighting, at a point nearby, kept as long as it serves. Weightings agree on f but for
chance, and so on C. Where the channel blurs, C has a low rank, and what is left to be inverted is the penalty's
curvature, which has a structure. Gradients are exact, and so is the point where the steps end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, Positions
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.solvers.penalties import RELATIVE_RIDGE, Penalty

MIN_STEP_GAIN_NATS = 3e-3  # below which a step is not worth making...
NEGLIGIBLE_GAIN_NATS = 3e-4  # ...nor, by the preconditioner, worth computing
MAX_STEPS = 30
MAX_LOG_CHANGE = 4.0  # of a probability, in one step; it may fall farther...
MIN_WATCHED_USERS = 1e-3  # ...where fewer users than this are expected to hold the value
MIN_RISE, SHRINK_FACTOR, MAX_SHRINKS = 1e-4, 0.4, 20  # of the line search
MAX_SEPARATE_VALUES = 200  # up to which each row has its own systems where a penalty has several maxima
MAX_CONJUGATE_STEPS = 30
MAX_RESIDUAL, MAX_RESIDUAL_OF_LARGE = 0.1, 0.3  # relative to the slope, in the norm of the preconditioner...
MAX_VALUES_OF_PRECISE_STEPS = 200  # ...up to so many values, and with more
MAX_STEPS_OF_FACTOR = 3  # conjugate steps after which a factorisation is replaced
MAX_PATTERNS_PER_VALUE = 2  # up to which products with the channel are quicker than with C
MAX_FITTED_CHANGE = 1e-3  # relative, mean square: from which C is computed anew
MAX_CURVATURE_PATTERNS = 20_000  # that C is computed from
MIN_LOW_RANK_VALUES, MAX_RELATIVE_RANK = 300, 0.125  # where a low rank of C is looked for, and made use of
MAX_LEFT_OUT_CURVATURE = 0.03  # of the likelihood, as against about 1 of a penalty

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
        self._fitted = np.maximum(channel.forward(pilot), MIN_PLAIN_PROBABILITY)
        self._curvature = self._mean_curvature(0, self._fitted)
        self._low_rank = self._factor_of_curvature(pilot) if channel.values >= MIN_LOW_RANK_VALUES else None

    def fit(
        self, penalty: Penalty, start: Floats, can_give_up: Callable[[Floats], bool] | None = None
    ) -> tuple[Floats, Floats]:
        """Return u and theta at the maximum of each row's penalised likelihood that is near its start.

        `can_give_up` is asked after each step, with what is fitted to the patterns (rows by patterns).
        """
        state = self._at(np.arange(len(start)), start.copy(), penalty)
        u, theta, fitted = state.u.copy(), state.theta.copy(), state.fitted.copy()
        solve = self._steps_one_by_one if self._is_small(penalty) else self._shared_steps()
        for _ in range(MAX_STEPS):
            ratio = self._channel.backward(self._weights[state.rows] / state.fitted)
            pull = state.theta * (ratio - self._totals[state.rows, None])
            slope = pull - penalty.gradient(state.u)
            step = solve(state, ratio, slope, penalty)
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

    def _is_small(self, penalty: Penalty) -> bool:
        """Whether to solve a system for each row.

        Where a penalty has several maxima, a step decides which one is found, and rows may go to different ones.
        """
        return not penalty.is_gaussian and self._channel.values <= MAX_SEPARATE_VALUES

    def _steps_one_by_one(self, state: RowStates, ratio: Floats, slope: Floats, penalty: Penalty) -> Floats:
        """Solve a system for each row."""
        self._renew_curvature(int(state.rows[0]), state.fitted[0])
        scaled = np.sqrt(self._totals[state.rows, None]) * state.theta
        matrices = self._curvature * scaled[:, :, None]
        matrices *= scaled[:, None, :]
        for matrix, u in zip(matrices, state.u, strict=True):
            matrix += penalty.curvature(u)
        diagonals = np.einsum("bxx->bx", matrices)  # a view
        diagonals += self._bends(state, ratio)
        diagonals += RELATIVE_RIDGE * diagonals.max(axis=1, keepdims=True)
        return np.stack([_solved(matrix, right) for matrix, right in zip(matrices, slope, strict=True)])

    def _shared_steps(self) -> Callable[[RowStates, Floats, Floats, Penalty], Floats]:
        """Return a solver by conjugate gradients that keeps a factorisation as long as it serves."""
        precondition: Operator | None = None
        is_large = self._channel.values > MAX_VALUES_OF_PRECISE_STEPS
        max_residual = MAX_RESIDUAL_OF_LARGE if is_large else MAX_RESIDUAL

        def solve(state: RowStates, ratio: Floats, slope: Floats, penalty: Penalty) -> Floats:
            nonlocal precondition
            bends = self._bends(state, ratio)
            if precondition is None:
                precondition = self._preconditioner(state, bends[0], penalty)
            product = self._curvature_product(state, ratio, bends, penalty)
            step, count = solve_by_conjugate_gradients(product, precondition, slope, max_residual)
            if count > MAX_STEPS_OF_FACTOR:
                precondition = None
            return step

        return solve

    def _bends(self, state: RowStates, ratio: Floats) -> Floats:
        """Return what is positive of theta (n - D)."""
        return np.asarray(state.theta * np.maximum(self._totals[state.rows, None] - ratio, 0.0))

    def _curvature_product(self, state: RowStates, ratio: Floats, bends: Floats, penalty: Penalty) -> Operator:
        """Return products with the curvature of each row."""
        theta, totals = state.theta, self._totals[state.rows, None]
        penalised = penalty.curvature_product(state.u)
        if self._channel.patterns > MAX_PATTERNS_PER_VALUE * self._channel.values:

            def likelihood(weighted: Floats) -> Floats:
                return np.asarray(totals * (weighted @ self._curvature))
        else:
            weights, mean = self._weights[state.rows] / state.fitted**2, ratio / totals

            def likelihood(weighted: Floats) -> Floats:
                spread = self._channel.backward(weights * self._channel.forward(weighted))
                return np.asarray(spread - ratio * (mean * weighted).sum(axis=1, keepdims=True))

        return lambda v: theta * likelihood(theta * v) + bends * v + penalised(v)

    def _preconditioner(self, state: RowStates, bend: Floats, penalty: Penalty) -> Operator:
        """Return products with the inverse of a matrix that is close to the first row's curvature."""
        if self._low_rank is not None:
            inverse = penalty.rough_inverse(state.u[0], bend)
            if inverse is not None:
                return updated_inverse(
                    inverse, self._low_rank * (np.sqrt(self._totals[state.rows[0]]) * state.theta[0])
                )
        self._renew_curvature(int(state.rows[0]), state.fitted[0])
        return self._factorised(state, bend, penalty)

    def _factorised(self, state: RowStates, bend: Floats, penalty: Penalty) -> Operator:
        """Return products with the inverse of the first row's curvature, or of its diagonal if that is not positive."""
        from scipy.linalg.lapack import dpotrf, dpotrs

        theta = state.theta[0]
        matrix = self._curvature * (self._totals[state.rows[0]] * theta)[:, None]
        matrix *= theta
        matrix += penalty.curvature(state.u[0])
        diagonal = np.einsum("xx->x", matrix)  # a view
        diagonal += bend
        diagonal += RELATIVE_RIDGE * float(diagonal.max())
        kept = diagonal.copy()
        factor, failed = dpotrf(matrix.T, lower=0, overwrite_a=1)
        if failed:
            return lambda rows: rows / kept
        return lambda rows: np.asarray(dpotrs(factor, rows.T, lower=0)[0].T)

    def _search(self, state: RowStates, step: Floats, gain: Floats, penalty: Penalty) -> NDArray[np.bool_]:
        """Shorten each row's step until it is an improvement; return which rows moved and are not yet finished."""
        change = step - np.einsum("bx,bx->b", state.theta, step)[:, None]  # of log theta
        if penalty.is_gaussian and self._channel.values > MAX_SEPARATE_VALUES:
            unwatched = self._totals[state.rows, None] * state.theta < MIN_WATCHED_USERS
            reach = np.where(unwatched, change, np.abs(change)).max(axis=1)
        else:
            reach = np.abs(change).max(axis=1)
        length = np.minimum(1.0, MAX_LOG_CHANGE / np.maximum(reach, MIN_PLAIN_PROBABILITY))
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

    def _renew_curvature(self, row: int, fitted: Floats) -> None:
        """Compute C anew where what is fitted has moved away from what C was computed at."""
        change = float(self._weights[row] @ (1.0 - self._fitted / fitted) ** 2) / self._totals[row]
        if change > MAX_FITTED_CHANGE:
            self._fitted, self._curvature = fitted.copy(), self._mean_curvature(row, fitted)

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

    def _factor_of_curvature(self, pilot: Floats) -> Floats | None:
        """Return F with C = F' F about as closely as users can tell; None where it has too many rows to be of use."""
        from scipy.linalg.lapack import dpstrf

        scale = np.sqrt(self._totals[0]) * np.maximum(pilot, 1.0 / pilot.size)
        factor, order, rank, _ = dpstrf((self._curvature * scale[:, None] * scale).T, tol=MAX_LEFT_OUT_CURVATURE)
        if rank > pilot.size * MAX_RELATIVE_RANK:
            return None
        rows = np.empty((rank, pilot.size))
        rows[:, order - 1] = np.triu(factor)[:rank]
        return np.asarray(rows / scale)


def _solved(matrix: Floats, right: Floats) -> Floats:
    """Solve for one right side; the matrix is overwritten. Fall back on its diagonal if it is not positive definite."""
    from scipy.linalg.lapack import dposv

    diagonal = matrix.diagonal().copy()
    _, step, failed = dposv(matrix.T, right, lower=0, overwrite_a=1)
    return np.asarray(step) if not failed else right / diagonal


def updated_inverse(inverse: Operator, update: Floats) -> Operator:
    """Return products with the inverse of A + V'V, from those with the inverse of A (Woodbury)."""
    from scipy.linalg import cho_factor, cho_solve

    seen = inverse(update)
    small = cho_factor(np.eye(len(update)) + seen @ update.T)

    def apply(rows: Floats) -> Floats:
        plain = inverse(rows)
        return np.asarray(plain - cho_solve(small, update @ plain.T).T @ seen)

    return apply


def solve_by_conjugate_gradients(
    product: Operator, precondition: Operator, right: Floats, max_residual: float
) -> tuple[Floats, int]:
    """Return a rough solution for each row, and in how many steps they were found.

    It is 0 for a row that, as the preconditioner tells it, is not worth a step of Newton's method.
    """
    solution, residual = np.zeros_like(right), right.copy()
    direction = precondition(residual)
    size = np.einsum("bx,bx->b", residual, direction)
    goal, active = max_residual**2 * size, size > NEGLIGIBLE_GAIN_NATS
    steps = 0
    while steps < MAX_CONJUGATE_STEPS and active.any():
        image = product(direction)
        length = _quotients(size, np.einsum("bx,bx->b", direction, image), active)
        solution += length * direction
        residual -= length * image
        preconditioned = precondition(residual)
        before, size = size, np.einsum("bx,bx->b", residual, preconditioned)
        active &= size > goal
        direction = preconditioned + _quotients(size, before, active) * direction
        steps += 1
    return solution, steps


def _quotients(above: Floats, below: Floats, active: NDArray[np.bool_]) -> Floats:
    """Return a column of quotients, 0 for rows that are not active."""
    return np.divide(above, below, out=np.zeros_like(above), where=active)[:, None]
