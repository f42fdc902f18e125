"""The collector as an application: its routes, and what every request goes through first.

Each request is counted by its address, its origin is looked at, and whatever is wrong is told in five parts. Nothing of
the person is written anywhere: no address, no agent, no time.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import Message, Receive, Scope, Send

from hubbub.intake.study import Study
from hubbub.serve.access_tokens import TokenKey
from hubbub.serve.bounded_http import too_large
from hubbub.serve.group_commit import GroupCommit, our_mistake, storage_refusal
from hubbub.serve.rate_limit import RateLimit
from hubbub.serve.report_requests import WHERE, ReportBatch, RequestForm, token_fault
from hubbub.serve.request_errors import (
    MAX_FAULTS,
    RETRY_SECONDS,
    ReportFault,
    RequestRefusedError,
    refused,
    reports_refused,
)
from hubbub.serve.service_counters import CONTENT_TYPE, ServiceCounters
from hubbub.serve.web_pages import FixedRoute

MIN_HELD_BYTES = 32_000_000  # of requests that are being read, or wait for their transaction
PREFLIGHT_SECONDS = "600"  # for which a browser need not ask again
JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
METHODS = "GET, POST"


class ClientLeftError(Exception):
    """Whoever sent the request did not wait for the answer."""


class WebApp:
    """The application that a server runs, one for each collector."""

    def __init__(
        self,
        study: Study,
        commits: GroupCommit,
        counters: ServiceCounters,
        *,
        tokens: TokenKey | None = None,
        proxies: Iterable[str] = (),
        pages: Sequence[BaseRoute] = (),
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        rules = study.collector or {}
        self._commits, self._counters, self._tokens, self._log = commits, counters, tokens, log
        self._form = RequestForm(study, wants_users=tokens is not None)
        self._origins: dict[bytes, str] = {origin.encode(): origin for origin in rules["origins"]}
        self._rate = RateLimit(rules["max_requests_per_minute"])
        self._proxies = frozenset(proxies)
        self._max_bytes: int = rules["max_request_bytes"]
        self._max_held = max(MIN_HELD_BYTES, 2 * self._max_bytes)
        routes = [
            Route("/reports", _Taking(self), methods=["POST"]),
            Route("/health", self._health),
            Route("/metrics", self._metrics),
        ]
        self._free = {("GET", page.path) for page in pages if isinstance(page, FixedRoute)}
        self._router = Router([*routes, *pages], default=_no_such_page, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        allowed: list[tuple[bytes, bytes]] = []

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counters.answers[message["status"]] += 1
                if allowed:
                    message["headers"] = [*message.get("headers", ()), *allowed]
            await send(message)

        scope["app"] = self  # routes then raise what is wrong
        try:
            if (scope["method"], scope["path"]) not in self._free:
                self._count_address(scope)
            origin = self._origin(scope)
            if origin is not None:
                allowed += [(b"access-control-allow-origin", origin.encode()), (b"vary", b"origin")]
            if scope["method"] == "OPTIONS" and origin is not None:
                await _preflight()(scope, receive, counted)
                return
            await self._router(scope, receive, counted)
        except ClientLeftError:
            pass
        except RequestRefusedError as refusal:
            await self._refuse(refusal, counted)
        except HTTPException as error:
            await self._refuse(_wrong_method(scope["method"], error.headers or {}), counted)
        except Exception as error:  # a mistake of ours: told without what was sent
            self._log(f"a request failed: {type(error).__name__}")
            await self._refuse(our_mistake(), counted)

    # -- before the routes ----------------------------------------------------------------------------

    def _count_address(self, scope: Scope) -> None:
        """Refuse too many requests from one address."""
        seconds = self._rate.wait(_address(scope, self._proxies))
        if seconds:
            raise refused(
                "too-many-requests",
                "too many requests from this address",
                where="the connection",
                got="more than the study's max_requests_per_minute allows",
                expected="fewer requests; one may hold many reports",
                remedy=f"wait {seconds} s, then send them in larger batches",
                retry_after=seconds,
            )

    def _origin(self, scope: Scope) -> str | None:
        """Return the site of the page that sent a request, if the study names it; refuse others but our own."""
        origins = _headers(scope, b"origin")
        if not origins:
            return None
        if len(origins) == 1 and origins[0] in self._origins:
            return self._origins[origins[0]]
        own = _headers(scope, b"host")
        if len(origins) == len(own) == 1 and origins[0].partition(b"://")[2] == own[0] != b"":
            return None
        raise refused(
            "other-origin",
            "pages of this site may not send reports",
            where="header Origin",
            got="a site that the study does not name",
            expected="the collector's own pages, or a site in the study's origins",
            remedy='add the site to origins in the study\'s [collector], as "https://example.org"',
        )

    async def _refuse(self, refusal: RequestRefusedError, send: Send) -> None:
        self._counters.refusals[refusal.errors[0]["code"]] += 1
        headers = list(JSON)
        if refusal.retry_after is not None:
            headers.append((b"retry-after", str(refusal.retry_after).encode()))
        if refusal.allow:
            headers.append((b"allow", refusal.allow.encode()))
        await _send(send, refusal.status, headers, refusal.body)

    # -- routes ---------------------------------------------------------------------------------------

    async def take_reports(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Store the reports of a request."""
        _check_type(scope)
        held = 0
        try:
            body = bytearray()
            async for part in self._parts(scope, receive):
                held += len(part)
                self._counters.bytes_held += len(part)
                body += part
                self._check_size(len(body))
            batch = self._form.parse(bytes(body))
            receipt = await self._commits.submit(batch, self._users(batch))
        finally:
            self._counters.bytes_held -= held
        await _send(send, 200, JSON, b'{"accepted": %d, "repeated": %d}' % receipt)

    async def _parts(self, scope: Scope, receive: Receive) -> AsyncIterator[bytes]:
        for declared in _headers(scope, b"content-length"):
            self._check_size(int(declared))
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeftError
            yield message.get("body", b"")
            if not message.get("more_body", False):
                return

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise too_large(self._max_bytes)
        if self._counters.bytes_held > self._max_held:
            raise refused(
                "busy",
                "too many reports at once",
                where=WHERE,
                got=f"more than {self._max_held:,} bytes that wait to be stored",
                expected="fewer reports at a time",
                remedy="send the same reports again, with the same keys",
                retry_after=RETRY_SECONDS,
            )

    def _users(self, batch: ReportBatch) -> list[str] | None:
        """Return what is stored of the owners of tokens; refuse tokens that were not issued."""
        if self._tokens is None or batch.users is None:
            return None
        users = [self._tokens.user(token) for token in batch.users]
        unknown = [place for place, user in enumerate(users) if user is None]
        if unknown:
            raise reports_refused([ReportFault(place, token_fault()) for place in unknown[:MAX_FAULTS]])
        return [user for user in users if user is not None]

    async def _health(self, _: Request) -> Response:
        if not self._commits.healthy:
            raise storage_refusal()
        return Response('{"status": "ok"}', media_type="application/json", headers={"cache-control": "no-store"})

    async def _metrics(self, _: Request) -> Response:
        text = self._counters.text(healthy=self._commits.healthy)
        return Response(text, headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})


