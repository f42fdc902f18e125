"""Run long studies in parallel before anyone asks for their errors: also those of one candidate."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial

from hubbub.core.progress import Progress
from hubbub.core.threads import processors
from hubbub.planning.parallel import Task, as_share, run_parallel
from hubbub.planning.repeated_studies import ReportShare, SimulatedStudies, WaitingStudy
from hubbub.planning.study_workers import StudyWorkers

WORKERS_FROM_SECONDS = 10.0  # of estimated work; processes take about one each to start


def simulate_ahead(
    entrants: Sequence[tuple[SimulatedStudies, int]], workers: StudyWorkers
) -> Generator[Progress, None, None]:
    """Simulate what predictions with these numbers of users will look for, yielding progress."""
    total, done = sum(studies.cost(users) for studies, users in entrants), 0.0
    while waiting := [(studies, each) for studies, users in entrants for each in studies.waiting(users)]:
        waiting.sort(key=lambda pair: -pair[1].cost)  # so that all processors are busy until the end
        cost = sum(each.cost for _, each in waiting)
        is_much = processors() > 1 and (workers.are_running or cost >= WORKERS_FROM_SECONDS)
        run = partial(_run, workers if is_much else None)
        tasks = [
            Task(partial(run, studies, each), each.cost, studies.description(each.users)) for studies, each in waiting
        ]
        total = max(total, done + cost)
        yield from as_share(run_parallel(tasks), done / total, (done + cost) / total)
        done += cost


def _run(workers: StudyWorkers | None, studies: SimulatedStudies, waiting: WaitingStudy, report: ReportShare) -> None:
    if workers is not None and studies.portable is not None:
        errors = workers.simulate(studies.portable, waiting.users, waiting.number)
        if errors is not None:
            studies.keep(waiting.users, waiting.number, errors)
            return
    studies.simulate(waiting.users, waiting.number, report)
