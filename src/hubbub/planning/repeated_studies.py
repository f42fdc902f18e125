"""Repeat a simulated study until its median error is known precisely enough, or enough time was spent on it."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.estimators.api import find_method
from hubbub.metrics import earth_mover_distance
from hubbub.planning.answers import Spread
from hubbub.planning.candidates import Candidate
from hubbub.planning.simulator import Simulator
from hubbub.planning.truths import AssumedTruth

CONFIDENCE = 0.95  # of the interval of a quantile
PRECISION = 0.025  # relative precision of the median at which simulation ends
SLOW_METHOD_PRECISION = 0.05
FIRST_RUNS, FIRST_SLOW_RUNS = 16, 8  # studies of the first batch
MAX_RUNS = 4_000
MAX_SECONDS, MAX_SLOW_METHOD_SECONDS = 4.0, 40.0  # of estimated work for one number
LONG_STUDY_SECONDS = 0.05  # progress is reported after each study that takes longer
MAX_CELLS_ALL_EMD, MAX_EMD_RUNS = 200, 16  # on larger maps the distance is computed for the first runs only
MAX_CELLS_EMD = 4_000  # on larger maps it is computed only if it was asked for
EXTRAPOLATION_STEP = 4  # ratio of the two numbers of users from which errors are extrapolated

ReportShare = Callable[[float], None]  # called with the share of the work that is done


class WaitingStudy(NamedTuple):
    """A study to be simulated: with how many users, the how manieth of these, and in about how many seconds."""

    users: int
    number: int
    cost: float


class ErrorQuantile(NamedTuple):
    """A quantile of the errors and its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def relative_error(self) -> float:
        """Half the width of the interval over the value; infinite where only the value is 0."""
        half = (self.high - self.low) / 2.0
        if half == 0.0:
            return 0.0
        return half / self.value if self.value > 0.0 else np.inf


def error_quantile(errors: Floats, share: float = 0.5) -> ErrorQuantile:
    """Return the quantile below which a `share` of the errors lies.

    The number of errors below the true quantile is binomial, whatever their distribution, so both ends of the interval
    are order statistics. With fewer than six errors it spans all of them, at less than 95%.
    """
    from scipy.stats import binom

    ordered = np.sort(errors)
    tail = (1.0 - CONFIDENCE) / 2.0
    first = int(binom.ppf(tail, ordered.size, share)) - 1
    last = int(binom.ppf(1.0 - tail, ordered.size, share))
    low, high = (float(ordered[min(max(rank, 0), ordered.size - 1)]) for rank in (first, last))
    return ErrorQuantile(float(np.quantile(ordered, share)), low, high)


@dataclass(frozen=True, eq=False)
class StudyErrors:
    """Errors of simulated studies with one number of users."""

    users: int
    tv: Floats
    emd: Floats | None
    squares: Floats  # squared errors of matrix inversion
    work: float = 0.0  # estimated seconds, a formula: the same number on any machine

    @classmethod
    def joined(cls, parts: Sequence[StudyErrors]) -> StudyErrors:
        """Return the errors of some batches together."""
        distances = [part.emd for part in parts if part.emd is not None]
        return cls(
            parts[0].users,
            np.concatenate([part.tv for part in parts]),
            np.concatenate(distances) if distances else None,
            np.concatenate([part.squares for part in parts]),
            sum(part.work for part in parts),
        )

    def of(self, distance: str) -> Floats:
        """Return the errors in one distance."""
        if distance == "emd":
            assert self.emd is not None  # noqa: S101  # the distance was checked against the domain
            return self.emd
        return self.tv


