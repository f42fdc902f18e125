"""The endpoints of a profile interval: how far a statistic can go before the deviance exceeds its cutoff.

The likelihood region holds all distributions whose deviance is below a cutoff.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress, finish
from hubbub.core.validation import DEFAULT_SEED
from hubbub.intervals.deviance_cutoff import MAX_DRAWS, MAX_SIMULATED_VALUES, DevianceSimulation, chi_square, draws_for
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.result import Interval
from hubbub.likelihood import Likelihood, Point
from hubbub.reports import Reports
from hubbub.solvers import likeliest_point
from hubbub.solvers.newton_systems import system_for
from hubbub.solvers.profile_extremes import Extreme, Region

MAX_GAP = 1e-9  # of the maximum, in nats per user...
MAX_GAP_OF_SLACK = 1e-3  # ...and relative to what a cutoff of 1 allows: the gap widens the region
MAX_ROUNDS = 3  # of moving an endpoint out to its own cutoff
MAX_SETTLED_GROWTH = 1.02  # a cutoff that grows by less than this factor is settled
# The cutoff of a single value is simulated as well: with all mass on one value it is not 3.8 but 9, and about 5 for a
# busy cell among empty ones. On large domains that would take too long for every value, and only large shares are.
MAX_VALUES_ALL_SIMULATED = 100
MIN_SHARE_SIMULATED = 0.2
MAX_SLACK = 0.05  # of the way from the maximum to the limit: a larger distance from limit to attained value is noted
AT_MINIMUM = 1e-9  # of the statistic's range: a limit as close to the statistic's minimum is at the minimum
OUTER = "An endpoint is an outer bound: the interval may be wider than necessary."
APPROXIMATE = "Approximate: only sums of bits were kept, and bits are treated as independent."


@dataclass(frozen=True)
class LikelihoodRegion:
    """The region around a maximum. Cutoffs are in units of the deviance, twice a difference of log-likelihoods."""

    top: Point

    @classmethod
    def of(cls, reports: Reports) -> LikelihoodRegion:
        """Find the maximum for these reports."""
        return finish(cls.around(Likelihood.of(reports)))

    @classmethod
    def around(cls, likelihood: Likelihood) -> Generator[Any, None, LikelihoodRegion]:
        """Find the maximum of a likelihood, yielding progress."""
        tol = min(MAX_GAP, MAX_GAP_OF_SLACK / (2.0 * likelihood.users))
        return cls((yield from likeliest_point.steps(likelihood, tol)))

    @cached_property
    def region(self) -> Region:
        """The interior-point solver that finds extremes over the region."""
        return Region(self.top, system_for(self.top.likelihood.channel))

    @property
    def users(self) -> float:
        """The total weight of the log-likelihood: the users, unless only sums of bits were kept."""
        return self.top.likelihood.total

    def least(self, weights: Floats, cutoff: float) -> Extreme:
        """Return the least `weights` @ theta among distributions whose deviance is at most `cutoff`."""
        return self.region.least(weights, cutoff / (2.0 * self.users))


class IntervalEndpoints:
    """Solves for the endpoints of one statistic, and notes which cutoff was used."""

    def __init__(
        self,
        region: LikelihoodRegion,
        statistic: Statistic,
        level: float,
        *,
        simultaneous: bool = False,
        rng: np.random.Generator | None = None,
    ) -> None:
        self._region, self._statistic, self._level = region, statistic, level
        theta = region.top.theta
        values, single = theta.size, statistic.single
        self._cutoff, self._simulation, self.note = chi_square(level), None, ""
        if simultaneous and single is not None:
            self._cutoff = chi_square(1.0 - (1.0 - level) / values)
            self.note = f"Holds for all {values:,} values at once (Bonferroni)."
        elif simultaneous:
            self._cutoff = chi_square(level, values - 1)
            self.note = "Holds for all linear statistics at once."
        elif single is not None and values > MAX_VALUES_ALL_SIMULATED and theta[single] < MIN_SHARE_SIMULATED:
            self.note = f"One of more than {MAX_VALUES_ALL_SIMULATED} values: the chi-square cutoff, not calibrated."
        elif (1.0 - level) * (MAX_DRAWS + 1) < 1.0:
            self._cutoff = chi_square(level, values - 1)
            self.note = "A level this high is not simulated: the cutoff holds for all linear statistics at once."
        elif values > MAX_SIMULATED_VALUES:
            self.note = (
                f"Not calibrated: with more than {MAX_SIMULATED_VALUES:,} values the chi-square cutoff is used, "
                "which is too small where the truth has zeros."
            )
        else:
            draws = draws_for(level, values)
            simulation = DevianceSimulation(region.top, draws, rng or np.random.default_rng(DEFAULT_SEED))
            if simulation.is_away_from_border():
                self.note = "Every value is clearly present: the chi-square cutoff applies."
            else:
                self._simulation, self.note = simulation, "The cutoff is simulated, because the truth may have zeros."

    def least(self, sign: float) -> tuple[float, float]:
        """Return the certified least value of the statistic times `sign`, and the cutoff that was used.

        The endpoint moves out until the cutoff in use is its own: that of the likeliest distribution with its value.
        """
        weights, cutoff, simulation = sign * self._statistic.weights, self._cutoff, self._simulation
        extreme = self._region.least(weights, cutoff)
        minimum, close = float(weights.min()), AT_MINIMUM * float(np.ptp(weights))
        for _ in range(MAX_ROUNDS):
            if simulation is None or extreme.limit - minimum <= close:  # it cannot move farther out
                break
            own_cutoff = simulation.cutoff(extreme.theta, weights, self._level)
            if own_cutoff <= MAX_SETTLED_GROWTH * cutoff:
                break
            cutoff = own_cutoff
            extreme = self._region.least(weights, cutoff)
        self._note_slack(extreme, weights)
        if simulation is not None and extreme.limit - minimum > close and self._may_be_minimal(weights, simulation):
            return minimum, cutoff
        return extreme.limit, cutoff

    def _note_slack(self, extreme: Extreme, weights: Floats) -> None:
        """Note it if the limit is not known to be attained."""
        reach = float(weights @ self._region.top.theta) - extreme.limit
        if extreme.attained - extreme.limit > MAX_SLACK * reach and OUTER not in self.note:
            self.note = f"{self.note} {OUTER}".strip()

    def _may_be_minimal(self, weights: Floats, simulation: DevianceSimulation) -> bool:
        """Whether the statistic may be at its minimum over all distributions, which has a cutoff of its own."""
        top = self._region.top
        minimal, likelihood = np.flatnonzero(weights == weights.min()), top.likelihood
        channel = likelihood.channel.part(minimal)
        if not (channel.forward(np.full(minimal.size, 1.0 / minimal.size))[likelihood.sent] > 0).all():
            return False  # some report needs one of the other values
        best = finish(LikelihoodRegion.around(Likelihood(channel, likelihood.weights, likelihood.users))).top
        deviance = 2.0 * (top.log_likelihood - best.log_likelihood)
        if deviance > chi_square(self._level, max(1, weights.size - 1)):  # no cutoff is larger
            return False
        theta = np.zeros_like(weights)
        theta[minimal] = best.theta
        return deviance <= simulation.cutoff(theta, weights, self._level)


def profile_interval(
    region: LikelihoodRegion,
    reports: Reports,
    statistic: Statistic,
    level: float,
    *,
    simultaneous: bool = False,
    shown: Floats | None = None,
    rng: np.random.Generator | None = None,
) -> Generator[Progress, None, Interval]:
    """Return the interval of one statistic around the maximum; `shown` is the estimate to place in it, if another."""
    likeliest = float(statistic.weights @ region.top.theta)
    estimate = likeliest if shown is None else float(statistic.weights @ shown)
    title = statistic.title
    known = Interval(title, likeliest, estimate, likeliest, level, "profile", simultaneous, (0.0, 0.0), "It is known.")
    if np.ptp(statistic.weights) == 0.0:  # the sum over all values
        return known
    yield Progress(0, 3, f"interval of {title}")
    endpoints = IntervalEndpoints(region, statistic, level, simultaneous=simultaneous, rng=rng)
    yield Progress(1, 3, f"low endpoint of {title}")
    low, low_cutoff = endpoints.least(1.0)
    yield Progress(2, 3, f"high endpoint of {title}")
    minus_high, high_cutoff = endpoints.least(-1.0)
    note = f"{endpoints.note} {APPROXIMATE}" if reports.approximate else endpoints.note
    # The maximum itself is in the interval, up to rounding.
    low, high, cutoffs = min(low, likeliest), max(-minus_high, likeliest), (low_cutoff, high_cutoff)
    return replace(known, low=low, high=high, cutoffs=cutoffs, note=note.strip())
