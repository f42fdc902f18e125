"""Goals that follow from how much all outputs together tell: variances, widths of intervals, and risks.

A crowd with distribution theta whose n users report through columns r_j (with weights w_j, sum_j w_j r_j = 1) gives the
information ::

    n J(w),   J(w) = sum_j w_j r_j r_j' / (theta . r_j)

about theta. An estimator that knows a Gaussian prior with precision L around theta has the posterior covariance
(n J + L)^-1, and L = 0 is the Cramer-Rao bound. Everything is restricted to changes of theta that sum to 0, by an
orthonormal basis Z of these.

A part of a goal measures the covariance in some statistics: the sum of their variances, or of their standard
deviations. Both are convex in w (a standard deviation is f^(-1/2) of the concave f = 1 / variance). Several parts, each
divided by its own reference, are joined by a power mean: with a high power the worst part counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hubbub.core.arrays import Floats, Positions

NEGLIGIBLE = 1e-9  # share of a part in the power mean below which its curvature does not matter
NOT_TOLD = 1e-11  # information in a direction, relative to the most in any, that may be rounding
NOT_ASKED = 1e-8  # squared part of a statistic that may be rounding
MEAN_ABSOLUTE = float(np.sqrt(2 / np.pi))  # of a standard normal variable


class Derivatives(NamedTuple):
    """A goal at some weights: its value, its gradient, its Hessian, and the price of information.

    The derivative of the goal in the weight of any column r, known or not, is -r' price r / (centre . r).
    """

    value: float
    gradient: Floats
    hessian: Floats
    price: Floats


@dataclass(frozen=True, eq=False)
class RiskPart:
    """The error of some statistics under one prior: `precision` and `statistics` are in the basis of changes."""

    name: str
    precision: Floats
    statistics: Floats  # rows
    factors: Floats  # of each statistic
    of_deviations: bool  # standard deviations are summed, or variances

    def error(self, covariance: Floats) -> float:
        """Return the error for a posterior covariance."""
        variances = np.einsum("ij,ij->i", self.statistics @ covariance, self.statistics)
        return float(self.factors @ (np.sqrt(variances) if self.of_deviations else variances))


def basis_of_changes(size: int) -> Floats:
    """Return an orthonormal basis (columns) of the vectors that sum to 0."""
    full, _ = np.linalg.qr(np.hstack([np.ones((size, 1)), np.eye(size)[:, : size - 1]]))
    return np.asarray(full[:, 1:])


def _inverse(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the inverse of a positive semidefinite matrix, and the directions (columns) in which it is nearly 0.

    What is asked for may need nothing of these, and the best mechanism then tells nothing of them. There the inverse is
    that of the least number that is not rounding.
    """
    try:
        lower = cho_factor(matrix, lower=True)
    except np.linalg.LinAlgError:
        pass
    else:
        diagonal = lower[0].diagonal()
        if diagonal.min() ** 2 > NOT_TOLD * diagonal.max() ** 2:
            return np.asarray(cho_solve(lower, np.eye(len(matrix)))), np.empty((len(matrix), 0))
    sizes, directions = np.linalg.eigh(matrix)
    least = NOT_TOLD * sizes[-1]
    return (directions / np.maximum(sizes, least)) @ directions.T, directions[:, sizes < least]