@dataclass(frozen=True, eq=False)
class Prediction:
    """Errors that were simulated, or extrapolated where there are too many users to simulate."""

    near: StudyErrors  # with the users asked for, or the most that can be simulated
    far: StudyErrors | None  # with fewer users; None: nothing is extrapolated
    users: int

    @property
    def extrapolated(self) -> bool:
        """Whether the errors are extrapolated."""
        return self.far is not None

    def quantile(self, distance: str, share: float) -> ErrorQuantile:
        """Return a quantile of the errors."""
        near = error_quantile(self.near.of(distance), share)
        if self.far is None:
            return near
        far = error_quantile(self.far.of(distance), share)
        factor, low, high = _extrapolation(near, far, self.near.users, self.far.users, self.users)
        return ErrorQuantile(near.value * factor, near.value * low, near.value * high)

    def spread(self, distance: str) -> Spread:
        """Return the spread of the errors; mean and ninth decile are extrapolated like the median."""
        errors, median = self.near.of(distance), self.quantile(distance, 0.5)
        simulated = float(np.quantile(errors, 0.5))
        factor = median.value / simulated if self.extrapolated and simulated > 0.0 else 1.0
        return Spread(*median, float(errors.mean()) * factor, float(np.quantile(errors, 0.9)) * factor)


def _extrapolation(
    near: ErrorQuantile, far: ErrorQuantile, users: int, fewer: int, target_users: int
) -> tuple[float, float, float]:
    """Return the factor from the error at `users` to that at `target_users`, by a power law, and its 95% limits.

    More users never increase an error, and no error falls faster than one over their number.
    """
    step, reach = math.log(users / fewer), math.log(target_users / users)
    if not (near.value > 0.0 and far.value > 0.0):
        return 1.0, math.exp(-reach), 1.0
    slope = min(max((math.log(near.value) - math.log(far.value)) / step, -1.0), 0.0)
    doubt = math.hypot(near.relative_error * (1.0 + reach / step), far.relative_error * reach / step)
    low = max(slope * reach - doubt, -reach - near.relative_error)
    high = min(slope * reach + doubt, near.relative_error)
    return math.exp(slope * reach), math.exp(low), math.exp(high)


