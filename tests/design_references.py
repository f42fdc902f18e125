"""What designs are compared with: rays, goals and optima from their definitions, by dense matrices and SciPy alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, minimize
from scipy.stats import norm

import hubbub as hb

Floats = NDArray[np.float64]
Goal = Callable[[Floats], float]

SKEWED = [0.4, 0.25, 0.15, 0.12, 0.08]


def skewed(size: int) -> Floats:
    """Return shares without symmetries."""
    weights = 1.0 + 7 * np.arange(size) % 11
    shares: Floats = weights / weights.sum()
    return shares


def two_level_columns(size: int, epsilon: float) -> Floats:
    """Return the columns of Kairouz, Oh and Viswanath's staircase mechanisms: e^epsilon in a set, 1 outside."""
    sets = [chosen for chosen in itertools.product([False, True], repeat=size) if any(chosen) and not all(chosen)]
    return np.where(sets, math.exp(epsilon), 1.0)


def line_columns(steps: list[float]) -> Floats:
    """Return the columns on a line whose logarithms rise or fall by a whole step between neighbours."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(steps))))
    logs = np.hstack([np.zeros((len(signs), 1)), np.cumsum(signs * steps, axis=1)])
    columns: Floats = np.exp(logs)
    return columns


def cone_rays(bounds: Floats) -> Floats:
    """Return the extreme rays of any cone: where as many of its limits are tight as it takes, and all are kept."""
    size = len(bounds)
    limits = []
    for first, second in itertools.permutations(range(size), 2):
        row = np.zeros(size)
        row[first], row[second] = -1.0, math.exp(bounds[first, second])
        limits.append(row)
    table = np.array(limits)
    rays: dict[tuple[float, ...], Floats] = {}
    for chosen in itertools.combinations(range(len(table)), size - 1):
        _, sizes, turned = np.linalg.svd(table[list(chosen)])
        if sizes[-1] < 1e-9:
            continue
        ray = turned[-1] * np.sign(turned[-1].sum())
        if ray.min() > 0 and (table @ ray >= -1e-9).all():
            ray = ray / ray.mean()
            rays[tuple(np.round(ray, 6))] = ray
    return np.array(list(rays.values()))


def covariance(columns: Floats, shares: Floats, users: float, prior: Floats | None = None) -> Floats:
    """Return the covariance of all shares: the inverse of the Fisher information, in the first k - 1 shares."""
    size = len(shares)
    free = np.vstack([np.eye(size - 1), -np.ones((1, size - 1))])
    information = np.zeros((size, size))
    for column in columns:
        if column.max() > 0:
            information += users * np.outer(column, column) / float(shares @ column)
    told = free.T @ information @ free
    if prior is not None:
        centred = np.eye(size) - 1.0 / size
        told = told + np.linalg.inv((centred @ prior @ centred)[:-1, :-1])
    sizes, turned = np.linalg.eigh((told + told.T) / 2)
    sizes = np.maximum(sizes, 1e-11 * sizes[-1])  # what columns do not tell has a huge variance, not a random one
    inverse: Floats = (turned / sizes) @ turned.T
    return free @ inverse @ free.T


def variance_goal(shares: Floats, users: float) -> Goal:
    return lambda columns: float(np.trace(covariance(columns, shares, users)))


def width_goal(shares: Floats, users: float, of: Floats, level: float = 0.95) -> Goal:
    reach = 2 * float(norm.ppf((1 + level) / 2))
    return lambda columns: reach * math.sqrt(float(of @ covariance(columns, shares, users) @ of))


def risk_goal(distributions: Floats, users: float) -> Goal:
    """Return the expected total variation, for normal errors, where these distributions say what is plausible."""
    centre = distributions.mean(axis=0)
    spread = (distributions - centre).T @ (distributions - centre) / len(distributions)
    spread = spread + 1e-8 * np.trace(spread) / len(centre) * np.eye(len(centre))

    def risk(columns: Floats) -> float:
        variances = np.diag(covariance(columns, centre, users, spread))
        return math.sqrt(2 / math.pi) / 2 * float(np.sqrt(variances).sum())

    return risk


def mutual_information(columns: Floats, shares: Floats) -> float:
    """Return sum p(x) q(y | x) log(q(y | x) / q(y)) in nats."""
    total = 0.0
    for column in columns:
        total += float((shares * column * np.log(column / float(shares @ column))).sum())
    return total


def most_information(columns: Floats, shares: Floats) -> float:
    """Return the largest mutual information of mechanisms made of these columns, by a linear program."""
    gains = np.array([mutual_information(column[None, :], shares) for column in columns])
    scale = gains.max()
    solved = linprog(-gains / scale, A_eq=columns.T, b_eq=np.ones(columns.shape[1]), method="highs-ds")
    assert solved.status == 0, solved.message
    return float(np.asarray(solved.x) @ gains)


def least_value(columns: Floats, goal: Goal) -> float:
    """Return the least value of a goal over all weights of these columns, by sequential quadratic programming."""
    columns = columns / columns.mean(axis=1, keepdims=True)
    count = len(columns)
    size = columns.shape[1]
    spread = linprog(  # weights that are as far from 0 as possible
        np.append(np.zeros(count), -1.0),
        A_ub=np.hstack([-np.eye(count), np.ones((count, 1))]),
        b_ub=np.zeros(count),
        A_eq=np.hstack([columns.T, np.zeros((size, 1))]),
        b_eq=np.ones(size),
    )
    middle = np.asarray(spread.x)[:-1]
    scale = goal(columns * middle[:, None])

    def value(weights: Floats) -> float:
        return goal(columns * np.maximum(weights, 0.0)[:, None]) / scale

    solved = minimize(
        value,
        middle,
        method="SLSQP",
        bounds=Bounds(np.zeros(count), np.full(count, np.inf)),
        constraints=LinearConstraint(columns.T, np.ones(size), np.ones(size)),
        options={"maxiter": 500, "ftol": 1e-9},
    )
    assert np.abs(columns.T @ solved.x - 1).max() < 1e-7, solved.message
    return float(solved.fun * scale)


def whole_columns(design: hb.Design) -> Floats:
    """Return the columns of a design's mechanism, in rows."""
    return np.asarray(design.mechanism.matrix().T)


def subset_selection_variance(values: int, epsilon: float, size: int, users: float) -> float:
    """Return the total variance of subset selection for equal shares, as Ye and Barg state it.

    "Optimal schemes for discrete distribution estimation under locally differential privacy" (2018), section III.
    """
    ratio = math.exp(epsilon)
    apart = (ratio - 1) ** 2
    total = (size * (values - 2) + 1) * ratio**2 / ((values - size) * apart) + 2 * (values - 2) * ratio / apart
    total += ((values - 2) * (values - size) + 1) / (size * apart) - 1 / values
    return total / users