class _Taking:
    """The route of reports, which reads its body by itself: Starlette takes a function for a handler of requests."""

    def __init__(self, app: WebApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app.take_reports(scope, receive, send)


async def _send(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


def _headers(scope: Scope, name: bytes) -> list[bytes]:
    """Return all headers of a name: two of one that must be single are a trick."""
    return [value for key, value in scope["headers"] if key == name]


def _address(scope: Scope, proxies: frozenset[str]) -> str:
    """Return the address of whoever sent a request; behind proxies that are trusted, the one that they name."""
    address = scope["client"][0] if scope.get("client") else ""
    if address not in proxies:
        return str(address)
    named = b",".join(_headers(scope, b"x-forwarded-for")).decode("latin-1").split(",")
    for entry in reversed(named):
        try:
            address = str(ipaddress.ip_address(entry.strip()))
        except ValueError:
            break  # nobody before this one can be trusted
        if address not in proxies:
            break
    return str(address)


def _check_type(scope: Scope) -> None:
    """Refuse a body that is not declared as JSON: pages of other sites can send only other types without asking."""
    kinds, codings = _headers(scope, b"content-type"), _headers(scope, b"content-encoding")
    kind, _, parameters = kinds[0].lower().partition(b";") if len(kinds) == 1 else (b"", b"", b"")
    charset = parameters.strip().replace(b'"', b"")
    is_json = kind.strip() == b"application/json" and charset in (b"", b"charset=utf-8")
    if is_json and all(coding.strip().lower() == b"identity" for coding in codings):
        return
    raise refused(
        "wrong-type",
        "the body is not declared as JSON",
        where="header Content-Type" if not is_json else "header Content-Encoding",
        got="another type, none, or several" if not is_json else "a compressed body",
        expected="Content-Type: application/json, in UTF-8 and not compressed",
        remedy="add the header, and send the body as it is",
    )


async def _no_such_page(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001  # an application
    raise refused(
        "no-such-page",
        "there is nothing at this path",
        where="the path",
        got="another path",
        expected="/reports, /health, /metrics, /study.json, /results, or / where the study has a [question]",
        remedy="correct the address",
    )


def _preflight() -> Response:
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": METHODS,
            "access-control-allow-headers": "content-type",
            "access-control-max-age": PREFLIGHT_SECONDS,
        },
    )


def _wrong_method(method: str, headers: dict[str, str] | object) -> RequestRefusedError:
    allow = headers.get("Allow", "") if isinstance(headers, dict) else ""
    return refused(
        "wrong-method",
        "this path does not take this method",
        where="the method",
        got=method[:16],
        expected=allow,
        remedy="use another method",
        allow=allow,
    )
