"""A real cluster on this machine: a scheduler and workers as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

PATIENCE = 60.0  # seconds for processes to come up on a busy machine
HERE = Path(__file__).parent


class Cluster:
    """Processes that are gone when the block ends."""

    def __init__(self, folder: Path, workers: int = 2, threads: int = 1) -> None:
        self._folder, self._threads = folder, str(threads)
        self._card = folder / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show")
        self.address = self._wait_for_address()
        self.workers: list[subprocess.Popen[bytes]] = []
        for _ in range(workers):
            self.add()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()

    def add(self) -> None:
        """Start another worker, without a nanny: nobody brings it back."""
        name = f"worker-{len(self.workers)}"
        words = ["--nthreads", self._threads, "--no-nanny", "--name", name, "--local-directory", str(self._folder)]
        self.workers.append(self._start("dask_worker", *words))

    def kill(self, address: str, client: Any) -> None:
        """End the worker at an address as the kernel ends what takes too much memory, without a goodbye."""
        os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)

    def log(self) -> str:
        """Return what the processes have written, to be shown where a test fails."""
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("*.log")))

    def _start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        number = len(list(self._folder.glob("*.log")))
        paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        threads = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"], self._threads)
        with (self._folder / f"{number}-{module}.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(self._card),
                 "--no-dashboard", *words],
                env={**os.environ, **threads, "PYTHONPATH": paths}, stdout=log, stderr=log,
            )  # fmt: skip

    def _wait_for_address(self) -> str:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                return str(json.loads(self._card.read_text())["address"])
            except (OSError, ValueError):
                time.sleep(0.02)
        raise TimeoutError(self.log())


def _open_sockets() -> Iterator[socket.socket]:
    """Yield a duplicate of each open socket of this process."""
    for file in list(Path("/proc/self/fd").iterdir()):
        with suppress(OSError):  # closed meanwhile
            duplicate = os.dup(int(file.name))
            try:
                connection = socket.socket(fileno=duplicate)
            except OSError:  # not a socket
                os.close(duplicate)
                continue
            yield connection


def traffic() -> tuple[int, int]:
    """Return how many bytes this process has sent and received over its open TCP connections, as the kernel counts."""
    sent = received = 0
    for connection in _open_sockets():
        with connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6) and connection.type == socket.SOCK_STREAM:
                with suppress(OSError):  # closed meanwhile
                    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
                    acked, got = struct.unpack_from("QQ", info, 120)  # tcpi_bytes_acked, tcpi_bytes_received
                    sent, received = sent + acked, received + got
    return sent, received


def received_everywhere(client: Any) -> int:
    """Return how many bytes this process, the scheduler and all workers have received: every byte counts once."""
    everybody = [traffic(), client.run_on_scheduler(traffic), *client.run(traffic).values()]
    return sum(received for _, received in everybody)
