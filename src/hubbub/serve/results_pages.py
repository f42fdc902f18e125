"""`/results`: the live report for those with its token, and the same as JSON."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hubbub.intake.study import Study
from hubbub.reporting.html_templates import render
from hubbub.serve.live_results import LiveResults
from hubbub.serve.question_page import PACKAGE, page_headers
from hubbub.serve.request_errors import RequestRefusedError, refused
from hubbub.serve.results_access import MAX_TOKEN_LETTERS, ResultsAccess
from hubbub.serve.web_pages import asset_route

COOKIE = "hubbub-results"
# The session is sent to these paths alone: never with a report.
COOKIE_PATHS = ("/results", "/results.json")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
WRONG_TOKEN_SECONDS = 1.0  # before a wrong token is refused
MAX_FORM_BYTES = 3 * MAX_TOKEN_LETTERS + 100
NO_STORE = {"cache-control": "no-store"}
RETRY_SECONDS = 5


class ResultsPages:
    """The routes of the results."""

    def __init__(self, study: Study, results: LiveResults, access: ResultsAccess) -> None:
        self._study, self._results, self._access = study, results, access

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route("/results", self._frame, methods=["GET"]),
            Route("/results", self._sign_in, methods=["POST"]),
            Route("/results/page", self._page),
            Route("/results/status", self._status),
            Route("/results.json", self._document),
            asset_route("page.css"),
            asset_route("results.css"),
            asset_route("results.js"),
        ]

    # -- who may see them -----------------------------------------------------------------------------

    def _is_allowed(self, request: Request) -> bool:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._access.is_token(given.strip()):
            return True
        session = request.cookies.get(COOKIE, "")
        return bool(session) and self._access.is_session(session)

    def _check(self, request: Request) -> None:
        if not self._is_allowed(request):
            raise _no_token()

    async def _sign_in(self, request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_FORM_BYTES:
                raise _no_token()
        given = parse_qs(bytes(body).decode("utf-8", "replace")).get("token", [""])[0].strip()
        if not self._access.is_token(given):
            await asyncio.sleep(WRONG_TOKEN_SECONDS)
            return self._sign_in_page(403, "This is not the token of these results.")
        answer = Response(status_code=303, headers={"location": "results", **NO_STORE})
        session = self._access.begin_session()
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        for path in COOKIE_PATHS:
            answer.set_cookie(COOKIE, session, path=path, httponly=True, samesite="strict", secure=host not in LOOPBACK)
        return answer

    def _sign_in_page(self, status: int, mistake: str = "") -> Response:
        text = render(PACKAGE, "sign_in.html", name=self._study.name, mistake=mistake)
        return Response(
            text,
            status,
            media_type="text/html",
            headers={**page_headers(forms=True), **NO_STORE, "www-authenticate": "Bearer"},
        )

    # -- what they are --------------------------------------------------------------------------------

    async def _frame(self, request: Request) -> Response:
        if not self._is_allowed(request):
            return self._sign_in_page(401)
        text = render(PACKAGE, "results.html", name=self._study.name, every=self._results.every)
        return Response(text, media_type="text/html", headers={**page_headers(frame_source=True), **NO_STORE})

    async def _page(self, request: Request) -> Response:
        self._check(request)
        current = self._results.current
        if current is None:
            raise self._none_yet()
        headers = {"content-security-policy": "frame-ancestors 'self'", "referrer-policy": "no-referrer", **NO_STORE}
        return Response(current.page, media_type="text/html", headers=headers)

    async def _document(self, request: Request) -> Response:
        self._check(request)
        current = self._results.current
        if current is None:
            raise self._none_yet()
        return Response(current.document, media_type="application/json", headers=NO_STORE)

    async def _status(self, request: Request) -> Response:
        self._check(request)
        current = self._results.current
        status = {
            "computed": None if current is None else current.computed,
            "reports": 0 if current is None else current.reports,
            "users": 0 if current is None else current.users,
            "problem": self._results.problem,
        }
        return Response(json.dumps(status), media_type="application/json", headers=NO_STORE)

    def _none_yet(self) -> RequestRefusedError:
        return refused(
            "no-results-yet",
            "there are no results yet",
            where="/results",
            got=self._results.problem or "no reports, or none that have been counted",
            expected="results of at least one report",
            remedy="try again in a moment",
            retry_after=RETRY_SECONDS,
        )


def _no_token() -> RequestRefusedError:
    return refused(
        "no-results-token",
        "the results are for those with their token",
        where="/results",
        got="no token, or another one",
        expected="a header Authorization: Bearer TOKEN, or a browser that has signed in at /results",
        remedy="ask whoever runs the study for the token",
    )
