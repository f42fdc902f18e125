"""The error and the width of intervals to expect for each setting: a candidate, a number of users and a truth.

The width is that of the study in which every count equals its expectation. There the truth itself maximises the
likelihood, so nothing has to be drawn. The interval of a value's share extends as far as the deviance stays below the
quantile of chi-square with one degree of freedom. Real intervals (`hubbub.band`) scatter around this one; they are
wider where the truth has zeros, whose cutoffs are larger.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from hubbub.core.arrays import Positions, frozen
from hubbub.core.progress import Progress, finish
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import Likelihood
from hubbub.planning.answers import SettingResult, Widths
from hubbub.planning.parallel import PREPARING, Task, as_part, run_parallel
from hubbub.planning.repeated_studies import ReportShare, SimulatedStudies
from hubbub.planning.simulator import Simulator
from hubbub.planning.truths import AssumedTruth
from hubbub.planning.user_simulation import draw_reports

STUDIES_SHARE = 0.9  # of the work for a setting; the rest is for interval widths
WIDTHS_BATCH = -1  # the number of the batch that draws reports for interval widths
MAX_LIKELIHOOD_ENTRIES = 2_000_000  # patterns times values
MIN_USERS = 2  # one user has no interval
SCREENING_RUNS = 4  # studies after which a candidate may be left
RACE_SECONDS = 30.0  # of estimated work for all candidates that stay


def expected_errors(
    settings: Iterable[tuple[SimulatedStudies, int]],
    level: float,
    positions: Positions | None,
    *,
    race: bool = False,
    same_privacy: bool = False,
) -> Generator[Progress, None, list[SettingResult]]:
    """Return the errors of studies with some number of users, in order, yielding progress.

    The result of a setting depends on the seed, not on the other settings, unless they `race`: then a candidate is left
    after a few studies if all of its errors are larger than all of the best one's of the same epsilon, or of all if
    they have the `same_privacy`. `positions` are those of the values whose interval widths are wanted.
    """
    yield PREPARING
    entrants = list(settings)
    if not race:
        return (yield from run_parallel([_task(studies, users, level, positions) for studies, users in entrants]))
    few = [(studies.repeated(SCREENING_RUNS), users) for studies, users in entrants]
    screening = [_task(studies, users, level, np.empty(0, dtype=np.int64)) for studies, users in few]
    first = yield from as_part(run_parallel(screening), 0, 2)
    stays = _that_stay(few, same_privacy=same_privacy)
    seconds = RACE_SECONDS / max(1, sum(stays))
    tasks = [
        _task(studies.within(seconds), users, level, positions)
        for (studies, users), kept in zip(entrants, stays, strict=True)
        if kept
    ]
    last = iter((yield from as_part(run_parallel(tasks), 1, 2)))
    return [next(last) if kept else replace(own, screened=True) for own, kept in zip(first, stays, strict=True)]


def _task(studies: SimulatedStudies, users: int, level: float, positions: Positions | None) -> Task[SettingResult]:
    work = partial(_setting_result, studies, users, level, positions)
    description = f"{studies.candidate.description}, {users:,} users, {studies.truth.name}"
    return Task(work, studies.cost(users), description)


def _that_stay(settings: list[tuple[SimulatedStudies, int]], *, same_privacy: bool) -> list[bool]:
    """Return which candidates may be the best of those with as many users, the same truth and the same privacy.

    If two candidates had the same errors, all of the one's would be larger than all of the other's in one of 70 cases
    (four studies each).
    """
    errors = [studies.predict(users, lambda _: None).near.of(studies.distance) for studies, users in settings]
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, (studies, users) in enumerate(settings):
        own = studies.candidate
        epsilon = None if same_privacy else own.epsilon
        groups.setdefault((users, studies.truth.name, epsilon, own.reports_per_user), []).append(place)
    stays = [True] * len(settings)
    for members in groups.values():
        best = min(members, key=lambda place: float(np.median(errors[place])))
        for place in members:
            stays[place] = float(errors[place].min()) <= float(errors[best].max())
    return stays


def _setting_result(
    studies: SimulatedStudies, users: int, level: float, positions: Positions | None, report: ReportShare
) -> SettingResult:
    simulator, truth, candidate = studies.simulator, studies.truth, studies.candidate
    prediction = studies.predict(users, lambda share: report(STUDIES_SHARE * share))
    near = prediction.near
    return SettingResult(
        candidate=candidate.name,
        epsilon=candidate.epsilon,
        privacy=candidate.privacy,
        reports_per_user=candidate.reports_per_user,
        realised_share=candidate.realised_share,
        users=users,
        truth=truth.name,
        tv=prediction.spread("tv"),
        emd=None if near.emd is None else prediction.spread("emd"),
        widths=interval_widths(simulator, users, truth, level, studies.generator(users, WIDTHS_BATCH), positions),
        closed=simulator.deviation_ratio(near.squares, truth.probabilities, near.users),
        runs=near.tv.size,
        extrapolated=prediction.extrapolated,
        from_sums=simulator.uses_sums(near.users),
    )


def interval_widths(
    simulator: Simulator,
    users: int,
    truth: AssumedTruth,
    level: float,
    rng: np.random.Generator,
    positions: Positions | None = None,
) -> Widths | None:
    """Return the widths for the values at `positions`; None stands for a representative choice.

    Reports whose patterns cannot be enumerated are drawn once; None where they are too many for intervals.
    """
    if positions is not None and not positions.size:
        return None
    region = _likelihood_region(simulator, users, truth, rng)
    if region is None:
        return None
    positions = truth.representative_positions() if positions is None else positions
    cutoff = chi_square(level)
    widths = np.empty(positions.size)
    for number, position in enumerate(positions):
        weights = np.zeros(truth.probabilities.size)
        weights[position] = 1.0
        widths[number] = -region.least(-weights, cutoff).limit - region.least(weights, cutoff).limit
    labels = simulator.candidate.domain.labels[positions]
    return Widths(frozen(labels.copy()), frozen(np.clip(widths, 0.0, 1.0)), level)


def _likelihood_region(
    simulator: Simulator, users: int, truth: AssumedTruth, rng: np.random.Generator
) -> LikelihoodRegion | None:
    if users < MIN_USERS or simulator.uses_sums(users):
        return None
    tables, values = simulator.tables, simulator.values
    if tables is not None:
        if tables.channel.entries > MAX_LIKELIHOOD_ENTRIES:
            return None
        expected = Likelihood(tables.channel, tables.expected(users, truth.probabilities), users)
        return LikelihoodRegion(expected.at(truth.probabilities))
    if users * values > MAX_LIKELIHOOD_ENTRIES:
        return None
    drawn = draw_reports(simulator.candidate, users, truth.probabilities, rng)
    return finish(LikelihoodRegion.around(Likelihood.of(drawn)))
