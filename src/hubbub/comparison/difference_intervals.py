"""Intervals and p-values of differences between two groups, by the profile likelihood of both at once."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from hubbub.comparison.difference_cutoffs import Calibration, calibrate, is_calibrated
from hubbub.comparison.equality_test import Equality
from hubbub.comparison.populations import Populations
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.intervals.deviance_cutoff import MAX_SIMULATED_VALUES, chi_square

MAX_TRIALS = 6  # of the deviance at which an interval just reaches 0
MAX_RELATIVE_ERROR = 5e-3  # of that deviance
MIN_RELATIVE_DIFFERENCE = 1e-12  # of the range of a statistic
CALIBRATED = "cutoffs are simulated, because some shares may be 0"
PLAIN = "every value is clearly present: chi-square cutoffs"
NOT_CALIBRATED = "too many values for simulated cutoffs: chi-square is used, which is too small where shares are 0"


class Difference(NamedTuple):
    """The difference of one statistic between the likeliest distributions, its interval, and its p-value."""

    likeliest: float
    low: float
    high: float
    p_value: float


def differences(
    populations: Populations,
    statistics: Sequence[Floats],
    level: float,
    equality: Equality,
    rng: np.random.Generator,
) -> Generator[Progress, None, tuple[list[Difference], str]]:
    """Return the second group minus the first for each statistic, and how cutoffs were found."""
    if populations.values == 2:  # there is one difference, and equality is its absence: one p-value for both
        pairs = [_Difference(populations, weights) for weights in statistics]
        ends = [pair.interval(equality.cutoff(level)) for pair in pairs]
        found = [Difference(pair.likeliest, *end, equality.p_value) for pair, end in zip(pairs, ends, strict=True)]
        return found, f"the cutoff is that of the test of equality, by {equality.note}"
    thetas = [top.theta for top in populations.tops]
    chosen = [place for place, weights in enumerate(statistics) if is_calibrated(weights, thetas)]
    plain = Calibration((), np.ones(1))
    calibration, note = plain, NOT_CALIBRATED
    if chosen and 2 * populations.values <= MAX_SIMULATED_VALUES:
        rows = np.array([statistics[place] for place in chosen])
        calibration = yield from calibrate(populations, rows, level, equality.common, rng)
        note = CALIBRATED if calibration.samples else PLAIN
    column = {} if calibration is plain else {place: index for index, place in enumerate(chosen)}
    results = []
    for done, weights in enumerate(statistics):
        yield Progress(done, len(statistics), "intervals of differences")
        own = column.get(done)
        cutoff = chi_square(level) if own is None else calibration.cutoff(own, level)
        difference = _Difference(populations, weights)
        low, high = difference.interval(cutoff)
        deviance = difference.deviance_at_equality(cutoff, low, high)
        p_value = plain.p_value(0, deviance) if own is None else calibration.p_value(own, deviance)
        results.append(Difference(difference.likeliest, low, high, p_value))
    return results, note


class _Difference:
    """One statistic of two populations."""

    def __init__(self, populations: Populations, weights: Floats) -> None:
        self._populations = populations
        self._weights = np.concatenate([-weights, weights])
        self._span = 2.0 * float(np.ptp(weights))
        self.likeliest = float(self._weights @ populations.stacked.theta)

    def interval(self, cutoff: float) -> tuple[float, float]:
        """Return the least and the largest difference where the deviance is at most `cutoff`."""
        if self._span == 0.0:
            return 0.0, 0.0
        low = self._populations.least(self._weights, cutoff).limit
        high = -self._populations.least(-self._weights, cutoff).limit
        return min(low, self.likeliest), max(high, self.likeliest)

    def deviance_at_equality(self, cutoff: float, low: float, high: float) -> float:
        """Return the least deviance of distributions without a difference, given the interval of one cutoff.

        The least difference that a deviance allows falls about as its root does. That is close enough if the interval
        holds 0; otherwise the deviance at which it just does is found in a few steps.
        """
        own = abs(self.likeliest)
        if own <= MIN_RELATIVE_DIFFERENCE * self._span:
            return 0.0
        reached = self.likeliest - low if self.likeliest > 0.0 else high - self.likeliest
        if reached >= own:
            return cutoff * (own / reached) ** 2
        towards = math.copysign(1.0, self.likeliest) * self._weights
        inside, outside, trial = cutoff, math.inf, cutoff * (own / max(reached, MIN_RELATIVE_DIFFERENCE * own)) ** 2
        for _ in range(MAX_TRIALS):
            left = self._populations.least(towards, trial).attained
            inside, outside = (trial, outside) if left > 0.0 else (inside, trial)
            following = trial * (own / (own - left)) ** 2 if left < own else 4.0 * trial
            if not inside < following < outside:
                following = 0.5 * (inside + outside) if math.isfinite(outside) else 2.0 * inside
            if abs(following - trial) <= MAX_RELATIVE_ERROR * trial:
                return following
            trial = following
        return trial
