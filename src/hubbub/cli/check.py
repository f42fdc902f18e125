"""``hubbub check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, print_json, printable, printable_lines
from hubbub.cli.input_summary import ALL_USERS, print_summary, read_and_print_notes, read_groups_and_print_notes
from hubbub.cli.options import (
    AsJson,
    By,
    Fakes,
    Level,
    MinGroup,
    ReadingOptions,
    SourcesOrNone,
    StudyOrTally,
    fakes_share,
)
from hubbub.cli.progress_bar import follow
from hubbub.cli.region_table import RegionOptions, print_regions
from hubbub.core.text import plural

if TYPE_CHECKING:
    from hubbub.trust_check import Check


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    *,
    level: Level = 0.95,
    share: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of fake users whose worst case is shown.")
    ] = 0.01,
    fakes: Fakes = "0",
    by: By = None,
    min_group: MinGroup = 1,
    places: RegionOptions,
    reading: ReadingOptions,
    as_json: AsJson = False,
) -> None:
    """Say how far an answer from these reports can be trusted."""
    from hubbub.core import validation
    from hubbub.exporting.json_documents import check_document, groups_document
    from hubbub.intake.read_plan import refuse_overwriting
    from hubbub.reports import Reports
    from hubbub.trust_check import check as check_reports

    validation.level(level, "check")
    validation.share(share, "share", "check")
    allowed = fakes_share(fakes, "check")
    places.check("check")
    places.refuse_fakes(allowed)
    refuse_overwriting(reading.rejects, [study, places.regions], "--rejects")
    if by:
        inputs = read_groups_and_print_notes(study, sources, by, min_group, reading)
    else:
        inputs = {ALL_USERS: read_and_print_notes(study, sources, reading)}
    regions = places.read(next(iter(inputs.values())).reports.domain)
    results = {}
    for group, own in inputs.items():
        assert isinstance(own.reports, Reports)  # noqa: S101  # without a cluster they are here
        run = check_reports.steps(
            own.reports,
            level,
            share=share,
            fakes=allowed,
            regions=regions,
            region_intervals=places.region_intervals,
        )
        results[group] = follow(run, f"{group}: checking".removeprefix(": "))
    documents = {group: check_document(inputs[group].summary, result) for group, result in results.items()}
    if as_json:
        print_json(groups_document(by, documents) if by else documents[ALL_USERS])
        return
    for group, result in results.items():
        if by:
            out().print(f"\n{', '.join(by)} {printable(group)}", style="bold")
        _show(result)
        print_summary(inputs[group].summary)


def _show(result: Check) -> None:
    from rich.table import Table

    from hubbub.intervals.result import error_text

    console = out()
    if result.contradiction:
        console.print(f"{result.contradiction}\n", style="bold red")
    console.print(plural(result.users, "user"))
    for fact in result.facts():
        console.print(f"\n{fact.label}", style="bold")
        console.print(printable_lines(fact.text))
    console.print()
    if result.regions is not None:
        print_regions(result.regions)
        return
    table = Table(title=f"Intervals at {100 * result.band.level:g}%", title_justify="left")
    for name in ("value", "low", "estimate", "high", "std. error", "likeliest"):
        table.add_column(name, justify="left" if name == "value" else "right", overflow="fold")
    band = result.band
    for position in (-band.estimate).argsort(kind="stable"):
        if band.low[position] == band.low[position]:  # not NaN: asked for
            low, estimate, high, likeliest = (
                f"{column[position]:.4f}" for column in (band.low, band.estimate, band.high, band.likeliest)
            )
            error = error_text(float(band.standard_error[position]))
            table.add_row(printable(band.domain.title(int(position))), low, estimate, high, error, likeliest)
    console.print(table)
    if note := band.errors_note():
        console.print(f"std. error: {note}")
