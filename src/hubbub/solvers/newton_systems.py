"""The linear systems of the interior point, each by the structure that makes it cheap.

With G the stored channel, V = diag(curvature) over patterns and E = diag(barrier) over values, both positive,
an iteration solves (G V G' + E) step = right two to five times, for the same V and E.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.linalg import LinAlgError

from hubbub.channels import Channel, ConcatenatedChannel, DecayChannel, DiagonalPlusConstantChannel, StackedChannel
from hubbub.channels.base import MAX_PART_ENTRIES
from hubbub.channels.exponential_decay import TridiagonalForm
from hubbub.core.arrays import Floats, Positions

Solve = Callable[[Floats], Floats]

MAX_FACTOR_WORK = 2e10  # multiplications of a factorisation, about a second
MAX_SQUARE_VALUES = 2_000  # up to which a system over values is always factorised
MAX_CG_STEPS = 300  # of conjugate gradients, for one direction
CG_TOLERANCE = 1e-3  # relative, for one direction
LOCKED_BARRIER_RATIO = 30.0  # a barrier this many times the pull of all other values holds a value nearly where it is
MAX_SMALL_ENTRIES = 4_000  # of populations that are stacked: below, one matrix is quicker than the parts' structures
MAX_LIVE_SHARE = 0.8  # of values that still move, below which the others are left out of the factorisation
RELATIVE_RIDGES = (0.0, 1e-14, 1e-12, 1e-10)  # of the diagonal, tried in turn if rounding spoils a factorisation


class System(ABC):
    """Solves the Newton systems of one problem."""

    name: str  # for the settings of an estimate

    @property
    def is_dense(self) -> bool:
        """Whether a matrix is factorised, so that fewer values would make it quicker."""
        return False

    @abstractmethod
    def factor(self, curvature: Floats, barrier: Floats) -> Solve:
        """Return the solver for one pair of diagonals; raise LinAlgError if rounding has spoiled the system."""


class DenseSystem(System):
    """Cholesky factors of a matrix over the values or the patterns, whichever are fewer."""

    name = "dense"
    is_dense = True

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._matrix = matrix = channel.dense()
        self._scaled = np.empty_like(matrix)
        # The form over patterns divides by the barrier, which tends to 0 on the support, and loses digits: it is used
        # only where the form over values would be very large.
        self._over_values = matrix.shape[0] <= max(MAX_SQUARE_VALUES, 2 * matrix.shape[1])

    def factor(self, curvature: Floats, barrier: Floats) -> Solve:
        """Factorise over values, or over patterns by the Woodbury identity."""
        matrix = self._matrix
        if self._over_values:
            # No entry of G V G' is negative: its row sums bound the pull of all other values on one.
            pull = self._channel.backward(curvature * self._channel.forward(np.ones_like(barrier)))
            live = np.flatnonzero(barrier < LOCKED_BARRIER_RATIO * pull)
            if 0 < live.size < MAX_LIVE_SHARE * matrix.shape[0]:
                return self._factor_live(live, curvature, barrier)
            np.multiply(matrix, np.sqrt(curvature), out=self._scaled)
            return _cholesky(self._scaled @ self._scaled.T, barrier)
        np.multiply(matrix, (1.0 / np.sqrt(barrier))[:, None], out=self._scaled)
        solve = _cholesky(self._scaled.T @ self._scaled, 1.0 / curvature)

        def woodbury(right: Floats) -> Floats:
            return np.asarray((right - matrix @ solve((right / barrier) @ matrix)) / barrier)

        return lambda right: refined(woodbury, self._channel, curvature, barrier, right, times=1)

    def _factor_live(self, live: Positions, curvature: Floats, barrier: Floats) -> Solve:
        """Factorise for the values that still move; the others are so close to 0 that their barrier alone decides."""
        scaled = self._matrix[live] * np.sqrt(curvature)
        solve = _cholesky(scaled @ scaled.T, barrier[live])

        def step(right: Floats) -> Floats:
            solution = right / barrier
            solution[live] = solve(right[live])
            return solution

        return lambda right: refined(step, self._channel, curvature, barrier, right, times=2)


class BandedSystem(System):
    """Five diagonals on a line, where values and patterns follow from sums u by three diagonals each: O(values).

    With theta = T u and f = B u (`channels.exponential_decay`), (B' V B + T' E T) du = T' right, and the step is T du.
    """

    name = "banded"

    def __init__(self, channel: Channel, bands: TridiagonalForm) -> None:
        self._channel = channel
        self._theta, self._fitted, self._centre = bands.theta, bands.fitted, bands.centre
        self._places = np.arange(bands.theta.shape[0])

    def factor(self, curvature: Floats, barrier: Floats) -> Solve:
        """Factorise a matrix of five diagonals."""
        from scipy.linalg import cho_solve_banded, cholesky_banded

        size = self._places.size
        system = np.zeros((3, size + 2))  # lower diagonals, from u_{-1} on; beyond either end all is 0
        for table, weights, centre in (
            (self._fitted, curvature, self._centre),
            (self._theta, barrier, self._places),
        ):
            for below in range(3):
                for column in range(3 - below):
                    amounts = weights * table[:, column] * table[:, column + below]
                    system[below] += np.bincount(centre + column, weights=amounts, minlength=size + 2)
        inner = system[:, 1:-1]
        for ridge in RELATIVE_RIDGES:
            inner[0] *= 1.0 + ridge
            try:
                factor = cholesky_banded(inner, lower=True, check_finite=False)
                break
            except LinAlgError:
                if ridge == RELATIVE_RIDGES[-1]:
                    raise

        def solve(right: Floats) -> Floats:
            spread = np.zeros(size + 2)
            for column in range(3):
                spread[column : column + size] += self._theta[:, column] * right
            sums = np.zeros(size + 2)
            sums[1:-1] = cho_solve_banded((factor, True), spread[1:-1], check_finite=False)
            return np.asarray(sum(self._theta[:, column] * sums[column : column + size] for column in range(3)))

        return lambda right: refined(solve, self._channel, curvature, barrier, right, times=2)


class DiagonalPlusConstantSystem(System):
    """A diagonal and two dyads for k-RR and sums of bits, where G is e times a selection plus a constant b: O(values).

    With s the curvature added up over each value's patterns and W its total, G V G' + E is
    diag(e^2 s + E) + e b (s 1' + 1 s') + b^2 W 1 1'. Several such channels add up to the same form.
    """

    name = "diagonal and two dyads"

    def __init__(self, channel: Channel, parts: Sequence[DiagonalPlusConstantChannel]) -> None:
        self._channel, self._parts = channel, parts
        self._cuts = np.cumsum([part.patterns for part in parts])[:-1]

    def factor(self, curvature: Floats, barrier: Floats) -> Solve:
        """Divide by the diagonal, and correct for the dyads by a 2 by 2 system."""
        diagonal, mixed, constant = barrier.copy(), np.zeros_like(barrier), 0.0
        for part, own in zip(self._parts, np.split(curvature, self._cuts), strict=True):
            sums = part.scattered(own)
            diagonal += part.excess**2 * sums
            mixed += part.excess * part.elsewhere * sums
            constant += part.elsewhere**2 * float(own.sum())
        dyads = np.stack([mixed, np.ones_like(mixed)], axis=1)
        core = np.array([[0.0, 1.0], [1.0, constant]])
        square = np.eye(2) + core @ (dyads.T @ (dyads / diagonal[:, None]))

        def solve(right: Floats) -> Floats:
            plain = right / diagonal
            return np.asarray(plain - (dyads @ np.linalg.solve(square, core @ (dyads.T @ plain))) / diagonal)

        return lambda right: refined(solve, self._channel, curvature, barrier, right, times=2)


class OperatorSystem(System):
    """Conjugate gradients, where the channel is an operator: one forward and one backward product per iteration."""

    name = "conjugate gradients"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def factor(self, curvature: Floats, barrier: Floats) -> Solve:
        """Precondition by products with near values if the channel knows them, by the diagonal otherwise."""
        channel, precondition = self._channel, self._preconditioner(curvature, barrier)

        def step(right: Floats) -> Floats:
            solution = np.zeros_like(right)
            missing = right.copy()
            turned = precondition(missing)
            direction = turned.copy()
            size = first = float(missing @ turned)
            for _ in range(MAX_CG_STEPS):
                if not size > CG_TOLERANCE**2 * first:
                    break
                seen = channel.forward(direction)
                seen *= curvature
                pushed = channel.backward(seen) + barrier * direction
                del seen
                length = size / float(direction @ pushed)
                solution += length * direction
                missing -= length * pushed
                turned = precondition(missing)
                size, before = float(missing @ turned), size
                direction = turned + (size / before) * direction
            return solution

        return step

    def _preconditioner(self, curvature: Floats, barrier: Floats) -> Solve:
        near = self._channel.near_products(curvature)
        if near is None:
            diagonal = barrier + self._channel.squares(curvature)
            return lambda right: right / diagonal
        from scipy.sparse.linalg import splu

        near.setdiag(near.diagonal() + barrier)
        factor = splu(near, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return lambda right: np.asarray(factor.solve(right))


class StackedSystem(System):
    """The systems of several populations, each by its own structure: their patterns have nothing in common."""

    name = "one for each population"

    def __init__(self, channel: StackedChannel) -> None:
        self._channel, self._systems = channel, [system_for(part) for part in channel.parts]

    @property
    def is_dense(self) -> bool:
        """Whether those of all populations are."""
        return all(system.is_dense for system in self._systems)

    def factor(self, curvature: Floats, barrier: Floats) -> Solve:
        """Factorise for each population."""
        split = self._channel.split_values
        pieces = zip(self._systems, self._channel.split_patterns(curvature), split(barrier), strict=True)
        solves = [system.factor(own, walls) for system, own, walls in pieces]
        return lambda right: np.concatenate([solve(own) for solve, own in zip(solves, split(right), strict=True)])


def system_for(channel: Channel) -> System:
    """Return the linear algebra that suits a channel."""
    if isinstance(channel, StackedChannel):
        return DenseSystem(channel) if channel.entries <= MAX_SMALL_ENTRIES else StackedSystem(channel)
    if isinstance(channel, DecayChannel) and channel.tridiagonal_form is not None:
        return BandedSystem(channel, channel.tridiagonal_form)
    parts = channel.parts if isinstance(channel, ConcatenatedChannel) else (channel,)
    simple = [part for part in parts if isinstance(part, DiagonalPlusConstantChannel)]
    if len(simple) == len(parts):
        return DiagonalPlusConstantSystem(channel, simple)
    few_patterns = (
        float(channel.patterns) ** 2 * channel.values <= MAX_FACTOR_WORK and channel.entries <= MAX_PART_ENTRIES
    )
    return DenseSystem(channel) if can_factorise(channel) or few_patterns else OperatorSystem(channel)


def can_factorise(channel: Channel) -> bool:
    """Whether writing the matrix out and factorising over values takes no more than about a second."""
    work = float(channel.values) ** 2 * (channel.patterns + channel.values / 3)
    return channel.entries <= channel.max_written_entries and work <= MAX_FACTOR_WORK


def refined(solve: Solve, channel: Channel, curvature: Floats, barrier: Floats, right: Floats, *, times: int) -> Floats:
    """Solve, then solve again for the residual: eliminations that divide by small numbers lose digits."""
    solution = solve(right)
    for _ in range(times):
        residual = right - barrier * solution - channel.backward(curvature * channel.forward(solution))
        solution = solution + solve(residual)
    return solution


def _cholesky(matrix: Floats, diagonal: Floats) -> Solve:
    """Return the solver of matrix + diag(diagonal); the matrix is overwritten."""
    from scipy.linalg.lapack import dpotrf, dpotrs

    places = np.diag_indices_from(matrix)
    matrix[places] += diagonal
    own = matrix[places]
    for ridge in RELATIVE_RIDGES:
        matrix[places] = own * (1.0 + ridge)
        # A symmetric matrix in C order is one in Fortran order: its transpose needs no copy.
        factor, failed = dpotrf(matrix.T, lower=0, clean=0, overwrite_a=ridge == RELATIVE_RIDGES[-1])
        if not failed:
            return lambda right: np.asarray(dpotrs(factor, right, lower=0)[0])
    raise LinAlgError("the system is not positive definite")
