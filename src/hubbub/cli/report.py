"""``hubbub report``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, print_written, printable
from hubbub.cli.input_summary import print_summary, read_and_print_notes, read_groups_and_print_notes
from hubbub.cli.options import Against, By, Level, Method, MinGroup, ReadingOptions, SourcesOrNone, StudyOrTally
from hubbub.cli.progress_bar import follow
from hubbub.cli.region_table import RegionOptions

if TYPE_CHECKING:
    from hubbub.intake.study_input import StudyInput
    from hubbub.reporting import GroupsPage


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    *,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .html file to write.")] = Path(
        "report.html"
    ),
    method: Method = "auto",
    level: Level = 0.95,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the page; the study's name by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out verdicts and slow intervals.")] = False,
    by: By = None,
    against: Against = None,
    min_group: MinGroup = 1,
    places: RegionOptions,
    reading: ReadingOptions,
    date: Annotated[
        str | None, typer.Option(metavar="DATE", help="Date of the report; today (or SOURCE_DATE_EPOCH) by default.")
    ] = None,
) -> None:
    """Write one page that people open: what the crowd said, and how far to trust it."""
    from hubbub.comparison.small_groups import check_several
    from hubbub.core import validation
    from hubbub.exporting.result_files import check_output_path
    from hubbub.intake.read_plan import refuse_overwriting
    from hubbub.intake.report_dates import today
    from hubbub.reporting import check_path, make_groups_page, make_page, write_page

    check_path(output, "-o")
    level = validation.level(level, "report")
    places.check("report")
    refuse_overwriting(output, [study, *(sources or []), places.regions], "-o")
    check_output_path(output)
    refuse_overwriting(reading.rejects, [study, output], "--rejects")
    validation.whole(min_group, "min_group", "report")
    day = today(date)
    if by:
        if method != "auto":
            raise typer.BadParameter("groups are compared by auto only", param_hint="--by with --method")
        if places.regions is not None:
            raise typer.BadParameter(
                "a page of groups has no regions; hubbub compare --by COLUMN --regions FILE compares them",
                param_hint="--by with --regions",
            )
        groups = {
            name: _made_on(own, day)
            for name, own in read_groups_and_print_notes(study, sources, by, min_group, reading).items()
        }
        check_several(groups, "hubbub report --by")
        making_groups = make_groups_page.steps(
            groups, level=level, title=title, quick=quick, against=against, by=", ".join(by)
        )
        _write_groups(follow(making_groups, "comparing groups"), output)
        return
    if against is not None or min_group != 1:
        raise typer.BadParameter("there are no groups without --by", param_hint="--against, --min-group")
    study_input = _made_on(read_and_print_notes(study, sources, reading), day)
    making = make_page.steps(
        study_input,
        method=method,
        level=level,
        title=title,
        quick=quick,
        regions=places.read(study_input.reports.domain),
        region_intervals=places.region_intervals,
    )
    page = follow(making, f"estimating by {method}")
    write_page(page, output)
    console = out()
    console.print(printable(page.summary, most=len(page.summary) * 10))  # labels in it may hold anything
    for verdict in page.verdicts:
        console.print(f"{verdict.question} {verdict.answer}")
    print_summary(study_input.summary)
    print_written(output)


def _made_on(study_input: StudyInput, day: str) -> StudyInput:
    """Return an input whose page says when it was made."""
    from hubbub.intake.report_dates import ReportDates

    summary = study_input.summary
    return study_input._replace(summary=replace(summary, dates=ReportDates.made_on(summary.dates, day)))


def _write_groups(page: GroupsPage, output: Path) -> None:
    """Write the page of groups, and say what it says first."""
    from hubbub.reporting import write_groups_page

    write_groups_page(page, output)
    out().print(printable(page.summary, most=len(page.summary) * 10), soft_wrap=True)
    print_written(output)
