"""Find where a falling error reaches a target: bracket it by simulation on a logarithmic scale, then fit a line.

The error e(x) of simulated studies, with x the number of users or an epsilon, is nearly a straight line in logarithms
over a factor of two or three. The search takes secant steps on that scale, with few studies for each point. Then points
around the crossing are simulated precisely, and a line through them, weighted by their errors, gives the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.planning.repeated_studies import ErrorQuantile

SEARCH_PRECISION = 0.1  # of the points that bracket the target
MAX_FIT_PRECISION, MIN_FIT_PRECISION = 0.025, 0.005  # of the points that are fitted
ANSWER_PRECISION = 0.05  # of the answer, as far as the precision of the points allows
MIN_SLOPE, MAX_SLOPE = 0.1, 3.0  # of the secants, with the sign changed
MAX_STEP_FACTOR, MIN_STEP_FACTOR = 100.0, 1.5  # by which x changes in one step before the target is bracketed
MAX_BRACKET_RATIO = 3.0  # of the ends of the bracket before a line is fitted
MAX_SEARCH_STEPS, MAX_FITS = 16, 3
NORMAL_95 = 1.96  # standard deviations in half of a 95% interval
MIN_ERROR = 1e-3  # of the target: smaller errors count as this, since logarithms are taken

ErrorAt = Callable[[float, float], ErrorQuantile]  # the error at x, to a precision


class Crossing(NamedTuple):
    """Where the target is reached, with a 95% interval; None: not even at the largest x."""

    value: float | None
    low: float | None
    high: float | None
    already: bool  # the smallest x already reaches it
    last: ErrorQuantile  # the error at the value, or at the largest x


def find_crossing(
    error: ErrorAt, target: float, guess: float, smallest: float, largest: float, *, slope: float, spacing: float
) -> Crossing:
    """Find x between `smallest` and `largest` with error(x) = target.

    `slope` is the expected slope in logarithms, with the sign changed; fitted points differ by a factor of `spacing`.
    """
    search = _TargetSearch(error, target, smallest, largest, slope)
    bracket = search.bracket(min(max(guess, smallest), largest))
    if bracket is None:
        at_smallest = search.points.get(smallest)
        if at_smallest is not None and at_smallest.value <= target:
            return Crossing(smallest, smallest, smallest, True, at_smallest)
        return Crossing(None, None, None, False, search.points[largest])
    return _fit(search, search.narrow(*bracket), spacing)


class _TargetSearch:
    def __init__(self, error: ErrorAt, target: float, smallest: float, largest: float, slope: float) -> None:
        self.error, self.target, self.slope = error, target, slope
        self.smallest, self.largest = smallest, largest
        self.points: dict[float, ErrorQuantile] = {}

    def evaluate(self, x: float, precision: float = SEARCH_PRECISION) -> float:
        """Simulate at x and return the error."""
        self.points[x] = self.error(x, precision)
        return self.error_at(x)

    def error_at(self, x: float) -> float:
        """Return the error simulated at x; never 0."""
        return max(float(self.points[x].value), MIN_ERROR * self.target)

    def clipped(self, x: float) -> float:
        """Return x within the range of the search."""
        return min(max(x, self.smallest), self.largest)

    def bracket(self, x: float) -> tuple[float, float] | None:
        """Return two x whose errors are on either side of the target; None where there are none."""
        before: tuple[float, float] | None = None
        for _ in range(MAX_SEARCH_STEPS):
            error = self.evaluate(x)
            if before is not None:
                if (error > self.target) != (before[1] > self.target):
                    return min(x, before[0]), max(x, before[0])
                self._learn_slope(x, error, *before)
            factor = (error / self.target) ** (1.0 / self.slope)
            factor = max(factor, MIN_STEP_FACTOR) if error > self.target else min(factor, 1.0 / MIN_STEP_FACTOR)
            following = self.clipped(x * min(max(factor, 1.0 / MAX_STEP_FACTOR), MAX_STEP_FACTOR))
            if following == x:
                return None
            before, x = (x, error), following
        return self._bracket_to_the_end(before) if before else None

    def _bracket_to_the_end(self, before: tuple[float, float]) -> tuple[float, float] | None:
        """Try the end of the range: an error that hardly changes takes only small steps towards it."""
        end = self.largest if before[1] > self.target else self.smallest
        if (self.evaluate(end) > self.target) == (before[1] > self.target):
            return None
        return min(end, before[0]), max(end, before[0])

    def _learn_slope(self, x: float, error: float, other_x: float, other_error: float) -> None:
        slope = -(math.log(error) - math.log(other_error)) / (math.log(x) - math.log(other_x))
        self.slope = min(max(slope, MIN_SLOPE), MAX_SLOPE)

    def narrow(self, low: float, high: float) -> float:
        """Narrow the bracket; return x where a line through its ends reaches the target."""
        x = low
        for _ in range(MAX_SEARCH_STEPS):
            top, bottom = self.error_at(low), self.error_at(high)
            self._learn_slope(high, bottom, low, top)
            share = (math.log(top) - math.log(self.target)) / max(math.log(top) - math.log(bottom), 1e-12)
            x = low * math.exp(min(max(share, 0.0), 1.0) * math.log(high / low))
            if high <= MAX_BRACKET_RATIO * low:
                return x
            inner = low * (high / low) ** min(max(share, 0.15), 0.85)  # so that both ends move
            if self.evaluate(inner) > self.target:
                low = inner
            else:
                high = inner
        return x


def _fit(search: _TargetSearch, x: float, spacing: float) -> Crossing:
    low = high = x
    for _ in range(MAX_FITS):
        precision = min(max(ANSWER_PRECISION * search.slope, MIN_FIT_PRECISION), MAX_FIT_PRECISION)
        points = sorted({search.clipped(x * factor) for factor in (1.0 / spacing, 1.0, spacing)})
        for point in points:
            search.evaluate(point, precision)
        solution, doubt = _solve(search, points)
        low, high = solution * math.exp(-doubt), solution * math.exp(doubt)
        is_inside = points[0] / spacing <= solution <= points[-1] * spacing
        # A line says little about what is far from its points.
        x = search.clipped(min(max(solution, x / spacing**3), x * spacing**3))
        if is_inside:
            break
    nearest = min(search.points, key=lambda point: abs(math.log(point / x)))
    low, high = max(low, search.smallest), min(high, search.largest)
    return Crossing(x, min(low, x), max(high, x), False, search.points[nearest])


def _solve(search: _TargetSearch, points: list[float]) -> tuple[float, float]:
    """Return where the weighted line through the points reaches the target, and half the 95% interval of its log."""
    logs = np.log(points)
    errors = np.log([search.error_at(point) for point in points])
    relative_errors = [search.points[point].relative_error for point in points]
    deviations = np.array([min(max(error, 1e-4), 3.0) for error in relative_errors]) / NORMAL_95
    middle = float(np.average(logs, weights=deviations**-2))
    design = np.stack([np.ones_like(logs), logs - middle], axis=1) / deviations[:, None]
    covariance = np.linalg.pinv(design.T @ design)
    level, slope = covariance @ design.T @ (errors / deviations)
    if not -slope >= MIN_SLOPE:  # the points do not determine it: use the slope of the search
        slope = -search.slope
    search.slope = min(max(-slope, MIN_SLOPE), MAX_SLOPE)
    misfit = float((((errors - level - slope * (logs - middle)) / deviations) ** 2).sum())
    inflation = max(1.0, misfit / max(1, len(points) - 2))  # the points are on a curve, or chance was unkind
    offset = (math.log(search.target) - level) / slope
    variance = (
        inflation * (covariance[0, 0] + 2.0 * offset * covariance[0, 1] + offset**2 * covariance[1, 1]) / slope**2
    )
    doubt = NORMAL_95 * math.sqrt(max(float(variance), 0.0))
    return math.exp(min(max(middle + offset, -300.0), 300.0)), min(doubt, 5.0)
