"""``hubbub check``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from hubbub.cli.console import out, print_json, printable
from hubbub.cli.input_summary import print_summary, read_and_print_notes
from hubbub.cli.options import AsJson, Fakes, Level, ReadingOptions, SourcesOrNone, StudyOrTally, fakes_share
from hubbub.cli.progress_bar import follow
from hubbub.core import validation
from hubbub.core.text import plural
from hubbub.exporting.json_documents import check_document
from hubbub.intake.read_plan import refuse_overwriting
from hubbub.reports import Reports
from hubbub.trust_check import Check
from hubbub.trust_check import check as check_reports


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    *,
    level: Level = 0.95,
    share: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of fake users whose worst case is shown.")
    ] = 0.01,
    fakes: Fakes = "0",
    reading: ReadingOptions,
    as_json: AsJson = False,
) -> None:
    """Say how far an answer from these reports can be trusted."""
    validation.level(level, "check")
    validation.share(share, "share", "check")
    allowed = fakes_share(fakes, "check")
    refuse_overwriting(reading.rejects, [study], "--rejects")
    study_input = read_and_print_notes(study, sources, reading)
    assert isinstance(study_input.reports, Reports)  # noqa: S101  # without a cluster they are here
    result = follow(check_reports.steps(study_input.reports, level, share=share, fakes=allowed), "checking")
    if as_json:
        print_json(check_document(study_input.summary, result))
    else:
        _show(result)
        print_summary(study_input.summary)


def _show(result: Check) -> None:
    console = out()
    if result.contradiction:
        console.print(f"{result.contradiction}\n", style="bold red")
    console.print(plural(result.users, "user"))
    for fact in result.facts():
        console.print(f"\n{fact.label}", style="bold")
        console.print(fact.text)
    table = Table(title=f"Intervals at {100 * result.band.level:g}%", title_justify="left")
    for name in ("value", "low", "estimate", "high", "likeliest"):
        table.add_column(name, justify="left" if name == "value" else "right", overflow="fold")
    band = result.band
    for position in (-band.estimate).argsort(kind="stable"):
        if band.low[position] == band.low[position]:  # not NaN: asked for
            numbers = [column[position] for column in (band.low, band.estimate, band.high, band.likeliest)]
            table.add_row(printable(band.domain.title(int(position))), *(f"{number:.4f}" for number in numbers))
    console.print()
    console.print(table)
