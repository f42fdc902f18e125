"""Real collectors in processes of their own, and what sends reports to them: for tests and benchmarks."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import json
import multiprocessing
import os
import random
import secrets
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import hubbub as hb

CONTEXT = multiprocessing.get_context("forkserver")  # a warm process forks each collector: a start takes milliseconds
CONTEXT.set_forkserver_preload(["collectors", "hubbub.serve.api", "pyarrow", "pyarrow.compute", "pandas"])

STUDY = """version = 1
name = "evenings"
[domain]
kind = "integers"
low = 0
high = 7
[mechanisms.strong]
kind = "truncated-geometric"
epsilon = 0.5
[mechanisms.light]
kind = "geometric"
epsilon = 1.0
[collector]
max_requests_per_minute = 1000000000
"""


def run_collector(study: str, to: str, ready: Connection, keywords: dict[str, Any]) -> None:
    """Serve in this process; what is logged goes through the pipe."""
    from hubbub.serve import api, bounded_http

    bounded_http.HEADER_SECONDS, bounded_http.MESSAGE_SECONDS = keywords.pop("seconds", (10.0, 60.0))
    store = api.STORES[api.store_address(to).scheme]
    if "max_pages" in keywords:
        limit_pages(store, keywords.pop("max_pages"))
    if "fault" in keywords:
        FAULTS[keywords.pop("fault")](store)
    if "end" in keywords:
        keywords.pop("end").arm(store)
    api.serve(
        hb.read_study(study),
        to,
        port=keywords.pop("port", 0),
        ready=lambda listening: ready.send(listening.url),
        log=lambda sentence: ready.send(sentence),
        **keywords,
    )


def limit_pages(store: Any, pages: int) -> None:
    """Let databases have so many pages, until the process gets SIGUSR1: a disk that is full, and then no longer."""
    limit = [pages]
    connect = store._connect

    def limited(self: Any) -> None:
        connect(self)
        self._ask(f"PRAGMA max_page_count = {limit[0]}")

    store._connect = limited
    signal.signal(signal.SIGUSR1, lambda *_: limit.__setitem__(0, 1 << 30))


def answer_early(store: Any) -> None:
    """Plant a fault: reports are acknowledged, and their transaction is ended some time later."""
    begin, commit, count = store._begin, store._commit, itertools.count()
    is_open = [False]

    def begin_once(self: Any) -> None:
        if not is_open[0]:
            begin(self)
        is_open[0] = True

    def commit_late(self: Any) -> None:
        if next(count) % 20 == 0:  # the first one makes the table
            commit(self)
            is_open[0] = False

    store._begin, store._commit = begin_once, commit_late


def store_keys_twice(store: Any) -> None:
    """Plant a fault: the table takes a key as often as it comes."""
    ask = store._ask
    store._ask = lambda self, statement, *parameter: ask(self, statement.replace(" NOT NULL UNIQUE", ""), *parameter)


FAULTS: dict[str, Callable[[Any], None]] = {"early answers": answer_early, "no unique key": store_keys_twice}


@dataclass(frozen=True)
class EndAtCommit:
    """An end of the collector, as abrupt as a kill, at one of its commits: after it, or at some moment inside.

    Inside, the moment is a share of the time that the commit before took. The kernel ends the process by a timer, since
    no thread of Python is sure to run in time. The file says whether the commit had returned by then.
    """

    commits: int  # before this one
    share: float | None  # None: after the commit, before anybody is answered
    seen: Path

    def arm(self, store: Any) -> None:
        """Let a store end the process."""
        commit, count, before = store._commit, itertools.count(-1), [0.0]  # -1: the table is made

        def last(self_: Any) -> None:
            is_last = next(count) == self.commits
            if is_last and self.share is not None:
                self.seen.write_text("inside")
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, self.share * before[0]))  # SIGALRM ends a process
            start = time.perf_counter()
            commit(self_)
            before[0] = time.perf_counter() - start
            if is_last:
                self.seen.write_text("after")
                os.kill(os.getpid(), signal.SIGKILL)

        store._commit = last

    @property
    def was_inside(self) -> bool:
        """Whether the process ended inside the commit."""
        return self.seen.exists() and self.seen.read_text() == "inside"


class RunningCollector:
    """A collector in a process of its own."""

    def __init__(self, study: Path, to: str, **keywords: Any) -> None:
        self.study, self.to = hb.read_study(study), to
        self._pipe, theirs = CONTEXT.Pipe(duplex=False)
        self._process = CONTEXT.Process(target=run_collector, args=(str(study), to, theirs, keywords))
        # It ends with the tests, also where one of them fails before it stops its collector. A daemon would, too, but
        # may not start the process that computes results.
        atexit.register(self.kill)
        self._process.start()
        theirs.close()
        self.url = self._pipe.recv()
        self.port = int(self.url.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def logged(self, seconds: float = 0.0) -> list[str]:
        found = []
        while self._pipe.poll(seconds):
            try:
                found.append(self._pipe.recv())
            except EOFError:
                break
        return found

    def kill(self) -> None:
        atexit.unregister(self.kill)
        self._process.kill()
        self._process.join()

    def ask_to_stop(self) -> None:
        """Ask, and do not wait: only one thread may wait for a process."""
        os.kill(self.pid, signal.SIGTERM)

    def stop(self) -> int | None:
        if self._process.is_alive():
            self.ask_to_stop()
        self._process.join(60)
        if self._process.exitcode is not None:
            atexit.unregister(self.kill)
        return self._process.exitcode

    def let_grow(self) -> None:
        os.kill(self.pid, signal.SIGUSR1)

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return float(next(line for line in status if line.startswith("VmRSS:")).split()[1]) / 1024

    # -- requests -------------------------------------------------------------------------------------

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def post(self, document: object, **headers: str) -> tuple[int, dict[str, Any]]:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        status, _, content = self.ask("POST", "/reports", body, {"Content-Type": "application/json", **headers})
        return status, json.loads(content)

    def send(self, reports: list[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
        return self.post({"fingerprint": self.study.fingerprint, "reports": reports})

    def raw(self, content: bytes, *, seconds: float = 10.0, half_close: bool = False) -> bytes:
        """Send bytes as they are; return all that comes back until the connection is closed, or an answer is whole."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            try:
                connection.sendall(content)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:  # the collector has closed meanwhile: its answer may be there all the same
                pass
            found = b""
            try:
                while part := connection.recv(1 << 16):
                    found += part
                    head, blank, body = found.partition(b"\r\n\r\n")
                    length = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                    if blank and length and len(body) >= int(length[0]):
                        break
            except OSError:
                pass
            return found


