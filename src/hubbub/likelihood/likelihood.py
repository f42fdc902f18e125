"""The likelihood of reports in this process: a channel, and a weight for each of its patterns."""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.channels.rounding import RoundingBound, gamma
from hubbub.core.arrays import Floats
from hubbub.core.remembering import Remembered
from hubbub.likelihood.partial_sums import Sums
from hubbub.likelihood.underflow import UnderflowPatterns
from hubbub.likelihood.update_and_gap import Evaluation, Excess
from hubbub.reports import Reports, SurveyWeights
from hubbub.reports.survey_weights import IndependentSamples

MIN_PLAIN_PROBABILITY = 1e-290  # its reciprocal is still a float
MAX_RELATIVE_LOSS = 0.1  # of a sum, by rounding: beyond it nothing is certified
MAX_GAP_OF_WAY = 1e-5  # from which on a solver's way to the maximum is remembered: questions ask for less
MAX_ROUNDING_NATS, MAX_ROUNDING_SHARE = 1e-12, 0.01  # of a gap: beyond both, sums are computed again with more care


class Passed(NamedTuple):
    """A distribution that a solver passed on its way to the maximum, and its gap."""

    gap: float
    theta: Floats


class KnownMaxima:
    """The maxima of a likelihood, by the gap that was asked for, and what the solver passed on its way there.

    Asking for a larger gap later gives what a search of its own would give, the first distribution on the way whose gap
    is no larger: answers do not depend on what was asked before.
    """

    def __init__(self) -> None:
        self._points: dict[float, Point] = {}
        self._way: tuple[Passed, ...] = ()  # gaps fall

    def get(self, tol: float, likelihood: Likelihood) -> Point | None:
        """Return what a search to a gap of `tol` ends with, if that is known."""
        if tol not in self._points and self._way and tol <= MAX_GAP_OF_WAY:
            theta = next((theta for gap, theta in self._way if gap <= tol), None)
            if theta is not None:
                self._points[tol] = likelihood.at(theta)
        return self._points.get(tol)

    def put(self, tol: float, point: Point, way: tuple[Passed, ...]) -> None:
        """Remember where a search to a gap of `tol` ended, and its way, if that went farther than the known one."""
        self._points[tol] = point
        if way and (not self._way or way[-1].gap < self._way[-1].gap):
            self._way = way


class Likelihood:
    """The log-likelihood of some reports.

    Reports have one likelihood (`of`), and a likelihood remembers its maxima (`solvers.likeliest_point`): identify,
    intervals, fakes and estimates of the same reports share what takes longest.
    """

    _of_reports: ClassVar[Remembered[Likelihood]] = Remembered()

    def __init__(
        self, channel: Channel, weights: Floats, users: int, survey: SurveyWeights | IndependentSamples | None = None
    ) -> None:
        self.channel = channel
        self.weights = weights
        self.users = users
        self.survey = survey  # how users were sampled, where that is not all the same
        self.total = float(weights.sum())  # the (effective) number of users, unless only sums of bits were kept
        self.sent = weights > 0  # a pattern that nobody sent does not count, even if it is impossible
        self.all_sent = bool(self.sent.all())
        self.maxima = KnownMaxima()

    @cached_property
    def shares(self) -> Floats:
        """The weights divided by their sum."""
        return self.weights / self.total

    @cached_property
    def constant(self) -> float:
        """What the scaling factors of the patterns add to the log-likelihood."""
        return float(self.weights @ self.channel.log_scale)

    @classmethod
    def of(cls, reports: Reports) -> Likelihood:
        """Return the likelihood of `reports`: the same one each time."""
        known = cls._of_reports.get(reports)
        return known or cls._of_reports.put(
            reports, cls(reports.channel, reports.weights, reports.users, reports.survey)
        )

    def at(self, theta: Floats) -> Point:
        """Return the likelihood at `theta`; each quantity is computed on first use."""
        return Point(self, theta)


