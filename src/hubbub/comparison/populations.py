"""Populations side by side: the likelihood of several groups' reports, each with a distribution of its own."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hubbub.channels import ConcatenatedChannel, StackedChannel
from hubbub.core.arrays import Floats
from hubbub.core.validation import DEFAULT_SEED
from hubbub.intervals.deviance_cutoff import LocalScores
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import Likelihood, Point
from hubbub.reports import Reports
from hubbub.reports.survey_weights import IndependentSamples
from hubbub.solvers.groups import Groups
from hubbub.solvers.priced_extremes import PricedRegion, region_around
from hubbub.solvers.profile_extremes import Extreme, Region


@dataclass(frozen=True, eq=False)
class Populations:
    """Some groups of users over one domain, and the likeliest distribution of each."""

    reports: tuple[Reports, ...]
    tops: tuple[Point, ...]

    @classmethod
    def of(cls, reports: Sequence[Reports]) -> Generator[Any, None, Populations]:
        """Find the maximum of each group, yielding progress."""
        tops = []
        for own in reports:
            region = yield from LikelihoodRegion.around(Likelihood.of(own))
            tops.append(region.top)
        return cls(tuple(reports), tuple(tops))

    @property
    def values(self) -> int:
        """The number of values."""
        return len(self.reports[0].domain)

    @property
    def users(self) -> float:
        """The total weight of all groups."""
        return sum(top.likelihood.total for top in self.tops)

    @cached_property
    def stacked(self) -> Point:
        """The maximum of all groups together, one distribution after the other."""
        likelihoods = [top.likelihood for top in self.tops]
        channel = StackedChannel([own.channel for own in likelihoods])
        weights = np.concatenate([own.weights for own in likelihoods])
        users = sum(own.users for own in likelihoods)
        return Likelihood(channel, weights, users, self._survey).at(np.concatenate([top.theta for top in self.tops]))

    @property
    def _survey(self) -> IndependentSamples | None:
        samples = tuple(own.survey for own in self.reports if own.survey is not None)
        return IndependentSamples(samples, tuple(own.weights.size for own in self.reports)) if samples else None

    @property
    def is_weighted(self) -> bool:
        """Whether users have survey weights."""
        return any(own.survey is not None for own in self.reports)

    @cached_property
    def largest_effect(self) -> float:
        """The largest design effect of any statistic: 1 without survey weights."""
        if not self.is_weighted:
            return 1.0
        return LocalScores(self.stacked, 0, np.random.default_rng(DEFAULT_SEED), self.groups).design_effect()

    def pooled(self) -> Likelihood:
        """Return the likelihood of all reports, if the groups are equal."""
        if not self.is_weighted:
            return Likelihood.of(sum(self.reports[1:], start=self.reports[0]))
        likelihoods = [top.likelihood for top in self.tops]  # weights count as they do in their own group
        weights = np.concatenate([own.weights for own in likelihoods])
        users = sum(own.users for own in likelihoods)
        return Likelihood(ConcatenatedChannel([own.channel for own in likelihoods]), weights, users)

    @cached_property
    def groups(self) -> Groups:
        """Where the distribution of each group starts."""
        return Groups(tuple(range(0, self.values * len(self.tops), self.values)))

    @cached_property
    def _region(self) -> Region | PricedRegion:
        return region_around(self.stacked, self.groups)

    def least(self, weights: Floats, cutoff: float) -> Extreme:
        """Return the least `weights` @ theta over all groups, where the deviance is at most `cutoff`."""
        return self._region.least(weights, cutoff / (2.0 * self.users))