class SimulatedStudies:
    """Studies of one candidate, truth and method with any number of users; each number is simulated once."""

    def __init__(
        self,
        simulator: Simulator,
        truth: AssumedTruth,
        seed: int,
        *,
        distance: str,
        runs: int | None,
        seconds: float | None = None,
    ) -> None:
        self.simulator, self.truth, self.distance = simulator, truth, distance
        self._runs, self._seed, self._seconds = runs, seed, seconds
        self._errors: dict[tuple[int, float], StudyErrors] = {}
        self._single: dict[tuple[int, int], StudyErrors] = {}  # of long studies, by users and number

    @property
    def candidate(self) -> Candidate:
        """The candidate whose studies these are."""
        return self.simulator.candidate

    def description(self, users: int) -> str:
        """Return what is simulated, in words."""
        return f"{self.candidate.description}, {users:,} users, {self.truth.name}"

    def of(self, candidate: Candidate) -> SimulatedStudies:
        """Return the studies of another candidate under the same truth."""
        simulator = Simulator(candidate, self.simulator.method)
        return SimulatedStudies(simulator, self.truth, self._seed, distance=self.distance, runs=self._runs)

    def repeated(self, runs: int) -> SimulatedStudies:
        """Return the first so many of these studies, or as many as were asked for if these are fewer."""
        return self._limited(runs if self._runs is None else min(runs, self._runs), self._seconds)

    def within(self, seconds: float) -> SimulatedStudies:
        """Return these studies, as many as take so many seconds of estimated work at most."""
        return self._limited(self._runs, seconds)

    def _limited(self, runs: int | None, seconds: float | None) -> SimulatedStudies:
        limited = SimulatedStudies(
            self.simulator, self.truth, self._seed, distance=self.distance, runs=runs, seconds=seconds
        )
        limited._single = self._single  # what is simulated for one serves the other
        return limited

    @property
    def _most_seconds(self) -> float:
        usual = MAX_SLOW_METHOD_SECONDS if self.simulator.is_slow_method else MAX_SECONDS
        return usual if self._seconds is None else min(usual, self._seconds)

    def cost(self, users: int) -> float:
        """Return roughly how many seconds a prediction takes, to divide up the progress."""
        most = self.simulator.max_users
        each = self.simulator.cost(min(users, most) if most else users)
        if self._runs is not None:
            return each * self._runs
        return max(each * FIRST_SLOW_RUNS, min(self._most_seconds, each * 200)) * (
            1.3 if most and users > most else 1.0
        )

    def predict(self, users: int, report: ReportShare, *, precision: float = PRECISION) -> Prediction:
        """Return the errors with this number of users, extrapolated where they are too many to simulate."""
        most = self.simulator.max_users
        if most is None or users <= most:
            return Prediction(self.errors(users, report, precision=precision), None, users)
        fewer = most // EXTRAPOLATION_STEP
        far = self.errors(fewer, lambda share: report(0.3 * share), precision=precision)
        near = self.errors(most, lambda share: report(0.3 + 0.7 * share), precision=precision)
        return Prediction(near, far, users)

    def errors(self, users: int, report: ReportShare, *, precision: float = PRECISION) -> StudyErrors:
        """Simulate until the median is known to `precision`, or until the time allowed for it is spent."""
        if (users, precision) not in self._errors:
            self._errors[users, precision] = self._simulate(users, report, precision)
        return self._errors[users, precision]

    def waiting(self, users: int) -> list[WaitingStudy]:
        """Return long studies to be simulated next; none where these are enough.

        They are the first that `predict` would simulate, which then finds them done.
        """
        most = self.simulator.max_users
        numbers = [users] if most is None or users <= most else [most // EXTRAPOLATION_STEP, most]
        return [
            WaitingStudy(own, number, self.simulator.cost(own))
            for own in numbers
            if self._are_long(own)
            for number in self._waiting(own)
        ]

    def _waiting(self, users: int) -> list[int]:
        runs = self._runs or FIRST_SLOW_RUNS
        while all((users, number) in self._single for number in range(runs)):
            errors = StudyErrors.joined([self._single[users, number] for number in range(runs)])
            more = runs if self._runs is not None else self._next_runs(errors, PRECISION)[1]
            if more == runs:
                return []
            runs = more
        return [number for number in range(runs) if (users, number) not in self._single]

    def simulate(self, users: int, number: int, report: ReportShare) -> StudyErrors:
        """Return the errors of one long study, and keep them."""
        return self._batch(users, number, number, 1, report)

    def keep(self, users: int, number: int, errors: StudyErrors) -> None:
        """Keep the errors of a long study that was simulated elsewhere."""
        self._single[users, number] = errors

    @cached_property
    def portable(self) -> bytes | None:
        """What another process needs to simulate these studies; None if it cannot know the candidate or the method."""
        if find_method(self.simulator.method, "method").is_own:
            return None
        try:
            packed = pickle.dumps((self.candidate, self.simulator.method, self.truth, self._seed, self.distance))
        except (pickle.PicklingError, AttributeError, TypeError):
            return None
        return None if b"__main__" in packed else packed

    @classmethod
    def from_portable(cls, portable: bytes) -> SimulatedStudies:
        """Return the studies of another process."""
        candidate, method, truth, seed, distance = pickle.loads(portable)  # noqa: S301  # see study_workers.py
        return cls(Simulator(candidate, method), truth, seed, distance=distance, runs=1)

    def _are_long(self, users: int) -> bool:
        """Whether each study is a batch of its own."""
        return not self.simulator.is_batched and self.simulator.cost(users) > LONG_STUDY_SECONDS

    def _simulate(self, users: int, report: ReportShare, precision: float) -> StudyErrors:
        are_long = self._are_long(users)
        runs = self._runs or (FIRST_RUNS if self.simulator.is_batched else FIRST_SLOW_RUNS)
        parts: list[StudyErrors] = []
        done, share = 0, 0.0

        def report_study(more: float) -> None:
            """Report after single studies too: a batch may take minutes, and the caller may want to stop."""
            report(share if self._runs is None else (done + more) / runs)

        while done < runs:
            size = 1 if are_long else min(runs - done, max(FIRST_RUNS, done), self.simulator.max_batch_runs)
            parts.append(self._batch(users, len(parts), done, size, report_study))
            done += size
            if self._runs is None:
                share, more_runs = self._next_runs(StudyErrors.joined(parts), precision)
                runs = more_runs if done == runs else runs
                report(share)
            else:
                report(done / runs)
        return StudyErrors.joined(parts)

    def _batch(self, users: int, number: int, before: int, runs: int, report: ReportShare) -> StudyErrors:
        """Return the errors of one batch of `runs` studies, after so many others; of a long one they are kept."""
        is_long = self._are_long(users)
        if is_long and (users, number) in self._single:
            return self._single[users, number]
        rng = self.generator(users, number)
        batch = self.simulator.batch(users, self.truth.probabilities, runs, rng, report)
        tv = np.abs(batch.thetas - self.truth.probabilities).sum(axis=1) / 2.0
        emd, emd_work = self._earth_mover_distances(batch.thetas, before) if self._computes_emd() else (None, 0.0)
        errors = StudyErrors(users, tv, emd, batch.squares, batch.work + emd_work)
        if is_long:
            self._single[users, number] = errors
        return errors

    def _next_runs(self, simulated: StudyErrors, precision: float) -> tuple[float, int]:
        """Return the share of the work that is probably done, and the total number of studies to simulate.

        That is the number so far where it is enough, and otherwise at most twice as many.
        """
        errors = simulated.tv if self.distance == "tv" or simulated.emd is None else simulated.emd
        work, is_slow, reached = simulated.work, self.simulator.is_slow_method, error_quantile(errors).relative_error
        required = max(precision, SLOW_METHOD_PRECISION) if is_slow else precision
        if reached <= required or errors.size >= MAX_RUNS:
            return 1.0 if errors.size >= FIRST_SLOW_RUNS else errors.size / FIRST_SLOW_RUNS, errors.size
        seconds = self._most_seconds
        seconds *= min(1.0, 2.0 * PRECISION / precision) ** 2  # less for rough answers
        share = max(min(work / seconds, 1.0), (required / reached) ** 2)  # precision grows with the root of the runs
        affordable = int(errors.size * seconds / work) if work > 0.0 else MAX_RUNS
        return share, max(errors.size, min(2 * errors.size, affordable, MAX_RUNS))

    def generator(self, users: int, batch_number: int) -> np.random.Generator:
        """Return the generator of one batch, which depends on the seed and the batch, not on what came before."""
        shares = hashlib.sha256(self.truth.probabilities.tobytes()).hexdigest()
        key = f"{self.candidate.content_key} {self.simulator.method} {shares} {users} {batch_number}"
        digest = hashlib.sha256(key.encode()).digest()
        return np.random.default_rng([self._seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])

    def _computes_emd(self) -> bool:
        domain = self.candidate.domain
        if domain.is_equidistant:
            return False
        return domain.places is not None or self.distance == "emd" or len(domain) <= MAX_CELLS_EMD

    def _earth_mover_distances(self, thetas: Floats, before: int) -> tuple[Floats, float]:
        """Return the earth mover's distances to the truth, and the work."""
        truth, domain = self.truth.probabilities, self.candidate.domain
        if domain.places is not None:
            return np.asarray(np.abs(np.cumsum(thetas - truth, axis=1)[:, :-1]) @ np.diff(domain.places)), 0.0
        if len(domain) > MAX_CELLS_ALL_EMD and self.distance != "emd":
            thetas = thetas[: max(0, MAX_EMD_RUNS - before)]
        distances = np.array([earth_mover_distance(theta, truth, domain) for theta in thetas])
        return distances, 5e-8 * len(domain) ** 2 * len(thetas)
