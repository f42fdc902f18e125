"""``hubbub report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import err, follow, out, printable
from hubbub.cli.input_summary import tell_given, tell_notes
from hubbub.cli.options import (
    MEMORY,
    AllowRejects,
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
from hubbub.intake.read_plan import refuse_over
from hubbub.intake.result_files import check_output_path
from hubbub.intake.sources.column_names import ColumnNames
from hubbub.intake.study_input import read_input
from hubbub.reporting import check_path, make_page, write_page


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="The .html file to write.")] = Path("report.html"),
    method: Annotated[str, typer.Option(help="auto, ibu, ems, mle, inv-n or inv-p")] = "auto",
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    title: Annotated[str | None, typer.Option(help="Title of the page; the study's name by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out verdicts and slow intervals.")] = False,
    allow_rejects: AllowRejects = "0",
    rejects: RejectsFile = None,
    memory: Memory = MEMORY,
    output_column: OutputColumn = None,
    user_column: UserColumn = None,
    mechanism_column: MechanismColumn = None,
    equal_files: EqualFiles = None,
) -> None:
    """Write one page that people open: what the crowd said, and how far to trust it."""
    check_path(output, "-o")
    level = validation.level(level, "report")
    refuse_over(output, [study, *(sources or [])], "-o")
    check_output_path(output)
    refuse_over(rejects, [study, output], "--rejects")
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
    making = make_page.steps(given, method=method, level=level, title=title, quick=quick)
    page = follow(making, f"estimating by {method}")
    write_page(page, output)
    console = out()
    console.print(printable(page.summary, most=len(page.summary) * 10))  # labels in it may hold anything
    for verdict in page.verdicts:
        console.print(f"{verdict.question} {verdict.answer}")
    tell_given(given.summary)
    err().print(f"written: {output}", soft_wrap=True)