def report(output: object = "3", mechanism: str = "strong", **more: Any) -> dict[str, Any]:
    return {"mechanism": mechanism, "output": output, "key": secrets.token_hex(16), **more}


# -- load -----------------------------------------------------------------------------------------------


@dataclass
class Load:
    """What came of many requests."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    acknowledged: list[list[str]] = field(default_factory=list)  # the keys of each request with status 200
    unsure: list[list[str]] = field(default_factory=list)  # those without an answer, or with another one
    statuses: dict[int, int] = field(default_factory=dict)


class _Sender(asyncio.Protocol):
    """One connection that sends a request as soon as the last one is answered."""

    def __init__(self, requests: Iterable[tuple[list[str], bytes]], load: Load, keep: bool) -> None:
        self._requests, self._load, self._keep = iter(requests), load, keep
        self._found = b""
        self._keys: list[str] | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        try:
            if self.done.done():
                return
            self._keys, content = next(self._requests)
        except StopIteration:
            self._keys = None
            self._transport.close()
            return
        self._start = time.perf_counter()
        self._transport.write(content)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._found += data
        end = self._found.find(b"\r\n\r\n")
        if end < 0:
            return
        place = self._found.find(b"content-length: ")
        length = int(self._found[place + 16 : self._found.find(b"\r\n", place)])
        if len(self._found) < end + 4 + length:
            return
        self._load.latencies.append(time.perf_counter() - self._start)
        status = int(self._found[9:12])
        self._load.statuses[status] = self._load.statuses.get(status, 0) + 1
        self._found = b""
        if self._keep and self._keys is not None:
            (self._load.acknowledged if status == 200 else self._load.unsure).append(self._keys)
        self._keys = None
        if status == 503:  # as it was told to
            asyncio.get_running_loop().call_later(0.1, self._next)
        else:
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._keep and self._keys is not None:
            self._load.unsure.append(self._keys)
        if not self.done.done():
            self.done.set_result(None)


def encoded_request(fingerprint: str, reports: list[dict[str, Any]]) -> tuple[list[str], bytes]:
    """Return the keys of a request, and its bytes."""
    body = json.dumps({"fingerprint": fingerprint, "reports": reports}).encode()
    head = b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return [each["key"] for each in reports], head % len(body) + body


async def send_all(
    port: int, requests: Iterable[tuple[list[str], bytes]], connections: int, *, keep: bool = False
) -> Load:
    """Send requests over some connections, each as soon as one is free."""
    load, shared = Load(), iter(requests)
    loop = asyncio.get_running_loop()
    start = time.perf_counter()

    async def one() -> None:
        try:
            _, sender = await loop.create_connection(lambda: _Sender(shared, load, keep), "127.0.0.1", port)
        except OSError:
            return
        await sender.done

    await asyncio.gather(*(one() for _ in range(connections)))
    load.seconds = time.perf_counter() - start
    return load


def run_load(
    port: int,
    requests: Iterable[tuple[list[str], bytes]],
    connections: int,
    *,
    keep: bool = False,
    run: Callable[..., Any] = asyncio.run,
) -> Load:
    """Send requests from this thread, and wait for the end."""
    found: Load = run(send_all(port, requests, connections, keep=keep))
    return found


# -- kills ----------------------------------------------------------------------------------------------


class KilledCollector:
    """A collector that is killed under load, again and again; what has no answer is sent again to the next one."""

    def __init__(self, study: Path, to: str, *, seed: int, connections: int = 8) -> None:
        self._study, self._to, self._connections = study, to, connections
        self._draw = random.Random(seed)  # noqa: S311  # when to kill
        self.fingerprint = hb.read_study(study).fingerprint
        self.acknowledged: set[str] = set()
        self.sent: dict[str, str] = {}  # outputs by key
        self.unsure: dict[str, list[dict[str, Any]]] = {}  # requests without an answer, by their first key
        self.kills = self.resent = 0

    def _requests(self) -> Iterable[tuple[list[str], bytes]]:
        """Yield what has no answer yet, then new requests of one or several reports."""
        for reports in list(self.unsure.values()):
            self.resent += 1
            yield encoded_request(self.fingerprint, reports)
        while True:
            count = self._draw.choice((1, 1, 1, 5, 50))
            reports = [report(str(self._draw.randrange(8))) for _ in range(count)]
            self.sent.update((each["key"], each["output"]) for each in reports)
            self.unsure[reports[0]["key"]] = reports
            yield encoded_request(self.fingerprint, reports)

    def run(
        self, seconds: float, *, kill: Callable[[RunningCollector], None] = RunningCollector.kill, **keywords: Any
    ) -> None:
        """Start a collector, send for about so long, and kill it (or what `kill` kills)."""
        running = RunningCollector(self._study, self._to, **keywords)
        timer = threading.Timer(self._draw.uniform(0.02, 1.0) * seconds, kill, [running])
        timer.start()
        self._take(run_load(running.port, self._requests(), self._connections, keep=True))
        timer.join()
        running.kill()
        self.kills += 1

    def run_to_commit(self, folder: Path, *, inside: bool, **keywords: Any) -> bool:
        """Send until the collector ends at one of its commits; return whether that was inside."""
        share = self._draw.uniform(0.0, 1.2) if inside else None
        end = EndAtCommit(self._draw.randrange(3, 18), share, folder / f"end-{self.kills}")
        self.run(0.0, kill=lambda _: None, end=end, **keywords)
        return end.was_inside

    def _take(self, load: Load) -> None:
        for keys in load.acknowledged:
            self.acknowledged.update(keys)
            self.unsure.pop(keys[0], None)

    def finish(self, stored: Callable[[], list[tuple[str, str]]]) -> list[str]:
        """Send what has no answer to a collector that nobody kills; return what is wrong with what is stored."""
        wrong = self._faults(stored())
        running = RunningCollector(self._study, self._to)
        left = [encoded_request(self.fingerprint, reports) for reports in self.unsure.values()]
        self.resent += len(left)
        load = run_load(running.port, left, self._connections, keep=True)
        self._take(load)
        assert running.stop() == 0
        assert set(load.statuses) <= {200}, load.statuses
        return list(dict.fromkeys([*wrong, *self._faults(stored())]))

    def _faults(self, stored: list[tuple[str, str]]) -> list[str]:
        """Return what is wrong with the keys and outputs that are stored."""
        found = Counter(key for key, _ in stored)
        wrong = [f"{key}: stored {times} times" for key, times in found.items() if times > 1]
        wrong += [f"{key}: acknowledged and not there" for key in self.acknowledged if key not in found]
        wrong += [f"{key}: {output} was never sent" for key, output in stored if self.sent.get(key) != output]
        for first, reports in self.unsure.items():
            there = sum(each["key"] in found for each in reports)
            wrong += [f"{first}: {there} of {len(reports)} are stored"] if there not in (0, len(reports)) else []
        return wrong
