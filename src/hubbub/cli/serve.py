"""``hubbub serve``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import err, out
from hubbub.cli.options import AllowCode, StudyFile


def command(
    study: StudyFile,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="DATABASE",
            help="Where reports are stored: sqlite:///reports.db#reports, or postgresql://.../database#table.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="The port to listen at; 0 for any that is free.")] = 8000,
    tokens_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file with the key of the study's tokens; made when tokens are issued."),
    ] = None,
    issue_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Print so many new tokens instead, one in each line.")
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="A proxy whose X-Forwarded-For is believed; may be repeated."),
    ] = None,
    results_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Show live results at /results to those with the token in this file (or in HUBBUB_RESULTS_TOKEN).",
        ),
    ] = None,
    allow_code: AllowCode = False,
    results_every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=1, help="Compute the results at most this often; 10 by default."),
    ] = None,
) -> None:
    """Take reports over HTTP, check them by the study, and store them durably; ask the study's question on a page."""
    from hubbub.cli.progress_bar import follow
    from hubbub.core.errors import MechanismError, SettingError
    from hubbub.intake.privatizing.client_document import client_document
    from hubbub.intake.study_files import read_study

    described = read_study(study, allow_code=allow_code)
    with needs_packages("hubbub serve"):
        from hubbub.serve.api import RESULTS_SECONDS, Listening, serve
        from hubbub.serve.results_access import read_results_token
        from hubbub.serve.token_issue import issue
    if issue_tokens is not None:
        for token in issue(described, tokens_key, issue_tokens):
            out().print(token, soft_wrap=True, highlight=False, markup=False)
        return
    if to is None:
        raise SettingError(
            "the collector needs a database",
            where="--to",
            got="nothing",
            expected="--to sqlite:///reports.db#reports, or a table of PostgreSQL",
            remedy="name one; the table is made if there is none",
        )

    results_token = read_results_token(results_token_file)
    if results_every is not None and results_token is None:
        raise typer.BadParameter("there are no results without a token", param_hint="--results-every")

    def ready(listening: Listening) -> None:
        err().print(f"taking reports at {listening.url}/reports, stored in {listening.table}", soft_wrap=True)
        if document is not None and described.question is not None:
            err().print(f"asking the question at {listening.url}/", soft_wrap=True)
        if results_token is not None:
            err().print(f"showing results at {listening.url}/results", soft_wrap=True)

    def log(sentence: str) -> None:
        err().print(sentence, soft_wrap=True, highlight=False, markup=False)

    document = None
    try:
        document = follow(client_document.steps(study, allow_code=allow_code), "computing tables")
    except MechanismError as error:
        log(f"there is no page, and no study.json: {error.what}")
    serve(
        described,
        to,
        host=host,
        port=port,
        tokens_key=tokens_key,
        proxies=proxy or (),
        client_study=document,
        results_token=results_token,
        results_every=results_every or RESULTS_SECONDS,
        ready=ready,
        log=log,
    )


@contextmanager
def needs_packages(where: str) -> Iterator[None]:
    """Say what to install where the packages of the collector are missing."""
    from hubbub.core.errors import SettingError

    try:
        yield
    except ModuleNotFoundError as error:
        raise SettingError(
            "the collector needs packages that are not installed",
            where=where,
            got=f"no package {error.name}",
            expected="Starlette, uvicorn, httptools and msgspec",
            remedy='pip install "hubbub[serve]"',
        ) from None
