"""``hubbub merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.collect import show_tally
from hubbub.cli.options import AllowCode, AsJson, EqualFiles, Memory
from hubbub.cli.progress_bar import follow
from hubbub.core.defaults import DEFAULT_MEMORY


def command(
    tallies: Annotated[list[Path], typer.Argument(metavar="TALLY...", help="Tallies of one study.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The tally to write, NAME.tally.parquet.")
    ],
    memory: Memory = DEFAULT_MEMORY,
    users_complete: Annotated[
        bool, typer.Option("--users-complete", help="Promise that no user is in more than one tally (not checked).")
    ] = False,
    equal_files: EqualFiles = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Add up tallies of one study."""
    from hubbub.intake import merge

    run = merge.steps(
        tallies,
        output,
        memory=memory,
        users_complete=users_complete,
        equal_files=equal_files,
        allow_code=allow_code,
    )
    show_tally(follow(run, "merging"), as_json)
