"""Symmetries of lines and maps, and designs that have them.

Where a permutation of the values changes neither the policy nor the goal, the mean of a design and its image is at
least as good, because goals are convex. So a design may treat mirror images alike at no cost.
"""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.designing.information_goals import InformationGoal
from hubbub.designing.privacy_policy import PrivacyPolicy

SAME = 1e-9  # relative
SAME_PRECISION = 1e-6  # relative: precisions are inverses of covariances that are nearly singular


def symmetries_of(policy: PrivacyPolicy, goal: InformationGoal) -> Positions:
    """Return the permutations (rows) that change neither policy nor goal; the first is the identity."""
    size = len(policy.domain)
    kept: list[Positions] = []
    if policy.is_exchangeable:  # all permutations keep it: shifts treat values alike, and are few
        kept = _kept([np.roll(np.arange(size), shift) for shift in range(1, size)], policy, goal)
    # Shifts and reflections together would be no group, unless all their products were there.
    return np.array([np.arange(size), *(kept or _kept(_reflections(policy), policy, goal))])


def mirrored(columns: Floats, weights: Floats, permutations: Positions) -> tuple[Floats, Floats]:
    """Return the mean of a design and its images, with equal columns merged; sums stay, to the last digits."""
    images = np.concatenate([columns[:, permutation] for permutation in permutations])
    shared = np.tile(weights / len(permutations), len(permutations))
    keys = np.round(np.log(images / images.max(axis=1, keepdims=True)), 7)
    group = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    totals = np.zeros(group.max() + 1)
    np.add.at(totals, group, shared)
    merged = np.zeros((totals.size, columns.shape[1]))
    np.add.at(merged, group, images * shared[:, None])  # equal up to rounding to seven digits, which privacy would miss
    heavy = totals > 0
    return merged[heavy] / totals[heavy, None], totals[heavy]


def _kept(permutations: list[Positions], policy: PrivacyPolicy, goal: InformationGoal) -> list[Positions]:
    """Return the permutations that change neither policy nor goal."""
    bounds, centre = policy.bounds, goal.centre
    return [
        each
        for each in permutations
        if np.allclose(bounds[np.ix_(each, each)], bounds, rtol=SAME, atol=0)
        and np.allclose(centre[each], centre, rtol=SAME, atol=0)
        and _keeps_goal(goal, each)
    ]


def _reflections(policy: PrivacyPolicy) -> list[Positions]:
    """Return the mirror image of a line, or the reflections and rotations of a map."""
    domain = policy.domain
    size = len(domain)
    grid = domain.grid
    if grid is None:
        return [np.arange(size)[::-1]]
    if size != grid.columns * grid.rows:
        return []
    places = np.arange(size).reshape(grid.rows, grid.columns)
    images = [places[::-1], places[:, ::-1], places[::-1, ::-1]]
    if grid.columns == grid.rows:
        images += [image.T for image in (places, *images)]
    return [image.ravel() for image in images]


def _keeps_goal(goal: InformationGoal, permutation: Positions) -> bool:
    """Whether each part of the goal has the same precision, and the same error for a covariance, as its image."""
    turned = goal.basis.T @ np.eye(goal.centre.size)[permutation] @ goal.basis
    half = np.random.default_rng(0).standard_normal(turned.shape)  # a covariance that no permutation keeps
    trial = half @ half.T
    for part in goal.parts:
        image = turned.T @ part.precision @ turned
        if np.abs(image - part.precision).max() > SAME_PRECISION * np.abs(part.precision).max():
            return False
        if not np.isclose(part.error(turned.T @ trial @ turned), part.error(trial), rtol=SAME, atol=0):
            return False
    return True
