"""The ends of an interval: how far a statistic can go before the deviance exceeds its cutoff."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import finish
from hubbub.core.validation import DEFAULT_SEED
from hubbub.intervals.cutoff import MOST_RUNS, MOST_VALUES, Limit, chi_square, runs_for
from hubbub.intervals.likelihood_region import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.likelihood import Likelihood
from hubbub.solvers.profile_extremes import Extreme

MOST_ROUNDS = 3  # of moving an end out to its own cutoff
SETTLED = 1.02  # a cutoff that grows by less than this factor is settled
# A single value's cutoff is simulated as well: with all mass on one value it is not 3.8 but 9, and about 5 for a busy
# cell among empty ones. On large domains that would take too long for every value, and only large shares are.
SINGLES, LARGE = 100, 0.2
LOOSE = 0.05  # of the way from the maximum's value to the limit: what may lie between the limit and what is reached
OUTER = "An end is an outer bound: the interval may be wider than need be."
AT_THE_END = 1e-9  # of the statistic's range: what is as close to its very end is there


class IntervalEndpoints:
    """Finds the ends for one statistic, and says by which cutoff."""

    def __init__(
        self,
        likely: LikelihoodRegion,
        asked: Statistic,
        level: float,
        *,
        simultaneous: bool = False,
        rng: np.random.Generator | None = None,
    ) -> None:
        self._likely, self._asked, self._level = likely, asked, level
        theta = likely.top.theta
        values, single = theta.size, asked.single
        self._cutoff, self._limit, self.note = chi_square(level), None, ""
        if simultaneous and single is not None:
            self._cutoff = chi_square(1.0 - (1.0 - level) / values)
            self.note = f"Holds for all {values:,} values at once (Bonferroni)."
        elif simultaneous:
            self._cutoff = chi_square(level, values - 1)
            self.note = "Holds for all linear statistics at once."
        elif single is not None and values > SINGLES and theta[single] < LARGE:
            self.note = f"One of more than {SINGLES} values: the cutoff is that of chi-square, not calibrated."
        elif (1.0 - level) * (MOST_RUNS + 1) < 1.0:
            self._cutoff = chi_square(level, values - 1)
            self.note = "So high a level is not simulated: the cutoff holds for all linear statistics at once."
        elif values > MOST_VALUES:
            self.note = (
                f"Not calibrated: with more than {MOST_VALUES:,} values the cutoff is that of chi-square, "
                "which is too small where the truth has zeros."
            )
        else:
            limit = Limit(likely.top, runs_for(level, values), rng or np.random.default_rng(DEFAULT_SEED))
            if limit.inside():
                self.note = "Every value is clearly present: the cutoff is that of chi-square."
            else:
                self._limit, self.note = limit, "The cutoff is simulated, for zeros in the truth."

    def least(self, sign: float) -> tuple[float, float]:
        """Return the certified least value of the statistic times `sign`, and the cutoff that was used.

        The end moves out until its own cutoff, at the likeliest distribution with that value, is the one used.
        """
        weights, cutoff, limit = sign * self._asked.weights, self._cutoff, self._limit
        found = self._likely.least(weights, cutoff)
        lowest, least = float(weights.min()), AT_THE_END * float(np.ptp(weights))
        for _ in range(MOST_ROUNDS):
            if limit is None or found.limit - lowest <= least:  # it cannot move farther out
                break
            own = limit.cutoff(found.theta, weights, self._level)
            if own <= SETTLED * cutoff:
                break
            cutoff = own
            found = self._likely.least(weights, cutoff)
        self._warn(found, weights)
        if limit is not None and found.limit - lowest > least and self._may_be_least(weights, limit):
            return lowest, cutoff
        return found.limit, cutoff

    def _warn(self, found: Extreme, weights: Floats) -> None:
        """Say so where a limit is not known to be reached."""
        reach = float(weights @ self._likely.top.theta) - found.limit
        if found.attained - found.limit > LOOSE * reach and OUTER not in self.note:
            self.note = f"{self.note} {OUTER}".strip()

    def _may_be_least(self, weights: Floats, limit: Limit) -> bool:
        """Whether the statistic may be as small as it can be at all: there the cutoff is one of its own."""
        top = self._likely.top
        few, whole = np.flatnonzero(weights == weights.min()), top.likelihood
        part = whole.channel.part(few)
        if not (part.forward(np.full(few.size, 1.0 / few.size))[whole.sent] > 0).all():
            return False  # some report needs one of the other values
        there = finish(LikelihoodRegion.around(Likelihood(part, whole.weights, whole.users))).top
        deviance = 2.0 * (top.log_likelihood - there.log_likelihood)
        if deviance > chi_square(self._level, max(1, weights.size - 1)):  # no cutoff is larger
            return False
        theta = np.zeros_like(weights)
        theta[few] = there.theta
        return deviance <= limit.cutoff(theta, weights, self._level)
