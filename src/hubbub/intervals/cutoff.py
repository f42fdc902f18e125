"""The cutoff of a profile likelihood, where probabilities may be 0.

Away from the border the deviance of a linear statistic at its true value follows the chi-square distribution with one
degree of freedom. Where the truth has zeros it does not: with six empty values out of ten, their sum has a 95%
quantile of 7.7 instead of 3.8, and intervals by chi-square cover 76%. The law depends on which probabilities are 0.

So it is simulated, in the limit of many users (`solvers.cone`): at the distribution that the interval's end rests on,
the likeliest one with that value of the statistic, scores are drawn from N(0, J), and the deviance is the difference
of two minima, with the statistic held and without. Which of the small probabilities are 0 cannot be known, and
either guess can make the deviance larger. So both are simulated, once as the distribution has them and once with those
below two standard errors at 0, and the larger cutoff counts. No cutoff is below that of chi-square.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.likelihood import Point
from hubbub.solvers.cone_programs import cone_minima

DOUBTFUL = 2.0  # standard errors below which a probability may as well be 0
CLEAR = 5.0  # standard errors above which no draw will ever reach 0
BEYOND = 10  # simulated deviances beyond the cutoff: their number's own scatter is then about a third
MANY = 24  # values from which half as many are enough, for the sake of time
MOST_RUNS = 1_999
MOST_VALUES = 1_500  # values over which quadratic programs are solved
MOST_ENTRIES = 20_000_000  # of the likelihoods from which the information is computed; more are sampled
SMALL_SHARE = 0.1  # of 1/sqrt(users), or of an even share: what an interior point leaves on values without mass
RIDGE = 1e-10  # relative to the largest entry of the diagonal


def chi_square(level: float, degrees: int = 1) -> float:
    """Return the quantile of the chi-square distribution."""
    from scipy.special import chdtri

    return float(chdtri(degrees, 1.0 - level))


def runs_for(level: float, values: int = 1) -> int:
    """Return how many simulations make the quantile exact: (runs + 1)(1 - level) is a whole number."""
    beyond = BEYOND if values <= MANY else BEYOND // 2
    return min(MOST_RUNS, math.ceil(beyond / (1.0 - level) - 1e-9) - 1)


class Limit:
    """The limit of many users around a maximum: the information for each user, and scores drawn from it."""

    def __init__(self, top: Point, runs: int, rng: np.random.Generator) -> None:
        self._top, self._users = top, top.likelihood.total
        self.information = information(top, rng)
        sizes, directions = np.linalg.eigh(self.information)
        draws = rng.standard_normal((runs, sizes.size))
        self._scores: Floats = (draws * np.sqrt(np.maximum(sizes, 0.0))) @ directions.T

    def inside(self) -> bool:
        """Whether every probability is so far from 0 that the border plays no part."""
        errors = self._errors(np.ones(self._top.theta.size, dtype=bool))
        return bool((self._top.theta > CLEAR * errors).all())

    def cutoff(self, theta: Floats, weights: Floats, level: float) -> float:
        """Return the quantile of the deviance of `weights` @ theta, at theta."""
        face = theta > SMALL_SHARE * min(1.0 / math.sqrt(self._users), 1.0 / theta.size)
        certain, doubtful = ~face, ~face
        doubtful[face] = theta[face] < DOUBTFUL * self._errors(face)
        cutoff = self._quantile(theta, certain, weights, level)
        if doubtful.all() or (doubtful == certain).all():
            return cutoff
        return max(cutoff, self._quantile(theta, doubtful, weights, level))

    def _quantile(self, theta: Floats, empty: NDArray[np.bool_], weights: Floats, level: float) -> float:
        """Return the quantile where some values are at 0, and the others as far from it as theta says."""
        lower = np.where(empty, 0.0, -math.sqrt(self._users) * theta)
        even = np.ones_like(weights)
        held = cone_minima(self.information, self._scores, lower, np.stack([even, weights]))
        free = cone_minima(self.information, self._scores, lower, even[None, :])
        deviances = np.sort(2.0 * (held - free))
        place = math.ceil(level * (deviances.size + 1) - 1e-9) - 1
        return float(deviances[min(place, deviances.size - 1)])

    def _errors(self, face: NDArray[np.bool_]) -> Floats:
        """Return the standard errors of the probabilities on a face, those elsewhere being 0."""
        from scipy.linalg import cho_factor, cho_solve

        own = self.information[np.ix_(face, face)].copy()
        own[np.diag_indices_from(own)] += RIDGE * own.diagonal().max()  # a value that no report speaks of has no end
        inverse = cho_solve(cho_factor(own), np.eye(len(own)))
        tilt = inverse.sum(axis=1)
        variance = np.diag(inverse) - tilt**2 / tilt.sum()
        return np.asarray(np.sqrt(np.maximum(variance, 0.0) / self._users))


def information(top: Point, rng: np.random.Generator) -> Floats:
    """Return sum_i q_i g_xi g_yi / f_i^2: from all patterns, or from users drawn at random where these are too many."""
    likelihood = top.likelihood
    channel, sent = likelihood.channel, np.flatnonzero(likelihood.sent)
    shares = likelihood.shares[sent]
    most = MOST_ENTRIES // channel.values
    if channel.entries <= MOST_ENTRIES:
        columns = channel.dense()[:, sent]
    else:
        if sent.size > most:
            drawn = rng.multinomial(most, shares)
            sent, shares = sent[drawn > 0], drawn[drawn > 0] / most
        columns = np.exp(channel.log_columns(sent) - channel.log_scale[sent])
    scaled = columns * (np.sqrt(shares) / top.fitted[sent])
    return np.asarray(scaled @ scaled.T)
