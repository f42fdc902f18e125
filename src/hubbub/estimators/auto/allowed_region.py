"""The region that the reports allow: distributions that fit them nearly as well as the maximum of the likelihood does.

Twice the nats by which the maximum fits better is the deviance. That of the truth is about chi-square with one degree
of freedom less than there are values, or smaller: noise that hides differences and shares of 0 leave fewer. Beyond the
95% point of that, the level of intervals, the reports refute a distribution.
"""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.likelihood import Likelihood

LEVEL = 0.95
MIN_SHARE = 1e-6  # of a value that the maximum uses


def parameters(maximum: Floats) -> int:
    """Return the number of values that the maximum uses, less one."""
    return int(np.count_nonzero(maximum > MIN_SHARE)) - 1


def max_deviance(values: int) -> float:
    """Return the largest deviance that the reports allow."""
    from scipy.special import chdtri  # scipy.stats takes a second to import

    return float(chdtri(max(values - 1, 1), 1.0 - LEVEL))


def deviance(likelihood: Likelihood, theta: Floats, maximum: Floats) -> float:
    """Return twice the nats by which the maximum fits better."""
    return 2.0 * max(0.0, likelihood.at(maximum).log_likelihood - likelihood.at(theta).log_likelihood)


def pull_inside(likelihood: Likelihood, theta: Floats, maximum: Floats) -> tuple[Floats, float]:
    """Return theta, moved towards the maximum as far as the region asks for, and how far that is.

    The log-likelihood is concave: after a part of the way the deviance is at most the rest of what it was.
    """
    allowed, found = max_deviance(maximum.size), deviance(likelihood, theta, maximum)
    part = 0.0 if found <= allowed else 1.0 - allowed / found
    return (1.0 - part) * theta + part * maximum, part
