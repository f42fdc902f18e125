"""Fewer outputs: columns that a design can do without, columns that are left out, and columns that are merged.

Information J(w) is a vector of k (k + 1) / 2 numbers, so that as many columns, with k more for the sums, give the same
information (Caratheodory). Beyond that, to merge two columns v, w is a post-processing: privacy stays, and with
s = centre . v, t = centre . w the information falls by exactly ::

    s t / (s + t) (v / s - w / t) (v / s - w / t)'

which the price of information turns into a loss. The pair that loses least is merged first, as in Ward's clustering.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from hubbub.core.arrays import Floats
from hubbub.designing.information_goals import InformationGoal
from hubbub.designing.master_program import best_weights, start_weights

KEPT_SHARE = 0.8  # of the columns that stay in one step of leaving the lightest out
ELIMINATION_TOLERANCE = 1e-3
EXACT_SUMS = 1e-13  # how far sums may be from 1: less than the room that policies leave for rounding
REPAIRS = 2
SMALLEST = 1e-300
INDEPENDENT = 1e-9  # singular values below this part of the largest are rounding
KEPT = 1e-7  # of the largest weight: lighter columns are left out where the sums allow it


def fewest_columns(
    goal: InformationGoal, columns: Floats, weights: Floats, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return columns and weights with the same sums and the same information, and no more than these need.

    Columns stand for their images, too: what has to stay is what all images of a column have in common.
    """
    features = goal.features(columns)
    upper = np.triu_indices(features.shape[2])
    told = np.mean([each[:, upper[0]] * each[:, upper[1]] for each in features], axis=0)
    told = np.hstack([goal.images(columns).mean(axis=0), told])
    told = told / np.maximum(np.abs(told).max(axis=0), SMALLEST)
    # Images make many of these equations equal: an orthonormal basis of what they say is enough.
    _, sizes, directions = np.linalg.svd(told, full_matrices=False)
    equations = (told @ directions[sizes > INDEPENDENT * sizes[0]].T).T
    if equations.shape[0] >= len(weights):
        return columns, weights
    solved = linprog(generator.random(weights.size), A_eq=equations, b_eq=equations @ weights, method="highs-ds")
    if solved.status != 0:
        return columns, weights
    few = np.asarray(solved.x)
    kept = few > KEPT * few.max()
    fewer, found = columns[kept], exact_weights(columns[kept], few[kept])
    return (columns, weights) if found is None else (fewer, found)


def exact_weights(columns: Floats, weights: Floats) -> Floats | None:
    """Return weights nearby with sums of 1 to the last digits, as privacy needs; None if there are none.

    Rows of a mechanism are divided by their sums, which changes ratios by as much as sums differ.
    """
    for _ in range(REPAIRS):
        lacking = 1.0 - columns.T @ weights
        weights = weights * (1 + np.linalg.lstsq(columns.T * weights, lacking, rcond=None)[0])
    is_exact = (weights >= 0).all() and np.abs(columns.T @ weights - 1).max() <= EXACT_SUMS
    return weights if is_exact else None


def merged_columns(columns: Floats, centre: Floats, price: Floats, outputs: int) -> Floats:
    """Return at most `outputs` whole columns (weights included), merged where least is lost.

    `columns` are whole, too: they sum to 1.
    """
    whole = columns.copy()
    totals = whole @ centre
    scaled = whole / totals[:, None]
    told = scaled @ price
    squares = np.einsum("ij,ij->i", told, scaled)
    losses = totals[:, None] * totals / (totals[:, None] + totals)
    losses = losses * np.maximum(squares[:, None] + squares - 2 * told @ scaled.T, 0.0)
    np.fill_diagonal(losses, np.inf)
    alive = np.ones(len(whole), dtype=bool)
    while alive.sum() > outputs:
        first, second = np.unravel_index(int(np.argmin(losses)), losses.shape)
        whole[first] += whole[second]
        totals[first] += totals[second]
        alive[second] = False
        losses[second, :] = losses[:, second] = np.inf
        scaled[first] = whole[first] / totals[first]
        apart = scaled - scaled[first]
        fresh = totals * totals[first] / (totals + totals[first])
        fresh = fresh * np.maximum(np.einsum("ij,jk,ik->i", apart, price, apart), 0.0)
        fresh[~alive] = np.inf
        fresh[first] = np.inf
        losses[first, :] = losses[:, first] = fresh
    return np.asarray(whole[alive])


def eliminated_columns(goal: InformationGoal, columns: Floats, weights: Floats, outputs: int) -> list[Floats]:
    """Return whole columns with fewer and fewer outputs, down to the limit where the sums allow it.

    The lightest columns are left out, and the others are weighed again.
    """
    alone = goal.replace(permutations=np.arange(goal.centre.size)[None, :])
    stages = []
    while len(weights) > outputs:
        count = max(outputs, int(KEPT_SHARE * len(weights)))
        heavy = np.argsort(-weights)[:count]
        columns = columns[heavy]
        start = start_weights(columns)
        if start is None or not np.isfinite(alone.value_of(columns * start[:, None])):
            break
        solved = best_weights(alone, columns, start, tolerance=ELIMINATION_TOLERANCE)
        found = exact_weights(columns, solved.weights)
        if found is None or not np.isfinite(alone.value_of(columns * found[:, None])):
            break
        weights = found
        stages.append(columns * weights[:, None])
    return stages
