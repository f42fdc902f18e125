"""``hubbub estimate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from hubbub.cli.show import err, follow, out, printable, waiting
from hubbub.estimation import Estimate, estimating
from hubbub.intake import read_reports, read_study
from hubbub.intake.document import estimate_document
from hubbub.intake.write import ENDINGS, write_result
from hubbub.render import as_text, most_probable

MOST_SHOWN = 20


def command(
    study: Annotated[Path, typer.Argument(help="The study file.")],
    sources: Annotated[list[Path], typer.Argument(metavar="SOURCE...", help="CSV or Parquet files of reports.")],
    method: Annotated[str, typer.Option(help="auto, ibu, mle, inv-n or inv-p")] = "auto",
    delta: Annotated[float | None, typer.Option(help="ibu: stop below this change of the log-likelihood.")] = None,
    tol: Annotated[float | None, typer.Option(help="mle: stop at this gap, in nats per user.")] = None,
    max_iter: Annotated[int | None, typer.Option(help="Stop after so many iterations.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write .json, .csv, .png or .svg.")] = None,
) -> None:
    """Recover the distribution behind the reports."""
    if output is not None and output.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(f"{output} must end in {', '.join(ENDINGS)}", param_hint="-o")
    plan = read_study(study)
    with waiting("reading reports"):
        reports = read_reports(sources, plan)
    found = follow(estimating(reports, method, delta=delta, tol=tol, max_iter=max_iter), f"estimating by {method}")
    document = estimate_document(plan, reports, found)
    if output is not None:
        write_result(found, document, output)
        err().print(f"written: {output}", soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(document, allow_nan=False, ensure_ascii=False))
    elif output is None:
        _show(found)


def _show(found: Estimate) -> None:
    console = out()
    console.print(as_text(found.facts()), soft_wrap=True)
    shown = most_probable(found.domain, found.probabilities, MOST_SHOWN)
    top = max(float(found.probabilities.max()), 1e-300)
    bar = max(4, min(24, console.width - 44))
    table = Table(title=None if shown.size == len(found.domain) else f"The {MOST_SHOWN} most probable values")
    table.add_column("value", overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for place in shown:
        share = float(found.probabilities[place])
        table.add_row(printable(found.domain.title(int(place))), f"{share:.4f}", "█" * round(bar * share / top))
    console.print(table)
    rest = len(found.domain) - shown.size
    if rest:
        console.print(f"and {rest:,} more; write them all with -o estimate.csv")
