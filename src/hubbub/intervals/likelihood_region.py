"""All distributions that are likely enough: the maximum of the likelihood, and how far a statistic can go around it."""

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

TOL = 1e-9  # of the maximum, in nats per user...
SHARE_OF_SLACK = 1e-3  # ...and as a share of what a cutoff of 1 would allow: what is missing widens the region


@dataclass(frozen=True)
class LikelihoodRegion:
    """The region around a maximum. Cutoffs are in units of the deviance, twice a difference of log-likelihoods."""

    top: Point

    @classmethod
    def of(cls, reports: Reports) -> LikelihoodRegion:
        """Find the maximum."""
        return finish(cls.finding(reports))

    @classmethod
    def finding(cls, reports: Reports) -> Generator[Any, None, LikelihoodRegion]:
        """Find the maximum, with progress."""
        return (yield from cls.around(Likelihood.of(reports)))

    @classmethod
    def around(cls, likelihood: Likelihood) -> Generator[Any, None, LikelihoodRegion]:
        """Find the maximum of a likelihood."""
        values = likelihood.channel.values
        tol = min(TOL, SHARE_OF_SLACK / (2.0 * likelihood.users))
        found = yield from maximise(likelihood, np.full(values, 1.0 / values), tol, solver=None, max_iter=None)
        return cls(found.outcome.point)

    @cached_property
    def region(self) -> Region:
        """The interior point that finds extremes here."""
        return Region(self.top, system_for(self.top.likelihood.channel))

    @property
    def users(self) -> float:
        """The total weight of the log-likelihood: the users, unless only sums of bits were kept."""
        return self.top.likelihood.total

    def least(self, weights: Floats, cutoff: float) -> Extreme:
        """Return the least `weights` @ theta among distributions whose deviance is at most `cutoff`."""
        return self.region.least(weights, cutoff / (2.0 * self.users))
