"""``hubbub trend``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, printable
from hubbub.cli.input_summary import print_notes
from hubbub.cli.options import AsJson, By, Level, ReadingOptions
from hubbub.cli.progress_bar import follow
from hubbub.cli.result_file import ResultFile, check_output
from hubbub.cli.several_groups import read_named, write_or_print
from hubbub.core.text import whole_percent

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.domains import Domain
    from hubbub.trends import Trend

MAX_SHOWN_VALUES = 3


def command(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Tallies in the order of time, or a study with its sources: each of them is a period.",
        ),
    ],
    *,
    by: By = None,
    of: Annotated[str | None, typer.Option(metavar="VALUE", help="Follow the share of this value.")] = None,
    quantile: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Follow a quantile of numbers: 0.5 for the median.")
    ] = None,
    min_group: Annotated[
        int, typer.Option(metavar="USERS", help="Join periods with fewer users to the following ones.")
    ] = 1,
    level: Level = 0.95,
    reading: ReadingOptions,
    as_json: AsJson = False,
    output: ResultFile = None,
) -> None:
    """Follow shares or numbers over time: with bands, and where they changed."""
    from hubbub.core import validation
    from hubbub.exporting.json_documents import trend_document
    from hubbub.rendering import facts_text
    from hubbub.trends import trend
    from hubbub.trends.small_periods import join_small_periods

    validation.level(level, "trend")
    validation.whole(min_group, "min_group", "trend")
    check_output(output, inputs, reading)
    read, reports, notes = read_named(inputs, by, reading, "trend")
    periods, joined = join_small_periods(reports, min_group)
    print_notes([*notes, *joined])
    value = None if of is None else _label(next(iter(reports.values())).domain, of)
    found = follow(trend.steps(periods, of=value, quantile=quantile, level=level), "following periods")
    document = trend_document({name: own.summary for name, own in read.items()}, [*notes, *joined], found)

    def show() -> None:
        out().print(facts_text(found.facts()), soft_wrap=True)
        out().print(_table(found))

    name = next(iter(read.values())).summary.study.name
    write_or_print(found, document, output, show, as_json=as_json, study=name)


def _label(domain: Domain, text: str) -> object:
    """Return the value that is written so; the text itself, which will be refused, if there is none."""
    return next((label for label in domain.labels.tolist() if str(label) == text), text)


def _table(found: Trend) -> Table:
    """Return the estimates of each period with their intervals, for the values that change most."""
    from rich.table import Table

    shown = found.most_changing(MAX_SHOWN_VALUES).tolist()
    hidden = found.labels.size - len(shown) if found.labels.size > 2 else 0
    caption = f"intervals each at {whole_percent(found.level)}"
    more = f"; {hidden:,} more values: write them all with -o trend.csv" if hidden else ""

    def written(number: float) -> str:
        return f"{number:.3f}" if found.is_share else f"{number:.4g}"

    table = Table(caption=f"{caption}{more}")
    table.add_column("period", overflow="fold")
    table.add_column("users", justify="right", no_wrap=True)
    for label in shown:
        table.add_column(printable(str(found.labels[label]), 20), justify="right")
    table.add_column("", overflow="fold")
    changed = {change.after for change in found.changes}
    for place, name in enumerate(found.names):
        cells = []
        for label in shown:
            estimate, low, high = (written(own[place, label]) for own in (found.estimate, found.low, found.high))
            cells.append(f"{estimate} ({low} to {high})")
        table.add_row(printable(name), f"{found.users[place]:,}", *cells, "changed" if name in changed else "")
    return table
