"""``hubbub discover``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, print_json, print_written, printable, printable_lines
from hubbub.cli.input_summary import print_notes
from hubbub.cli.options import AsJson, Level
from hubbub.cli.progress_bar import follow
from hubbub.cli.result_file import ENDINGS, ResultFile

if TYPE_CHECKING:
    from hubbub.discovery import Discovery


def command(
    search: Annotated[Path, typer.Argument(metavar="SEARCH", help="The settings of the search, as JSON.")],
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Files (CSV, Parquet) with the columns round and output."),
    ],
    *,
    level: Level = 0.95,
    most: Annotated[int, typer.Option(metavar="N", help="How many words to find.")] = 32,
    as_json: AsJson = False,
    output: ResultFile = None,
) -> None:
    """Find the most frequent words, where nobody can list the words."""
    from hubbub.core import validation
    from hubbub.discovery import discover
    from hubbub.exporting.result_files import check_output_path, write_discovery
    from hubbub.intake.read_plan import refuse_overwriting
    from hubbub.intake.search_files import read_search, read_search_outputs

    validation.level(level, "discover")
    if output is not None and output.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(f"{output} must end in {', '.join(ENDINGS)}", param_hint="-o")
    refuse_overwriting(output, [search, *sources], "-o")
    check_output_path(output)
    asked = read_search(search)
    reports = read_search_outputs(sources).to_pandas()
    found = follow(discover.steps(asked, reports, level=level, most=most), "searching")
    if output is not None:
        write_discovery(found, output)
        print_written(output)
        print_notes(found.notes)
    if as_json:
        print_json(found.document())
    elif output is None:
        _show(found)


def _show(found: Discovery) -> None:
    from rich.table import Table

    console = out()
    console.print(printable_lines(found.explain()))
    table = Table()
    table.add_column("word", overflow="fold")
    for name in ("estimate", "low", "high"):
        table.add_column(name, justify="right", no_wrap=True)
    columns = (each.tolist() for each in (found.estimates, found.low, found.high))
    for word, *shares in zip(found.words, *columns, strict=True):
        table.add_row(printable(word), *(f"{share:.4f}" for share in shares))
    console.print(table)
