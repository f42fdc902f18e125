"""Intervals of measures of association, by inverting the test of independence.

Measures such as Cramer's V are never negative, and those of an estimate are too large: noise looks like association. An
interval around the estimate would not hold a true 0. So the interval consists of those strengths under which the
likelihood ratio T of the test is neither surprisingly large nor surprisingly small.

Joint distributions of growing strength are simulated: with the marginals a and b that the reports suggest, and

    theta_t  proportional to  r_i c_j a_i b_j exp(t u_ij),      t from 0 on,

where r and c keep the marginals. u is the direction of the likeliest joint distribution, (p_ij - a_i b_j) / (a_i b_j),
so that the path starts at independence, passes near that distribution, and ends at the strongest association of its
kind.

* The low end is 0 unless the test rejects. Otherwise it is the strength at which a T as large as the observed one has
  the probability (alpha + p) / 2: between alpha, where the p-value p just rejects, and alpha / 2.
* The high end is the strength at which a T as small has a probability of alpha / 2, in relation to its probability
  under independence (Read's CLs): where T is small by chance even for independent attributes, there would be no
  such strength otherwise.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.association.independence_test import IndependenceTest, Independent
from hubbub.core.arrays import Floats

MAX_TILT = 60.0  # the largest t u: e^60 to 1 is as strong as an association can be
MAX_DOUBLINGS, HALVINGS = 40, 9
DRAWS = 999  # for each strength: a tail of 2.5% is known to half a percentage point
MAX_SCALINGS, MAX_MARGIN_ERROR = 5_000, 1e-10


class Strengths(NamedTuple):
    """The weakest and the strongest joint distributions that the reports allow."""

    weakest: Floats | None  # None: independence
    strongest: Floats | None  # None: as strong as can be


def strength_interval(
    test: IndependenceTest, null: Independent, likeliest: Floats, level: float
) -> Generator[Any, None, Strengths]:
    """Return tables at both ends of the interval; `likeliest` is that of the likelihood's maximum."""
    path = TiltedPath(null.first, null.second, likeliest)
    alpha, p_value = 1.0 - level, test.p_value
    observed = test.statistic
    weakest = None
    if p_value <= alpha:
        rare = 0.5 * (alpha + p_value)
        weakest = path.at((yield from _crossing(null, path, observed, rare, above=True)) or path.largest)
    as_small = _share(test.sample <= observed)
    tilt = yield from _crossing(null, path, observed, 0.5 * alpha * as_small, above=False)
    return Strengths(weakest, None if tilt is None else path.at(tilt))


def _share(which: NDArray[np.bool_]) -> float:
    return (np.count_nonzero(which) + 0.5) / (which.size + 1.0)


def _crossing(
    null: Independent, path: TiltedPath, observed: float, rare: float, *, above: bool
) -> Generator[Any, None, float | None]:
    """Return the tilt from which on T is as large (above) with more than this probability, or as small with less."""

    def is_beyond(tilt: float) -> Generator[Any, None, bool]:
        sample = yield from null.sample(path.at(tilt).ravel(), DRAWS, "looking for the strength of the association")
        return _share(sample >= observed) > rare if above else _share(sample <= observed) < rare

    low, high = 0.0, path.unit
    for _ in range(MAX_DOUBLINGS):
        if (yield from is_beyond(high)):
            break
        if high >= path.largest:
            return None
        low, high = high, min(2.0 * high, path.largest)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if (yield from is_beyond(middle)):
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


class TiltedPath:
    """Joint distributions of growing strength, with given marginals."""

    def __init__(self, first: Floats, second: Floats, likeliest: Floats) -> None:
        self._sides = first.size, second.size
        self._rows, self._columns = np.flatnonzero(first > 0.0), np.flatnonzero(second > 0.0)
        self._first, self._second = first[self._rows], second[self._columns]
        self._even = np.outer(self._first, self._second)
        held = likeliest[np.ix_(self._rows, self._columns)]
        apart = held - np.outer(held.sum(axis=1), held.sum(axis=0)) / max(held.sum(), np.finfo(np.float64).tiny)
        if np.abs(apart).max(initial=0.0) <= 1e-9:  # no direction of its own: large with large, small with small
            apart = np.outer(*(np.arange(own.size) - own.size / 2 + 0.5 for own in (self._first, self._second)))
        tilt = apart / self._even
        largest = float(np.abs(tilt).max(initial=0.0))
        self._tilt = tilt / largest if largest > 0.0 else tilt
        self.unit, self.largest = min(max(largest, 1e-3), 1.0), MAX_TILT

    def at(self, tilt: float) -> Floats:
        """Return the table at t."""
        weights = self._even * np.exp(tilt * (self._tilt - self._tilt.max(initial=0.0)))
        rows = np.ones(self._first.size)
        columns = np.ones(self._second.size)
        for _ in range(MAX_SCALINGS):
            rows = self._first / np.maximum(weights @ columns, np.finfo(np.float64).tiny)
            columns = self._second / np.maximum(rows @ weights, np.finfo(np.float64).tiny)
            scaled = rows[:, None] * weights * columns
            if np.abs(scaled.sum(axis=1) - self._first).max() <= MAX_MARGIN_ERROR:
                break
        table = np.zeros(self._sides)
        table[np.ix_(self._rows, self._columns)] = scaled / scaled.sum()
        return table
