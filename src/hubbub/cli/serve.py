"""``hubbub serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import err, out
from hubbub.cli.options import StudyFile


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
) -> None:
    """Take reports over HTTP, check them by the study, and store them durably."""
    from hubbub.core.errors import SettingError
    from hubbub.intake.study_files import read_study

    described = read_study(study)
    try:
        from hubbub.serve.api import Listening, serve
        from hubbub.serve.token_issue import issue
    except ModuleNotFoundError as error:
        raise SettingError(
            "the collector needs packages that are not installed",
            where="hubbub serve",
            got=f"no package {error.name}",
            expected="Starlette, uvicorn and httptools",
            remedy='pip install "hubbub[serve]"',
        ) from None
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

    def ready(listening: Listening) -> None:
        err().print(f"taking reports at {listening.url}/reports, stored in {listening.table}", soft_wrap=True)

    def log(sentence: str) -> None:
        err().print(sentence, soft_wrap=True, highlight=False, markup=False)

    serve(described, to, host=host, port=port, tokens_key=tokens_key, proxies=proxy or (), ready=ready, log=log)
