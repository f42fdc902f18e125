"""What subset selection tells, in closed form: its outputs are too many to list."""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.designing.information_goals import InformationGoal


def subset_errors(goal: InformationGoal, epsilon: float) -> Floats:
    """Return the errors of subset selection with the best size, for each part of a goal with equal shares.

    A set S of d of k values is sent with probability proportional to e^epsilon if it holds the value, else to 1. By
    symmetry its information about changes of theta is a multiple of the identity: with the column 1 + (e - 1) 1_S,
    scaled so that all C(k, d) of them sum to 1, it is the sum over S of (e - 1)^2 1_S 1_S' k / (k + (e - 1) d) times
    the scale, and 1_S 1_S' sums to C(k - 2, d - 1) times the identity there.
    """
    values = goal.centre.size
    ratio = math.exp(epsilon)
    sizes = np.arange(1, values)
    pairs = sizes * (values - sizes) / (values * (values - 1))  # C(k - 2, d - 1) / C(k, d)
    totals = 1 + (ratio - 1) * sizes / values  # the mean of a column; C(k, d) columns of this mean sum to 1
    told = goal.users * pairs * (ratio - 1) ** 2 / totals**2
    return goal.errors(told.max() * np.eye(values - 1))  # more information is better for all parts
