"""Results that follow the reports: a thread asks a worker process for new ones, at most so often, and keeps them."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from hubbub.core.child_environment import no_imports_from_current_folder
from hubbub.intake.study import Study
from hubbub.serve.results_worker import ResultsSnapshot, ResultsTask, compute_on_request
from hubbub.serve.service_counters import ServiceCounters

POLL_SECONDS = 0.2
STOP_SECONDS = 5.0


class LiveResults:
    """The last results of a collector, computed in the background."""

    def __init__(
        self,
        study: Study,
        source: str,
        counters: ServiceCounters,
        *,
        every: float = 10.0,
        is_shared: bool = False,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.every = every
        self.current: ResultsSnapshot | None = None
        self.problem = ""  # why the last computation failed
        self._counters, self._log = counters, log
        self._is_shared = is_shared  # other collectors fill the table, too: what is counted here says too little
        self._folder = tempfile.TemporaryDirectory(prefix="hubbub-results-", ignore_cleanup_errors=True)
        self._task = ResultsTask(study, source, self._folder.name)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hubbub-results", daemon=True)
        self._worker: tuple[SpawnProcess, Connection] | None = None

    def start(self) -> None:
        """Begin to compute."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, also in the middle of a computation, and leave nothing behind."""
        self._stopping.set()
        self._thread.join()
        self._end_worker()
        self._folder.cleanup()

    def _run(self) -> None:
        seen = -1
        while not self._stopping.is_set():
            accepted = self._counters.accepted
            if accepted != seen or self._is_shared:
                seen = accepted if self._refresh() else seen
            self._stopping.wait(self.every)

    def _refresh(self) -> bool:
        """Ask for new results, and wait for them; return whether there was an answer."""
        try:
            if self._worker is None:
                self._worker = _started(self._task)
            _, pipe = self._worker
            pipe.send(None)
            while not pipe.poll(POLL_SECONDS):
                if self._stopping.is_set():
                    return False
            outcome = pipe.recv()
        except (EOFError, OSError):  # killed, perhaps for its memory: the next time has a new one
            self._tell("the process that computes them has died")
            self._end_worker()
            return False
        if isinstance(outcome, ResultsSnapshot):
            self.current = outcome
        self._tell(outcome if isinstance(outcome, str) else "")
        return True

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            self._log(f"results are not computed: {problem}")
        self.problem = problem

    def _end_worker(self) -> None:
        if self._worker is None:
            return
        process, pipe = self._worker
        self._worker = None
        pipe.close()
        process.kill()  # it keeps nothing but what is in the folder
        process.join(STOP_SECONDS)


def _started(task: ResultsTask) -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")  # nothing of the collector's threads is in it
    ours, theirs = context.Pipe()
    process = context.Process(target=compute_on_request, args=(theirs, task), daemon=True)
    with no_imports_from_current_folder():
        process.start()
    theirs.close()
    return process, ours
