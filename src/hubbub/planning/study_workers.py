"""Processes that simulate long studies: threads of one process would wait for each other most of the time.

A process is a fresh Python without the caller's main module. Studies that it cannot know (an estimator that was
registered, a mechanism of the main module) are simulated here instead, and so is any study whose process failed.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from hubbub.core.threads import threads_for

if TYPE_CHECKING:
    from hubbub.planning.repeated_studies import SimulatedStudies, StudyErrors

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

Process = subprocess.Popen[bytes]


class StudyWorkers:
    """Processes that are started when a study comes and none is idle, and ended with the `with` block."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[Process] = []
        self._started: list[Process] = []
        self._can_start = bool(sys.executable) and not getattr(sys, "frozen", False)

    def __enter__(self) -> StudyWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.kill()
        for process in self._started:
            process.communicate()
        self._started, self._idle = [], []

    @property
    def are_running(self) -> bool:
        """Whether any has been started."""
        return bool(self._started)

    def simulate(self, portable: bytes, users: int, number: int) -> StudyErrors | None:
        """Return the errors of one study; None if it has to be simulated here."""
        process = self._take()
        if process is None:
            return None
        assert process.stdin is not None  # noqa: S101  # both are pipes
        assert process.stdout is not None  # noqa: S101
        try:
            pickle.dump((portable, users, number), process.stdin)
            process.stdin.flush()
            errors: StudyErrors | None = pickle.load(process.stdout)  # noqa: S301  # from a process of our own
        except (OSError, EOFError, pickle.UnpicklingError):
            self._can_start = False  # it ended: for lack of memory, or because there is no Python to start
            return None
        with self._lock:
            self._idle.append(process)
        return errors

    def _take(self) -> Process | None:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if not self._can_start:
                return None
            code = f"import sys; sys.path[:] = {sys.path!r}; from hubbub.planning.study_workers import work; work()"
            with suppress(OSError):
                process = subprocess.Popen(  # noqa: S603  # this Python, with this code
                    [sys.executable, "-P", "-c", code],  # nothing of the current folder
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, **ONE_THREAD},
                )
                self._started.append(process)
                return process
            self._can_start = False
            return None


def work() -> None:
    """Simulate the studies that come in, until no more do: what a process runs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks decides when to stop
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed is no answer
    known: dict[bytes, SimulatedStudies] = {}
    while True:
        try:
            portable, users, number = pickle.load(asked)  # noqa: S301  # from the process that started this one
        except EOFError:
            return
        with threads_for(0):
            pickle.dump(_errors(known, portable, users, number), answers)
        answers.flush()


def _errors(known: dict[bytes, SimulatedStudies], portable: bytes, users: int, number: int) -> StudyErrors | None:
    from hubbub.planning.repeated_studies import SimulatedStudies

    try:
        if portable not in known:
            known[portable] = SimulatedStudies.from_portable(portable)
        return known[portable].simulate(users, number, _quiet)
    except Exception:  # whatever it is, it is raised where the study is simulated again
        return None


def _quiet(_: float) -> None:
    pass
