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

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.solvers.boundary_deviance import MAX_ADDED, MAX_CONDITION, MAX_RIDGE, MIN_RIDGE, MIN_ROOM, ConePrograms

if TYPE_CHECKING:
    from hubbub.solvers.compiled_pivots import Problem, Programs

MAX_VIOLATION = 1e-8  # of a limit or of a residual, in units of each value's own standard deviation
DRAWS_TO_CHOOSE_BY = 8  # from which the size of a basis is known well enough
SUM_PRECISION = 1e-10  # of the equation of the sum, which would leave some cones without an interior
HOLD_PRECISION = 1e-9  # relative, of a statistic's equation, which limits may have fulfilled already
MAX_NUMBERS_AT_A_TIME = 4_000_000  # programs times values between two reports of progress
STEPS_OF_PROGRAM = 10  # for each of its values, about
MIN_VALUES_TOGETHER = 64  # below, programs one by one are as quick, and take a third of the time to compile


class _Statistics(NamedTuple):
    """Statistics that are held at 0, in the order of the rows of `weights` that are theirs, up to sign and scale."""

    order: Positions  # of the statistics as they were asked for
    which: Positions
    weights: Floats

    @classmethod
    def of(cls, weights: Floats) -> _Statistics:
        """Return different statistics, which often are the two ends of one interval."""
        places = np.abs(weights).argmax(axis=1)
        largest = weights[np.arange(len(weights)), places]
        rows, which = np.unique(weights / np.where(largest == 0.0, 1.0, largest)[:, None], axis=0, return_inverse=True)
        order = np.argsort(which, kind="stable")
        return cls(order, which[order], rows)