class InformationGoal:
    """A power mean of risk parts, each over its reference.

    A column stands for itself and its images under `permutations` of the values (rows, the first of them the
    identity), in equal parts. They must change no part's error.
    """

    def __init__(
        self,
        centre: Floats,
        users: float,
        parts: Sequence[RiskPart],
        *,
        power: float = 1.0,
        references: Floats | None = None,
        permutations: Positions | None = None,
    ) -> None:
        self.centre, self.users, self.parts, self.power = centre, users, tuple(parts), power
        self.references = np.ones(len(self.parts)) if references is None else references
        self.permutations = np.arange(centre.size)[None, :] if permutations is None else permutations
        self.basis = basis_of_changes(centre.size)

    def replace(self, *, references: Floats | None = None, permutations: Positions | None = None) -> InformationGoal:
        """Return the same goal with other references or symmetries."""
        return InformationGoal(
            self.centre,
            self.users,
            self.parts,
            power=self.power,
            references=self.references if references is None else references,
            permutations=self.permutations if permutations is None else permutations,
        )

    def images(self, columns: Floats) -> Floats:
        """Return all images of the columns: images by columns by values."""
        return np.asarray(columns[:, self.permutations].transpose(1, 0, 2))

    def features(self, columns: Floats) -> Floats:
        """Return what each image adds to the information: vectors u with n J = sum_j w_j mean_images u u'."""
        scale = np.sqrt(self.users / (columns @ self.centre))
        return np.asarray((self.images(columns) * scale[:, None]) @ self.basis)

    def information(self, features: Floats, weights: Floats) -> Floats:
        """Return n J in the basis of changes."""
        shared = features.reshape(-1, features.shape[2])
        all_weights = np.tile(weights / len(features), len(features))
        return np.asarray((shared * all_weights[:, None]).T @ shared)

    def errors(self, information: Floats) -> Floats:
        """Return the error of each part; infinite where the reports do not tell."""
        errors = []
        for part in self.parts:
            covariance, untold = _inverse(information + part.precision)
            lacking = ((part.statistics @ untold) ** 2).sum(axis=1)
            is_told = (lacking <= NOT_ASKED * (part.statistics**2).sum(axis=1)).all()
            errors.append(part.error(covariance) if is_told else np.inf)
        return np.array(errors)

    def errors_of(self, columns: Floats) -> Floats:
        """Return the error of each part for whole columns, which sum to 1."""
        told = (columns * np.sqrt(self.users / (columns @ self.centre))[:, None]) @ self.basis
        return self.errors(told.T @ told)

    def value_of(self, columns: Floats) -> float:
        """Return the goal's value for whole columns."""
        told = (columns * np.sqrt(self.users / (columns @ self.centre))[:, None]) @ self.basis
        return self.value(told.T @ told)

    def value(self, information: Floats) -> float:
        """Return the power mean of the parts, each over its reference."""
        ratios = self.errors(information) / self.references
        largest = ratios.max()
        if not np.isfinite(largest):
            return np.inf
        return float(largest * np.mean((ratios / largest) ** self.power) ** (1 / self.power))

    def derivatives(self, features: Floats, weights: Floats) -> Derivatives:
        """Return value, gradient and Hessian in the weights of columns, given by their features."""
        information = self.information(features, weights)
        own, images = features[0], len(features)
        every = features.reshape(-1, features.shape[2])
        count = len(self.parts)
        ratios, gradients = np.empty(count), np.empty((count, weights.size))
        hessian = np.zeros((weights.size, weights.size))
        price = np.zeros_like(information)
        covariances = [_inverse(information + part.precision)[0] for part in self.parts]
        errors = np.array([part.error(each) for part, each in zip(self.parts, covariances, strict=True)])
        ratios = errors / self.references
        largest = ratios.max()
        mean = float(np.mean((ratios / largest) ** self.power))
        # The power mean's derivative in the ratio of each part.
        shares = mean ** (1 / self.power - 1) / count * (ratios / largest) ** (self.power - 1)
        for place, (part, covariance) in enumerate(zip(self.parts, covariances, strict=True)):
            told = part.statistics @ covariance
            variances = np.einsum("ij,ij->i", told, part.statistics)
            factors = part.factors / self.references[place]
            first = factors / (2 * np.sqrt(variances)) if part.of_deviations else factors
            moved = (every @ told.T).reshape(images, weights.size, -1)  # images by columns by statistics
            squares = (moved**2).mean(axis=0)
            gradients[place] = -squares @ first
            price += shares[place] * (told.T * first) @ told
            if shares[place] < NEGLIGIBLE * shares.max():
                continue
            near, turned = own @ covariance, moved[0] * first
            scale = 2 * shares[place] / images
            for image in range(images):
                hessian += scale * (near @ features[image].T) * (turned @ moved[image].T)
            if part.of_deviations:
                second = -shares[place] * factors / (4 * variances**1.5)
                hessian += (squares * second) @ squares.T
        gradient = shares @ gradients
        curved = (self.power - 1) * shares / ratios
        hessian += (gradients.T * curved) @ gradients
        value = float(largest * mean ** (1 / self.power))
        hessian -= (self.power - 1) / value * np.outer(gradient, gradient)
        # Features have the number of users in them; the price is that of the columns themselves.
        return Derivatives(value, gradient, (hessian + hessian.T) / 2, self.users * self.basis @ price @ self.basis.T)
