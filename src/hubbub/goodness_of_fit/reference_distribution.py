"""The least chi-square over all distributions, and how large it is where a distribution is true.

**Shares of outputs.** All tables (`tables`) have one common theta. With whitened residuals Z and design M, near a
distribution theta the least chi-square over all distributions is, in the limit of many users,

    T = min |Z - M h|^2   over  h_x >= -sqrt(n) theta_x,  sum_x h_x = 0,     Z standard normal.

Its part outside the range of M is a chi-square of `degrees` degrees of freedom; the rest, B >= 0, is what signs add:
an estimate without signs would fit it. T of the data and B of simulated scores are minima of the same program
(`solvers/cone.py`), and p = mean over simulations of P(chi-square >= T - B). A square invertible channel has no degrees
left, and B is all that can be tested: whether the outputs lie in the mechanism's image.

**Which theta.** T is largest where theta has most zeros, and which zeros are true is unknown. Values are set to 0 one
after the other, those that cost least first, as long as one of n samples would have a chi-square as large as that of
all of them together. This is moment selection (Andrews and Soares, 2010): true zeros are found with probability tending
to 1, and doubtful values count as zeros, which errs to the side of no alarm.

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
from hubbub.solvers.cone_programs import cone_minima

RUNS = 1_000  # simulations...
WORK = 1.2e10  # ...or as many as keep runs x values^3 below this, but at least FEWEST
FEWEST = 100
BATCH = 50  # simulations between two reports of progress
CLEAR = 20  # simulations beyond T after which p is known well enough (Besag and Clifford, 1991)
TAIL = 10  # the simulation, from the largest down, from which the isoperimetric bound takes over
NEGLIGIBLE = 1e-6  # p-values below which the bound with all values at 0 is sharp enough
NOTHING = 1e-4  # a chi-square that is rounding of the program's solution
TINY = float(np.finfo(np.float64).tiny)  # keeps what is 0 from being divided by
FLAT = 1e-11  # eigenvalues, relative to the largest, of directions that no output sees


class Local(NamedTuple):
    """The least chi-square as a quadratic in h = sqrt(n) (theta' - theta)."""

    information: Floats
    score: Floats
    chi_square: float  # at h = 0
    dimensions: int

    @classmethod
    def at(cls, tables: Sequence[CountTable], theta: Floats, users: float) -> Local:
        """Return the sum over tables, each by its share of users."""
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


def plausible(theta: Floats, information: Floats, users: float) -> Floats:
    """Return the distribution with the fewest values that these users do not rule out, found value by value.

    In the quadratic model without signs, with V the covariance of sqrt(n) theta on vectors with sum 0, setting value x
    to 0 costs n theta_x^2 / V_xx and moves the others along column x of V.
    """
    from scipy.special import chdtri

    values = np.flatnonzero(theta > 0.0)
    shares, scale = theta[values], 1.0 / values.size
    inner = information[np.ix_(values, values)]
    sums = np.eye(values.size) - scale  # projects on vectors with sum 0
    spread = np.linalg.pinv(sums @ inner @ sums, rcond=FLAT, hermitian=True)
    best, cost, removed = theta, 0.0, 0
    alive = np.ones(values.size, dtype=bool)
    while alive.sum() > 1:
        freedom = np.where(alive, np.diag(spread), 0.0)
        movable = alive & (freedom > FLAT * max(float(freedom.max()), TINY))
        if not movable.any():
            break
        prices = np.full(values.size, np.inf)
        prices[movable] = users * shares[movable] ** 2 / freedom[movable]
        prices[movable & (shares < 0.0)] *= -1.0  # a negative share has to go first
        x = int(np.argmin(prices))
        cost += abs(float(prices[x]))
        removed += 1
        if cost > float(chdtri(removed, 1.0 / users)):
            break
        column = spread[:, x] / spread[x, x]
        shares = shares - column * shares[x]
        spread = spread - np.outer(column, spread[x])
        shares[x], alive[x] = 0.0, False
        spread[x], spread[:, x] = 0.0, 0.0
        if shares.min() >= 0.0:
            best = np.zeros_like(theta)
            best[values] = shares / shares.sum()
    return best


def reference(
    statistic: float, local: Local, base: Floats, users: float, entries: int, rng: np.random.Generator
) -> Generator[Progress, None, tuple[float, int]]:
    """Return P(T >= statistic) for users who follow `base`, and the degrees of freedom."""
    from scipy.special import chdtrc

    size = base.size
    with threads_for(entries):
        centred = local.information - local.information.mean(axis=0)
        centred = centred - centred.mean(axis=1, keepdims=True)
        lengths, axes = np.linalg.eigh((centred + centred.T) / 2)
    seen = lengths > FLAT * max(float(lengths[-1]), TINY)
    roots = axes[:, seen] * np.sqrt(lengths[seen])
    degrees = max(0, local.dimensions - int(seen.sum()))
    if statistic < NOTHING:
        return 1.0, degrees
    bound = float(chdtrc(local.dimensions, statistic))  # B is at most the squared length of its part of Z
    if bound < NEGLIGIBLE:
        return bound, degrees
    lower, total = -math.sqrt(users) * base, np.ones((1, size))
    runs = int(np.clip(WORK / size**3, FEWEST, RUNS))
    signs = np.empty(0)
    while signs.size < runs:
        normal = rng.standard_normal((min(BATCH, runs - signs.size), roots.shape[1]))
        with threads_for(entries):
            least = cone_minima(local.information, normal @ roots.T, lower, total)
        signs = np.append(signs, np.maximum(0.0, (normal**2).sum(axis=1) + 2.0 * least))
        if tail(statistic, signs, degrees)[1] >= CLEAR:
            break
        yield Progress(signs.size, runs, "simulating the test")
    return min(bound, tail(statistic, signs, degrees)[0]), degrees


def tail(statistic: float, signs: Floats, degrees: int) -> tuple[float, float]:
    """Return P(chi-square + B >= statistic), and how many simulations it rests on."""
    from scipy.special import chdtrc, ndtr, ndtri

    if degrees:
        chances = chdtrc(degrees, np.maximum(statistic - signs, 0.0))
        return float(chances.mean()), float(chances.sum())
    beyond = int(np.count_nonzero(signs >= statistic))
    plain = (1 + beyond) / (1 + signs.size)
    if beyond >= TAIL or signs.size <= TAIL:
        return plain, float(beyond)
    largest = math.sqrt(float(np.sort(signs)[-TAIL]))
    known = float(ndtri(1.0 - TAIL / (1 + signs.size)))
    return min(plain, float(ndtr(largest - math.sqrt(statistic) - known))), float(beyond)
