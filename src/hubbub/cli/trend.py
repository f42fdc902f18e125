"""``hubbub trend``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, printable, printable_lines
from hubbub.cli.input_summary import print_notes
from hubbub.cli.options import AsJson, By, Level, ReadingOptions
from hubbub.cli.progress_bar import follow
from hubbub.cli.region_table import RegionFile
from hubbub.cli.result_file import ResultFile, check_output
from hubbub.cli.several_groups import read_named, write_or_print
from hubbub.core.text import plural, whole_percent

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.domains import Domain
    from hubbub.trends import Trend

MAX_SHOWN_VALUES = 3
MAX_SHOWN_REGIONS, MAX_SHOWN_PERIODS = 20, 6


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
    places: RegionFile,
    reading: ReadingOptions,
    as_json: AsJson = False,
    output: ResultFile = None,
) -> None:
    """Follow shares, regions or numbers over time: with bands, and where they changed."""
    from hubbub.core import validation
    from hubbub.exporting.json_documents import trend_document
    from hubbub.rendering import facts_text
    from hubbub.trends import trend
    from hubbub.trends.small_periods import join_small_periods

    validation.level(level, "trend")
    validation.whole(min_group, "min_group", "trend")
    places.check_name()
    if places.regions is not None and of is not None:
        raise typer.BadParameter("a trend follows one thing at a time", param_hint="--regions with --of")
    check_output(output, [*inputs, places.regions], reading)
    read, reports, notes = read_named(inputs, by, reading, "trend")
    periods, joined = join_small_periods(reports, min_group)
    print_notes([*notes, *joined])
    domain = next(iter(reports.values())).domain
    followed = places.read(domain) if of is None else _label(domain, of)
    found = follow(trend.steps(periods, of=followed, quantile=quantile, level=level), "following periods")
    document = trend_document({name: own.summary for name, own in read.items()}, [*notes, *joined], found)

    def show() -> None:
        out().print(printable_lines(facts_text(found.facts())), soft_wrap=True)
        out().print(_table(found) if places.regions is None else _regions_table(found))

    name = next(iter(read.values())).summary.study.name
    write_or_print(found, document, output, show, as_json=as_json, study=name)


def _label(domain: Domain, text: str) -> object:
    """Return the value that is written so; the text itself, which will be refused, if there is none."""
    return next((label for label in domain.labels.tolist() if str(label) == text), text)


def _cell(found: Trend, place: int, label: int) -> str:
    """Return the estimate of a period with its interval."""
    digits = ".3f" if found.is_share else ".4g"
    estimate, low, high = (f"{own[place, label]:{digits}}" for own in (found.estimate, found.low, found.high))
    return f"{estimate} ({low} to {high})"


def _regions_table(found: Trend) -> Table:
    """Return the regions that change most, a row each, with the last periods side by side."""
    from rich.table import Table

    shown = found.most_changing(MAX_SHOWN_REGIONS).tolist()
    periods = range(max(0, len(found.names) - MAX_SHOWN_PERIODS), len(found.names))
    hidden = (
        (found.labels.size - len(shown), f"more {found.kind}"),
        (len(found.names) - len(periods), "earlier period"),
    )
    more = " and ".join(plural(count, what) for count, what in hidden if count > 0)
    caption = f"intervals each at {whole_percent(found.level)}"
    table = Table(caption=f"{caption}; {more}: write them all with -o trend.csv" if more else caption)
    table.add_column(found.kind, overflow="fold")
    for place in periods:
        table.add_column(printable(found.names[place], 20), justify="right")
    for label in shown:
        table.add_row(printable(str(found.labels[label])), *(_cell(found, place, label) for place in periods))
    return table


def _table(found: Trend) -> Table:
    """Return the estimates of each period with their intervals, for the values that change most."""
    from rich.table import Table

    shown = found.most_changing(MAX_SHOWN_VALUES).tolist()
    is_pair = found.kind == "value" and found.labels.size == 2  # the second value says the same as the first
    hidden = 0 if is_pair else found.labels.size - len(shown)
    caption = f"intervals each at {whole_percent(found.level)}"
    more = f"; {plural(hidden, f'more {found.kind}')}: write them all with -o trend.csv" if hidden else ""
    table = Table(caption=f"{caption}{more}")
    table.add_column("period", overflow="fold")
    table.add_column("users", justify="right", no_wrap=True)
    for label in shown:
        table.add_column(printable(str(found.labels[label]), 20), justify="right")
    table.add_column("", overflow="fold")
    changed = {change.after for change in found.changes}
    for place, name in enumerate(found.names):
        cells = [_cell(found, place, label) for label in shown]
        table.add_row(printable(name), f"{found.users[place]:,}", *cells, "changed" if name in changed else "")
    return table
