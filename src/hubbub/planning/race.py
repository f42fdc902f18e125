"""A race of candidates for the least error: those that fall clearly behind are left after a few studies."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from hubbub.core.progress import Progress
from hubbub.planning.parallel import as_part
from hubbub.planning.repeated_studies import SimulatedStudies
from hubbub.planning.studies_ahead import simulate_ahead
from hubbub.planning.study_workers import StudyWorkers

# Studies of each candidate; and how many times the largest error of the best one's the least error of another must be
# for that one to be left. If two had the same errors, the last round would leave the one in one of 12,870 cases. The
# rounds before it are for long studies alone, of many values, whose errors differ less from study to study.
ROUNDS = ((1, 2.0), (2, 1.5), (4, 1.25), (8, 1.0))
RACE_SECONDS = 20.0  # of estimated work for all candidates that stay

Entrant = tuple[SimulatedStudies, int]  # studies of a candidate and a truth, and the number of users


class Raced(NamedTuple):
    """The studies of a candidate that its errors are to be told from, and whether it was left after these few."""

    studies: SimulatedStudies
    left: bool


def race(
    entrants: Sequence[Entrant], workers: StudyWorkers, *, same_privacy: bool
) -> Generator[Progress, None, list[Raced]]:
    """Return the studies of each entrant, in order, yielding progress.

    Those compete that have as many users and reports, the same truth and the same epsilon, or any with `same_privacy`.
    """
    raced = [Raced(studies, left=False) for studies, _ in entrants]
    most, _ = ROUNDS[-1]
    is_quick = sum(studies.repeated(most).cost(users) for studies, users in entrants) <= RACE_SECONDS
    rounds = ROUNDS[-1:] if is_quick else ROUNDS
    for number, (runs, factor) in enumerate(rounds):
        running = [place for place, each in enumerate(raced) if not each.left]
        few = [(entrants[place][0].repeated(runs), entrants[place][1]) for place in running]
        yield from as_part(simulate_ahead(few, workers), number, len(rounds))
        for place, (studies, _), is_behind in zip(running, few, _behind(few, factor, same_privacy), strict=True):
            if is_behind:
                raced[place] = Raced(studies, left=True)
    seconds = RACE_SECONDS / max(1, sum(not each.left for each in raced))
    return [each if each.left else Raced(each.studies.within(seconds), left=False) for each in raced]


def _behind(entrants: Sequence[Entrant], factor: float, same_privacy: bool) -> list[bool]:
    """Return whose errors are all larger than so many times the largest error of the best one."""
    errors = [studies.predict(users, lambda _: None).near.of(studies.distance) for studies, users in entrants]
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, (studies, users) in enumerate(entrants):
        own = studies.candidate
        epsilon = None if same_privacy else own.epsilon
        groups.setdefault((users, studies.truth.name, epsilon, own.reports_per_user), []).append(place)
    behind = [False] * len(entrants)
    for members in groups.values():
        best = min(members, key=lambda place: float(np.median(errors[place])))
        for place in members:
            behind[place] = float(errors[place].min()) > factor * float(errors[best].max())
    return behind
