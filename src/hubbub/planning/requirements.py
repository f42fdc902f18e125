"""Search for what a target takes: the number of users, or the epsilon with a given number of users."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from functools import partial
from itertools import product

import numpy as np

from hubbub.client import MAX_EPSILON, MIN_EPSILON
from hubbub.core.progress import Progress
from hubbub.planning.answers import Needed, Question
from hubbub.planning.candidates import Candidate
from hubbub.planning.parallel import PREPARING, Task, run_parallel
from hubbub.planning.repeated_studies import ErrorQuantile, Prediction, ReportShare, SimulatedStudies
from hubbub.planning.simulator import Simulator
from hubbub.planning.target_search import Crossing, find_crossing
from hubbub.planning.truths import AssumedTruth

MIN_USERS, MAX_USERS = 10, 1_000_000_000
DEFAULT_GUESS_USERS, MAX_GUESS_USERS = 10_000, 1e7
SINGLE_EPSILON_FACTOR = 10.0  # by which an epsilon may change where only one is given
SEARCH_STEPS = 6.0  # expected in a search, for its progress
SEARCH_COST = 4.0  # of a search, in predictions
MAX_RANK_VALUES = 2_000  # of a matrix whose rank is computed
MIN_FALL = 0.97  # an error that stays above this share with ten times the users no longer falls


def search_requirements(
    question: Question,
    target: float,
    candidates: Sequence[Candidate],
    truths: Sequence[AssumedTruth],
    users: int | None,
    seed: int,
) -> Generator[Progress, None, list[Needed]]:
    """Return the users that each candidate needs, or with `users` the epsilon, for each truth in turn.

    The target is reached where a share `question.confidence` of the studies has an error of at most `target`. The
    search for an epsilon takes candidates of one name at several epsilons, the range of the search, or at one, which
    then may become ten times smaller or larger.
    """
    yield PREPARING
    simulators = {id(candidate): Simulator(candidate, question.method) for candidate in candidates}

    def studies(truth: AssumedTruth, candidate: Candidate) -> SimulatedStudies:
        simulator = simulators.get(id(candidate)) or Simulator(candidate, question.method)
        return SimulatedStudies(simulator, truth, seed, distance=question.distance, runs=question.runs)

    groups: dict[tuple[str, float | None, int], list[Candidate]] = {}
    for candidate in candidates:
        if users is not None:
            candidate.at(candidate.epsilon or 1.0)  # raises at once where there is no epsilon to search for
        varied = candidate.epsilon if users is None else None
        groups.setdefault((candidate.name, varied, candidate.reports_per_user), []).append(candidate)
    tasks = []
    for group, truth in product(groups.values(), truths):
        study = studies(truth, group[0])
        work: partial[Needed]
        if users is None:
            work = partial(_users_needed, study, target, question.confidence)
        else:
            work = partial(_epsilon_needed, group, partial(studies, truth), users, target, question.confidence)
        cost = SEARCH_COST * study.cost(users or DEFAULT_GUESS_USERS)
        tasks.append(Task(work, cost, f"{group[0].description if users is None else group[0].name}, {truth.name}"))
    return (yield from run_parallel(tasks))


def _users_needed(study: SimulatedStudies, target: float, confidence: float, report: ReportShare) -> Needed:
    candidate, max_simulated = study.simulator.candidate, study.simulator.max_users
    progress = _SearchProgress(report)

    def error(users: float, precision: float) -> ErrorQuantile:
        return progress.predict(study, round(users), precision).quantile(study.distance, confidence)

    crossing = find_crossing(error, target, _guess(study, target), MIN_USERS, MAX_USERS, slope=0.5, spacing=1.6)
    value, low, high = crossing.value, crossing.low, crossing.high
    reason = f"{MIN_USERS} users, the fewest tried, are already enough" if crossing.already else ""
    return Needed(
        candidate=candidate.name,
        epsilon=candidate.epsilon,
        privacy=candidate.privacy,
        reports_per_user=candidate.reports_per_user,
        truth=study.truth.name,
        what="users",
        value=None if value is None else float(math.ceil(value)),
        low=None if low is None else float(math.floor(low)),
        high=None if high is None else float(math.ceil(high)),
        most=float(MAX_USERS),
        extrapolated=value is not None and max_simulated is not None and value > max_simulated,
        reason=_why_out_of_reach(study, crossing, error) if value is None else reason,
    )


def _epsilon_needed(
    group: Sequence[Candidate],
    studies: Callable[[Candidate], SimulatedStudies],
    users: int,
    target: float,
    confidence: float,
    report: ReportShare,
) -> Needed:
    epsilons = [candidate.epsilon for candidate in group if candidate.epsilon is not None]
    smallest, largest = min(epsilons), max(epsilons)
    if smallest == largest:
        smallest = max(smallest / SINGLE_EPSILON_FACTOR, MIN_EPSILON)
        largest = min(largest * SINGLE_EPSILON_FACTOR, MAX_EPSILON)
    progress = _SearchProgress(report)

    def candidate_at(epsilon: float) -> Candidate:
        """Scale the nearest candidate: its number of buckets, or size of subsets, may suit its epsilon."""
        nearest = min(group, key=lambda candidate: abs(math.log((candidate.epsilon or 1.0) / epsilon)))
        return nearest.at(epsilon)

    def error(epsilon: float, precision: float) -> ErrorQuantile:
        study = studies(candidate_at(epsilon))
        return progress.predict(study, users, precision).quantile(study.distance, confidence)

    guess = math.sqrt(smallest * largest)
    crossing = find_crossing(error, target, guess, smallest, largest, slope=1.0, spacing=1.25)
    value = crossing.value
    reason = f"epsilon {smallest:g}, the smallest tried, is already enough" if crossing.already else ""
    if value is None:
        reason = f"the error is still {crossing.last.value:.3g} with epsilon {largest:g}, the largest tried"
    return Needed(
        candidate=group[0].name,
        epsilon=None,
        privacy=None if value is None else candidate_at(value).privacy,
        reports_per_user=group[0].reports_per_user,
        truth=studies(group[0]).truth.name,
        what="epsilon",
        value=value,
        low=crossing.low,
        high=crossing.high,
        most=largest,
        users=users,
        extrapolated=progress.has_extrapolated,
        reason=reason,
    )


class _SearchProgress:
    """Progress of a search of unknown length: every step takes the same share of what is left."""

    def __init__(self, report: ReportShare) -> None:
        self._report, self._done = report, 0.0
        self.has_extrapolated = False

    def predict(self, study: SimulatedStudies, users: int, precision: float) -> Prediction:
        """Return one prediction of the search, and report its progress."""
        step = (1.0 - self._done) / SEARCH_STEPS
        prediction = study.predict(users, lambda share: self._report(self._done + share * step), precision=precision)
        self._done += step
        self._report(self._done)
        self.has_extrapolated = self.has_extrapolated or prediction.extrapolated
        return prediction


def _guess(study: SimulatedStudies, target: float) -> float:
    """Return how many users matrix inversion would need for the target, where that has a closed form."""
    variance = study.simulator.variance(study.truth.probabilities, 1)
    if variance is None or study.distance != "tv":
        return DEFAULT_GUESS_USERS
    # The mean of |v - theta| for one user, were it normal.
    one_user = 0.5 * math.sqrt(2.0 / math.pi) * float(np.sqrt(variance).sum())
    return min(max((one_user / target) ** 2, MIN_USERS), MAX_GUESS_USERS)


def _why_out_of_reach(
    study: SimulatedStudies, crossing: Crossing, error: Callable[[float, float], ErrorQuantile]
) -> str:
    tables, values = study.simulator.tables, study.simulator.values
    still = f"the error is still {crossing.last.value:.3g} with {MAX_USERS:,} users"
    if tables is not None and values <= MAX_RANK_VALUES and tables.channel.patterns <= 10 * MAX_RANK_VALUES:
        rank = int(np.linalg.matrix_rank(tables.channel.dense()))
        if rank < values:
            return f"different truths give the same reports (rank {rank} for {values} values); {still}"
    if crossing.last.value > MIN_FALL * error(MAX_USERS / 10, 0.1).value:
        return f"more users do not reduce the error of this method here; {still}"
    return f"more than {MAX_USERS:,} users are needed; {still}"
