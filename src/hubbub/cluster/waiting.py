"""Waiting for what a cluster computes, without waiting for ever.

A task that must run where its part lies cannot run once that worker is gone, and Dask would wait for its return. While
we wait, we therefore look now and then whether the workers are still there.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hubbub.cluster.connection import load_distributed
from hubbub.core.errors import ClusterError, HubbubError, shorten

if TYPE_CHECKING:
    from distributed import Client, Future

PULSE = 0.5  # seconds between two looks at the workers
ANSWER = 30.0  # seconds in which a scheduler says which workers it has


class Moved(Exception):  # noqa: N818  # not an error: it says where to look again
    """A worker is gone that was to compute something; its parts are being computed elsewhere."""


class Watch:
    """Looks after the workers of one cluster."""

    def __init__(self, client: Client, patience: float) -> None:
        self._client: Any = client
        self._patience = patience
        self._alone_since: float | None = None

    def check(self) -> None:
        """Refuse to go on without a connection; a client that connects again has forgotten all its tasks."""
        if self._client.status != "running":
            raise self._no_scheduler(f"a client whose status is {self._client.status!r}")

    def workers(self) -> dict[str, int]:
        """Return the workers' addresses with their threads, none of them only for as long as there is patience."""
        self.check()
        try:
            found: dict[str, int] = dict(self._client.nthreads(callback_timeout=ANSWER))
        except (OSError, TimeoutError, RuntimeError, AttributeError) as error:
            raise self._no_scheduler(shorten(error, 200)) from error
        if found:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > self._patience:
            raise ClusterError(
                "all workers are gone",
                where=f"the scheduler at {self._address}",
                got=f"no worker for {self._patience:g} seconds",
                expected="at least one worker",
                remedy=f"start workers again (`dask worker {self._address}`) and repeat; patience= says how many "
                "seconds to wait for one",
            )
        return found

    def result(self, future: Future[Any], homes: Collection[str] = ()) -> Any:
        """Return what a task gives; raise Moved if one of the workers in `homes` is gone."""
        while not self._done([future]):
            if not set(homes) <= set(self.workers()):
                raise Moved
        return self._taken(future)

    def homes(self, parts: Sequence[Future[Any]]) -> list[str]:
        """Return for each part the worker that holds it, when all of them are held."""
        while True:
            if not self._done(parts):
                self.workers()
                continue
            for part in parts:
                if part.status != "finished":
                    self._taken(part)  # says what went wrong
            held = self._ask_who_has(parts)
            places = [sorted(held.get(part.key, ())) for part in parts]
            if all(places):
                return [place[0] for place in places]
            self.workers()  # a worker is gone in this moment: its parts are computed again
            time.sleep(PULSE / 10)

    def _done(self, futures: Sequence[Any]) -> bool:
        """Whether all of them are done, one way or another, within a pulse."""
        until = time.monotonic() + PULSE
        for future in futures:
            with suppress(TimeoutError, CancelledError):  # of a task's own fate is told where its result is taken
                if not future.done():
                    future.exception(timeout=max(0.01, until - time.monotonic()))  # waits, and fetches nothing
            if not future.done():
                return False
        return True

    def _taken(self, future: Future[Any]) -> Any:
        """Return the result of a task that is done, or say what became of it."""
        try:
            return future.result(timeout=ANSWER)
        except HubbubError:
            raise
        except load_distributed().KilledWorker as error:
            raise ClusterError(
                "workers died again and again over the same task",
                where=f"the cluster at {self._address}",
                got=shorten(str(error), 200),
                expected="parts that fit into the memory of a worker",
                remedy="make the parts smaller, or give workers more memory (`dask worker --memory-limit`)",
            ) from error
        except CancelledError as error:
            self.workers()  # a scheduler that is gone is another story
            raise ClusterError(
                "a part is lost, and nobody knows how to compute it again",
                where=f"the cluster at {self._address}",
                got=shorten(str(error), 200),
                expected="parts that are results of tasks: these are computed again where their worker is lost",
                remedy="let workers load the parts, with ClusterReports.from_tasks; what is sent with client.scatter "
                "has no source",
            ) from error
        except Exception as error:
            raise ClusterError(
                "a task failed on the cluster",
                where=f"the cluster at {self._address}",
                got=shorten(error, 200),
                expected="a part that can be loaded and evaluated on every worker",
                remedy="what was raised there is the cause of this error: see the traceback above",
            ) from error

    def _ask_who_has(self, parts: Sequence[Future[Any]]) -> dict[Any, Sequence[str]]:
        try:
            return dict(self._client.who_has(list(parts)))
        except (OSError, TimeoutError, RuntimeError, AttributeError) as error:
            raise self._no_scheduler(shorten(error, 200)) from error

    def _no_scheduler(self, reason: str) -> ClusterError:
        return ClusterError(
            "the connection to the scheduler is gone",
            where=f"the scheduler at {self._address}",
            got=reason,
            expected="a scheduler that runs, and a client that is open, until the estimate is done",
            remedy="connect and load the reports again: what a client has submitted goes with it",
        )

    @property
    def _address(self) -> str:
        scheduler = self._client.scheduler
        return "an address no longer known" if scheduler is None else str(scheduler.address)
