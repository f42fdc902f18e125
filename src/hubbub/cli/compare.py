"""``hubbub compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, printable, printable_lines
from hubbub.cli.input_summary import print_notes
from hubbub.cli.options import Against, AsJson, By, Level, MinGroup, ReadingOptions
from hubbub.cli.progress_bar import follow
from hubbub.cli.region_table import RegionFile
from hubbub.cli.result_file import ResultFile, check_output
from hubbub.cli.several_groups import read_named, write_or_print
from hubbub.core.text import whole_percent

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.comparison import Comparison, GroupComparison

MAX_SHOWN_VALUES = 20
MAX_SHOWN_GROUPS = 6  # side by side


def command(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", help="Tallies, or a study with its sources: each of them is a group."),
    ],
    *,
    by: By = None,
    against: Against = None,
    min_group: MinGroup = 1,
    level: Level = 0.95,
    quantile: Annotated[
        list[float] | None,
        typer.Option(metavar="SHARE", help="Of two groups: compare a quantile, 0.5 for the median; may be repeated."),
    ] = None,
    places: RegionFile,
    reading: ReadingOptions,
    as_json: AsJson = False,
    output: ResultFile = None,
) -> None:
    """Compare groups: whether they differ, in which values or regions, and by how much."""
    from hubbub.comparison import Comparison
    from hubbub.comparison.named_groups import compare_named
    from hubbub.comparison.small_groups import check_several
    from hubbub.core import validation
    from hubbub.exporting.json_documents import comparison_document
    from hubbub.rendering import facts_text

    validation.level(level, "compare")
    validation.whole(min_group, "min_group", "compare")
    places.check_name()
    check_output(output, [*inputs, places.regions], reading)
    read, groups, notes = read_named(inputs, by, reading, "compare", min_group)
    print_notes(notes)
    check_several(groups, "hubbub compare")
    own = places.read(next(iter(groups.values())).domain)
    run = compare_named.steps(groups, of=own, against=against, level=level, quantiles=quantile or [])
    comparison = follow(run, "comparing groups")
    document = comparison_document({name: own.summary for name, own in read.items()}, notes, comparison)

    def show() -> None:
        out().print(printable_lines(facts_text(comparison.facts())), soft_wrap=True)
        if isinstance(comparison, Comparison):
            out().print(_pair_table(comparison, out().width))
            return
        out().print(_groups_table(comparison))
        if own is not None:
            out().print(_regions_table(comparison))

    name = next(iter(read.values())).summary.study.name
    write_or_print(comparison, document, output, show, as_json=as_json, study=name)


def _pair_table(comparison: Comparison, width: int) -> Table:
    """Return the largest differences; standard errors are left out where values would have to be folded for them."""
    from rich.cells import cell_len
    from rich.table import Table

    from hubbub.intervals.result import error_text

    shown = comparison.largest(MAX_SHOWN_VALUES).tolist()
    columns = [(comparison.kind, [printable(str(comparison.labels[row])) for row in shown])]
    for name, shares in zip(comparison.names, (comparison.first, comparison.second), strict=True):
        columns.append((printable(name, 20), [f"{shares[row]:.4f}" for row in shown]))
    columns.append(("difference", [f"{comparison.difference[row]:+.4f}" for row in shown]))
    intervals = [f"{comparison.low[row]:+.4f} to {comparison.high[row]:+.4f}" for row in shown]
    columns.append((f"{whole_percent(comparison.level)} interval", intervals))
    errors = ("std.\nerror", [error_text(float(comparison.standard_error[row])) for row in shown])
    changed = ("", ["differs" if comparison.changed[row] else "" for row in shown])
    widths = [3 + max(map(cell_len, [*name.split("\n"), *cells])) for name, cells in (*columns, errors, changed)]
    hidden = comparison.labels.size - len(shown)
    captions = [f"and {hidden:,} more; write them all with -o comparison.csv"] if hidden else []
    if sum(widths) < width:
        columns.append(errors)
    else:
        captions.append("standard errors: in a wider terminal, with --json or with -o comparison.csv")
    table = Table(caption="\n".join(captions) or None)
    table.add_column(comparison.kind, overflow="fold")
    for name, _ in columns[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for cells in zip(*(own for _, own in (*columns, changed)), strict=True):
        table.add_row(*cells)
    return table


def _groups_table(comparison: GroupComparison) -> Table:
    from rich.table import Table

    table = Table()
    table.add_column("group", overflow="fold")
    for name in ("users", printable(comparison.order_of, 20), "rank", "differs in"):
        table.add_column(name, justify="left" if name == "differs in" else "right", overflow="fold")
    for ranked in comparison.order:
        place = comparison.names.index(ranked.name)
        differs = [printable(comparison.title(int(row)), 20) for row in comparison.changed[place].nonzero()[0]]
        table.add_row(
            printable(ranked.name),
            f"{comparison.users[place]:,}",
            f"{ranked.estimate:.4f}",
            str(ranked.first) if ranked.first == ranked.last else f"{ranked.first} to {ranked.last}",
            ", ".join(differs),
        )
    return table


def _regions_table(comparison: GroupComparison) -> Table:
    """Return the share of each region in each group, those with the largest differences first."""
    import numpy as np
    from rich.table import Table

    largest = np.nanmax(np.abs(comparison.difference), axis=0)
    order = np.lexsort((-largest, ~comparison.changed.any(axis=0)))
    groups = comparison.names[:MAX_SHOWN_GROUPS]
    hidden = (order.size - MAX_SHOWN_VALUES, "more regions"), (len(comparison.names) - len(groups), "more groups")
    more = " and ".join(f"{count:,} {what}" for count, what in hidden if count > 0)
    against = "the others together" if comparison.against is None else comparison.against
    marks = f"*: differs from {printable(against)} for certain"
    table = Table(caption=f"{marks}; {more}: write them all with -o comparison.csv" if more else marks)
    table.add_column(comparison.kind, overflow="fold")
    for name in groups:
        table.add_column(printable(name, 20), justify="right", overflow="fold")
    for row in order[:MAX_SHOWN_VALUES].tolist():
        shares = [
            f"{comparison.shares[place, row]:.4f}{'*' if comparison.changed[place, row] else ' '}"
            for place in range(len(groups))
        ]
        table.add_row(printable(comparison.title(row)), *shares)
    return table
