"""The error and the width of intervals to expect for each setting: a candidate, a number of users and a truth.

The width is that of the study in which every count equals its expectation. There the truth itself maximises the
likelihood, so nothing has to be drawn. The interval of a value's share extends as far as the deviance stays below the
quantile of chi-square with one degree of freedom. Real intervals (`hubbub.band`) scatter around this one; they are
wider where the truth has zeros, whose cutoffs are larger.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from hubbub.core.arrays import Positions, frozen
from hubbub.core.progress import Progress, finish
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import Likelihood
from hubbub.planning.answers import SettingResult, Widths
from hubbub.planning.parallel import PREPARING, Task, as_part, as_share, run_parallel
from hubbub.planning.race import race as run_race
from hubbub.planning.repeated_studies import ReportShare, SimulatedStudies
from hubbub.planning.simulator import Simulator
from hubbub.planning.studies_ahead import simulate_ahead
from hubbub.planning.study_workers import StudyWorkers
from hubbub.planning.truths import AssumedTruth
from hubbub.planning.user_simulation import draw_reports

STUDIES_SHARE = 0.9  # of the work for a setting; the rest is for interval widths
WIDTHS_BATCH = -1  # the number of the batch that draws reports for interval widths
MAX_LIKELIHOOD_ENTRIES = 2_000_000  # patterns times values
MIN_USERS = 2  # one user has no interval
NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)


def expected_errors(
    settings: Iterable[tuple[SimulatedStudies, int]],
    level: float,
    positions: Positions | None,
    *,
    race: bool = False,
    same_privacy: bool = False,
) -> Generator[Progress, None, list[SettingResult]]:
    """Return the errors of studies with some number of users, in order, yielding progress.

    The result of a setting depends on the seed, not on the other settings, unless they `race`: then a candidate may be
    left after a few studies. `positions` are those of the values whose interval widths are wanted.
    """
    yield PREPARING
    entrants = list(settings)
    with StudyWorkers() as workers:
        if not race:
            tasks = [_task(studies, users, level, positions) for studies, users in entrants]
            return (yield from _simulated(entrants, tasks, workers))
        raced = yield from as_part(run_race(entrants, workers, same_privacy=same_privacy), 0, 2)
        entrants = [(each.studies, users) for each, (_, users) in zip(raced, entrants, strict=True)]
        tasks = [
            _task(studies, users, level, NO_POSITIONS if each.left else positions)
            for each, (studies, users) in zip(raced, entrants, strict=True)
        ]
        results = yield from as_part(_simulated(entrants, tasks, workers), 1, 2)
    return [replace(result, screened=each.left) for result, each in zip(results, raced, strict=True)]


def _simulated(
    entrants: Sequence[tuple[SimulatedStudies, int]], tasks: Sequence[Task[SettingResult]], workers: StudyWorkers
) -> Generator[Progress, None, list[SettingResult]]:
    """Simulate long studies in parallel, then what is left to be done for each setting."""
    ahead = [task.cost for task, (studies, users) in zip(tasks, entrants, strict=True) if studies.waiting(users)]
    share = sum(ahead) / (sum(task.cost for task in tasks) or 1.0)
    yield from as_share(simulate_ahead(entrants, workers), 0.0, share)
    return (yield from as_share(run_parallel(tasks), share, 1.0))


def _task(studies: SimulatedStudies, users: int, level: float, positions: Positions | None) -> Task[SettingResult]:
    work = partial(_setting_result, studies, users, level, positions)
    return Task(work, studies.cost(users), studies.description(users))


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
