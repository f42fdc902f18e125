"""``hubbub check``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from hubbub.cli.console import follow, out, printable
from hubbub.cli.input_summary import tell_given, tell_notes
from hubbub.cli.options import (
    MEMORY,
    AllowRejects,
    AsJson,
    EqualFiles,
    MechanismColumn,
    Memory,
    OutputColumn,
    RejectsFile,
    SourcesOrNone,
    StudyOrTally,
    UserColumn,
)
from hubbub.core import validation
from hubbub.intake.json_documents import check_document
from hubbub.intake.read_plan import refuse_over
from hubbub.intake.sources.column_names import ColumnNames
from hubbub.intake.study_input import read_input
from hubbub.reports import Reports
from hubbub.trust_check import Check
from hubbub.trust_check import check as check_reports


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    share: Annotated[float, typer.Option(help="Share of fake users to reckon with.")] = 0.01,
    allow_rejects: AllowRejects = "0",
    rejects: RejectsFile = None,
    memory: Memory = MEMORY,
    output_column: OutputColumn = None,
    user_column: UserColumn = None,
    mechanism_column: MechanismColumn = None,
    equal_files: EqualFiles = None,
    as_json: AsJson = False,
) -> None:
    """Say how far an answer from these reports can be trusted."""
    validation.level(level, "check")
    validation.share(share, "share", "check")
    refuse_over(rejects, [study], "--rejects")
    run = read_input.steps(
        study,
        sources or [],
        allow_rejects=allow_rejects,
        rejects=rejects,
        memory=memory,
        columns=ColumnNames(output_column, user_column, mechanism_column),
        equal_files=equal_files,
    )
    given = follow(run, "reading reports")
    tell_notes(given.summary.notes)
    assert isinstance(given.reports, Reports)  # noqa: S101  # without a cluster they are here
    found = follow(check_reports.steps(given.reports, level, share=share), "checking")
    if as_json:
        typer.echo(json.dumps(check_document(given.summary, found), allow_nan=False, ensure_ascii=False))
    else:
        _show(found)
        tell_given(given.summary)


def _show(found: Check) -> None:
    console = out()
    console.print(f"{found.users:,} user{'s' * (found.users != 1)}")
    for fact in found.facts():
        console.print(f"\n{fact.label}", style="bold")
        console.print(fact.text)
    table = Table(title=f"Intervals at {100 * found.band.level:g}%", title_justify="left")
    for name in ("value", "low", "likeliest", "high"):
        table.add_column(name, justify="left" if name == "value" else "right", overflow="fold")
    band = found.band
    for place in (-band.estimate).argsort(kind="stable"):
        if band.low[place] == band.low[place]:  # not NaN: asked for
            numbers = (band.low[place], band.estimate[place], band.high[place])
            table.add_row(printable(band.domain.title(int(place))), *(f"{number:.4f}" for number in numbers))
    console.print()
    console.print(table)
