"""``hubbub collect``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import err, out, print_json, printable
from hubbub.cli.input_summary import print_notes, print_summary
from hubbub.cli.options import AsJson, By, Cluster, ReadingOptions, Sources, StudyFile
from hubbub.cli.progress_bar import follow
from hubbub.core.text import plural

if TYPE_CHECKING:
    from hubbub.intake import Tally
    from hubbub.intake.counting.watermark import Watermark
    from hubbub.intake.tallies.tally_summary import CountedSource

MAX_NAMED_GROUPS = 12
MAX_NAME_LETTERS = 300  # of a source: an address, whose end names the table


@dataclass(frozen=True)
class WatermarkOptions:
    """How sources are continued that have grown since the last run."""

    watermark: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Count what came since the last run, by this column of ids or times (how-to page: Run every night).",
        ),
    ] = None
    late: Annotated[
        str,
        typer.Option(
            metavar="tell|count|ignore",
            help="Rows that arrive behind the watermark: tell how many, count those in the window, or ignore them.",
        ),
    ] = "tell"
    late_window: Annotated[
        str | None,
        typer.Option(metavar="N|TIME", help="How far behind the watermark rows are remembered: 1000, 10min, 2d."),
    ] = None
    lag: Annotated[
        str | None,
        typer.Option(metavar="N|TIME", help="Leave the newest rows for the next run: those within 1000, 10min, 2d."),
    ] = None


def command(
    study: StudyFile,
    sources: Sources,
    *,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="The tally, NAME.tally.parquet; added to if it exists."),
    ],
    reading: ReadingOptions,
    users_complete: Annotated[
        bool,
        typer.Option(
            "--users-complete", help="Promise that no user of these sources is in the tally yet (not checked)."
        ),
    ] = False,
    users_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file with a secret key, under which a digest of each user is kept: nobody is counted twice.",
        ),
    ] = None,
    growing: WatermarkOptions,
    by: By = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Count reports into a tally: a small file that estimate, check and merge take."""
    from hubbub.intake import collect, read_study
    from hubbub.intake.read_plan import refuse_overwriting

    refuse_overwriting(reading.rejects, [study, users_key], "--rejects")
    run = collect.steps(
        read_study(study, allow_code=reading.allow_code),
        sources,
        output,
        users_complete=users_complete,
        users_key=users_key,
        by=by or None,
        cluster=cluster,
        **vars(growing),
        **{name: value for name, value in vars(reading).items() if name != "allow_code"},
    )
    show_tally(follow(run, "collecting"), as_json)


def show_tally(tally: Tally, as_json: bool) -> None:
    """Print what a tally holds."""
    from hubbub.exporting.json_documents import tally_document
    from hubbub.intake.group_names import group_titles

    summary = tally.summary
    print_notes(summary.notes)
    if as_json:
        print_json(tally_document(tally))
        return
    for name in summary.skipped:
        err().print(f"{name}: counted before, skipped", soft_wrap=True)
    rejected = sum(summary.rejected.values())
    users, rows = plural(summary.users, "user"), plural(summary.rows - rejected, "row")
    out().print(f"{tally.path}: {users} from {rows}, {plural(rejected, 'row')} rejected", soft_wrap=True)
    if summary.weight is not None:
        out().print(f"They stand for {summary.weight:,.6g} people, by their weights.", soft_wrap=True)
    if summary.by:
        titles = group_titles(group.entries for group in summary.groups)
        shown = [f"{printable(titles[group.entries])} ({plural(group.users, 'user')})" for group in summary.groups]
        groups = f"{plural(len(shown), 'group')} by {', '.join(map(printable, summary.by))}"
        hidden = [f"{len(shown) - MAX_NAMED_GROUPS:,} more"] if len(shown) > MAX_NAMED_GROUPS else []
        out().print(f"{groups}: {'; '.join([*shown[:MAX_NAMED_GROUPS], *hidden])}", soft_wrap=True)
    for source in summary.sources:
        if source.mark is not None:
            out().print(_progress_of(source, source.mark), soft_wrap=True)
    print_summary(summary)


def _progress_of(source: CountedSource, mark: Watermark) -> str:
    """Return how far a growing source was counted, and what this run added."""
    text = f"{printable(source.name, MAX_NAME_LETTERS)}: "
    if source.added is not None:
        text += f"{plural(source.added, 'new row')}, "
    text += f"counted up to {printable(mark.column)} = {mark.value}"
    if source.left_out:
        text += f"; {plural(source.left_out, 'row')} beyond, left for a later run"
    return text
