"""Penalties on the logarithms of probabilities: what a candidate of `auto` assumes about the truth.

Each is the negative logarithm of a prior density of u, where theta = softmax(u): smooth, constant but for a few jumps,
or nearly equal but for a few exceptions. Adding a constant to u changes neither theta nor a penalty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from hubbub.core.arrays import Floats, Positions

FREE_VARIANCE = 1e6  # of a direction that costs nothing, relative to the others: as good as infinite
RELATIVE_RIDGE = 1e-8  # of the diagonal: u is free up to a constant
LEAST_WEIGHT = 1e-14  # of a value in a fit, relative to the largest: values without any would leave it undetermined


class Penalty(ABC):
    """A function of u, for many u at once (the last axis is over values)."""

    is_gaussian: ClassVar[bool] = False  # whether it is a quadratic function

    @abstractmethod
    def value(self, u: Floats) -> Floats:
        """Return the penalty of each u."""

    @abstractmethod
    def gradient(self, u: Floats) -> Floats:
        """Return its gradient."""

    @abstractmethod
    def curvature(self, u: Floats) -> Floats:
        """Return its Hessian at one u, or the curvature of a parabola that touches there and is nowhere below."""

    def curvature_product(self, u: Floats) -> Callable[[Floats], Floats]:
        """Return products of the curvature at each u with a vector for each."""
        curvatures = np.stack([self.curvature(row) for row in u])
        return lambda v: np.asarray(np.einsum("bxy,by->bx", curvatures, v))

    def rough_inverse(self, u: Floats, diagonal: Floats) -> Callable[[Floats], Floats] | None:  # noqa: ARG002
        """Return products of rows with the inverse of about the curvature at one u plus `diagonal`; None if slow."""
        return None

    def fitted_to(self, u: Floats, weights: Floats) -> Floats:  # noqa: ARG002
        """Return starts near each u: what the penalty makes of it, if observed with these weights; u itself if slow."""
        return u


class Quadratic(Penalty):
    """u' P u / (2 variance): a Gaussian field, with precision P and, where known, its inverse, the covariance.

    In directions that cost nothing, the covariance is large instead of infinite. Fields of several variances share both
    matrices.
    """

    is_gaussian = True

    def __init__(self, precision: Floats, covariance: Floats | None = None, variance: float = 1.0) -> None:
        self._precision, self._covariance, self._variance = precision, covariance, variance

    @classmethod
    def field(cls, covariance: Floats, free: Floats, deviations: Sequence[float]) -> list[Quadratic]:
        """Return fields of several deviations that cost nothing in the directions `free` (orthonormal columns)."""
        from scipy.linalg.lapack import dpotrf, dpotri

        inverse = np.triu(dpotri(dpotrf(covariance)[0])[0])
        inverse += np.triu(inverse, 1).T
        seen = inverse @ free
        precision = inverse - seen @ np.linalg.solve(free.T @ seen, seen.T)
        precision = 0.5 * (precision + precision.T)
        proper = covariance + FREE_VARIANCE * len(free) * free @ free.T
        return [cls(precision, proper, deviation**2) for deviation in deviations]

    def value(self, u: Floats) -> Floats:
        """Return u' P u / (2 variance)."""
        return np.asarray(np.einsum("...x,...x->...", u, u @ self._precision) / (2.0 * self._variance))

    def gradient(self, u: Floats) -> Floats:
        """Return P u / variance."""
        return np.asarray((u @ self._precision) / self._variance)

    def curvature(self, u: Floats) -> Floats:  # noqa: ARG002 (it is the same everywhere)
        """Return P / variance."""
        return np.asarray(self._precision / self._variance)

    def curvature_product(self, u: Floats) -> Callable[[Floats], Floats]:  # noqa: ARG002
        """Return products with P / variance."""
        return self.gradient

    def rough_inverse(self, u: Floats, diagonal: Floats) -> Callable[[Floats], Floats] | None:  # noqa: ARG002
        """Return products with the covariance, without regard to the diagonal."""
        covariance, variance = self._covariance, self._variance
        return None if covariance is None else lambda rows: (rows @ covariance) * variance

    def fitted_to(self, u: Floats, weights: Floats) -> Floats:
        """Return the minimum of v' P v / (2 variance) + sum_x weights_x (v_x - u_x)^2 / 2."""
        from scipy.linalg import solve

        matrix = self.curvature(u)
        matrix[np.diag_indices_from(matrix)] += weights + LEAST_WEIGHT * matrix.diagonal().max()
        return np.asarray(solve(matrix, (weights * u).T, assume_a="pos", overwrite_a=True).T)


class DeviationsFromTrend(Penalty):
    """Half the squared distance of u from the span of `trends` (orthonormal columns), in units of `deviation`."""

    is_gaussian = True

    def __init__(self, trends: Floats, deviation: float) -> None:
        self._trends, self._variance = trends, deviation**2

    def value(self, u: Floats) -> Floats:
        """Return half the sum of squares."""
        return np.asarray(0.5 * (self.gradient(u) * u).sum(axis=-1))

    def gradient(self, u: Floats) -> Floats:
        """Return u without its trend, over the variance."""
        return np.asarray((u - (u @ self._trends) @ self._trends.T) / self._variance)

    def curvature(self, u: Floats) -> Floats:  # noqa: ARG002 (it is the same everywhere)
        """Return the projection away from the trends, over the variance."""
        return self.gradient(np.eye(len(self._trends)))

    def curvature_product(self, u: Floats) -> Callable[[Floats], Floats]:  # noqa: ARG002
        """Return products with the same."""
        return self.gradient

    def rough_inverse(self, u: Floats, diagonal: Floats) -> Callable[[Floats], Floats] | None:  # noqa: ARG002
        """Divide by the diagonal, and let the trends go wherever they want."""
        divisor, trends = 1.0 / self._variance + diagonal, self._trends
        loose = FREE_VARIANCE * len(trends) * self._variance
        return lambda rows: rows / divisor + loose * (rows @ trends) @ trends.T

    def fitted_to(self, u: Floats, weights: Floats) -> Floats:
        """Return the minimum of the penalty plus sum_x weights_x (v_x - u_x)^2 / 2."""
        pull = self._variance * weights
        plain = u * (pull / (1.0 + pull))
        trends = np.linalg.solve((self._trends.T * (pull / (1.0 + pull))) @ self._trends, (plain @ self._trends).T)
        return np.asarray(plain + (trends.T @ self._trends.T) / (1.0 + pull))


