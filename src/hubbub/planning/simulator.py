"""Simulate studies of one candidate, truth and method, and estimate each of them.

**Model.** Users' values are drawn from the assumed truth and their reports by the mechanisms; the error is the distance
from the estimate to that truth. It therefore has two parts, the sampling of people and the noise of their reports, and
falls to 0 as the number of users grows. (The distance to the shares of the people who took part would lack the first.)

There are three ways to draw: counts of enumerated patterns for all studies at once (`pattern_simulation`), users one by
one (`user_simulation`), and of frequency oracles only how many reports support each value (`support_simulation`). The
last has the same distribution for the inversion of unary reports and hashes. For slow methods with many users and
values it comes close, and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.estimators import estimate
from hubbub.estimators.em import IBU_DELTA, MAX_UPDATES
from hubbub.estimators.matrix_inversion import REPAIRS
from hubbub.estimators.reestimation import maximum_likelihood
from hubbub.mechanisms import HadamardResponse, LocalHashing
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.mechanisms.sketches import Sketch
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.planning.candidates import Candidate
from hubbub.planning.inversion_variance import (
    MAX_KURTOSIS_PER_USER,
    InversionMap,
    deviation_ratio,
    support_kurtosis,
)
from hubbub.planning.pattern_simulation import PatternTables
from hubbub.planning.support_simulation import counted_outputs, draw_support, has_exact_support, supported_reports
from hubbub.planning.user_simulation import draw_reports
from hubbub.solvers import invert
from hubbub.solvers.em_batch import em_batch

FAST_METHODS = ("ibu", "mle", "base-cut", *REPAIRS)

ReportDone = Callable[[int], None]  # called with the number of studies of a batch that are done

# Users times values in a study that is drawn user by user: with one report each, with several, for slow methods.
MAX_SINGLE_ENTRIES, MAX_JOINT_ENTRIES, MAX_SLOW_METHOD_ENTRIES = 20_000_000, 5_000_000, 1_000_000
MAX_WHOLE_REPORT_ENTRIES = 250_000  # users times values up to which slow methods get whole reports of oracles
MAX_BATCH_ENTRIES = 4_000_000  # studies times patterns of one batch: some arrays of 32 MB
MIN_COST_VALUES = 20  # users cost at least as much as with this many values


@dataclass(frozen=True, eq=False)
class StudyBatch:
    """Estimates of some studies, and the errors of matrix inversion."""

    thetas: Floats  # studies by values
    squares: Floats  # squared errors of inversion, summed over values, for each study; empty where there is none
    work: float  # estimated seconds, a formula: the same number on any machine


class Simulator:
    """Draws and estimates studies of one candidate by one method."""

    def __init__(self, candidate: Candidate, method: str) -> None:
        self.candidate, self.method = candidate, method
        self.values = len(candidate.domain)

    @cached_property
    def tables(self) -> PatternTables | None:
        """All patterns, where they are few enough to enumerate."""
        return PatternTables.of(self.candidate)

    @cached_property
    def inversion(self) -> InversionMap | None:
        """Matrix inversion of enumerated outputs, where there is one."""
        if self.tables is None or len(self.tables.tables) > 1:
            return None
        return InversionMap.of(self.tables.tables[0])

    @cached_property
    def oracle(self) -> FrequencyOracle | None:
        """The mechanism, where it is a single frequency oracle with one report per user."""
        mechanism = self.candidate.parts[0][0]
        is_single = len(self.candidate.parts) == 1 and self.candidate.reports_per_user == 1
        return mechanism if is_single and isinstance(mechanism, FrequencyOracle) else None

    @property
    def is_batched(self) -> bool:
        """Whether many studies are estimated together."""
        return self._draws_support or (self.tables is not None and self.method in ("ibu", *REPAIRS))

    @property
    def max_batch_runs(self) -> int:
        """How many studies fit in one batch."""
        patterns = 1 if self.tables is None else self.tables.channel.patterns
        return max(1, MAX_BATCH_ENTRIES // max(self.values, patterns))

    @property
    def is_slow_method(self) -> bool:
        """Whether one study takes the method a long time, or nobody knows how long (a method of one's own)."""
        return self.method not in FAST_METHODS

    @property
    def _draws_support(self) -> bool:
        has_independent_support = isinstance(self.oracle, UnaryEncoding | LocalHashing) or has_exact_support(
            self.oracle
        )
        return self.method in REPAIRS and self.tables is None and has_independent_support

    def uses_sums(self, users: int) -> bool:
        """Whether estimates are made from how many reports support each value, because reports are too many."""
        if not self.is_slow_method or self.tables is not None or self.oracle is None:
            return False
        if isinstance(self.oracle, HadamardResponse):  # whose outputs are few, and no independent bits
            return False
        return users * self.values > MAX_WHOLE_REPORT_ENTRIES

    @property
    def max_users(self) -> int | None:
        """The most users that can be drawn in one study; None where their number does not matter."""
        if self.tables is not None or self._draws_support or (self.is_slow_method and self.oracle is not None):
            return None
        if self.is_slow_method:
            limit = MAX_SLOW_METHOD_ENTRIES
        else:
            limit = MAX_SINGLE_ENTRIES if self.candidate.reports_per_user == 1 else MAX_JOINT_ENTRIES
        return max(1_000, limit // (max(self.values, MIN_COST_VALUES) * self.candidate.reports_per_user))

    def variance(self, truth: Floats, users: int) -> Floats | None:
        """Return the variance of matrix inversion for each value in closed form; None where there is none."""
        if isinstance(self.oracle, Sketch):
            return None
        if self.oracle is not None:
            return self.oracle.share_variance(truth) / users
        return None if self.inversion is None else self.inversion.variance(truth, users)

    def deviation_ratio(self, squares: Floats, truth: Floats, users: int) -> float | None:
        """Return the simulated over the predicted standard deviation of inversion; None with too few users."""
        variance = self.variance(truth, users)
        if variance is None or self._kurtosis(truth) > MAX_KURTOSIS_PER_USER * users:
            return None
        return deviation_ratio(squares, variance)

    def _kurtosis(self, truth: Floats) -> float:
        if self.inversion is not None:
            return self.inversion.kurtosis(truth)
        return np.inf if self.oracle is None else support_kurtosis(self.oracle.support, truth)

    def cost(self, users: int) -> float:
        """Return roughly how many seconds one study takes, to divide up the progress."""
        patterns = self.tables.channel.patterns if self.tables is not None else min(users, 100_000)
        entries = self.values * patterns
        if self.uses_sums(users):
            return 0.15 + (3e-7 if self.candidate.domain.is_equidistant else 3e-6) * self.values**2
        if self.is_slow_method:
            return 0.2 + 2e-5 * entries
        if self._draws_support and has_exact_support(self.oracle):
            return self._support_cost
        updates = 0.3 * users**0.5 if self.method == "ibu" else 10.0
        drawing = 0.0 if self.tables is not None else self._drawing_cost(users)
        return 1e-4 + drawing + 1e-9 * entries * updates

    def _drawing_cost(self, users: int) -> float:
        return 1.5e-7 * users * (self.values + MIN_COST_VALUES / 2) * self.candidate.reports_per_user

    def batch(
        self, users: int, truth: Floats, runs: int, rng: np.random.Generator, report: ReportDone = lambda _: None
    ) -> StudyBatch:
        """Draw and estimate `runs` studies; `report` is called before each one that takes its time, and may raise."""
        if self._draws_support:
            return self._batch_of_support(users, truth, runs, rng)
        if self.tables is None:
            return self._batch_of_users(users, truth, runs, rng, report)
        counts = self.tables.draw(users, truth, runs, rng)
        weights = counts.astype(np.float64)
        raw = None if self.inversion is None else self.inversion.apply(weights)
        squares = np.zeros(0) if raw is None else ((raw - truth) ** 2).sum(axis=1)
        thetas, work = self._estimates(counts, weights, raw, users, report)
        return StudyBatch(thetas, squares, work)

    def _estimates(
        self, counts: Positions, weights: Floats, raw: Floats | None, users: int, report: ReportDone
    ) -> tuple[Floats, float]:
        """Return the estimates of all studies of enumerated patterns, and the work."""
        assert self.tables is not None  # noqa: S101
        channel, runs = self.tables.channel, len(counts)
        if self.method == "ibu":
            uniform = np.full(self.values, 1.0 / self.values)
            outcome = em_batch(channel, weights, uniform, delta=IBU_DELTA, max_iter=MAX_UPDATES)
            return outcome.thetas, 1e-5 * runs + 5e-10 * channel.entries * float(outcome.iterations.sum())
        if self.method in REPAIRS:
            invert(self.tables.reports(counts[0]))  # raises where there is no inverse
            if raw is None:
                raw = np.stack([invert(self.tables.reports(row)) for row in counts])
            return np.stack([REPAIRS[self.method].apply(row) for row in raw]), 1e-4 * runs
        thetas = np.empty((runs, self.values))
        for run, row in enumerate(weights):
            report(run)
            if self.method == "mle":
                thetas[run] = maximum_likelihood(channel, row)
            else:
                thetas[run] = estimate(self.tables.reports(counts[run]), self.method).probabilities
        each = self.cost(users) if self.method != "mle" else 4e-3 + 5e-8 * channel.entries
        return thetas, runs * each

    def _batch_of_support(self, users: int, truth: Floats, runs: int, rng: np.random.Generator) -> StudyBatch:
        assert self.oracle is not None  # noqa: S101
        supported = draw_support(self.oracle, users, truth, runs, rng)
        raw = np.stack([self.oracle.unbiased_shares(row, users) for row in supported])
        thetas = np.stack([REPAIRS[self.method].apply(row) for row in raw])
        return StudyBatch(thetas, ((raw - truth) ** 2).sum(axis=1), self._support_cost * runs)

    @cached_property
    def _support_cost(self) -> float:
        """Roughly how many seconds it takes to draw the support of one study: sketches have many buckets."""
        return 1e-4 + (1e-7 * counted_outputs(self.oracle) if self.oracle and has_exact_support(self.oracle) else 0.0)

    def _batch_of_users(
        self, users: int, truth: Floats, runs: int, rng: np.random.Generator, report: ReportDone
    ) -> StudyBatch:
        thetas, squares, work = np.empty((runs, self.values)), [], 0.0
        for run in range(runs):
            report(run)
            if self.oracle is not None and self.uses_sums(users):
                reports = supported_reports(self.oracle, draw_support(self.oracle, users, truth, 1, rng)[0], users)
            else:
                reports = draw_reports(self.candidate, users, truth, rng)
            estimated = estimate(reports, self.method)
            thetas[run] = estimated.probabilities
            if self.oracle is not None:
                squares.append(float(((invert(reports) - truth) ** 2).sum()))
            if self.is_slow_method:
                work += self.cost(users)
            else:
                work += self._drawing_cost(users) + 1e-9 * reports.channel.entries * max(10, estimated.iterations)
        return StudyBatch(thetas, np.array(squares), work)
