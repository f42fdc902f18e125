"""HTTP with limits: how many connections there are, how large a request is, and how long it takes to arrive.

Uvicorn's protocol has none of these for requests whose headers or bodies never end, and reads on while earlier requests
of a connection wait to be answered. What goes beyond is refused, after the answers that are owed, and its connection is
closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from hubbub.serve.request_errors import RETRY_SECONDS, RequestRefusedError, refused
from hubbub.serve.service_counters import ServiceCounters

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

MAX_CONNECTIONS = 2_000
MAX_HEADER_BYTES = 1 << 16
SPARE_FACTOR = 8  # a body may take so many times its limit to arrive, in small chunks or to be refused politely
MAX_LENGTH_DIGITS = 18  # of a Content-Length
MAX_WAITING_REQUESTS = 100  # of a connection, behind the one that is being answered
HEADER_SECONDS = 10.0
MESSAGE_SECONDS = 60.0


class OrderlyFlow(FlowControl):
    """Reads on when no request waits any more: uvicorn does after every answer.

    Behind the last request it reads on, too, and what comes is dropped: a connection that is closed with something left
    to read is reset, which may cost its other end the answers.
    """

    def __init__(self, transport: asyncio.Transport, waiting: Collection[object]) -> None:
        super().__init__(transport)
        self._waiting = waiting  # and not the connection, which would outlive its end in a circle of references
        self.is_ending = False  # whether the connection is closed after the answers that are owed

    def resume_reading(self) -> None:
        """Read again, if that may be."""
        if not self._waiting or self.is_ending:
            super().resume_reading()


class BoundedHttp(HttpToolsProtocol):
    """One connection."""

    max_body_bytes = 1_000_000
    max_connections = MAX_CONNECTIONS
    counters = ServiceCounters()
    flow: OrderlyFlow

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._deadline: asyncio.TimerHandle | None = None
        self._received = 0  # bytes of the message that is arriving
        self._in_headers = True
        self._is_complete = False  # whether the last message has arrived in full
        self._answering: RequestResponseCycle | None = None  # the request that is answered, or was last

    @classmethod
    def limited(cls, max_body_bytes: int, counters: ServiceCounters) -> type[BoundedHttp]:
        """Return the protocol of a server with a limit of its own."""
        members = {"max_body_bytes": max_body_bytes, "counters": counters}
        return type("LimitedHttp", (cls,), members)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection, unless there are too many."""
        super().connection_made(transport)
        self.flow = OrderlyFlow(transport, self.pipeline)
        if len(self.connections) > self.max_connections:
            self._refuse(
                refused(
                    "busy",
                    "too many connections",
                    where="the connection",
                    got="one more",
                    expected=f"at most {self.max_connections:,} at a time",
                    remedy="try again in a moment",
                    retry_after=RETRY_SECONDS,
                )
            )
            return
        self._arm(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """End a connection."""
        self._disarm()
        for cycle in self._unanswered():  # nobody reads what they would write
            cycle.disconnected = True
            cycle.message_event.set()
        self.pipeline.clear()
        self._answering = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take some bytes, if the message has room for them."""
        if self._is_ending():
            return
        self._received += len(data)
        super().data_received(data)
        if self._is_ending():
            return
        limit = MAX_HEADER_BYTES if self._in_headers else MAX_HEADER_BYTES + SPARE_FACTOR * self.max_body_bytes
        if self._is_complete:
            self._disarm()
        elif self._received > limit:
            self._refuse(_large_headers() if self._in_headers else too_large(self.max_body_bytes))
        elif self._deadline is None:
            self._arm(HEADER_SECONDS if self._in_headers else MESSAGE_SECONDS)

    def on_message_begin(self) -> None:
        """Begin a message."""
        self._received, self._in_headers, self._is_complete = 0, True, False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those behind a body in chunks say nothing that anybody asks for."""
        if self._in_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin the body of a message, which has more time than the headers."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES:
            self._refuse(_large_headers())  # they came at once, in a single piece
            raise ValueError  # stops the parser
        if len(self.pipeline) >= MAX_WAITING_REQUESTS:
            self._refuse(_too_many_waiting())
            raise ValueError
        if not _is_framed(self.parser.get_http_version(), self.headers):
            raise ValueError
        self._in_headers = False
        self._disarm()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """End a message."""
        self._is_complete = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End an answer; whoever is still sending the message that was answered keeps his deadline."""
        super().on_response_complete()
        if not self._is_complete and not self._is_ending():
            self._unset_keepalive_if_required()
            if self._deadline is None:
                self._arm(MESSAGE_SECONDS)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # ours has five parts
        """Refuse what is not HTTP."""
        self._refuse(
            refused(
                "bad-request",
                "this is not a valid HTTP request",
                where="the connection",
                got="something that cannot be parsed, or that has two meanings",
                expected="HTTP/1.1",
                remedy="send the request with an HTTP library",
            )
        )

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(seconds, self._too_late)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        self._refuse(
            refused(
                "too-slow",
                "the request took too long to arrive",
                where="the connection",
                got="a part of a request",
                expected=f"headers within {HEADER_SECONDS:g} s, and the rest within {MESSAGE_SECONDS:g} s",
                remedy="send it again over a faster connection, or in smaller parts",
            )
        )

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _unanswered(self) -> list[RequestResponseCycle]:
        """Return the requests whose headers have arrived and whose answers are not complete, in their order."""
        waiting = [cycle for cycle, _ in reversed(self.pipeline)]
        now = self._answering
        return waiting if now is None or now.response_complete else [now, *waiting]

    def _is_ending(self) -> bool:
        return self.flow.is_ending or self.transport.is_closing()

    def _refuse(self, refusal: RequestRefusedError) -> None:
        """Answer the message that is arriving by ourselves, unless its answer has begun, and close the connection.

        Where earlier requests of the connection have no answer yet, they get theirs, and it is closed after the last.
        """
        if self._is_ending():
            return
        self._disarm()
        self.counters.refusals[refusal.errors[0]["code"]] += 1
        unanswered = self._unanswered()
        own = None if self._in_headers or self._is_complete else self.cycle  # of the message that is arriving
        if own is not None and own in unanswered:
            unanswered.remove(own)
            if self.pipeline:
                self.pipeline.popleft()  # it was the last one
        if unanswered:
            unanswered[-1].keep_alive = False
            self.flow.is_ending = True
            self.flow.resume_reading()
            return
        if own is None or not own.response_started:
            self.counters.answers[refusal.status] += 1
            body = refusal.body
            retry = b"" if refusal.retry_after is None else b"retry-after: %d\r\n" % refusal.retry_after
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
            self.transport.write(STATUS_LINE[refusal.status] + head + retry + b"\r\n" + body)
        self.transport.close()


def _is_framed(version: str, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a request says once, and in one way, for whom it is and where it ends."""

    def all_of(wanted: bytes) -> list[bytes]:
        return [value for name, value in headers if name == wanted]

    hosts, lengths, codings = all_of(b"host"), all_of(b"content-length"), all_of(b"transfer-encoding")
    if version not in ("1.0", "1.1") or len(hosts) > 1 or (version == "1.1" and not hosts):
        return False
    if codings and (version == "1.0" or [coding.strip().lower() for coding in codings] != [b"chunked"]):
        return False
    return all(len(length.strip()) <= MAX_LENGTH_DIGITS for length in lengths)


def _too_many_waiting() -> RequestRefusedError:
    return refused(
        "busy",
        "too many requests wait on one connection",
        where="the connection",
        got="one more",
        expected=f"at most {MAX_WAITING_REQUESTS} requests ahead of their answers",
        remedy="wait for answers before sending more, or send many reports in one request",
        retry_after=RETRY_SECONDS,
    )


def _large_headers() -> RequestRefusedError:
    return refused(
        "headers-too-large",
        "the headers of the request are too large",
        where="the headers",
        got=f"more than {MAX_HEADER_BYTES:,} bytes",
        expected=f"at most {MAX_HEADER_BYTES:,} bytes",
        remedy="send fewer and shorter headers",
    )


def too_large(limit: int) -> RequestRefusedError:
    """Return the refusal of a body beyond the limit."""
    return refused(
        "too-large",
        "the request is too large",
        where="the body",
        got=f"more than {limit:,} bytes",
        expected=f"at most {limit:,} bytes, as the study's max_request_bytes says",
        remedy="send the reports in several requests",
    )
