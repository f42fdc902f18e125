"""P-values from simulated deviances: the share that is as large, and beyond the simulations a chi-square tail."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats

TAIL = 0.01  # the probability from which on the tail is not counted, but extrapolated
MAX_ROUNDING = 1e-6  # of a deviance, relative
MIN_DEGREES, MAX_DEGREES = 1e-3, 1e6


def tail_probability(deviances: Floats, observed: float) -> float:
    """Return the probability of a deviance as large as the observed one; of one exactly as large, half (mid-p).

    With few users deviances take few values, and counting all that are equal would find too little.

    Deviances near a border are mixtures of chi-squares. Where fewer than 1% of the simulated ones are as large, the
    tail is that of the chi-square whose 99% quantile is the simulated one: a straight count would end at
    1 / simulations, which is not small enough for one of many values.

    >>> round(tail_probability(np.random.default_rng(0).chisquare(1, 999), 3.84), 2)
    0.04
    >>> tail_probability(np.array([0.0, 1.0, 1.0]), 1.0)
    0.375
    """
    from scipy.special import chdtrc

    if observed <= MAX_ROUNDING:  # nothing can differ less
        return 1.0
    same = np.abs(deviances - observed) <= MAX_ROUNDING * max(1.0, observed)
    larger = np.count_nonzero((deviances > observed) & ~same)
    counted = (larger + 0.5 * (1 + np.count_nonzero(same))) / (1.0 + deviances.size)
    if counted > TAIL:
        return float(counted)
    quantile = float(np.quantile(deviances, 1.0 - TAIL, method="higher"))
    if quantile <= 0.0:
        return float(counted)
    return float(min(counted, chdtrc(_degrees(quantile), observed)))


def _degrees(quantile: float) -> float:
    """Return the degrees of freedom of the chi-square with this 99% quantile."""
    from scipy.optimize import brentq
    from scipy.special import chdtrc

    if chdtrc(MIN_DEGREES, quantile) >= TAIL:
        return MIN_DEGREES
    return float(brentq(lambda degrees: float(chdtrc(degrees, quantile)) - TAIL, MIN_DEGREES, MAX_DEGREES))
