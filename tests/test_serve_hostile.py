"""Hostile requests over raw sockets: no crash, no leak, nothing stored, and every answer is one of ours."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from collectors import STUDY, RunningCollector, report
from hubbub.serve import bounded_http

HEADER_SECONDS, MESSAGE_SECONDS = 0.4, 0.8  # of the collector here
TYPE = "Content-Type: application/json"
CLOSED = 0  # the connection is closed without an answer


class Hostile(NamedTuple):
    content: bytes
    statuses: tuple[int, ...]
    half_close: bool = False


def head(*headers: str, line: str = "POST /reports HTTP/1.1", host: str = "Host: x") -> bytes:
    return "\r\n".join([line, *([host] if host else []), *headers, "", ""]).encode("latin-1")


def post(body: bytes | object, *headers: str, kind: str = TYPE) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(*([kind] if kind else []), f"Content-Length: {len(content)}", *headers) + content


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    parts = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return head(TYPE, "Transfer-Encoding: chunked") + parts + end


PRIVATE = "tea-with-milk-4711"  # in what is sent: no log and no file may have it
GOOD = {"mechanism": "strong", "output": "3", "key": "aaaaaaaaaaaaaaaa"}
FIT = json.dumps(GOOD).encode()
DEEP = b'{"reports":' * 50_000

HOSTILE: dict[str, Hostile] = {
    # huge
    "a body beyond the limit": Hostile(post(b" " * 1_000_001), (413,)),
    "a body far beyond the limit": Hostile(post(b" " * 9_000_000), (413,)),
    "a declared length beyond the limit": Hostile(head(TYPE, "Content-Length: 99999999"), (413,)),
    "a declared length beyond 2^63": Hostile(head(TYPE, f"Content-Length: {2**64}"), (400,)),
    "a declared length of 5,000 digits": Hostile(head(TYPE, f"Content-Length: {'9' * 5000}"), (400,)),
    "a chunked body beyond the limit": Hostile(chunked(*[b" " * 100_000] * 12), (413,)),
    "a huge header": Hostile(head("X: " + "a" * 200_000), (431, 400)),
    "a huge header without an end": Hostile(head("X: " + "a" * 2_000_000)[:-4], (431,)),
    "a hundred thousand headers": Hostile(head(*["A: b"] * 100_000), (431,)),
    "a huge path": Hostile(head(line=f"GET /{'a' * 300_000} HTTP/1.1"), (431,)),
    "a huge method": Hostile(head(line=f"{'A' * 100_000} / HTTP/1.1"), (400,)),
    "endless chunk extensions": Hostile(chunked(end=b"5;" + b"a" * 9_000_000), (400, 413)),
    "endless trailers": Hostile(chunked(FIT[:10], end=b"0\r\n" + b"A: b\r\n" * 2_000_000), (400, 413)),
    "a thousand tiny chunks": Hostile(chunked(*[b" "] * 1000, b"{"), (400,)),
    # truncated
    "nothing": Hostile(b"", (CLOSED,), half_close=True),
    "half of a line": Hostile(b"POST /rep", (CLOSED, 408), half_close=True),
    "half of the headers": Hostile(head()[:-6], (CLOSED, 408), half_close=True),
    "half of a body": Hostile(post(FIT)[:-10], (CLOSED, 408), half_close=True),
    "half of a chunk": Hostile(chunked(FIT)[:-20], (CLOSED, 408), half_close=True),
    # slow
    "headers that stop": Hostile(head()[:-6], (408,)),
    "a body that stops": Hostile(post(FIT)[:-10], (408,)),
    "a chunk that stops": Hostile(chunked(FIT)[:-20], (408,)),
    "a body that never comes, expected": Hostile(head(TYPE, "Content-Length: 9", "Expect: 100-continue"), (408, 100)),
    "a refused body that never comes": Hostile(head("Content-Length: 10"), (415,)),
    # not HTTP
    "bytes": Hostile(bytes(range(256)), (400,)),
    "a greeting of TLS": Hostile(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, (400,)),
    "HTTP/2": Hostile(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400,)),
    "HTTP/9.9": Hostile(head(line="GET / HTTP/9.9"), (400,)),
    "HTTP/0.9": Hostile(b"GET /\r\n\r\n", (400, 404)),
    "no version": Hostile(head(line="GET /"), (400, 404)),
    "a line of NULs": Hostile(b"\0" * 1000 + b"\r\n\r\n", (400,)),
    "NUL in a header": Hostile(head("X: a\0b"), (400,)),
    "no host": Hostile(head(host="", line="GET /health HTTP/1.1"), (400,)),
    "a host twice": Hostile(head("Host: x", line="GET /health HTTP/1.1"), (400,)),
    "HTTP/2 in the words of HTTP/1": Hostile(head(line="GET /health HTTP/2.0"), (400,)),
    "a bare line feed in a header": Hostile(b"GET / HTTP/1.1\nHost: x\nX: y\n\n", (400, 404)),
    "a header without a colon": Hostile(head("nonsense"), (400,)),
    "a space before the colon": Hostile(head("Content-Length : 5"), (400,)),
    "a folded header": Hostile(head("X: a\r\n b"), (400, 415)),
    # lengths with two meanings
    "two lengths": Hostile(head(TYPE, "Content-Length: 5", "Content-Length: 6") + b"123456", (400,)),
    "a length and chunks": Hostile(
        head(TYPE, "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n", (400,)
    ),
    "a length of 4,300 digits": Hostile(head(TYPE, f"Content-Length: {'0' * 4299}5") + b"12345", (400,)),
    "chunks in HTTP/1.0": Hostile(
        head(TYPE, "Transfer-Encoding: chunked", line="POST /reports HTTP/1.0") + b"0\r\n\r\n", (400,)
    ),
    "compressed and in chunks": Hostile(head(TYPE, "Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n", (400,)),
    "a negative length": Hostile(head(TYPE, "Content-Length: -1"), (400,)),
    "a length with a sign": Hostile(head(TYPE, "Content-Length: +5") + b"12345", (400,)),
    "a length in hexadecimal": Hostile(head(TYPE, "Content-Length: 0x5") + b"12345", (400,)),
    "chunked twice": Hostile(head(TYPE, "Transfer-Encoding: chunked, chunked") + b"0\r\n\r\n", (400,)),
    "a coding nobody knows": Hostile(head(TYPE, "Transfer-Encoding: x") + b"0\r\n\r\n", (400,)),
    "a chunk of a negative size": Hostile(chunked(end=b"-1\r\n\r\n"), (400,)),
    "a chunk of a size beyond 2^64": Hostile(chunked(end=b"fffffffffffffffff\r\n\r\n"), (400,)),
    "a chunk longer than it says": Hostile(chunked(end=b"1\r\nab\r\n0\r\n\r\n"), (400,)),
    # bodies
    "no body": Hostile(head(TYPE, "Content-Length: 0"), (400,)),
    "not JSON": Hostile(post(b"output=3"), (400,)),
    "deep lists": Hostile(post(b"[" * 900_000), (400,)),
    "deep objects": Hostile(post(DEEP), (400,)),
    "deep lists that end": Hostile(post(b"[" * 400_000 + b"]" * 400_000), (400,)),
    "a number of a million digits": Hostile(post(b"9" * 999_000), (400,)),
    "a number with a huge exponent": Hostile(post(b'{"reports": 1e999999}'), (422,)),
    "NaN": Hostile(post(b'{"output": NaN}'), (400,)),
    "UTF-16": Hostile(post(FIT.decode().encode("utf-16")), (400,)),
    "broken UTF-8": Hostile(post(b'{"output": "\xff\xfe"}'), (400,)),
    "a member twice": Hostile(post(FIT[:-1] + b', "output": "4"}'), (400,)),
    "a member twice in a long request": Hostile(
        post(b'{"fingerprint": "x", "reports": [' + b", ".join([FIT] * 100) + b', {"key": "aaaaaaaa", "key": "b"}]}'),
        (400,),
    ),
    "a hundred thousand reports that are none": Hostile(post([0] * 100_000), (422,)),
    "a hundred thousand empty reports": Hostile(post({"fingerprint": "x", "reports": [{}] * 100_000}), (409,)),
    "an unknown member of a million letters": Hostile(post({**GOOD, "k" * 900_000: 1}), (422,)),
    "an output of a million letters": Hostile(post({**GOOD, "output": PRIVATE * 50_000}), (422,)),
    "an output of a million digits": Hostile(post({**GOOD, "output": "9" * 900_000}), (422,)),
    "an output of digits of another script": Hostile(post({**GOOD, "output": "٣"}), (422,)),
    "a mechanism of a million letters": Hostile(post({**GOOD, "mechanism": "m" * 900_000}), (422,)),
    "a mechanism that is a list": Hostile(post({**GOOD, "mechanism": ["strong"]}), (422,)),
    "a key that is an object": Hostile(post({**GOOD, "key": {"key": "a"}}), (422,)),
    "a key that ends in a line feed": Hostile(post({**GOOD, "key": "aaaaaaaaaaaa\n"}), (422,)),
    "a key of SQL": Hostile(post({**GOOD, "key": "a'); DROP TABLE reports; --"}), (422,)),
    "an output of SQL": Hostile(post({**GOOD, "output": "3'); DROP TABLE reports; --"}), (422,)),
    "an output with NUL": Hostile(post({**GOOD, "output": "3\0"}), (422,)),
    "half of a pair of surrogates": Hostile(post(FIT.replace(b'"3"', b'"\\ud800"')), (422,)),
    "another study": Hostile(post({"fingerprint": "0" * 64, "reports": [GOOD]}), (409,)),
    "a fingerprint that is an object": Hostile(post({"fingerprint": {"a": PRIVATE}, "reports": [GOOD]}), (409,)),
    # types
    "no type": Hostile(post(FIT, kind=""), (415,)),
    "a form": Hostile(post(FIT, kind="Content-Type: application/x-www-form-urlencoded"), (415,)),
    "a plain text, as pages may send": Hostile(post(FIT, kind="Content-Type: text/plain"), (415,)),
    "two types": Hostile(post(FIT, "Content-Type: text/plain"), (415,)),
    "a type with JSON in it": Hostile(post(FIT, kind="Content-Type: text/plain; application/json"), (415,)),
    "a compressed body": Hostile(post(b"\x1f\x8b" + b"\0" * 100, "Content-Encoding: gzip"), (415,)),
    # origins
    "another site": Hostile(post(FIT, "Origin: https://evil.example"), (403,)),
    "no site": Hostile(post(FIT, "Origin: null"), (403,)),
    "two sites": Hostile(post(FIT, "Origin: http://x", "Origin: http://evil.example"), (403,)),
    "an empty site": Hostile(post(FIT, "Origin: "), (403,)),
    "a site like our own": Hostile(post(FIT, "Origin: http://x.evil.example"), (403,)),
    "two hosts": Hostile(post(FIT, "Origin: http://y", "Host: y"), (403, 400)),
    "a preflight of another site": Hostile(
        head("Origin: https://evil.example", line="OPTIONS /reports HTTP/1.1"), (403,)
    ),
    # paths and methods
    "a path upwards": Hostile(head(line="GET /../../../etc/passwd HTTP/1.1"), (404,)),
    "a path upwards, encoded": Hostile(head(line="GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1"), (404,)),
    "a path with NUL": Hostile(head(line="GET /a%00b HTTP/1.1"), (404,)),
    "a path that is not UTF-8": Hostile(head(line="GET /%ff%fe HTTP/1.1"), (404,)),
    "an absolute address": Hostile(head(line="GET http://evil.example/reports HTTP/1.1"), (400, 404, 405)),
    "a path without a slash": Hostile(head(line="GET reports HTTP/1.1"), (400, 404)),
    "CONNECT": Hostile(head(line="CONNECT evil.example:443 HTTP/1.1"), (400, 404)),
    "TRACE": Hostile(head(line="TRACE /reports HTTP/1.1"), (400, 405)),
    "an unknown method": Hostile(head(line="HACK /reports HTTP/1.1"), (400, 405)),
    "an upgrade": Hostile(head("Upgrade: websocket", "Connection: Upgrade", line="GET /reports HTTP/1.1"), (400, 405)),
    "an upgrade to HTTP/2": Hostile(
        head("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AA", line="GET /reports HTTP/1.1"),
        (400, 405),
    ),
    "a method in a header": Hostile(head("X-HTTP-Method-Override: POST", line="GET /reports HTTP/1.1"), (405,)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def collector(folder: Path) -> Iterator[RunningCollector]:
    (folder / "study.toml").write_text(STUDY)
    seconds = (HEADER_SECONDS, MESSAGE_SECONDS)
    running = RunningCollector(folder / "study.toml", f"sqlite:///{folder}/reports.db", seconds=seconds)
    running.ask("GET", "/health")
    yield running
    assert running.stop() == 0
    assert running.logged() == []


def stored(folder: Path) -> int:
    with sqlite3.connect(folder / "reports.db") as database:
        return int(database.execute("SELECT count(*) FROM reports").fetchone()[0])


def test_there_are_eighty() -> None:
    assert len(HOSTILE) >= 80


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_refused(collector: RunningCollector, folder: Path, name: str) -> None:
    hostile = HOSTILE[name]
    found = collector.raw(hostile.content, half_close=hostile.half_close)
    first, _, body = found.partition(b"\r\n\r\n")
    status = int(first[9:12]) if found else CLOSED
    assert status in hostile.statuses, found[:300]
    if status >= 400:
        document = json.loads(body)
        assert document["accepted"] == 0
        assert {"what", "where", "got", "expected", "remedy", "code"} <= set(document["errors"][0])
        assert len(body) < 10_000  # nothing is sent back at length
    assert b"Traceback" not in found
    assert collector.ask("GET", "/health")[0] == 200
    assert stored(folder) == 0


@pytest.mark.slow
def test_memory_stays_the_same(collector: RunningCollector) -> None:
    sizes = [name for name in HOSTILE if len(HOSTILE[name].content) > 100_000]
    for name in sizes:
        collector.raw(HOSTILE[name].content)
    before = collector.memory_mib()
    for _ in range(2):
        for name in sizes:
            collector.raw(HOSTILE[name].content)
    assert collector.memory_mib() < before + 60


def test_many_slow_connections_do_not_keep_others_out(collector: RunningCollector) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", collector.port))) for _ in range(200)]
        for each in slow:
            each.sendall(b"POST /reports HTTP/1.1\r\nHost: x\r\nX: ")
        assert collector.ask("GET", "/health")[0] == 200
        deadline = time.monotonic() + 20 * HEADER_SECONDS
        while (held := _still_open(slow)) and time.monotonic() < deadline:
            for each in held:
                with suppress(OSError):
                    each.sendall(b"a")  # a letter now and then does not buy time
            time.sleep(HEADER_SECONDS / 4)
        assert _still_open(slow) == []


def _still_open(connections: list[socket.socket]) -> list[socket.socket]:
    found = []
    for each in connections:
        each.setblocking(False)
        try:
            if each.recv(1 << 16):
                found.append(each)
        except BlockingIOError:
            found.append(each)
        except OSError:
            pass
    return found


def all_answers(collector: RunningCollector, content: bytes) -> list[int]:
    """Return the statuses that come back until the collector closes the connection."""
    found = b""
    with socket.create_connection(("127.0.0.1", collector.port), timeout=10) as connection:
        connection.sendall(content)
        while part := connection.recv(1 << 16):
            found += part
    return [int(each[:3]) for each in found.split(b"HTTP/1.1 ")[1:]]


def test_requests_in_a_row_are_answered_in_order(collector: RunningCollector, folder: Path) -> None:
    """Several requests in one packet: each has its answer, and a bad one in the middle does not spoil the others."""
    before = stored(folder)
    one, two = post(report()), post(report())
    last = head("Connection: close", line="GET /health HTTP/1.1")
    assert all_answers(collector, one + post(b"{") + two + last) == [200, 400, 200, 200]
    assert stored(folder) == before + 2


def test_a_request_is_answered_also_where_nonsense_follows(collector: RunningCollector, folder: Path) -> None:
    """Who is not answered sends again; and an answer that is not that of the report would be taken for it."""
    before = stored(folder)
    for number, rest in enumerate((b"\0nonsense\r\n\r\n", head("Host: x"), head("X: " + "a" * 70_000)), start=1):
        assert all_answers(collector, post(report()) + rest) == [200]
        assert stored(folder) == before + number


def test_requests_that_wait_for_others_are_limited(collector: RunningCollector) -> None:
    """What comes at once beyond the limit is not answered, and everything before it is, in order."""
    probe, last = head(line="GET /health HTTP/1.1"), head("Connection: close", line="GET /nowhere HTTP/1.1")
    most = bounded_http.MAX_WAITING_REQUESTS
    assert all_answers(collector, probe * most + last) == [200] * most + [404]
    assert all_answers(collector, probe * 2 * most + last) == [200] * (most + 1)


@pytest.mark.slow
def test_who_reads_no_answers_fills_no_memory(collector: RunningCollector) -> None:
    content = head(line="GET /metrics HTTP/1.1") * 20_000
    before = collector.memory_mib()
    with ExitStack() as stack:
        for _ in range(50):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", collector.port)))
            connection.setblocking(False)
            with suppress(OSError):  # nobody takes it all
                connection.sendall(content)
        assert collector.ask("GET", "/health")[0] == 200
        time.sleep(2 * MESSAGE_SECONDS)
        assert collector.memory_mib() < before + 60


def test_nothing_of_what_was_sent_is_kept(collector: RunningCollector, folder: Path) -> None:
    collector.raw(post({**GOOD, "output": PRIVATE}, f"User-Agent: {PRIVATE}", f"Cookie: {PRIVATE}"))
    assert collector.logged() == []
    metrics = collector.ask("GET", "/metrics")[2]
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    assert PRIVATE.encode() not in metrics + content
