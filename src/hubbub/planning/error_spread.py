"""How errors of simulated studies scatter, and how well so many studies tell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.planning.result import Spread

LEVEL = 0.95


class Known(NamedTuple):
    """A quantile of the errors, and between which errors it lies at 95%."""

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Half the width of the interval, relative to the value; infinite where the value is 0 and the width is not."""
        half = (self.high - self.low) / 2.0
        if half == 0.0:
            return 0.0
        return half / self.value if self.value > 0.0 else np.inf


def known(errors: Floats, share: float = 0.5) -> Known:
    """Return the quantile below which `share` of the studies lie.

    The number of errors below the true quantile is binomial, whatever their distribution: so the interval goes from one
    of the ordered errors to another. With less than six studies it is from the least to the largest, at less than 95%.
    """
    from scipy.stats import binom

    ordered = np.sort(errors)
    tail = (1.0 - LEVEL) / 2.0
    first = int(binom.ppf(tail, ordered.size, share)) - 1
    last = int(binom.ppf(1.0 - tail, ordered.size, share))
    low, high = (float(ordered[min(max(place, 0), ordered.size - 1)]) for place in (first, last))
    return Known(float(np.quantile(ordered, share)), low, high)


def spread_of(errors: Floats) -> Spread:
    """Return the spread of simulated errors."""
    median, low, high = known(errors)
    return Spread(median, low, high, float(errors.mean()), float(np.quantile(errors, 0.9)))
