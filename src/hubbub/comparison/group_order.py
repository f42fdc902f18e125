"""Groups in the order of one statistic, with the ties that their reports cannot settle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hubbub.comparison.populations import Populations
from hubbub.core.arrays import Floats
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.likelihood import Point
from hubbub.solvers.priced_extremes import region_around


class Ranked(NamedTuple):
    """A group and its place in the order: its statistic, and the first and the last rank that it may have."""

    name: str
    estimate: float
    first: int
    last: int


def order_groups(
    populations: Populations, names: Sequence[str], weights: Floats, shown: Floats, level: float
) -> list[Ranked]:
    """Return the groups, largest statistic first; all statements about ranks hold together.

    Two groups are told apart if the interval of their difference, combined from those of the two groups (Zou and
    Donner, 2008), does not hold 0 at the level of one of all pairs (Bonferroni).
    """
    pairs = max(1, math.comb(len(names), 2))
    cutoff = chi_square(1.0 - (1.0 - level) / pairs)
    ends = np.array([_interval(top, weights, cutoff) for top in populations.tops])
    values = np.array([float(weights @ top.theta) for top in populations.tops])
    down, up = (values - ends[:, 0]) ** 2, (ends[:, 1] - values) ** 2
    above = values[:, None] - values[None] > np.sqrt(down[:, None] + up[None])  # row certainly above column
    order = np.argsort(-shown, kind="stable")
    return [
        Ranked(names[place], float(shown[place]), 1 + int(above[:, place].sum()), len(names) - int(above[place].sum()))
        for place in order.tolist()
    ]


def _interval(top: Point, weights: Floats, cutoff: float) -> tuple[float, float]:
    region, slack = region_around(top), cutoff / (2.0 * top.likelihood.total)
    return region.least(weights, slack).limit, -region.least(-weights, slack).limit
