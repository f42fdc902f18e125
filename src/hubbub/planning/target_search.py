"""Where a falling error meets a target: bracketed by simulation on a logarithmic scale, then fitted.

The error e(x) of simulated studies, x the number of users or an epsilon, is nearly a straight line in logarithms over a
factor of two or three. So the search goes by secants there, with few studies; then some points around the crossing are
simulated well, and a line through them, weighted by their errors, is solved for the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.planning.error_spread import Known

ROUGH = 0.1  # precision of the points that only show the way
FINE, FINEST = 0.025, 0.005  # precision of those that are fitted
SLACK = 0.05  # how well the answer should be known, as long as that takes no finer points
STEEPEST, FLATTEST = 3.0, 0.1  # slopes that secants believe in
FARTHEST = 100.0  # by which one step may go on where nothing is bracketed yet
NEAR = 3.0  # how close the ends of the bracket have to be
TURNS = 16  # of the search, and
REFITS = 3  # of the fit
NORMAL = 1.96

Error = Callable[[float, float], Known]  # of x, to a precision


class Crossing(NamedTuple):
    """Where the target is met, and between which x at 95%. None: not up to the largest x."""

    value: float | None
    low: float | None
    high: float | None
    already: bool  # met at the least x already
    last: Known  # the error at the value, or at the largest x


def crossing(
    error: Error, target: float, guess: float, least: float, largest: float, *, slope: float, apart: float
) -> Crossing:
    """Find x between `least` and `largest` with error(x) = target; `slope` is expected of logarithms.

    Fitted points are a factor of `apart` from each other.
    """
    search = _TargetSearch(error, target, least, largest, slope)
    bracket = search.bracket(min(max(guess, least), largest))
    if bracket is None:
        at_least = search.seen.get(least)
        if at_least is not None and at_least.value <= target:
            return Crossing(least, least, least, True, at_least)
        return Crossing(None, None, None, False, search.seen[largest])
    return _fitted(search, search.between(*bracket), apart)


class _TargetSearch:
    def __init__(self, error: Error, target: float, least: float, largest: float, slope: float) -> None:
        self.error, self.target, self.least, self.largest, self.slope = error, target, least, largest, slope
        self.seen: dict[float, Known] = {}

    def value(self, x: float, precision: float = ROUGH) -> float:
        """Return the error at x; one of 0 is a small one, since logarithms are taken."""
        found = self.seen[x] = self.error(x, precision)
        return max(float(found.value), 1e-3 * self.target)

    def bracket(self, x: float) -> tuple[float, float] | None:
        """Return two x with the target between their errors."""
        before: tuple[float, float] | None = None
        for _ in range(TURNS):
            own = self.value(x)
            if before is not None:
                if (own > self.target) != (before[1] > self.target):
                    return min(x, before[0]), max(x, before[0])
                self._learn(x, own, *before)
            ahead = (own / self.target) ** (1.0 / self.slope)
            ahead = max(ahead, 1.5) if own > self.target else min(ahead, 1.0 / 1.5)
            following: float = min(max(x * min(max(ahead, 1.0 / FARTHEST), FARTHEST), self.least), self.largest)
            if following == x:
                return None
            before, x = (x, own), following
        return self._to_the_end(before) if before else None

    def _to_the_end(self, before: tuple[float, float]) -> tuple[float, float] | None:
        """Go all the way: errors that hardly move were followed in small steps."""
        end = self.largest if before[1] > self.target else self.least
        if (self.value(end) > self.target) == (before[1] > self.target):
            return None
        return min(end, before[0]), max(end, before[0])

    def _learn(self, x: float, own: float, other: float, seen: float) -> None:
        slope = -(math.log(own) - math.log(seen)) / (math.log(x) - math.log(other))
        self.slope = min(max(slope, FLATTEST), STEEPEST)

    def between(self, low: float, high: float) -> float:
        """Narrow the bracket; return x where a line through its ends meets the target."""
        x = low
        for _ in range(TURNS):
            top, bottom = (max(self.seen[x].value, 1e-3 * self.target) for x in (low, high))
            self._learn(high, bottom, low, top)
            share = (math.log(top) - math.log(self.target)) / max(math.log(top) - math.log(bottom), 1e-12)
            x = low * math.exp(min(max(share, 0.0), 1.0) * math.log(high / low))
            if high <= NEAR * low:
                return x
            inner = low * (high / low) ** min(max(share, 0.15), 0.85)  # both ends shall move
            if self.value(inner) > self.target:
                low = inner
            else:
                high = inner
        return x


def _fitted(search: _TargetSearch, x: float, apart: float) -> Crossing:
    low = high = x
    for _ in range(REFITS):
        precision = min(max(SLACK * search.slope, FINEST), FINE)
        places = [min(max(x * factor, search.least), search.largest) for factor in (1.0 / apart, 1.0, apart)]
        places = sorted(set(places))
        for place in places:
            search.value(place, precision)
        found, doubt = _solve(search, places)
        low, high = found * math.exp(-doubt), found * math.exp(doubt)
        inside = places[0] / apart <= found <= places[-1] * apart
        found = min(max(found, x / apart**3), x * apart**3)  # a line tells little of what is farther away
        x = min(max(found, search.least), search.largest)
        if inside:
            break
    nearest = min(search.seen, key=lambda place: abs(math.log(place / x)))
    low, high = max(low, search.least), min(high, search.largest)
    return Crossing(x, min(low, x), max(high, x), False, search.seen[nearest])


def _solve(search: _TargetSearch, places: list[float]) -> tuple[float, float]:
    """Return where the weighted line through the points meets the target, and the doubt of its logarithm at 95%."""
    points = [search.seen[place] for place in places]
    logs = np.log(places)
    errors = np.log([max(point.value, 1e-3 * search.target) for point in points])
    spreads = np.array([min(max(point.error, 1e-4), 3.0) for point in points]) / NORMAL
    aim = math.log(search.target)
    middle = float(np.average(logs, weights=spreads**-2))
    design = np.stack([np.ones_like(logs), logs - middle], axis=1) / spreads[:, None]
    covariance = np.linalg.pinv(design.T @ design)
    level, slope = covariance @ design.T @ (errors / spreads)
    if not -slope >= FLATTEST:  # the points do not tell it: what the search has seen
        slope = -search.slope
    search.slope = min(max(-slope, FLATTEST), STEEPEST)
    misfit = float((((errors - level - slope * (logs - middle)) / spreads) ** 2).sum())
    widened = max(1.0, misfit / max(1, len(places) - 2))  # a curve, or bad luck: the line knows less than it seems
    off = (aim - level) / slope
    variance = widened * (covariance[0, 0] + 2.0 * off * covariance[0, 1] + off**2 * covariance[1, 1]) / slope**2
    doubt = NORMAL * math.sqrt(max(float(variance), 0.0))
    return math.exp(min(max(middle + off, -300.0), 300.0)), min(doubt, 5.0)
