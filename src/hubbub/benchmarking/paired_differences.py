"""Differences of errors between cells that met the same people, and whether they are beyond noise.

The runs of two cells with one truth and one number of users are pairs. With d_r the difference of their errors in run
r, of n runs, mean m and standard deviation s, the interval of the expected difference is

    m +/- t s / sqrt(n),    t: Student's quantile with n - 1 degrees of freedom.

All pairs of cells with one truth and number of users share one error probability (Bonferroni), so that choosing the
best cell by the same runs does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.serialization import Portable

if TYPE_CHECKING:
    from hubbub.benchmarking.result import BenchmarkCell

MIN_PAIRS = 3  # runs that both cells finished


@dataclass(frozen=True, eq=False)
class PairedDifference(Portable):
    """How much larger the error of a cell is than that of the best one under the same truth, with its interval."""

    best: BenchmarkCell
    other: BenchmarkCell
    difference: float
    low: float
    high: float
    pairs: int

    @property
    def is_clear(self) -> bool:
        """Whether the difference is beyond noise."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True, eq=False)
class SettingRanking(Portable):
    """The cells of one truth and one number of users, and what sets them apart from the best."""

    truth: str
    users: int
    best: BenchmarkCell | None  # None: nothing can be compared
    differences: tuple[PairedDifference, ...]


def rankings(cells: Sequence[BenchmarkCell], distance: str, level: float) -> list[SettingRanking]:
    """Return who is best under each truth and number of users, and how far the others are behind."""
    ordered = sorted(cells, key=lambda cell: (cell.truth, cell.users))
    first_seen = {(cell.truth, cell.users): place for place, cell in reversed(list(enumerate(cells)))}
    groups = {key: list(own) for key, own in groupby(ordered, key=lambda cell: (cell.truth, cell.users))}
    return [_ranking(key, groups[key], distance, level) for key in sorted(groups, key=lambda key: first_seen[key])]


def _ranking(key: tuple[str, int], cells: list[BenchmarkCell], distance: str, level: float) -> SettingRanking:
    whole = [cell for cell in cells if cell.failures == 0 and cell.measured(distance)]
    able = whole or [cell for cell in cells if cell.measured(distance) >= MIN_PAIRS]
    if not able:
        return SettingRanking(*key, None, ())
    best = min(able, key=lambda cell: cell.mean(distance))
    compared = sum(cell.measured(distance) >= MIN_PAIRS for cell in cells)
    pairs = max(1, compared * (compared - 1) // 2)
    each = 1.0 - (1.0 - level) / pairs
    others = sorted((cell for cell in cells if cell is not best), key=lambda cell: cell.mean(distance))
    found = [paired_difference(best, cell, distance, each) for cell in others]
    return SettingRanking(*key, best, tuple(each for each in found if each is not None))


def paired_difference(
    best: BenchmarkCell, other: BenchmarkCell, distance: str, level: float
) -> PairedDifference | None:
    """Return how much larger the error of `other` is; None with too few runs that both finished."""
    from scipy.stats import t

    apart = other.errors(distance) - best.errors(distance)
    apart = apart[np.isfinite(apart)]
    if apart.size < MIN_PAIRS:
        return None
    mean, spread = float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(apart.size)
    half = float(t.ppf(0.5 + level / 2.0, apart.size - 1)) * spread
    return PairedDifference(best, other, mean, mean - half, mean + half, apart.size)
