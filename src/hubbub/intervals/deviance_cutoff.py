"""The cutoff of the deviance in a profile likelihood, where probabilities may be 0.

Away from the border the deviance of a linear statistic at its true value follows the chi-square distribution with one
degree of freedom. Where the truth has zeros it does not: with six empty values out of ten, the 95% quantile of the
deviance of their sum is 7.7 instead of 3.8, and intervals by chi-square cover 76%. The law depends on which
probabilities are 0.

So it is simulated, in the limit of many users (`solvers.boundary_deviance`): at the distribution that attains the
endpoint, the likeliest one with that value of the statistic, scores are drawn from N(0, J), and the deviance is the
difference of two minima, with the statistic held fixed and without. Which of the small probabilities are 0 cannot be
known, and either guess can make the deviance larger. So both are simulated, the distribution as it is and with
probabilities below two standard errors set to 0, and the larger cutoff is used. No cutoff is below that of chi-square.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress, finish
from hubbub.core.validation import DEFAULT_SEED
from hubbub.likelihood import Point
from hubbub.reports import SurveyWeights
from hubbub.reports.survey_weights import IndependentSamples
from hubbub.solvers.deviance_programs import DeviancePrograms, SeparatePrograms, programs_around
from hubbub.solvers.groups import ONE_GROUP, Groups

MAX_ERRORS_OF_DOUBTFUL = 2.0  # standard errors below which a probability may as well be 0
MIN_ERRORS_OF_PRESENT = 5.0  # standard errors above which no draw ever reaches 0
MIN_DRAWS, MAX_DRAWS = 999, 1_999
MIN_DRAWS_BEYOND_CUTOFF = 20  # simulated deviances above the cutoff: their number scatters by about a fifth
MAX_SIMULATED_VALUES = 1_500  # values over which quadratic programs are solved
MAX_INFORMATION_ENTRIES = 20_000_000  # likelihoods from which the information is computed; of more, a sample is used
MAX_EMPTY_SHARE = 0.1  # of 1/sqrt(users), or of an even share: what an interior point leaves on values without mass
MIN_DESIGN_EFFECT = 0.01  # few clusters may be equal by chance
RIDGE = 1e-10  # relative to the largest entry of the diagonal


def design_cutoff(level: float, survey: SurveyWeights | IndependentSamples | None) -> float:
    """Return the quantile of chi-square with one degree of freedom; of F, where few units were sampled."""
    from scipy.special import fdtri

    if survey is None:
        return chi_square(level)
    return float(fdtri(1.0, survey.degrees_of_freedom, level))


def chi_square(level: float, degrees: int = 1) -> float:
    """Return the quantile of the chi-square distribution."""
    from scipy.special import chdtri

    return float(chdtri(degrees, 1.0 - level))


def draws_for(level: float) -> int:
    """Return how many draws make the quantile exact: (draws + 1)(1 - level) is a whole number."""
    beyond = max(MIN_DRAWS_BEYOND_CUTOFF, math.ceil((MIN_DRAWS + 1) * (1.0 - level) - 1e-9))
    return min(MAX_DRAWS, math.ceil(beyond / (1.0 - level) - 1e-9) - 1)


class LocalScores:
    """The limit of many users around a maximum: the information per user, and scores drawn from it."""

    def __init__(self, top: Point, draws: int, rng: np.random.Generator, groups: Groups = ONE_GROUP) -> None:
        self.top, self.users, self.groups = top, top.likelihood.total, groups
        self.information = information_per_user(top, rng)
        self._errors: dict[bytes, Floats] = {}  # standard errors by which values are positive
        # Of users who were all sampled alike, the score scatters as the information says.
        self.score_covariance = self.information if top.likelihood.survey is None else score_covariance(top)
        eigenvalues, eigenvectors = np.linalg.eigh(self.score_covariance)
        normal = rng.standard_normal((draws, eigenvalues.size))
        self.scores = (normal * np.sqrt(np.maximum(eigenvalues, 0.0))) @ eigenvectors.T

    def is_away_from_border(self) -> bool:
        """Whether every probability is so far from 0 that the deviance follows chi-square."""
        errors = self.standard_errors(np.ones(self.top.theta.size, dtype=bool))
        return bool((self.top.theta > MIN_ERRORS_OF_PRESENT * errors).all())

    def guesses(self, theta: Floats) -> list[Floats]:
        """Return how far h may go down from theta: as it is, and where doubtful probabilities are taken to be 0."""
        positive = theta > MAX_EMPTY_SHARE * min(1.0 / math.sqrt(self.users), 1.0 / theta.size)
        empty, empty_or_doubtful = ~positive, ~positive
        empty_or_doubtful[positive] = theta[positive] < MAX_ERRORS_OF_DOUBTFUL * self.standard_errors(positive)
        guesses = [empty]
        some_are_left = (self.groups.borders(theta.size)[:, ~empty_or_doubtful]).any(axis=1).all()
        if some_are_left and (empty_or_doubtful != empty).any():
            guesses.append(empty_or_doubtful)
        return [np.where(guess, 0.0, -math.sqrt(self.users) * theta) for guess in guesses]

    def standard_errors(self, positive: NDArray[np.bool_]) -> Floats:
        """Return the standard errors of the positive probabilities, if the others are 0."""
        name = positive.tobytes()
        if name not in self._errors:
            self._errors[name] = np.sqrt(np.maximum(self.covariance(positive).diagonal(), 0.0))
        return self._errors[name]

    def covariance(self, positive: NDArray[np.bool_]) -> Floats:
        """Return the covariance of the estimates of the positive probabilities, if the others are 0."""
        inverse = self._inverse(positive)
        if self.score_covariance is not self.information:
            inverse = inverse @ self.score_covariance[np.ix_(positive, positive)] @ inverse
        return np.asarray(inverse / self.users)

    def _inverse(self, positive: NDArray[np.bool_]) -> Floats:
        """Return the inverse of the information of the positive probabilities, which keep their sum."""
        from scipy.linalg.lapack import dpotrf, dpotri

        block = self.information[np.ix_(positive, positive)]
        block[np.diag_indices_from(block)] += RIDGE * block.diagonal().max()  # some value may affect no report
        factor, failed = dpotrf(block, lower=1, clean=1)
        if failed:
            raise np.linalg.LinAlgError("the information is not positive definite")
        inverse = dpotri(factor, lower=1)[0]
        inverse += np.tril(inverse, -1).T
        totals = self.groups.borders(positive.size)[:, positive]
        totals = totals[totals.any(axis=1)]
        tilts = totals @ inverse
        return np.asarray(inverse - tilts.T @ np.linalg.solve(tilts @ totals.T, tilts))

    def design_effect(self, weights: Floats | None = None) -> float:
        """Return how much more a statistic scatters than the information says; of None, the most of any statistic.

        It is 1 unless users have survey weights; the effective number of users has most of the effect already.
        """
        if self.score_covariance is self.information:
            return 1.0
        positive = self.top.theta > MAX_EMPTY_SHARE * min(1.0 / math.sqrt(self.users), 1.0 / self.top.theta.size)
        inverse, covariance = self._inverse(positive), self.score_covariance[np.ix_(positive, positive)]
        if weights is None:
            return max(1.0, float(np.abs(np.linalg.eigvals(inverse @ covariance)).max()))
        tilt = inverse @ weights[positive]
        plain = float(weights[positive] @ tilt)
        return max(MIN_DESIGN_EFFECT, float(tilt @ covariance @ tilt) / plain) if plain > 0.0 else 1.0


class DevianceSimulation(LocalScores):
    """Simulated deviances of statistics, each at a distribution near the maximum: one set of scores serves all."""

    @cached_property
    def _programs(self) -> list[DeviancePrograms | SeparatePrograms]:
        """The programs of each guess, around that at the maximum; if it has one guess, so do most near it."""
        guesses = self.guesses(self.top.theta)
        return [programs_around(self.information, self.scores, own, self.users) for own in (guesses[0], guesses[-1])]

    def cutoff(self, theta: Floats, weights: Floats, level: float, draws: int | None = None) -> float:
        """Return the quantile of the deviance of `weights` @ theta, at theta; from the first `draws` if not all."""
        return float(finish(self.cutoffs([theta], [weights], [0.0], level, draws))[0])

    def cutoffs(
        self,
        thetas: Sequence[Floats],
        weights: Sequence[Floats],
        least: Sequence[float],
        level: float,
        draws: int | None = None,
    ) -> Generator[Progress, None, Floats]:
        """Return the cutoff of each statistic at its own distribution; no less than the least that is of interest."""
        few_units = design_cutoff(level, self.top.likelihood.survey) / chi_square(level)
        found, enough = np.array(least, dtype=np.float64), np.array(least) / few_units
        guesses = [self.guesses(theta) for theta in thetas]
        for number, programs in enumerate(self._programs):
            some = [end for end, own in enumerate(guesses) if len(own) > number]
            if not some:
                continue
            lowers, held = np.array([guesses[end][number] for end in some]), np.array([weights[end] for end in some])
            deviances = yield from programs.deviances(lowers, held, enough[some], draws)
            own = [few_units * quantile(column, level) for column in deviances.T]
            found[some] = np.maximum(found[some], own)
        return found


def quantile(deviances: Floats, level: float) -> float:
    """Return the smallest deviance that at least `level` of what is drawn next from the same law do not exceed."""
    rank = math.ceil(level * (deviances.size + 1) - 1e-9) - 1
    return float(np.sort(deviances)[min(rank, deviances.size - 1)])


def score_covariance(top: Point) -> Floats:
    """Return the covariance of the score of users with survey weights, per effective user."""
    likelihood = top.likelihood
    assert likelihood.survey is not None  # noqa: S101  # else the information says it
    fitted = np.where(likelihood.sent, top.fitted, 1.0)
    return likelihood.survey.score_covariance(likelihood.channel.dense() / fitted)


def information_per_user(top: Point, rng: np.random.Generator | None = None) -> Floats:
    """Return sum_i q_i g_xi g_yi / f_i^2, over all patterns, or over a random sample of users if there are too many."""
    likelihood = top.likelihood
    channel, sent = likelihood.channel, np.flatnonzero(likelihood.sent)
    shares = likelihood.shares[sent]
    max_patterns = MAX_INFORMATION_ENTRIES // channel.values
    if channel.entries <= MAX_INFORMATION_ENTRIES:
        columns = channel.dense()[:, sent]
    else:
        if sent.size > max_patterns:
            drawn = (rng or np.random.default_rng(DEFAULT_SEED)).multinomial(max_patterns, shares)
            sent, shares = sent[drawn > 0], drawn[drawn > 0] / max_patterns
        columns = np.exp(channel.log_columns(sent) - channel.log_scale[sent])
    scaled = columns * (np.sqrt(shares) / top.fitted[sent])
    return np.asarray(scaled @ scaled.T)
