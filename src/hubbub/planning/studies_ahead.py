"""Run long studies in parallel before anyone asks for their errors: also those of one candidate."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from hubbub.core.progress import Progress
from hubbub.planning.parallel import Task, as_share, run_parallel
from hubbub.planning.repeated_studies import SimulatedStudies


def simulate_ahead(entrants: Sequence[tuple[SimulatedStudies, int]]) -> Generator[Progress, None, None]:
    """Simulate what predictions with these numbers of users will look for, yielding progress."""
    total, done = sum(studies.cost(users) for studies, users in entrants), 0.0
    while tasks := [
        Task(run, cost, studies.description(users))
        for studies, users in entrants
        for run, cost in studies.waiting(users)
    ]:
        tasks.sort(key=lambda task: -task.cost)  # so that all processors are busy until the end
        cost = sum(task.cost for task in tasks)
        total = max(total, done + cost)
        yield from as_share(run_parallel(tasks), done / total, (done + cost) / total)
        done += cost
