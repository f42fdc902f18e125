"""``hubbub new``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import err
from hubbub.cli.input_summary import print_notes
from hubbub.core.defaults import DOMAIN_KINDS
from hubbub.core.text import listed

Kind = Enum("Kind", {kind: kind for kind in DOMAIN_KINDS})  # type: ignore[misc]  # the names are data
KINDS = f"The kind of domain: {listed(DOMAIN_KINDS, word='or')}."
PLACES = "grid: take the box from PUBLIC places: a table with lat and lon, or GeoJSON. Never from respondents' places."
OUTPUT = typer.Option("-o", "--output", metavar="FILE", help="The study file to write.")


def command(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=KINDS)],
    output: Annotated[Path, OUTPUT] = Path("study.toml"),
    name: Annotated[str | None, typer.Option(metavar="TEXT", help="The title of the study.")] = None,
    places: Annotated[Path | None, typer.Option("--from", metavar="FILE", help=PLACES)] = None,
    cell: Annotated[float | None, typer.Option(metavar="KM", help="grid: the side of a cell.")] = None,
    columns: Annotated[int | None, typer.Option(metavar="N", help="grid: the number of columns.")] = None,
    rows: Annotated[int | None, typer.Option(metavar="N", help="grid: the number of rows.")] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="categories: such as yes,no; or a file: one per line, or a table."),
    ] = None,
    column: Annotated[str | None, typer.Option(metavar="NAME", help="categories: the column of labels.")] = None,
    low: Annotated[int | None, typer.Option(metavar="N", help="integers: the first number.")] = None,
    high: Annotated[int | None, typer.Option(metavar="N", help="integers: the last number.")] = None,
    edges: Annotated[str | None, typer.Option(metavar="LIST", help="bins: their edges, such as 0,5,10,60.")] = None,
) -> None:
    """Write a commented study file to start from."""
    from hubbub.intake.new_studies.api import draft_study

    draft = draft_study(
        kind.value, name=name, places=places, cell=cell, columns=columns, rows=rows, labels=labels, column=column,
        low=low, high=high, edges=None if edges is None else _numbers(edges),
    )  # fmt: skip
    draft.write(output)
    print_notes(draft.notes)
    start = f"{output}: a study over {kind.value}."
    err().print(f"{start} Edit it, then share it with clients and collectors.", soft_wrap=True)


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of numbers such as 0,5,10,60", param_hint="--edges") from None
    return [int(number) if number.is_integer() else number for number in numbers]
