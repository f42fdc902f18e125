"""The reference distribution of the least chi-square over all distributions, if one of these is true.

**Shares of outputs.** All tables (`count_tables`) share one theta. With whitened residuals Z and design M, near a
distribution theta the least chi-square over all distributions is, in the limit of many users,

    T = min |Z - M h|^2   over  h_x >= -sqrt(n) theta_x,  sum_x h_x = 0,     Z standard normal.

Its part outside the range of M is a chi-square of `degrees` degrees of freedom; the rest, B >= 0, is what the sign
constraints add: an estimate without them would fit it. T of the data and B of simulated scores are minima of the same
program (`solvers.boundary_deviance`), and p = mean over simulations of P(chi-square >= T - B). A square invertible
channel leaves no degrees of freedom, and B is all that can be tested: whether the outputs are in the mechanism's image.

**Which theta.** T is largest where theta has most zeros, and which zeros are true is unknown. Values are set to 0 one
after the other, the cheapest first, as long as one of n samples would have a chi-square as large as that of all of them
together. This is moment selection (Andrews and Soares, 2010): true zeros are found with probability tending to 1, and
doubtful values count as zeros, which errs on the side of no alarm.

**Small p-values without degrees left.** sqrt(B) is the distance of a standard normal vector from a convex set:
it changes by no more than the vector does. By the Gaussian isoperimetric inequality, P(sqrt(B) <= b) >= Phi(a)
implies P(sqrt(B) > b + t) <= Phi(-a - t): beyond the simulations' largest values, this bound is the p-value.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.core.threads import threads_for
from hubbub.goodness_of_fit.count_tables import CountTable
from hubbub.solvers.boundary_deviance import cone_minima

MAX_DRAWS = 1_000  # simulations...
MAX_WORK = 1.2e10  # ...or as many as keep draws x values^3 below this, but at least MIN_DRAWS
MIN_DRAWS = 100
BATCH_DRAWS = 50  # simulations between two reports of progress
ENOUGH_DRAWS_BEYOND = 20  # simulations beyond T after which p is known well enough (Besag and Clifford, 1991)
TAIL_RANK = 10  # the simulation, from the largest down, from which the isoperimetric bound takes over
MAX_BOUNDED_P_VALUE = 1e-6  # p-values below which the bound with all values at 0 is sharp enough
MAX_ROUNDING_OF_CHI_SQUARE = 1e-4  # in the solution of the program
SMALLEST_DIVISOR = float(np.finfo(np.float64).tiny)  # keeps what is 0 from being divided by
MAX_FLAT_EIGENVALUE = 1e-11  # relative to the largest: directions that no output depends on


class LocalModel(NamedTuple):
    """The least chi-square as a quadratic in h = sqrt(n) (theta' - theta)."""

    information: Floats
    score: Floats
    chi_square: float  # at h = 0
    dimensions: int

    @classmethod
    def at(cls, tables: Sequence[CountTable], theta: Floats, users: float) -> LocalModel:
        """Return the sum over tables, weighted by their shares of users."""
        information, score = np.zeros((theta.size, theta.size)), np.zeros(theta.size)
        chi_square, dimensions = 0.0, 0
        for table in tables:
            design, residual, size = table.whitened(theta)
            share = table.users / users
            information += share * (design @ design.T)
            score += math.sqrt(share) * (design @ residual)
            chi_square += float(residual @ residual)
            dimensions += size
        return cls(information, score, chi_square, dimensions)


def plausible_distribution(theta: Floats, information: Floats, users: float) -> Floats:
    """Return the distribution with the fewest values that the reports do not rule out, found value by value.

    In the quadratic model without signs, with V the covariance of sqrt(n) theta on vectors with sum 0, setting value x
    to 0 costs n theta_x^2 / V_xx and moves the others along column x of V.
    """
    from scipy.special import chdtri

    values = np.flatnonzero(theta > 0.0)
    shares, scale = theta[values], 1.0 / values.size
    inner = information[np.ix_(values, values)]
    centring = np.eye(values.size) - scale  # projects on vectors with sum 0
    covariance = np.linalg.pinv(centring @ inner @ centring, rcond=MAX_FLAT_EIGENVALUE, hermitian=True)
    best, cost, removed = theta, 0.0, 0
    positive = np.ones(values.size, dtype=bool)
    while positive.sum() > 1:
        variance = np.where(positive, np.diag(covariance), 0.0)
        movable = positive & (variance > MAX_FLAT_EIGENVALUE * max(float(variance.max()), SMALLEST_DIVISOR))
        if not movable.any():
            break
        costs = np.full(values.size, np.inf)
        costs[movable] = users * shares[movable] ** 2 / variance[movable]
        costs[movable & (shares < 0.0)] *= -1.0  # a negative share has to go first
        x = int(np.argmin(costs))
        cost += abs(float(costs[x]))
        removed += 1
        if cost > float(chdtri(removed, 1.0 / users)):
            break
        column = covariance[:, x] / covariance[x, x]
        shares = shares - column * shares[x]
        covariance = covariance - np.outer(column, covariance[x])
        shares[x], positive[x] = 0.0, False
        covariance[x], covariance[:, x] = 0.0, 0.0
        if shares.min() >= 0.0:
            best = np.zeros_like(theta)
            best[values] = shares / shares.sum()
    return best


def reference_p_value(
    statistic: float, local: LocalModel, null: Floats, users: float, entries: int, rng: np.random.Generator
) -> Generator[Progress, None, tuple[float, int]]:
    """Return P(T >= statistic) for users who follow `null`, and the degrees of freedom."""
    from scipy.special import chdtrc

    size = null.size
    with threads_for(entries):
        centred = local.information - local.information.mean(axis=0)
        centred = centred - centred.mean(axis=1, keepdims=True)
        eigenvalues, eigenvectors = np.linalg.eigh((centred + centred.T) / 2)
    observable = eigenvalues > MAX_FLAT_EIGENVALUE * max(float(eigenvalues[-1]), SMALLEST_DIVISOR)
    roots = eigenvectors[:, observable] * np.sqrt(eigenvalues[observable])
    degrees = max(0, local.dimensions - int(observable.sum()))
    if statistic < MAX_ROUNDING_OF_CHI_SQUARE:
        return 1.0, degrees
    bound = float(chdtrc(local.dimensions, statistic))  # B is at most the squared length of its part of Z
    if bound < MAX_BOUNDED_P_VALUE:
        return bound, degrees
    lower, total = -math.sqrt(users) * null, np.ones(size)
    draws = int(np.clip(MAX_WORK / size**3, MIN_DRAWS, MAX_DRAWS))
    signs = np.empty(0)
    while signs.size < draws:
        normal = rng.standard_normal((min(BATCH_DRAWS, draws - signs.size), roots.shape[1]))
        with threads_for(entries):
            least = cone_minima(local.information, normal @ roots.T, lower, total)
        signs = np.append(signs, np.maximum(0.0, (normal**2).sum(axis=1) + 2.0 * least))
        if tail_probability(statistic, signs, degrees)[1] >= ENOUGH_DRAWS_BEYOND:
            break
        yield Progress(signs.size, draws, "simulating the test")
    return min(bound, tail_probability(statistic, signs, degrees)[0]), degrees


def tail_probability(statistic: float, signs: Floats, degrees: int) -> tuple[float, float]:
    """Return P(chi-square + B >= statistic), and how many simulations are beyond the statistic."""
    from scipy.special import chdtrc, ndtr, ndtri

    if degrees:
        probabilities = chdtrc(degrees, np.maximum(statistic - signs, 0.0))
        return float(probabilities.mean()), float(probabilities.sum())
    beyond = int(np.count_nonzero(signs >= statistic))
    simulated = (1 + beyond) / (1 + signs.size)
    if beyond >= TAIL_RANK or signs.size <= TAIL_RANK:
        return simulated, float(beyond)
    largest = math.sqrt(float(np.sort(signs)[-TAIL_RANK]))
    known = float(ndtri(1.0 - TAIL_RANK / (1 + signs.size)))
    return min(simulated, float(ndtr(largest - math.sqrt(statistic) - known))), float(beyond)