class HeavyTailed(Penalty):
    """A sum of strength log(1 + (d / scale)^2) over differences d: most of them small, a few arbitrarily large.

    Doubling a large difference costs as little as one more small one: a Cauchy prior. It is not convex, so that a
    solver finds the best u near its start.
    """

    def __init__(self, scale: float, strength: float) -> None:
        self._scale, self._strength = scale, strength

    @abstractmethod
    def differences(self, u: Floats) -> Floats:
        """Return the differences that count."""

    @abstractmethod
    def gathered(self, pulls: Floats) -> Floats:
        """Return the pulls on u from pulls on the differences: the adjoint of `differences`."""

    @abstractmethod
    def squared(self, weights: Floats) -> Floats:
        """Return the matrix of the weighted sum of squared differences."""

    def value(self, u: Floats) -> Floats:
        """Return the sum over differences."""
        return np.asarray(self._strength * np.log1p((self.differences(u) / self._scale) ** 2).sum(axis=-1))

    def gradient(self, u: Floats) -> Floats:
        """Return the pull of each difference, gathered."""
        differences = self.differences(u)
        return self.gathered(2.0 * self._strength * differences / (differences**2 + self._scale**2))

    def curvature(self, u: Floats) -> Floats:
        """Return the curvature of the parabolas that touch from above."""
        return self.squared(self._weights(u))

    def curvature_product(self, u: Floats) -> Callable[[Floats], Floats]:
        """Return products with the same."""
        weights = self._weights(u)
        return lambda v: self.gathered(weights * self.differences(v))

    def _weights(self, u: Floats) -> Floats:
        return np.asarray(2.0 * self._strength / (self.differences(u) ** 2 + self._scale**2))


class Jumps(HeavyTailed):
    """Differences between neighbours: u is nearly constant but for jumps."""

    def __init__(self, neighbours: tuple[Positions, Positions], values: int, scale: float, strength: float) -> None:
        super().__init__(scale, strength)
        self._first, self._second = neighbours
        self._values = values

    def differences(self, u: Floats) -> Floats:
        """Return u of the first minus u of the second."""
        return np.asarray(u[..., self._first] - u[..., self._second])

    def gathered(self, pulls: Floats) -> Floats:
        """Add up at both ends."""
        rows = [self._at_ends(row, -row) for row in np.atleast_2d(pulls)]
        return np.stack(rows) if pulls.ndim > 1 else rows[0]

    def rough_inverse(self, u: Floats, diagonal: Floats) -> Callable[[Floats], Floats] | None:
        """Solve with three diagonals, where the neighbours are a line in the order of the values."""
        from scipy.linalg.lapack import dpttrf, dpttrs

        before = np.arange(self._values - 1)
        if not (np.array_equal(self._first, before) and np.array_equal(self._second, before + 1)):
            return None
        weights = self._weights(u)
        ends = self._at_ends(weights, weights) + diagonal
        main, side, failed = dpttrf(ends + RELATIVE_RIDGE * ends.max(), -weights)
        return None if failed else lambda rows: np.asarray(dpttrs(main, side, rows.T)[0].T)

    def squared(self, weights: Floats) -> Floats:
        """Return a Laplacian."""
        matrix = np.zeros((self._values, self._values))
        matrix[self._first, self._second] = matrix[self._second, self._first] = -weights
        np.fill_diagonal(matrix, self._at_ends(weights, weights))
        return matrix

    def _at_ends(self, first: Floats, second: Floats) -> Floats:
        ends = np.bincount(self._first, first, self._values) + np.bincount(self._second, second, self._values)
        return np.asarray(ends)


class DeviationsFromMean(HeavyTailed):
    """Differences from the mean: u is nearly the same for all values but for exceptions."""

    def differences(self, u: Floats) -> Floats:
        """Return u minus its mean."""
        return np.asarray(u - u.mean(axis=-1, keepdims=True))

    def gathered(self, pulls: Floats) -> Floats:
        """Return the pulls minus their mean."""
        return np.asarray(pulls - pulls.mean(axis=-1, keepdims=True))

    def rough_inverse(self, u: Floats, diagonal: Floats) -> Callable[[Floats], Floats] | None:
        """Divide by the diagonal, without regard to the mean."""
        divisor = self._weights(u) + diagonal
        return lambda rows: rows / divisor

    def squared(self, weights: Floats) -> Floats:
        """Return a diagonal, corrected for the mean."""
        shared = weights / weights.size
        matrix: Floats = shared.mean() - shared[:, None] - shared[None, :]
        np.fill_diagonal(matrix, matrix.diagonal() + weights)
        return matrix
