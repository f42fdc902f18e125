"""Statistics of paired runs: whether one method is nearer to the truth than another, or about as near.

Run i of every method has the same inputs and outputs, so methods are compared by their differences, run by run.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from hubbub.core.arrays import Floats

MAX_EXACT_RUNS = 13  # runs: up to these, all 2^runs changes of sign are tried


def relative_differences(first: Floats, second: Floats, least: float = 0.0) -> Floats:
    """Return (first - second) / mean(|first|, |second|), run by run: between -2 and 2, and 0 where both are 0.

    Where the mean is smaller than `least`, that is put in its place: small numbers may differ by more.
    """
    total = np.maximum(np.abs(first) + np.abs(second), 2.0 * least)
    differences: Floats = np.divide(2.0 * (first - second), total, out=np.zeros_like(total), where=total > 0)
    return differences


def signed_rank_p(differences: Floats) -> float:
    """Return the one-sided p-value of Wilcoxon's signed-rank test that differences are below 0.

    Zeros are left out; equal sizes share their ranks. With at most `MAX_EXACT_RUNS` runs every change of signs is
    tried, so the p-value is exact even with ties.

    >>> signed_rank_p(np.array([-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0])) == 2**-8
    True
    """
    left = differences[differences != 0]
    if not len(left):
        return 1.0
    if len(left) > MAX_EXACT_RUNS:
        return float(stats.wilcoxon(left, alternative="less").pvalue)
    return float(_changed_signs(-left[:, np.newaxis])[1][0])


def family_p(differences: Floats) -> Floats:
    """Return, for each column of a table of runs by settings, the p-value that its differences are below 0.

    They are adjusted for how many columns there are: if no differences are below 0, the chance that any column gets a
    value of p or less is at most p. With more than `MAX_EXACT_RUNS` runs this is Holm's method. With fewer runs Holm's
    method could never decide among many settings (ten runs that all agree have p = 1/1024), so the signs of whole runs
    are changed in all settings at once (the step-down maximum of Westfall and Young). This is exact, and where every
    setting is unanimous it is as sharp for many settings as for one.
    """
    if differences.shape[1] == 0:
        return np.zeros(0)
    if len(differences) > MAX_EXACT_RUNS:
        return holm(np.array([signed_rank_p(column) for column in differences.T]))
    return _changed_signs(-differences)[0]


def holm(p_values: Floats) -> Floats:
    """Return Holm's adjusted p-values.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    raised = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted


def median_interval(values: Floats, level: float) -> tuple[float, float] | None:
    """Return an interval that contains the median with probability of at least 1 - level; None with too few values.

    From order statistics: the k-th smallest is above the median with probability P(Binomial(n, 1/2) < k), whatever the
    distribution.

    >>> median_interval(np.arange(8.0), 0.01)
    (0.0, 7.0)
    >>> median_interval(np.arange(7.0), 0.01) is None
    True
    """
    rank = int(np.count_nonzero(2.0 * stats.binom.cdf(np.arange(len(values)), len(values), 0.5) <= level))
    if rank == 0:
        return None
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[-rank])


def prediction_interval(values: Floats, level: float) -> tuple[float, float]:
    """Return where one more run would lie with probability 1 - level, were runs normally distributed."""
    runs = len(values)
    reach = stats.t.ppf(1.0 - level / 2.0, runs - 1) * values.std(ddof=1) * np.sqrt(1.0 + 1.0 / runs)
    return float(values.mean() - reach), float(values.mean() + reach)


def min_runs(level: float) -> int:
    """Return how many runs must all agree before the signed-rank test can decide at this level.

    >>> min_runs(0.01)
    7
    """
    return int(np.ceil(-np.log2(level)))


def _changed_signs(differences: Floats) -> tuple[Floats, Floats]:
    """Return p-values, adjusted over the columns and plain, that the differences of each column are above 0."""
    runs = len(differences)
    signs = 1.0 - 2.0 * ((np.arange(2**runs)[:, np.newaxis] >> np.arange(runs)) & 1)
    ranks = np.stack([_ranks(column) for column in differences.T], axis=1)
    lengths = np.sqrt((ranks**2).sum(axis=0))
    scores = np.divide(ranks, lengths, out=np.zeros_like(ranks), where=lengths > 0)  # zeros leave fewer ranks
    scores *= np.sign(differences)  # a run's settings may depend on each other: it changes its signs in all of them
    seen = scores.sum(axis=0)
    possible = signs @ scores
    reached = possible >= seen - 1e-9
    adjusted = np.empty(len(seen))
    lowest = 0.0
    order = np.argsort(-seen, kind="stable")
    for place, column in enumerate(order):
        highest = possible[:, order[place:]].max(axis=1)
        lowest = max(lowest, float((highest >= seen[column] - 1e-9).mean()))
        adjusted[column] = lowest
    return adjusted, reached.mean(axis=0)


def _ranks(differences: Floats) -> Floats:
    ranks = np.zeros(len(differences))
    nonzero = differences != 0
    ranks[nonzero] = stats.rankdata(np.abs(differences[nonzero]))
    return ranks
