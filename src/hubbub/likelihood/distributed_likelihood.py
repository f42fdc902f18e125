"""The likelihood of reports that are stored elsewhere, in parts: the same quantities as in `Point`, from sums."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from hubbub.core.arrays import Floats
from hubbub.likelihood.partial_sums import Sums
from hubbub.likelihood.scattered_reports import ScatteredReports
from hubbub.likelihood.underflow import UnderflowSums
from hubbub.likelihood.update_and_gap import Evaluation, Excess


class PooledLikelihood:
    """The log-likelihood of reports that are stored in parts."""

    def __init__(self, reports: ScatteredReports) -> None:
        self.reports = reports
        self.users = reports.users

    def at(self, theta: Floats) -> PooledPoint:
        """Return the likelihood at `theta`; the parts are evaluated once, on first use."""
        return PooledPoint(self, theta)


class PooledPoint(Evaluation):
    """The log-likelihood at one distribution, from sums that are computed where the reports are stored."""

    def __init__(self, likelihood: PooledLikelihood, theta: Floats) -> None:
        self.likelihood = likelihood
        self.theta = theta

    def at(self, theta: Floats) -> Self:
        """Return the same likelihood at another distribution."""
        return type(self)(self.likelihood, theta)

    @cached_property
    def sums(self) -> Sums:
        """The sums over all parts."""
        return self.likelihood.reports.evaluate(self.theta)

    @property
    def total(self) -> float:
        """The weight of all patterns: the number of users, unless only sums of bits were kept."""
        return self.sums.total

    @property
    def users(self) -> int:
        """How many users sent the reports."""
        return self.likelihood.users

    @property
    def log_likelihood(self) -> float:
        """Return L(theta): -inf where a pattern that was sent has probability 0."""
        return self.sums.log_likelihood

    @cached_property
    def plain_gradient(self) -> Floats:
        """The part of D from patterns whose probability floats can represent."""
        return self.sums.gradient / self.sums.total

    @cached_property
    def excess(self) -> Excess:
        """The most that rounding can have taken from the plain part of D."""
        return Excess(self.sums.excess.relative, self.sums.excess.absolute / self.sums.total)

    @cached_property
    def underflow(self) -> UnderflowSums | None:
        """The sums of patterns whose probability underflows or is 0; None if there are none."""
        return None if self.sums.underflow is None else self.sums.underflow.divided(self.sums.total)
