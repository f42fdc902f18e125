"""Waiting for results of a cluster, but not for workers that are gone.

A task that must run on the worker that holds its part cannot run once that worker is gone, and Dask would wait for it
to return. While waiting, we therefore check regularly that the workers are still there.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from hubbub.cluster.connection import load_distributed
from hubbub.core.errors import ClusterError, HubbubError, shorten

if TYPE_CHECKING:
    from distributed import Client, Future

CHECK_SECONDS = 0.5  # between two checks of the workers
ANSWER_SECONDS = 30.0  # in which a scheduler must list its workers, and a finished task deliver its result
WORKER_PATIENCE_SECONDS = 60.0  # to wait for a worker if there is none


class WorkerLost(Exception):  # noqa: N818  # not an error: the computation goes on elsewhere
    """A worker that should compute something is gone; its parts are being computed on another one."""


class ClusterWatch:
    """Waits for results while checking the workers of one cluster."""

    def __init__(self, client: Client, patience: float = WORKER_PATIENCE_SECONDS) -> None:
        self._client: Any = client
        self._patience = patience
        self._no_worker_since: float | None = None

    def check_connection(self) -> None:
        """Raise a ClusterError if the connection is lost: a client that reconnects has forgotten all its tasks."""
        if self._client.status != "running":
            raise self._no_scheduler(f"a client whose status is {self._client.status!r}")

    def workers(self) -> dict[str, int]:
        """Return the workers' addresses and threads; raise a ClusterError if there is none for `patience` seconds."""
        self.check_connection()
        with self._asking_scheduler():
            workers: dict[str, int] = dict(self._client.nthreads(callback_timeout=ANSWER_SECONDS))
        if workers:
            self._no_worker_since = None
        elif self._no_worker_since is None:
            self._no_worker_since = time.monotonic()
        elif time.monotonic() - self._no_worker_since > self._patience:
            raise ClusterError(
                "all workers are gone",
                where=f"the scheduler at {self._address}",
                got=f"no worker for {self._patience:g} seconds",
                expected="at least one worker",
                remedy=f"start workers again (`dask worker {self._address}`) and repeat; patience= sets how many "
                "seconds to wait for one",
            )
        return workers

    def result(self, future: Future[Any], homes: Collection[str] = ()) -> Any:
        """Return the result of a task; raise WorkerLost if one of the workers in `homes` is gone."""
        while not self._are_done([future]):
            if not set(homes) <= set(self.workers()):
                raise WorkerLost
        return self._fetch(future)

    def homes(self, parts: Sequence[Future[Any]]) -> list[str]:
        """Wait until all parts are held, and return the worker that holds each."""
        while True:
            if not self._are_done(parts):
                self.workers()
                continue
            for part in parts:
                if part.status != "finished":
                    self._fetch(part)  # raises the error of the task
            with self._asking_scheduler():
                held: dict[Any, Sequence[str]] = dict(self._client.who_has(list(parts)))
            workers_by_part = [sorted(held.get(part.key, ())) for part in parts]
            if all(workers_by_part):
                return [workers[0] for workers in workers_by_part]
            self.workers()  # a worker was lost just now: its parts are being computed again
            time.sleep(CHECK_SECONDS / 10)

    def _are_done(self, futures: Sequence[Any]) -> bool:
        """Whether all futures finish or fail within `CHECK_SECONDS`."""
        deadline = time.monotonic() + CHECK_SECONDS
        for future in futures:
            with suppress(TimeoutError, CancelledError):  # `_fetch` reports how a task ended
                if not future.done():
                    future.exception(timeout=max(0.01, deadline - time.monotonic()))  # waits, and fetches nothing
            if not future.done():
                return False
        return True

    def _fetch(self, future: Future[Any]) -> Any:
        """Return the result of a task that is done, or raise an error that says why there is none."""
        try:
            return future.result(timeout=ANSWER_SECONDS)
        except HubbubError:
            raise
        except load_distributed().KilledWorker as error:
            cause, got, what = error, shorten(str(error), 200), "a task killed its workers repeatedly"
            expected = "parts that fit into the memory of a worker"
            remedy = "make the parts smaller, or give workers more memory (`dask worker --memory-limit`)"
        except CancelledError as error:
            self.workers()  # raises its own error if the scheduler is gone
            cause, got, what = error, shorten(str(error), 200), "a part is lost and cannot be computed again"
            expected = "parts that are results of tasks, which are computed again if their worker is lost"
            remedy = (
                "let workers load the parts with ClusterReports.from_tasks; data sent by client.scatter has no source"
            )
        except Exception as error:
            cause, got, what = error, shorten(error, 200), "a task failed on the cluster"
            expected = "a part that can be loaded and evaluated on every worker"
            remedy = "see the traceback above: the error that the worker raised is the cause of this one"
        where = f"the cluster at {self._address}"
        raise ClusterError(what, where=where, got=got, expected=expected, remedy=remedy) from cause

    @contextmanager
    def _asking_scheduler(self) -> Iterator[None]:
        try:
            yield
        except (OSError, TimeoutError, RuntimeError, AttributeError) as error:
            raise self._no_scheduler(shorten(error, 200)) from error

    def _no_scheduler(self, reason: str) -> ClusterError:
        return ClusterError(
            "the connection to the scheduler is lost",
            where=f"the scheduler at {self._address}",
            got=reason,
            expected="a running scheduler and an open client until the estimate is done",
            remedy="connect and load the reports again: a client's tasks are lost with its connection",
        )

    @property
    def _address(self) -> str:
        scheduler = self._client.scheduler
        return "an unknown address" if scheduler is None else str(scheduler.address)
