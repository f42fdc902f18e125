"""Simulated studies of one way to report, one truth, one method: what each of them estimates.

**Model.** Users' values are drawn at random from the assumed truth, their reports by the mechanisms; errors are
distances from the estimate to that truth. So an error has both parts, that people are a sample and that their reports
are noisy, and it falls to 0 with ever more users. (Errors against the shares of the people who happened to take part
would lack the first.)

Three ways to draw, with the same law: counts of listed patterns for all studies at once (`tables`), users one by one
(`people`), and for inversion of bits and hashes only how many reports point at each value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import EstimateError
from hubbub.core.progress import finish
from hubbub.estimators import estimate
from hubbub.estimators.em import IBU_DELTA, MAX_UPDATES
from hubbub.estimators.mle import MLE_TOL
from hubbub.likelihood import Likelihood
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.planning.candidate import Candidate
from hubbub.planning.inversion_variance import NORMAL, Inverse, pointing_kurtosis, pointing_variance, ratio
from hubbub.planning.pattern_simulation import PatternTables
from hubbub.planning.user_simulation import counts_are_independent, draw_reports, draw_support
from hubbub.planning.validation import check_method
from hubbub.reports import Reports
from hubbub.solvers import invert, maximise
from hubbub.solvers.em_batch import em_batch
from hubbub.solvers.inversion import normalised, projected

Told = Callable[[int], None]  # called with the number of studies of a batch that are done

REPAIRS: dict[str, Callable[[Floats], Floats]] = {"inv-n": normalised, "inv-p": projected}
SINGLE_DRAWN, SEVERAL_DRAWN = 20_000_000, 5_000_000  # users times values that one study may have, drawn user by user
TOGETHER = 4_000_000  # studies times patterns of one batch: some arrays of 32 MB
FEW_VALUES = 20  # below which users cost as much as with so many
CAREFUL_DRAWN = 1_000_000  # the same for methods that take minutes with more


@dataclass(frozen=True, eq=False)
class Batch:
    """Some studies: their estimates, and what plain inversion has to say."""

    thetas: Floats  # studies by values
    squares: Floats  # of the errors of plain inversion, summed over values, one for each study; none without it
    work: float  # about how many seconds it took, on a machine like ours: the same number on any machine


class Simulator:
    """Draws and estimates studies of one candidate by one method."""

    def __init__(self, candidate: Candidate, method: str) -> None:
        check_fit(candidate, method)
        self.candidate, self.method = candidate, method
        self.values = len(candidate.domain)

    @cached_property
    def tables(self) -> PatternTables | None:
        """The listed patterns, where they can be listed."""
        return PatternTables.of(self.candidate)

    @cached_property
    def inverse(self) -> Inverse | None:
        """Plain inversion of listed outputs, where there is one."""
        if self.tables is None or len(self.tables.tables) > 1:
            return None
        return Inverse.of(self.tables.tables[0])

    @cached_property
    def pointing(self) -> FrequencyOracle | None:
        """The one mechanism, where single reports point at sets of values."""
        mechanism = self.candidate.parts[0][0]
        single = len(self.candidate.parts) == 1 and self.candidate.reports_per_user == 1
        return mechanism if single and isinstance(mechanism, FrequencyOracle) else None

    @property
    def at_once(self) -> bool:
        """Whether many studies are estimated together."""
        return self._by_support or (self.tables is not None and self.method in ("ibu", *REPAIRS))

    @property
    def most_at_once(self) -> int:
        """How many studies fit in one batch."""
        patterns = 1 if self.tables is None else self.tables.channel.patterns
        return max(1, TOGETHER // max(self.values, patterns))

    @property
    def careful(self) -> bool:
        """Whether the method takes long for each study."""
        return self.method in ("auto", "ems")

    @property
    def _by_support(self) -> bool:
        return (
            self.method in REPAIRS
            and self.tables is None
            and self.pointing is not None
            and counts_are_independent(self.pointing)
        )

    @property
    def most_users(self) -> int | None:
        """The most users that are drawn in one study; None where their number does not matter."""
        if self.tables is not None or self._by_support:
            return None
        if self.careful:
            limit = CAREFUL_DRAWN
        else:
            limit = SINGLE_DRAWN if self.candidate.reports_per_user == 1 else SEVERAL_DRAWN
        return max(1_000, limit // (max(self.values, FEW_VALUES) * self.candidate.reports_per_user))

    def variance(self, truth: Floats, users: int) -> Floats | None:
        """Return the closed form of the variance of plain inversion, value by value; None where there is none."""
        if self.pointing is not None:
            return pointing_variance(self.pointing.support, truth, users)
        return None if self.inverse is None else self.inverse.variance(truth, users)

    def closed(self, squares: Floats, truth: Floats, users: int) -> float | None:
        """Return the measured over the predicted standard deviation of plain inversion; None with too few users."""
        variance = self.variance(truth, users)
        if variance is None or self._kurtosis(truth) > NORMAL * users:
            return None
        return ratio(squares, variance)

    def _kurtosis(self, truth: Floats) -> float:
        if self.inverse is not None:
            return self.inverse.kurtosis(truth)
        return np.inf if self.pointing is None else pointing_kurtosis(self.pointing.support, truth)

    def cost(self, users: int) -> float:
        """Return about how long one study takes, in seconds: to share out progress, not to be believed."""
        patterns = self.tables.channel.patterns if self.tables is not None else min(users, 100_000)
        entries = self.values * patterns
        if self.careful:
            return 0.2 + 2e-5 * entries
        updates = 0.3 * users**0.5 if self.method == "ibu" else 10.0
        drawn = 0.0 if self.tables is not None else self._drawing(users)
        return 1e-4 + drawn + 1e-9 * entries * updates

    def _drawing(self, users: int) -> float:
        return 1.5e-7 * users * (self.values + FEW_VALUES / 2) * self.candidate.reports_per_user

    def study(self, users: int, truth: Floats, rng: np.random.Generator) -> Reports:
        """Return the reports of one study."""
        if self.tables is not None:
            return self.tables.reports(self.tables.draw(users, truth, 1, rng)[0])
        return draw_reports(self.candidate, users, truth, rng)

    def batch(
        self, users: int, truth: Floats, runs: int, rng: np.random.Generator, tell: Told = lambda _: None
    ) -> Batch:
        """Draw and estimate so many studies; `tell` hears of each that is estimated by itself, and may end it."""
        if self._by_support:
            return self._supported(users, truth, runs, rng)
        if self.tables is None:
            return self._one_by_one(users, truth, runs, rng, tell)
        counts = self.tables.draw(users, truth, runs, rng)
        weights = counts.astype(np.float64)
        raw = None if self.inverse is None else self.inverse.apply(weights)
        squares = np.zeros(0) if raw is None else ((raw - truth) ** 2).sum(axis=1)
        thetas, work = self._estimates(counts, weights, raw, users, tell)
        return Batch(thetas, squares, work)

    def _estimates(
        self, counts: Positions, weights: Floats, raw: Floats | None, users: int, tell: Told
    ) -> tuple[Floats, float]:
        """Return the estimates of all studies over listed patterns, and the work."""
        assert self.tables is not None  # noqa: S101
        channel, runs = self.tables.channel, len(counts)
        even = np.full(self.values, 1.0 / self.values)
        if self.method == "ibu":
            many = em_batch(channel, weights, even, delta=IBU_DELTA, max_iter=MAX_UPDATES)
            return many.thetas, 1e-5 * runs + 5e-10 * channel.entries * float(many.iterations.sum())
        if self.method in REPAIRS:
            invert(self.tables.reports(counts[0]))  # says what is wrong where the matrix has no inverse
            if raw is None:
                raw = np.stack([invert(self.tables.reports(row)) for row in counts])
            return np.stack([REPAIRS[self.method](row) for row in raw]), 1e-4 * runs
        thetas = np.empty((runs, self.values))
        for place, row in enumerate(weights):
            tell(place)
            if self.method == "mle":
                likelihood = Likelihood(channel, row, users)
                found = finish(maximise(likelihood, even, MLE_TOL, solver=None, max_iter=None))
                thetas[place] = found.outcome.point.theta
            else:
                thetas[place] = estimate(self.tables.reports(counts[place]), self.method).probabilities
        each = self.cost(users) if self.method != "mle" else 4e-3 + 5e-8 * channel.entries
        return thetas, runs * each

    def _supported(self, users: int, truth: Floats, runs: int, rng: np.random.Generator) -> Batch:
        assert self.pointing is not None  # noqa: S101
        true, other = self.pointing.support
        pointed = draw_support(self.pointing, users, truth, runs, rng)
        raw = (pointed / users - other) / (true - other)
        thetas = np.stack([REPAIRS[self.method](row) for row in raw])
        return Batch(thetas, ((raw - truth) ** 2).sum(axis=1), 1e-4 * runs)

    def _one_by_one(self, users: int, truth: Floats, runs: int, rng: np.random.Generator, tell: Told) -> Batch:
        thetas, squares, work = np.empty((runs, self.values)), [], 0.0
        for place in range(runs):
            tell(place)
            reports = draw_reports(self.candidate, users, truth, rng)
            found = estimate(reports, self.method)
            thetas[place] = found.probabilities
            if self.pointing is not None:
                squares.append(float(((invert(reports) - truth) ** 2).sum()))
            if self.careful:
                work += self.cost(users)
            else:
                work += self._drawing(users) + 1e-9 * reports.channel.entries * max(10, found.iterations)
        return Batch(thetas, np.array(squares), work)


def check_fit(candidate: Candidate, method: str) -> None:
    """Refuse a method that is none, or that does not fit the candidate."""
    check_method(method)
    if method in REPAIRS and (len(candidate.parts) > 1 or candidate.reports_per_user > 1):
        raise EstimateError(
            "inversion needs one mechanism and one output for each user",
            where=f"plan(method={method!r}), {candidate.name}",
            got=f"{len(candidate.parts)} mechanisms, {candidate.reports_per_user} reports per user",
            expected="one mechanism, one output each",
            remedy='use method="auto", "ibu" or "mle", which take any mixture of mechanisms',
        )