class Point(Evaluation):
    """The log-likelihood at one distribution, for reports in this process."""

    def __init__(self, likelihood: Likelihood, theta: Floats) -> None:
        self.likelihood = likelihood
        self.theta = theta

    def at(self, theta: Floats) -> Self:
        """Return the same likelihood at another distribution."""
        return type(self)(self.likelihood, theta)

    @property
    def total(self) -> float:
        """The weight of all patterns: the number of users, unless only sums of bits were kept."""
        return self.likelihood.total

    @property
    def users(self) -> int:
        """How many users sent the reports."""
        return self.likelihood.users

    @cached_property
    def fitted(self) -> Floats:
        """The likelihood of each pattern (up to the channel's scale): f = theta G."""
        return self.likelihood.channel.forward(self.theta)

    @cached_property
    def plain(self) -> NDArray[np.bool_] | None:
        """Which patterns were sent and have a probability that floats can represent; None if all of them."""
        if self.likelihood.all_sent and self.fitted.min() > MIN_PLAIN_PROBABILITY:
            return None
        return self.likelihood.sent & (self.fitted > MIN_PLAIN_PROBABILITY)

    @cached_property
    def underflow(self) -> UnderflowPatterns | None:
        """The patterns that were sent and whose probability underflows or is 0; None if there are none."""
        likelihood = self.likelihood
        if self.plain is None or not (missing := likelihood.sent & ~self.plain).any():
            return None
        return UnderflowPatterns.of(
            likelihood.channel, self.theta, np.flatnonzero(missing), likelihood.weights, likelihood.shares
        )

    @cached_property
    def log_likelihood(self) -> float:
        """Return L(theta): -inf where a pattern that was sent has probability 0."""
        kept = self.plain
        if kept is None:
            value = float(self.likelihood.weights @ np.log(self.fitted)) + self.likelihood.constant
        else:
            logs = np.log(self.fitted[kept]) + self.likelihood.channel.log_scale[kept]
            value = float(self.likelihood.weights[kept] @ logs)
        if self.underflow is not None:
            value += self.underflow.log_likelihood
        return value if math.isfinite(value) else -math.inf

    @cached_property
    def plain_gradient(self) -> Floats:
        """The part of D from patterns whose probability floats can represent."""
        gradient = self._plain_sum()
        gradient /= self.likelihood.total
        return gradient

    def _plain_sum(self) -> Floats:
        return self.likelihood.channel.backward(self._ratio())

    def _ratio(self) -> Floats:
        weights = self.likelihood.weights
        if self.plain is None:
            return weights / self.fitted
        return np.divide(weights, self.fitted, out=np.zeros_like(weights), where=self.plain)

    @cached_property
    def excess(self) -> Excess:
        """The most that rounding can have taken from the plain part of D."""
        relative, absolute = self._sum_excess()
        return Excess(relative, absolute / self.likelihood.total)

    def _sum_excess(self, fitted: RoundingBound | None = None) -> Excess:
        """Return the most that rounding can have taken from the sum over patterns of w_i g_xi / f_i.

        With f_i known up to a factor 1 + a_i, the exact sum is at most that of w_i g_xi (1 + a_i) / f_i, plus what
        `backward` loses. The rounding of stored entries counts twice: in g and in f.
        """
        channel, ratio = self.likelihood.channel, self._ratio()
        fitted = channel.forward_rounding(self.theta, self.fitted) if fitted is None else fitted
        backward = channel.backward_rounding(ratio)
        entry = channel.entry_rounding
        if max(fitted.relative, backward.relative, entry) > MAX_RELATIVE_LOSS:
            return Excess(math.inf)
        factor = (1.0 + entry) / (1.0 - entry) / (1.0 - backward.relative) / (1.0 - fitted.relative) * (1.0 + gamma(8))
        absolute: Floats | float = backward.absolute
        if np.any(fitted.absolute):
            with np.errstate(divide="ignore", invalid="ignore"):
                least = self.fitted * (1.0 - fitted.relative) - fitted.absolute
                more = np.where(ratio > 0.0, np.where(least > 0.0, fitted.absolute / least, np.inf), 0.0)
            if not np.isfinite(more).all():
                return Excess(math.inf)
            lifted = channel.backward_rounding(ratio * more)
            absolute = absolute + channel.backward(ratio * more) * (1.0 + lifted.relative) + lifted.absolute
        return Excess(factor - 1.0, absolute * factor)

    def _certified(self) -> float:
        """Return the gap with the most that rounding can have taken from it.

        Where a channel computes sums by FFT and loses an amount that is not small compared with the gap itself, the
        sums are computed again term by term.
        """
        certified = super()._certified()
        if (
            certified - self.measured_gap <= max(MAX_ROUNDING_NATS, MAX_ROUNDING_SHARE * self.measured_gap)
            or self.underflow is not None
        ):
            return certified
        careful = self.likelihood.channel.accurate_forward(self.theta)
        if careful is None:
            return certified
        recomputed = type(self)(self.likelihood, self.theta)
        recomputed.__dict__["fitted"] = careful[0]
        if recomputed.underflow is not None or not math.isfinite(recomputed.measured_gap):
            return certified
        relative, absolute = recomputed._sum_excess(careful[1])
        total = self.likelihood.total
        return min(certified, recomputed.certify(recomputed.plain_gradient, Excess(relative, absolute / total)))

    def sums(self) -> Sums:
        """Return what these patterns contribute to a likelihood over several parts."""
        underflow = None if self.underflow is None else self.underflow.sums()
        return Sums(self.log_likelihood, self._plain_sum(), underflow, self.likelihood.total, self._sum_excess())
