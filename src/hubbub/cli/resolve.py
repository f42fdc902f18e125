"""``hubbub resolve``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, print_json, print_written, printable
from hubbub.cli.input_summary import print_summary, read_and_print_notes
from hubbub.cli.options import AsJson, Level, ReadingOptions, SourcesOrNone, StudyOrTally
from hubbub.cli.progress_bar import follow
from hubbub.cli.result_file import ResultFile, check_output

if TYPE_CHECKING:
    from hubbub.resolution import Resolution


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    *,
    relative: Annotated[
        float, typer.Option(metavar="SHARE", help="Largest half-width of a part's interval, relative to its middle.")
    ] = 0.5,
    level: Level = 0.95,
    method: Annotated[str, typer.Option(metavar="NAME", help="family or halves.")] = "family",
    reading: ReadingOptions,
    as_json: AsJson = False,
    output: ResultFile = None,
) -> None:
    """Divide the values into the finest parts whose shares the reports tell."""
    from hubbub.core import validation
    from hubbub.exporting.json_documents import result_document
    from hubbub.exporting.result_files import write_resolution
    from hubbub.rendering import picture_title
    from hubbub.reports import Reports
    from hubbub.resolution import resolve as resolve_reports
    from hubbub.resolution.api import EXPECTED_RELATIVE

    validation.level(level, "resolve")
    validation.share(relative, "relative", "resolve", expected=EXPECTED_RELATIVE)
    check_output(output, [str(study), *(sources or [])], reading)
    study_input = read_and_print_notes(study, sources, reading)
    assert isinstance(study_input.reports, Reports)  # noqa: S101  # without a cluster they are here
    run = resolve_reports.steps(study_input.reports, relative, level, method=method)
    resolution = follow(run, "resolving")
    document = result_document(study_input.summary, resolution)
    if output is not None:
        summary = study_input.summary
        title = picture_title(summary.study.name, users=summary.users, level=resolution.level)
        write_resolution(resolution, document, output, title=title)
        print_written(output)
    if as_json:
        print_json(document)
    elif output is None:
        _show(resolution)
        print_summary(study_input.summary)


def _show(resolution: Resolution) -> None:
    from rich.table import Table

    console = out()
    console.print(resolution.explain())
    table = Table()
    table.add_column("part", overflow="fold")
    for name in ("estimate", "low", "high"):
        table.add_column(name, justify="right", no_wrap=True)
    for part in resolution.parts:
        table.add_row(printable(part.title), *(f"{number:.4f}" for number in (part.estimate, part.low, part.high)))
    console.print(table)