class _ProgramForm(ABC):
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
    def slopes(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return g and H of each row of weights."""

    @abstractmethod
    def missing(self, statistics: _Statistics, lowers: Floats, draws: int) -> Floats:
        """Return b for each score and statistic, each with its own limits."""


class _InformationForm(_ProgramForm):
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

    def slopes(self, weights: Floats) -> tuple[Floats, Floats]:
        return np.hstack([weights, np.zeros((len(weights), 1))]), np.full(len(weights), -SUM_PRECISION)

    def missing(self, statistics: _Statistics, lowers: Floats, draws: int) -> Floats:
        return np.tile(np.einsum("ex,ex->e", statistics.weights[statistics.which], lowers), (draws, 1))


class _CovarianceForm(_ProgramForm):
    def __init__(self, matrix: Floats, scores: Floats, free: NDArray[np.bool_]) -> None:
        inverse = np.linalg.inv(matrix)
        tilt = inverse.sum(axis=0)
        covariance = inverse - np.outer(tilt, tilt) / tilt.sum()
        # If all values were at their limits, their sum would be known twice.
        covariance[np.diag_indices_from(covariance)] += SUM_PRECISION * covariance.diagonal().max()
        super().__init__(covariance, scores @ covariance, ~free)

    def problem(self) -> Problem:
        from hubbub.solvers.compiled_pivots import Problem

        scales = np.sqrt(np.maximum(np.diag(self.matrix), np.finfo(np.float64).tiny))
        return Problem(self.matrix, -MAX_VIOLATION / scales, -MAX_VIOLATION * scales, False)

    def limits(self, lowers: Floats) -> Floats:
        return -lowers

    def slopes(self, weights: Floats) -> tuple[Floats, Floats]:
        slopes = weights @ self.matrix
        return slopes, (1.0 + HOLD_PRECISION) * np.einsum("ex,ex->e", weights, slopes)

    def missing(self, statistics: _Statistics, lowers: Floats, draws: int) -> Floats:  # noqa: ARG002
        return np.asarray((self.own[:draws] @ statistics.weights.T)[:, statistics.which])


def programs_around(
    information: Floats, scores: Floats, lower: Floats, users: float
) -> DeviancePrograms | SeparatePrograms:
    """Return the programs of some scores; `lower` are limits from which those of statistics will differ little."""
    if lower.size < MIN_VALUES_TOGETHER:
        return SeparatePrograms(information, scores, users)
    return DeviancePrograms(information, scores, lower, users)


class SeparatePrograms:
    """The programs of some scores, one statistic after the other."""

    def __init__(self, information: Floats, scores: Floats, users: float) -> None:
        self._programs = ConePrograms(information, scores, np.ones(len(information)), users)

    def deviances(
        self, lowers: Floats, weights: Floats, enough: Floats, draws: int | None = None
    ) -> Generator[Progress, None, Floats]:
        """Return twice what holding each row of `weights` at 0 costs, with its own limits (draws by rows)."""
        del enough  # all are exact
        found = []
        for number, (lower, own) in enumerate(zip(lowers, weights, strict=True)):
            yield Progress(number, len(lowers), "simulating cutoffs")
            found.append(self._programs.deviances(lower, own, draws))
        return np.stack(found, axis=1)


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
        self._form: _ProgramForm = _InformationForm(matrix, scaled, free)
        eigenvalues = np.linalg.eigvalsh(matrix)
        if eigenvalues[-1] <= MAX_CONDITION * eigenvalues[0] and self._free_share() > 0.5:
            self._form = _CovarianceForm(matrix, scaled, free)

    def deviances(
        self, lowers: Floats, weights: Floats, enough: Floats, draws: int | None = None
    ) -> Generator[Progress, None, Floats]:
        """Return twice what holding each row of `weights` at 0 costs, with its own limits (draws by rows).

        Those that are less than `enough` are not exact. `draws` asks for the first ones only.
        """
        count = len(self._scores) if draws is None else draws
        statistics, form = _Statistics.of(weights), self._form
        scaled, order = self._root * lowers[statistics.order], statistics.order
        programs = self._programs(statistics, scaled, enough[order])
        # Rows after rows: loops are compiled for each layout.
        missing, costs = np.ascontiguousarray(form.missing(statistics, scaled, count)), np.empty((count, len(order)))
        step = max(1, MAX_NUMBERS_AT_A_TIME // lowers.size)
        for first in range(0, count, step):
            yield Progress(first, count, "simulating cutoffs")
            some = slice(first, min(first + step, count))
            self._solve(programs, missing[some], costs[some], some)
        found = np.empty_like(costs)
        found[:, order] = costs
        self._mend(found, lowers, weights)
        return np.maximum(found, 0.0)

    def _programs(self, statistics: _Statistics, lowers: Floats, enough: Floats) -> Programs:
        from hubbub.solvers.compiled_pivots import Programs

        slopes, squares = self._form.slopes(statistics.weights)
        return Programs(self._form.limits(lowers), statistics.which, slopes, squares, enough)

    def _solve(self, programs: Programs, missing: Floats, costs: Floats, some: slice) -> None:
        """Write the costs of some scores."""
        from hubbub.solvers.compiled_pivots import hold

        form, own = self._form, self._form.own[some]
        hold(
            STEPS_OF_PROGRAM * own.size * (1 + len(programs.which)),
            form.problem(),
            programs,
            own + form.limits(self._lower),
            own,
            missing,
            form.basic[some],
            form.is_found[some],
            costs,
        )

    def _free_share(self) -> float:
        """Return the share of values that are free in the first programs of a few scores."""
        count, nothing = min(DRAWS_TO_CHOOSE_BY, len(self._scores)), np.empty((0, self._lower.size))
        if count == 0:
            return 1.0
        none = np.empty(0, dtype=np.int64)
        programs = self._programs(_Statistics(none, none, nothing), nothing, np.empty(0))
        self._solve(programs, np.empty((count, 0)), np.empty((count, 0)), slice(count))
        return float(self._form.basic[:count].mean())

    def _mend(self, costs: Floats, lowers: Floats, weights: Floats) -> None:
        """Solve programs that rounding has spoilt one by one."""
        for end in np.flatnonzero(np.isnan(costs).any(axis=0)).tolist():
            draws = np.flatnonzero(np.isnan(costs[:, end]))
            total = np.ones(lowers.shape[1])
            programs = ConePrograms(self._information, self._scores[draws], total, self._users)
            costs[draws, end] = programs.deviances(lowers[end], weights[end])
