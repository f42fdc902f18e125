"""What it takes to reach a target: users, or epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from hubbub.client import MAX_EPSILON, MIN_EPSILON
from hubbub.planning.candidate import Candidate
from hubbub.planning.error_spread import Known
from hubbub.planning.repeated_studies import SimulatedStudies, Tell
from hubbub.planning.result import Needed
from hubbub.planning.target_search import Crossing, crossing
from hubbub.planning.truths import AssumedTruth

FEWEST, MOST = 10, 1_000_000_000  # users
GUESS = 10_000
ALONE = 10.0  # by which an epsilon may change where only one was given
STEPS = 6.0  # of a search, for its progress
MOST_RANK = 2_000  # values whose matrix has its rank computed
STUCK = 0.97  # an error that falls by less from a tenth of the users is stuck


def users_needed(study: SimulatedStudies, target: float, share: float, tell: Tell) -> Needed:
    """Return how many users it takes until a share of the studies has an error of at most `target`."""
    candidate, most_drawn = study.simulator.candidate, study.simulator.most_users
    evaluated = _Counter(tell)

    def error(users: float, precision: float) -> Known:
        prediction = study.predict(round(users), evaluated.part, precision=precision)
        evaluated.next()
        return prediction.quantile(study.distance, share)

    found = crossing(error, target, _guess(study, target), FEWEST, MOST, slope=0.5, apart=1.6)
    reason, value = "", found.value
    if value is None:
        reason = _out_of_reach(study, found, error)
    elif found.already:
        reason = f"reached with {FEWEST} users already, the fewest that were tried"
    return Needed(
        candidate=candidate.name,
        epsilon=candidate.epsilon,
        privacy=candidate.privacy,
        reports_per_user=candidate.reports_per_user,
        truth=study.truth.name,
        what="users",
        value=None if value is None else float(math.ceil(value)),
        low=None if found.low is None else float(math.floor(found.low)),
        high=None if found.high is None else float(math.ceil(found.high)),
        most=float(MOST),
        extrapolated=value is not None and most_drawn is not None and value > most_drawn,
        reason=reason,
    )


def epsilon_needed(
    group: Sequence[Candidate],
    make: Callable[[Candidate], SimulatedStudies],
    users: int,
    target: float,
    share: float,
    truth: AssumedTruth,
    tell: Tell,
) -> Needed:
    """Return which epsilon it takes with so many users, between the least and the largest of the group."""
    first = group[0].at(group[0].epsilon or 1.0)  # says what is wrong where there is no epsilon to look for
    given = [candidate.epsilon for candidate in group if candidate.epsilon is not None]
    least, largest = min(given), max(given)
    if least == largest:  # nobody gave a range
        least, largest = max(least / ALONE, MIN_EPSILON), min(largest * ALONE, MAX_EPSILON)
    evaluated, extrapolated = _Counter(tell), False

    def candidate(epsilon: float) -> Candidate:
        """Scale the nearest one that was given: a number of buckets, or the size of a set, may suit its epsilon."""
        near = min(group, key=lambda one: abs(math.log((one.epsilon or 1.0) / epsilon)))
        return near.at(epsilon)

    def error(epsilon: float, precision: float) -> Known:
        nonlocal extrapolated
        study = make(candidate(epsilon))
        prediction = study.predict(users, evaluated.part, precision=precision)
        evaluated.next()
        extrapolated = extrapolated or prediction.extrapolated
        return prediction.quantile(study.distance, share)

    found = crossing(error, target, math.sqrt(least * largest), least, largest, slope=1.0, apart=1.25)
    reason, value = "", found.value
    if value is None:
        reason = f"with epsilon {largest:g}, the largest that was tried, the error is still {found.last.value:.3g}"
    elif found.already:
        reason = f"reached with epsilon {least:g} already, the least that was tried"
    return Needed(
        candidate=first.name,
        epsilon=None,
        privacy=None if value is None else candidate(value).privacy,
        reports_per_user=first.reports_per_user,
        truth=truth.name,
        what="epsilon",
        value=value,
        low=found.low,
        high=found.high,
        most=largest,
        users=users,
        extrapolated=extrapolated,
        reason=reason,
    )


class _Counter:
    """Progress of a search whose length is not known: every step takes its share of what is left."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._done = tell, 0.0

    def part(self, share: float) -> None:
        self._tell(self._done + share * (1.0 - self._done) / STEPS)

    def next(self) -> None:
        self._done += (1.0 - self._done) / STEPS
        self._tell(self._done)


def _guess(study: SimulatedStudies, target: float) -> float:
    """Return how many users plain inversion would need for the target, where that has a closed form."""
    variance = study.simulator.variance(study.truth.probabilities, 1)
    if variance is None or study.distance != "tv":
        return GUESS
    one = 0.5 * math.sqrt(2.0 / math.pi) * float(np.sqrt(variance).sum())  # the mean of |v - theta|, for one user
    return min(max((one / target) ** 2, FEWEST), 1e7)


def _out_of_reach(study: SimulatedStudies, found: Crossing, error: Callable[[float, float], Known]) -> str:
    """Return why no number of users is enough, or that it takes too many."""
    tables, values = study.simulator.tables, study.simulator.values
    still = f"with {MOST:,} users the error is still {found.last.value:.3g}"
    if tables is not None and values <= MOST_RANK and tables.channel.patterns <= 10 * MOST_RANK:
        rank = int(np.linalg.matrix_rank(tables.channel.dense()))
        if rank < values:
            return f"different truths give the same reports (rank {rank} for {values} values): {still}"
    before = error(MOST / 10, 0.1)
    if found.last.value > STUCK * before.value:
        return f"more users do not help this method here: {still}"
    return f"more than {MOST:,} users would be needed: {still}"
