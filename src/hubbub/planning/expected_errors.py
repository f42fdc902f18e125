"""The error to expect for each setting: a candidate, a number of users and a truth."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import partial

from hubbub.core.arrays import Positions
from hubbub.core.progress import Progress
from hubbub.planning.answers import Question, SettingResult
from hubbub.planning.candidates import Candidate
from hubbub.planning.interval_widths import interval_widths
from hubbub.planning.parallel import PREPARING, Task, run_parallel
from hubbub.planning.repeated_studies import ReportShare, SimulatedStudies
from hubbub.planning.simulator import Simulator
from hubbub.planning.truths import AssumedTruth

STUDIES_SHARE = 0.9  # of the work for a setting; the rest is for interval widths
WIDTHS_BATCH = -1  # the number of the batch that draws reports for interval widths


def expected_errors(
    question: Question,
    settings: Iterable[tuple[Candidate, int, AssumedTruth]],
    seed: int,
    positions: Positions | None,
) -> Generator[Progress, None, list[SettingResult]]:
    """Return the error of each setting in order, yielding progress.

    The result of a setting depends on the seed, not on the other settings. `positions` are those of the values whose
    interval widths are wanted.
    """
    yield PREPARING
    simulators: dict[int, Simulator] = {}  # enumerating patterns once for each candidate
    studies: dict[tuple[int, int], SimulatedStudies] = {}
    tasks = []
    for candidate, users, truth in settings:
        simulator = simulators.setdefault(id(candidate), Simulator(candidate, question.method))
        study = studies.setdefault(
            (id(candidate), id(truth)),
            SimulatedStudies(simulator, truth, seed, distance=question.distance, runs=question.runs),
        )
        work = partial(_setting_result, study, users, question.level, positions)
        tasks.append(Task(work, study.cost(users), f"{candidate.description}, {users:,} users, {truth.name}"))
    return (yield from run_parallel(tasks))


def _setting_result(
    study: SimulatedStudies, users: int, level: float, positions: Positions | None, report: ReportShare
) -> SettingResult:
    simulator, truth = study.simulator, study.truth
    candidate = simulator.candidate
    prediction = study.predict(users, lambda share: report(STUDIES_SHARE * share))
    near = prediction.near
    return SettingResult(
        candidate=candidate.name,
        epsilon=candidate.epsilon,
        privacy=candidate.privacy,
        reports_per_user=candidate.reports_per_user,
        users=users,
        truth=truth.name,
        tv=prediction.spread("tv"),
        emd=None if near.emd is None else prediction.spread("emd"),
        widths=interval_widths(simulator, users, truth, level, study.generator(users, WIDTHS_BATCH), positions),
        closed=simulator.deviation_ratio(near.squares, truth.probabilities, near.users),
        runs=near.tv.size,
        extrapolated=prediction.extrapolated,
    )
