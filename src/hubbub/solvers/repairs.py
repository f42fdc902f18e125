"""Repairs: what makes inverted shares, which may be negative and have any sum, a distribution.

Norm-sub, norm-cut and base-cut are those of Wang, Lopuhaä-Zwakenberg, Li, Škorić and Li, "Locally differentially
private frequency estimation with consistency", NDSS 2020. What norm-cut and base-cut leave may not add up to 1, and the
paper leaves it so; here it is divided by its sum, because an estimate is a distribution.
"""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats

FALSE_ALARMS = 0.02  # of base-cut: the chance that any value without users is kept
SUM_ROUNDING = 1e-9  # above 1, of shares that already add up to 1: what solving for them may leave


def normalised(solution: Floats) -> Floats:
    """Set negative entries to 0 and divide by the sum (INV-N)."""
    positive = np.maximum(solution, 0.0)
    total = positive.sum()
    if total == 0.0:  # possible for bits only: every value is below its expected noise
        return np.full(solution.size, 1.0 / solution.size)
    normal: Floats = positive / total
    return normal


def projected(solution: Floats) -> Floats:
    """Return the nearest distribution in Euclidean distance (INV-P), which is norm-sub.

    It is max(v - t, 0) with the t that makes the sum 1, found by sorting (Wang and Carreira-Perpinan). Norm-sub looks
    for the number -t that, added to all entries before negative ones are set to 0, makes the sum 1: it is the same.
    """
    falling = np.sort(solution)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, solution.size + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    nearest: Floats = np.maximum(solution - excess[last], 0.0)
    nearest /= nearest.sum()
    return nearest


def norm_cut(solution: Floats) -> Floats:
    """Set negative entries to 0, then the smallest others until the sum is at most 1, and divide by the sum.

    Equal entries stay or go together. The largest stay, even if their sum is above 1.
    """
    positive = np.maximum(solution, 0.0)
    falling = np.sort(positive)[::-1]
    kept = int(np.count_nonzero(np.cumsum(falling) <= 1.0 + SUM_ROUNDING))
    most = falling[kept] if kept < falling.size else 0.0  # of those that go
    stay = (positive > most) | (positive == falling[0])
    return normalised(np.where(stay, positive, 0.0))


def base_cut(solution: Floats, null_deviations: Floats) -> Floats:
    """Keep the entries that are significantly above 0, and divide by their sum; equal shares if there are none.

    With d values and s the standard deviation of a value that nobody holds, those above Phi^-1(1 - 0.02 / d) s are
    kept: with probability 0.98 or more, none of these has a true share of 0.
    """
    from scipy.special import ndtri

    threshold = float(ndtri(1.0 - FALSE_ALARMS / solution.size)) * null_deviations
    return normalised(np.where(solution > threshold, solution, 0.0))
