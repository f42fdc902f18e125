"""How strongly two attributes are related: measures of a table of joint shares."""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats


def mutual_information(table: Floats) -> float:
    """Return the mutual information in bits: 0 if and only if the attributes are independent.

    >>> mutual_information(np.array([[0.5, 0.0], [0.0, 0.5]])), mutual_information(np.full((2, 2), 0.25))
    (1.0, 0.0)
    """
    even = np.outer(table.sum(axis=1), table.sum(axis=0))
    held = table > 0.0
    return max(0.0, float(table[held] @ np.log2(table[held] / even[held])))


def cramers_v(table: Floats) -> float:
    """Return Cramer's V, from 0 (independent) to 1 (one attribute decides the other).

    V^2 is the sum of (p_ij - a_i b_j)^2 / (a_i b_j), divided by one less than the smaller number of values. Values that
    nobody has count among these, so that V does not depend on which shares are estimated as 0.

    >>> cramers_v(np.array([[0.5, 0.0], [0.0, 0.5]])), round(cramers_v(np.array([[0.3, 0.2], [0.2, 0.3]])), 6)
    (1.0, 0.2)
    """
    even = np.outer(table.sum(axis=1), table.sum(axis=0))
    held = even > 0.0
    square = float(((table[held] - even[held]) ** 2 / even[held]).sum())
    return min(1.0, math.sqrt(square / (min(table.shape) - 1)))


def max_mutual_information(table: Floats) -> float:
    """Return the largest mutual information that tables of this shape can have."""
    return math.log2(min(table.shape))


def odds_ratio(four: Floats) -> float:
    """Return p_11 p_22 / (p_12 p_21) of a table of four shares; inf or NaN where shares are 0.

    >>> round(odds_ratio(np.array([[0.4, 0.1], [0.2, 0.3]])), 9), odds_ratio(np.array([[0.4, 0.0], [0.2, 0.4]]))
    (6.0, inf)
    """
    above, below = float(four[0, 0] * four[1, 1]), float(four[0, 1] * four[1, 0])
    if below > 0.0:
        return above / below
    return math.inf if above > 0.0 else math.nan
