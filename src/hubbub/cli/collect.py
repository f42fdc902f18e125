"""``hubbub collect``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import err, follow, out
from hubbub.cli.input_summary import tell_notes, tell_rejected
from hubbub.cli.options import (
    MEMORY,
    AllowRejects,
    AsJson,
    Cluster,
    EqualFiles,
    MechanismColumn,
    Memory,
    OutputColumn,
    RejectsFile,
    Sources,
    UserColumn,
)
from hubbub.core.text import plural
from hubbub.intake import Tally, collect, read_study
from hubbub.intake.epsilon_totals import spending_lines
from hubbub.intake.json_documents import tally_document
from hubbub.intake.read_plan import refuse_over


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.")],
    sources: Sources,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The tally, NAME.tally.parquet; added to if it exists.")
    ],
    allow_rejects: AllowRejects = "0",
    rejects: RejectsFile = None,
    memory: Memory = MEMORY,
    output_column: OutputColumn = None,
    user_column: UserColumn = None,
    mechanism_column: MechanismColumn = None,
    equal_files: EqualFiles = None,
    users_complete: Annotated[
        bool, typer.Option("--users-complete", help="No user of these sources is in the tally already.")
    ] = False,
    users_key: Annotated[
        Path | None, typer.Option(help="A file with a secret key, under which a digest of each user is kept.")
    ] = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Count reports into a tally: a small file that estimate, check and merge take."""
    refuse_over(rejects, [study, users_key], "--rejects")
    run = collect.steps(
        read_study(study),
        sources,
        output,
        allow_rejects=allow_rejects,
        rejects=rejects,
        memory=memory,
        users_complete=users_complete,
        users_key=users_key,
        cluster=cluster,
        output_column=output_column,
        user_column=user_column,
        mechanism_column=mechanism_column,
        equal_files=equal_files,
    )
    show_tally(follow(run, "collecting"), as_json)


def show_tally(tally: Tally, as_json: bool) -> None:
    """Print what a tally holds."""
    tell_notes(tally.summary.notes)
    if as_json:
        typer.echo(json.dumps(tally_document(tally), allow_nan=False, ensure_ascii=False))
        return
    for name in tally.summary.skipped:
        err().print(f"{name}: counted before, skipped", soft_wrap=True)
    rejected = sum(tally.rejected.values())
    console = out()
    console.print(
        f"{tally.path}: {plural(tally.users, 'user')} from {tally.rows - rejected:,} rows, {rejected:,} rows rejected",
        soft_wrap=True,
    )
    tell_rejected(tally.rejected)
    for line in spending_lines(tally.summary.spent, tally.study, users_named=tally.summary.named):
        console.print(line, soft_wrap=True)
