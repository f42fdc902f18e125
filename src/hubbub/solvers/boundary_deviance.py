"""Many quadratic programs over one cone at once: the likelihood near a border, in the limit of many users.

With J the information per user, h the distance from a distribution times the square root of the number of users and s a
score drawn from N(0, J), twice the log-likelihood is, up to a constant, 2 s'h - h'Jh, over the h that keep
every probability at least 0. Deviances in the limit are differences of such maxima (Chernoff, 1954); a sample of
scores gives a sample of deviances.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats

# A ridge relative to the largest information: in directions without any, inverses would grow without end. It adds to
# the minimum, by more the farther h may go, which is about the square root of the number of users.
MIN_RIDGE, MAX_RIDGE = 1e-8, 1e-5
MAX_ADDED = 1e-3  # to a minimum, about
MAX_KEPT_ENTRIES = 12_000_000  # of the inverses that are kept between programs (96 MB)
MIN_ROOM = 1e-3  # above its limit, for a value that is free at first: an interior point leaves some on all values
MAX_CONDITION = 1e7  # of an information: beyond it, programs with a ridge are solved instead
STEPS_OF_PROGRAM = 5  # for each entry of its matrix, about: exchanges, and solving after each


def cone_minima(hessian: Floats, scores: Floats, lower: Floats, equal: Floats) -> Floats:
    """Return min over h of h'Jh/2 - s'h subject to h >= lower and equal @ h = 0, for each row s of `scores`.

    `equal` is one row, or several. `lower` must not be positive, so that 0 is allowed and no minimum is positive; -inf
    where there is no limit.
    """
    return ConePrograms(hessian, scores, equal).minima(lower)


def limited_minima(information: Floats, scores: Floats, lower: Floats, equal: Floats, users: float) -> Floats:
    """Return what `cone_minima` does, quickly where most minima are within the limits: those without limits."""
    try:
        steps = _free_minima(information, scores, np.atleast_2d(equal))
    except np.linalg.LinAlgError:  # some value affects no report
        steps = np.full(scores.shape, -np.inf)
    minima = -0.5 * np.einsum("dx,dx->d", scores, steps)
    beyond = ~(steps >= lower).all(axis=1)
    if beyond.any():
        minima[beyond] = ConePrograms(information, scores[beyond], equal, users).minima(lower)
    return np.asarray(minima)


def _free_minima(information: Floats, scores: Floats, equal: Floats) -> Floats:
    """Return where h'Jh/2 - s'h is least over the h with equal @ h = 0, for each row s of scores."""
    size, scale = len(information), float(np.diag(information).max())  # equations on the scale of the information
    system = np.zeros((size + len(equal), size + len(equal)))
    system[:size, :size] = information
    system[:size, size:], system[size:, :size] = scale * equal.T, scale * equal
    if np.linalg.cond(system) > MAX_CONDITION:
        raise np.linalg.LinAlgError
    return np.asarray(scores @ np.linalg.inv(system)[:size, :size])


class ConePrograms:
    """The programs of some scores. Each starts where its score's last one ended: similar limits take few steps."""

    def __init__(self, hessian: Floats, scores: Floats, equal: Floats, users: float = np.inf) -> None:
        largest = float(np.diag(hessian).max())
        self._ridge = float(np.clip(MAX_ADDED / (users * largest), MIN_RIDGE, MAX_RIDGE))
        self._matrix = hessian / largest + self._ridge * np.eye(len(hessian))
        self._root = math.sqrt(largest)
        self._scores = np.ascontiguousarray(scores / self._root)
        self._equations = np.array([_row(row) for row in np.atleast_2d(equal)])
        self._free = np.zeros(scores.shape, dtype=np.bool_)
        self._started = 0  # programs that have a start of their own
        draws, values = scores.shape
        kept = values if draws * values**2 <= MAX_KEPT_ENTRIES else 0
        self._inverses = np.empty((draws, kept, kept))
        self._members = np.empty((draws, values), dtype=np.int64)
        self._exchanges = np.full(draws, -1)

    def minima(self, lower: Floats) -> Floats:
        """Return the minimum for each score."""
        return self._solve(lower, np.empty(0), len(self._scores))[:, 0]

    def deviances(self, lower: Floats, weights: Floats, draws: int | None = None) -> Floats:
        """Return twice what holding `weights` @ h at 0 costs, for each score, or for the first `draws` of them."""
        free, held = self._solve(lower, weights, len(self._scores) if draws is None else draws).T
        return np.asarray(2.0 * (held - free))

    def _solve(self, lower: Floats, held: Floats, draws: int) -> Floats:
        from hubbub.solvers.compiled_cone_programs import Cone, solve

        equations = np.vstack([self._equations, _row(held)]) if held.size else self._equations
        limits, bounded = lower * self._root, np.isfinite(lower)
        limits[~bounded] = 0.0
        if draws > self._started:  # values that are well above their limits will be free
            self._free[self._started : draws] = lower < -MIN_ROOM
            self._started = draws
        least = np.zeros((draws, 2))
        work = STEPS_OF_PROGRAM * draws * lower.size**2
        solve(
            work,
            Cone(self._matrix, self._ridge, equations, limits, bounded),
            self._scores[:draws],
            self._free[:draws],
            self._members[:draws],
            self._inverses[:draws],
            self._exchanges[:draws],
            int(held.size > 0),
            least,
        )
        if not np.isfinite(least).all():
            raise FloatingPointError(
                "a quadratic program over a cone was not solved: its minimum is not a finite number"
            )
        return np.minimum(least, 0.0)


def held_deviances(
    informations: Floats, scores: Floats, lower: Floats, statistics: Floats, signs: Floats, users: float
) -> Floats:
    """Return twice what holding each statistic at 0 costs, for each score (draws by statistics).

    There may be several populations, each with its information (populations by values by values), its scores (draws by
    populations by values) and limits. A statistic (a row of `statistics`) is summed over them, with a sign for each.
    """
    from hubbub.solvers.compiled_sweeps import hold

    draws, _, values = scores.shape
    largest = float(np.diagonal(informations, axis1=1, axis2=2).max())
    ridge = float(np.clip(MAX_ADDED / (users * largest), MIN_RIDGE, MAX_RIDGE))
    root = math.sqrt(largest)
    costs = np.empty((draws, len(statistics)))
    work = STEPS_OF_PROGRAM * draws * values**2 * (len(statistics) + 1)
    bounded = np.isfinite(lower)
    limits = np.where(bounded, lower * root, 0.0)
    free = ~bounded | (lower < -MIN_ROOM)
    scaled = statistics / np.maximum(np.abs(statistics).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    hold(
        work,
        np.ascontiguousarray(informations / largest + ridge * np.eye(values)),
        ridge,
        limits,
        bounded,
        free,
        np.ascontiguousarray(scores / root),
        np.ascontiguousarray(scaled),
        signs,
        costs,
    )
    return costs


def _row(row: Floats) -> Floats:
    largest = float(np.abs(row).max())
    return row / largest if largest > 0.0 else row
