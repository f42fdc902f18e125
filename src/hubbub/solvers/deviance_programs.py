"""Simulated deviances of many statistics at once, each at a distribution of its own, in the limit of many users.

As in `boundary_deviance`, a score s and limits l ask for the least h'Jh/2 - s'h over h >= l with sum 0, and for what it
costs to hold a statistic c'h at 0 as well. There are two ways to write this as a complementarity problem
(`compiled_pivots`), one for each side of the border:

* by the **information**, z = h - l and w the residuals: Q = J, bordered by the equation of the sum, whose multiplier is
  one more z. Its basis are the values that are free.
* by the **covariance** C, the inverse of J among steps with sum 0, z the multipliers of the limits and w = h - l:
  Q = C and v = C s - l; a statistic has g = C c and H = c'C c. Its basis are the values at their limits.

Work grows with the size of the basis, so the smaller one is chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.solvers.boundary_deviance import MAX_ADDED, MAX_CONDITION, MAX_RIDGE, MIN_RIDGE, MIN_ROOM, ConePrograms

if TYPE_CHECKING:
    from hubbub.solvers.compiled_pivots import Problem

MAX_VIOLATION = 1e-8  # of a limit or of a residual, in units of each value's own standard deviation
DRAWS_TO_CHOOSE_BY = 8  # from which the size of a basis is known well enough
SUM_PRECISION = 1e-10  # of the equation of the sum, which would leave some cones without an interior
HOLD_PRECISION = 1e-9  # relative, of a statistic's equation, which limits may have fulfilled already
MAX_NUMBERS_AT_A_TIME = 4_000_000  # programs times values between two reports of progress
STEPS_OF_PROGRAM = 10  # for each of its values, about


class HeldStatistics(NamedTuple):
    """Statistics that are held at 0: g and H of each, and b for each score."""

    slopes: Floats
    squares: Floats
    missing: Floats


class _Form(ABC):
    """One of the two ways to write the programs; `own` is what each score adds to v, `basic` where to begin."""

    def __init__(self, matrix: Floats, own: Floats, basic: NDArray[np.bool_]) -> None:
        self.matrix, self.own = np.ascontiguousarray(matrix), np.ascontiguousarray(own)
        self.basic = np.tile(basic, (len(own), 1))
        self.is_found = np.zeros(len(own), dtype=np.bool_)  # whether that is the basis of the first program

    @abstractmethod
    def problem(self) -> Problem:
        """Return what all programs have in common."""

    @abstractmethod
    def limits(self, lowers: Floats) -> Floats:
        """Return what limits add to v, a row for each."""

    @abstractmethod
    def held(self, weights: Floats, lowers: Floats, draws: int) -> HeldStatistics:
        """Return statistics, each with its own limits."""


class _InformationForm(_Form):
    def __init__(self, matrix: Floats, scores: Floats, free: NDArray[np.bool_]) -> None:
        total = np.ones((1, len(matrix)))
        bordered = np.block([[matrix, total.T], [total, np.array([[-SUM_PRECISION]])]])
        super().__init__(bordered, np.hstack([-scores, np.zeros((len(scores), 1))]), np.append(free, True))

    def problem(self) -> Problem:
        from hubbub.solvers.compiled_pivots import Problem

        scales = np.sqrt(np.diag(self.matrix)[:-1])
        least_z = np.append(-MAX_VIOLATION / scales, -np.inf)  # the multiplier of the sum has no sign
        return Problem(self.matrix, least_z, np.append(-MAX_VIOLATION * scales, -np.inf), True)

    def limits(self, lowers: Floats) -> Floats:
        return np.asarray(lowers @ self.matrix[:-1])

    def held(self, weights: Floats, lowers: Floats, draws: int) -> HeldStatistics:
        slopes = np.hstack([weights, np.zeros((len(weights), 1))])
        missing = np.tile(np.einsum("ex,ex->e", weights, lowers), (draws, 1))
        return HeldStatistics(slopes, np.full(len(weights), -SUM_PRECISION), missing)


class _CovarianceForm(_Form):
    def __init__(self, matrix: Floats, scores: Floats, free: NDArray[np.bool_]) -> None:
        inverse = np.linalg.inv(matrix)
        tilt = inverse.sum(axis=0)
        covariance = inverse - np.outer(tilt, tilt) / (tilt.sum() + SUM_PRECISION)
        super().__init__(covariance, scores @ covariance, ~free)

    def problem(self) -> Problem:
        from hubbub.solvers.compiled_pivots import Problem

        scales = np.sqrt(np.maximum(np.diag(self.matrix), np.finfo(np.float64).tiny))
        return Problem(self.matrix, -MAX_VIOLATION / scales, -MAX_VIOLATION * scales, False)

    def limits(self, lowers: Floats) -> Floats:
        return -lowers

    def held(self, weights: Floats, lowers: Floats, draws: int) -> HeldStatistics:  # noqa: ARG002
        slopes = weights @ self.matrix
        squares = (1.0 + HOLD_PRECISION) * np.einsum("ex,ex->e", weights, slopes)
        return HeldStatistics(slopes, squares, self.own[:draws] @ weights.T)


class DeviancePrograms:
    """The programs of some scores around one distribution with limits `lower`, from which others differ little."""

    def __init__(self, information: Floats, scores: Floats, lower: Floats, users: float) -> None:
        self._information, self._scores, self._users = information, scores, users
        largest = float(np.diag(information).max())
        ridge = float(np.clip(MAX_ADDED / (users * largest), MIN_RIDGE, MAX_RIDGE))
        matrix = information / largest + ridge * np.eye(len(information))
        self._root = math.sqrt(largest)
        self._lower = lower[None, :] * self._root
        scaled, free = scores / self._root, lower < -MIN_ROOM
        self._form: _Form = _InformationForm(matrix, scaled, free)
        if np.linalg.cond(matrix) <= MAX_CONDITION and self._free_share() > 0.5:
            self._form = _CovarianceForm(matrix, scaled, free)

    def deviances(
        self, lowers: Floats, weights: Floats, enough: Floats, draws: int | None = None
    ) -> Generator[Progress, None, Floats]:
        """Return twice what holding each row of `weights` at 0 costs, with its own limits (draws by rows).

        Those that are less than `enough` are not exact. `draws` asks for the first ones only.
        """
        count = len(self._scores) if draws is None else draws
        largest = np.abs(weights).max(axis=1)
        held = weights / np.where(largest > 0.0, largest, 1.0)[:, None]
        costs = np.empty((count, len(held)))
        step = max(1, MAX_NUMBERS_AT_A_TIME // held.size)
        scaled = lowers * self._root
        statistics = self._form.held(held, scaled, count)
        for first in range(0, count, step):
            yield Progress(first, count, "simulating cutoffs")
            self._solve(scaled, statistics, enough, costs, slice(first, min(first + step, count)))
        self._mend(costs, lowers, weights)
        return np.maximum(costs, 0.0)

    def _solve(self, lowers: Floats, held: HeldStatistics, enough: Floats, costs: Floats, some: slice) -> None:
        """Write the costs of some scores."""
        from hubbub.solvers.compiled_pivots import hold

        form, own = self._form, self._form.own[some]
        hold(
            STEPS_OF_PROGRAM * len(own) * (1 + len(lowers)) * own.shape[1],
            form.problem(),
            own + form.limits(self._lower),
            own,
            form.limits(lowers),
            held.slopes,
            held.squares,
            held.missing[some],
            enough,
            form.basic[some],
            form.is_found[some],
            costs[some],
        )

    def _free_share(self) -> float:
        """Return the share of values that are free in the first programs of a few scores."""
        count, nothing = min(DRAWS_TO_CHOOSE_BY, len(self._scores)), np.empty((0, self._lower.size))
        if count == 0:
            return 1.0
        held = self._form.held(nothing, nothing, count)
        self._solve(nothing, held, np.empty(0), np.empty((count, 0)), slice(count))
        return float(self._form.basic[:count].mean())

    def _mend(self, costs: Floats, lowers: Floats, weights: Floats) -> None:
        """Solve programs that rounding has spoilt one by one."""
        for end in np.flatnonzero(np.isnan(costs).any(axis=0)).tolist():
            draws = np.flatnonzero(np.isnan(costs[:, end]))
            total = np.ones(lowers.shape[1])
            programs = ConePrograms(self._information, self._scores[draws], total, self._users)
            costs[draws, end] = programs.deviances(lowers[end], weights[end])
