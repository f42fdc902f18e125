"""The division of categories into groups: those told alone, groups of rarer ones that are told together, and the rest.

Categories have no neighbours, so that any set may be a group. With Z drawn from N(0, M), M the covariance of the
estimate of `set_shares`, the largest error of any set of s values is the sum of the s largest entries of Z, or of the s
smallest, and its quantile bounds the shares of all sets of that size at once. Single values are standardised by their
own deviations. One factor on all these quantiles makes all of them hold together. (The entries of Z add up to 0, so
that a set and its complement have the same error: the rest is bounded as well as what it leaves.)

Values are put in the order of their estimated shares, which may depend on the reports, as the bounds hold for all sets.
A division into runs of that order with the most told ones is found by dynamic programming.
"""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.intervals import SetShares
from hubbub.resolution.pieces import TIE, Piece, add_up_to_one
from hubbub.resolution.rectangle_bounds import DRAWS, normal_draws, quantile


def group_pieces(
    shares: SetShares, shown: Floats, relative: float, level: float, rng: np.random.Generator
) -> list[Piece]:
    """Return the told groups, the largest values first, and what is left as the last one."""
    size = shares.centre.size
    single, by_size = _errors(shares.matrix, level, rng)
    order = np.argsort(-shares.centre, kind="stable")
    low, high = _run_bounds(shares.centre[order], single[order], by_size)
    runs = _most_told(low, high, np.concatenate([[0.0], np.cumsum(shown[order])]), relative)
    pieces = [Piece(order[first:last], float(low[first, last]), float(high[first, last])) for first, last in runs]
    in_runs = np.zeros(size, dtype=np.bool_)
    for first, last in runs:
        in_runs[first:last] = True
    rest = order[~in_runs]
    if rest.size:
        share, error = float(shares.centre[rest].sum()), float(by_size[rest.size])
        lows, highs = shares.centre[rest] - single[rest], shares.centre[rest] + single[rest]
        least = max(share - error, float(np.maximum(lows, 0.0).sum()))
        most = min(share + error, float(np.maximum(highs, 0.0).sum()), 1.0)
        pieces.append(Piece(rest, min(least, most), max(least, most)))
    return add_up_to_one(pieces)


def _errors(covariance: Floats, level: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the largest errors of single values, and of any set of each size from 0 to all."""
    size = len(covariance)
    deviations = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    draws = normal_draws(covariance, DRAWS, rng)
    largest = (np.abs(draws) / np.maximum(deviations, np.finfo(np.float64).tiny)[:, None]).max(axis=0)
    draws.sort(axis=0)
    smallest_sums, largest_sums = np.cumsum(draws, axis=0), np.cumsum(draws[::-1], axis=0)
    errors = np.maximum(largest_sums, -smallest_sums)[: size // 2]  # the others are those of complements
    scales = np.array([quantile(one, level) for one in errors])
    own = quantile(largest, level)
    together = np.maximum((errors / np.maximum(scales, np.finfo(np.float64).tiny)[:, None]).max(axis=0), largest / own)
    factor = quantile(together, level)
    by_size = np.zeros(size + 1)
    by_size[1 : scales.size + 1] = factor * scales
    by_size[size - scales.size : size] = factor * scales[::-1]
    return factor * own * deviations, by_size


def _run_bounds(centre: Floats, single: Floats, by_size: Floats) -> tuple[Floats, Floats]:
    """Return bounds for the values from one place to before another, in the order of the shares."""
    size = centre.size
    first, last = np.triu_indices(size + 1, 1)

    def over_runs(entries: Floats) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(entries)])
        return np.asarray(sums[last] - sums[first])

    shares, errors = over_runs(centre), by_size[last - first]
    low, high = np.zeros((size + 1, size + 1)), np.ones((size + 1, size + 1))
    low[first, last] = np.maximum(shares - errors, over_runs(np.maximum(centre - single, 0.0)))
    high[first, last] = np.minimum(shares + errors, over_runs(np.maximum(centre + single, 0.0)))
    return np.maximum(low, 0.0), np.clip(high, low, 1.0)


def _most_told(low: Floats, high: Floats, sums: Floats, relative: float) -> list[tuple[int, int]]:
    """Return the runs that are told: as many as possible, the narrowest among equally many."""
    size = len(low) - 1
    best, begin = np.zeros(size + 1), np.full(size + 1, -1)
    for last in range(1, size + 1):
        shares = sums[last] - sums[:last]
        least, most = np.minimum(low[:last, last], shares), np.maximum(high[:last, last], shares)
        width = (most - least) / np.maximum(relative * (most + least), np.finfo(np.float64).tiny)
        told = (least > 0.0) & (width <= 1.0)
        told[0] &= last < size  # the whole is no part, although its share is known
        scores = np.where(told, best[:last] + 1.0 + TIE * (1.0 - width), -1.0)
        first = int(np.argmax(scores))
        best[last] = best[last - 1]
        if scores[first] > best[last]:
            best[last], begin[last] = scores[first], first
    runs: list[tuple[int, int]] = []
    last = size
    while last > 0:
        if begin[last] < 0:
            last -= 1
        else:
            runs.append((int(begin[last]), last))
            last = int(begin[last])
    return runs[::-1]
