"""What browsers fetch from a collector: the question page, its scripts, and the study as clients read it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from hubbub.intake.privatizing.client_document import document_bytes
from hubbub.intake.study import Study
from hubbub.serve.question_page import PACKAGE, page_headers, question_page

TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html", "json": "application/json"}
QUESTION_ASSETS = (
    *("hubbub-client.js", "question.js", "answer-controls.js", "answer-memory.js", "page-elements.js"),
    *("report-delivery.js", "value-words.js", "page.css"),
)


def page_routes(study: Study, document: Mapping[str, Any] | None) -> list[BaseRoute]:
    """Return the routes; `document` is the study as clients read it, None if it cannot be exported.

    There is a question page where the study has a question and can be exported.
    """
    if document is None:
        return []
    routes: list[BaseRoute] = [fixed("/study.json", document_bytes(document), "json", {"cache-control": "no-cache"})]
    if study.question is None:
        return routes
    origins = (study.collector or {})["origins"]
    routes += [
        fixed("/", question_page(study, document, embedded=False), "html", page_headers()),
        fixed("/embedded", question_page(study, document, embedded=True), "html", page_headers(frames=origins)),
        asset_route("embed.js", "/embed.js"),
    ]
    return [*routes, *map(asset_route, QUESTION_ASSETS)]


@cache
def asset(name: str) -> bytes:
    """Return a file that ships with the collector."""
    return files(PACKAGE).joinpath("assets", name).read_bytes()


def asset_route(name: str, path: str | None = None) -> FixedRoute:
    """Return the route of a file that ships with the collector."""
    return fixed(path or f"/assets/{name}", asset(name), name.rpartition(".")[2], {"cache-control": "no-cache"})


class FixedRoute(Route):
    """A route that always gives the same answer, at no cost: it does not count for the rate of an address."""


def fixed(path: str, content: bytes, kind: str, headers: Mapping[str, str]) -> FixedRoute:
    """Return the route of some content."""

    async def answer(_: Request) -> Response:
        return Response(content, media_type=TYPES[kind], headers=dict(headers))

    return FixedRoute(path, answer)
