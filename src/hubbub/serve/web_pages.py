"""What browsers fetch from a collector beside sending reports: the study as clients read it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route


def page_routes(client_study: bytes | None) -> list[BaseRoute]:
    """Return the routes; `client_study` is what `hubbub export-client` writes, None if there is none."""
    if client_study is None:
        return []

    async def study(_: Request) -> Response:
        return Response(client_study, media_type="application/json", headers={"cache-control": "no-cache"})

    return [Route("/study.json", study)]
