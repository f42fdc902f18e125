"""Search for what a target takes: the number of users, or the epsilon with a given number of users."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from functools import partial

import numpy as np

from hubbub.client import MAX_EPSILON, MIN_EPSILON
from hubbub.core.progress import Progress
from hubbub.planning.answers import EPSILON, USERS, Needed, Question
from hubbub.planning.candidates import Candidate
from hubbub.planning.parallel import PREPARING, Task, run_parallel
from hubbub.planning.repeated_studies import ErrorQuantile, ReportShare, SimulatedStudies
from hubbub.planning.target_search import Crossing, ErrorAt, find_crossing

MIN_USERS, MAX_USERS = 10, 1_000_000_000
DEFAULT_GUESS_USERS, MAX_GUESS_USERS = 10_000, 1e7
SINGLE_EPSILON_FACTOR = 10.0  # by which an epsilon may change where only one is given
SEARCH_STEPS = 6.0  # expected in a search, for its progress
SEARCH_COST = 4.0  # of a search, in predictions
MAX_RANK_VALUES = 2_000  # of a matrix whose rank is computed
MIN_FALL = 0.97  # an error that stays above this share with ten times the users no longer falls


def search_requirements(
    question: Question, studies: Iterable[SimulatedStudies], users: int | None
) -> Generator[Progress, None, list[Needed]]:
    """Return the users that each candidate needs, or with `users` the epsilon, for each truth in turn.

    The target is reached where a share `question.confidence` of the studies has an error of at most the target. The
    search for an epsilon takes candidates of one name at several epsilons, the range of the search, or at one, which
    then may become ten times smaller or larger.
    """
    yield PREPARING
    groups: dict[object, list[SimulatedStudies]] = {}
    for each in studies:
        name, epsilon, reports = each.candidate.key
        if users is not None:
            each.candidate.at(epsilon or 1.0)  # raises at once where there is no epsilon to search for
        groups.setdefault((name, epsilon if users is None else None, reports, each.truth.name), []).append(each)
    tasks = []
    for group in groups.values():
        candidate, truth = group[0].candidate, group[0].truth
        cost = SEARCH_COST * group[0].cost(users or DEFAULT_GUESS_USERS)
        description = f"{candidate.description if users is None else candidate.name}, {truth.name}"
        tasks.append(Task(partial(_needed, question, group, users), cost, description))
    return (yield from run_parallel(tasks))


def _needed(question: Question, group: list[SimulatedStudies], users: int | None, report: ReportShare) -> Needed:
    search = _Search(question, report)
    return search.users_needed(group[0]) if users is None else search.epsilon_needed(group, users)


class _Search:
    """A search of unknown length: every step takes the same share of the progress that is left."""

    def __init__(self, question: Question, report: ReportShare) -> None:
        assert question.target is not None  # noqa: S101  # otherwise there is nothing to search for
        self.target, self.confidence = question.target, question.confidence
        self._report, self._done = report, 0.0
        self._has_extrapolated = False

    def _error(self, studies: SimulatedStudies, users: int, precision: float) -> ErrorQuantile:
        step = (1.0 - self._done) / SEARCH_STEPS
        prediction = studies.predict(users, lambda share: self._report(self._done + share * step), precision=precision)
        self._done += step
        self._report(self._done)
        self._has_extrapolated = self._has_extrapolated or prediction.extrapolated
        return prediction.quantile(studies.distance, self.confidence)

    def users_needed(self, studies: SimulatedStudies) -> Needed:
        """Return the number of users with which the studies reach the target."""

        def error(users: float, precision: float) -> ErrorQuantile:
            return self._error(studies, round(users), precision)

        guess = _guess(studies, self.target)
        crossing = find_crossing(error, self.target, guess, MIN_USERS, MAX_USERS, slope=0.5, spacing=1.6)
        candidate, value, most = studies.candidate, crossing.value, studies.simulator.max_users
        reason = f"{MIN_USERS} users, the fewest tried, are already enough" if crossing.already else ""
        return Needed(
            candidate=candidate.name,
            epsilon=candidate.epsilon,
            privacy=candidate.privacy,
            reports_per_user=candidate.reports_per_user,
            realised_share=candidate.realised_share,
            truth=studies.truth.name,
            what=USERS,
            value=None if value is None else float(math.ceil(value)),
            low=None if crossing.low is None else float(math.floor(crossing.low)),
            high=None if crossing.high is None else float(math.ceil(crossing.high)),
            most=float(MAX_USERS),
            extrapolated=value is not None and most is not None and value > most,
            reason=_why_out_of_reach(studies, crossing, error) if value is None else reason,
        )

    def epsilon_needed(self, group: Sequence[SimulatedStudies], users: int) -> Needed:
        """Return the epsilon with which studies with this number of users reach the target."""
        epsilons = [studies.candidate.epsilon or 1.0 for studies in group]  # checked before the search
        smallest, largest = min(epsilons), max(epsilons)
        if smallest == largest:
            smallest = max(smallest / SINGLE_EPSILON_FACTOR, MIN_EPSILON)
            largest = min(largest * SINGLE_EPSILON_FACTOR, MAX_EPSILON)

        def candidate_at(epsilon: float) -> Candidate:
            """Scale the nearest candidate: its number of buckets, or size of subsets, may suit its epsilon."""
            nearest = int(np.argmin([abs(math.log(own / epsilon)) for own in epsilons]))
            return group[nearest].candidate.at(epsilon)

        def error(epsilon: float, precision: float) -> ErrorQuantile:
            return self._error(group[0].of(candidate_at(epsilon)), users, precision)

        guess = math.sqrt(smallest * largest)
        crossing = find_crossing(error, self.target, guess, smallest, largest, slope=1.0, spacing=1.25)
        reason = f"epsilon {smallest:g}, the smallest tried, is already enough" if crossing.already else ""
        if crossing.value is None:
            reason = f"the error is still {crossing.last.value:.3g} with epsilon {largest:g}, the largest tried"
        needed = None if crossing.value is None else candidate_at(crossing.value)
        return Needed(
            candidate=group[0].candidate.name,
            epsilon=None,
            privacy=None if needed is None else needed.privacy,
            reports_per_user=group[0].candidate.reports_per_user,
            realised_share=None if needed is None else needed.realised_share,
            truth=group[0].truth.name,
            what=EPSILON,
            value=crossing.value,
            low=crossing.low,
            high=crossing.high,
            most=largest,
            users=users,
            extrapolated=self._has_extrapolated,
            reason=reason,
        )


def _guess(studies: SimulatedStudies, target: float) -> float:
    """Return how many users matrix inversion would need for the target, where that has a closed form."""
    variance = studies.simulator.variance(studies.truth.probabilities, 1)
    if variance is None or studies.distance != "tv":
        return DEFAULT_GUESS_USERS
    # The mean of |v - theta| for one user, were it normal.
    one_user = 0.5 * math.sqrt(2.0 / math.pi) * float(np.sqrt(variance).sum())
    return min(max((one_user / target) ** 2, MIN_USERS), MAX_GUESS_USERS)


def _why_out_of_reach(studies: SimulatedStudies, crossing: Crossing, error: ErrorAt) -> str:
    tables, values = studies.simulator.tables, studies.simulator.values
    still = f"the error is still {crossing.last.value:.3g} with {MAX_USERS:,} users"
    if tables is not None and values <= MAX_RANK_VALUES and tables.channel.patterns <= 10 * MAX_RANK_VALUES:
        rank = int(np.linalg.matrix_rank(tables.channel.dense()))
        if rank < values:
            return f"different truths give the same reports (rank {rank} for {values} values); {still}"
    if crossing.last.value > MIN_FALL * error(MAX_USERS / 10, 0.1).value:
        return f"more users do not reduce the error of this method here; {still}"
    return f"more than {MAX_USERS:,} users are needed; {still}"
