"""The likelihood region: all distributions whose deviance is below a cutoff, and extremes of statistics over it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import finish
from hubbub.likelihood import Likelihood, Point
from hubbub.reports import Reports
from hubbub.solvers import maximise
from hubbub.solvers.newton_systems import system_for
from hubbub.solvers.profile_extremes import Extreme, Region

MAX_GAP = 1e-9  # of the maximum, in nats per user...
MAX_GAP_OF_SLACK = 1e-3  # ...and relative to what a cutoff of 1 allows: the gap widens the region


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
        values = likelihood.channel.values
        tol = min(MAX_GAP, MAX_GAP_OF_SLACK / (2.0 * likelihood.users))
        maximum = yield from maximise(likelihood, np.full(values, 1.0 / values), tol, solver=None, max_iter=None)
        return cls(maximum.outcome.point)

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
