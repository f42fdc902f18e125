"""A likelihood whose patterns lie elsewhere, in parts: value, gradient, certificate and update as in `Point`."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from hubbub.core.arrays import Floats
from hubbub.likelihood.evaluation import Evaluation, Excess
from hubbub.likelihood.partial_sums import Sums
from hubbub.likelihood.scattered import ScatteredReports
from hubbub.likelihood.underflow import UnderflowSums


class PooledLikelihood:
    """The log-likelihood of reports that lie in parts."""

    def __init__(self, reports: ScatteredReports) -> None:
        self.reports = reports
        self.users = reports.users

    def at(self, theta: Floats) -> PooledPoint:
        """Return everything there is to know at `theta`; the parts are asked once, when something is needed."""
        return PooledPoint(self, theta)


class PooledPoint(Evaluation):
    """The log-likelihood at one distribution, from sums that were made where the reports lie."""

    def __init__(self, likelihood: PooledLikelihood, theta: Floats) -> None:
        self.likelihood = likelihood
        self.theta = theta

    def at(self, theta: Floats) -> Self:
        """Return the same likelihood at another distribution."""
        return type(self)(self.likelihood, theta)

    @cached_property
    def sums(self) -> Sums:
        """All parts' sums."""
        return self.likelihood.reports.evaluate(self.theta)

    @property
    def total(self) -> float:
        """The weight of all patterns: the users, unless only sums of bits were kept."""
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
        """The part of D that belongs to patterns whose probability floats can hold."""
        return self.sums.gradient / self.sums.total

    @cached_property
    def excess(self) -> Excess:
        """What rounding can have taken from the plain part of D, in all parts."""
        return Excess(self.sums.excess.relative, self.sums.excess.absolute / self.sums.total)

    @cached_property
    def underflow(self) -> UnderflowSums | None:
        """The sums of patterns whose probability is too small for floats, or 0; None without any."""
        return None if self.sums.underflow is None else self.sums.underflow.divided(self.sums.total)
