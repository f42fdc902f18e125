"""HTTP with limits: how many connections there are, how large a request is, and how long it takes to arrive.

Uvicorn's protocol has none of these for requests whose headers or bodies never end. What goes beyond is answered, where
that is still possible, and its connection is closed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from hubbub.serve.request_errors import RETRY_SECONDS, RequestRefusedError, refused
from hubbub.serve.service_counters import ServiceCounters

MAX_CONNECTIONS = 2_000
MAX_HEADER_BYTES = 1 << 16
SPARE_FACTOR = 8  # a body may take so many times its limit to arrive, in small chunks or to be refused politely
HEADER_SECONDS = 10.0
MESSAGE_SECONDS = 60.0


class BoundedHttp(HttpToolsProtocol):
    """One connection."""

    max_body_bytes = 1_000_000
    max_connections = MAX_CONNECTIONS
    counters = ServiceCounters()

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._deadline: asyncio.TimerHandle | None = None
        self._received = 0  # bytes of the message that is arriving
        self._in_headers = True
        self._is_complete = False  # whether the last message has arrived in full

    @classmethod
    def limited(cls, max_body_bytes: int, counters: ServiceCounters) -> type[BoundedHttp]:
        """Return the protocol of a server with a limit of its own."""
        members = {"max_body_bytes": max_body_bytes, "counters": counters}
        return type("LimitedHttp", (cls,), members)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection, unless there are too many."""
        super().connection_made(transport)
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
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take some bytes, if the message has room for them."""
        if self.transport.is_closing():
            return
        self._received += len(data)
        super().data_received(data)
        if self.transport.is_closing():
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

    def on_headers_complete(self) -> None:
        """Begin the body of a message, which has more time than the headers."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES:
            self._refuse(_large_headers())  # they came at once, in a single piece
            raise ValueError  # stops the parser
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
        if not self._is_complete and not self.transport.is_closing():
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

    def _refuse(self, refusal: RequestRefusedError) -> None:
        """Answer by ourselves, unless an answer has begun, and close the connection."""
        if self.transport.is_closing():
            return
        self._disarm()
        answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        answered = self.cycle is not None and self.cycle.response_complete and not self._in_headers
        if not answering and not answered:
            self.counters.answers[refusal.status] += 1
            self.counters.refusals[refusal.errors[0]["code"]] += 1
            body = refusal.body
            retry = b"" if refusal.retry_after is None else b"retry-after: %d\r\n" % refusal.retry_after
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
            self.transport.write(STATUS_LINE[refusal.status] + head + retry + b"\r\n" + body)
        self.transport.close()


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
