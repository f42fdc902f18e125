"""``hubbub plan``."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from hubbub.cli.options import AsJson
from hubbub.cli.planned import (
    ENDINGS,
    epsilons,
    labels_of,
    mixture,
    truth_of,
    user_counts,
    ways_to_report,
    whole_numbers,
    write_plan,
)
from hubbub.cli.show import err, follow, out, printable
from hubbub.intake.read_plan import refuse_over
from hubbub.intake.result_files import check_output_path
from hubbub.intake.study_files import read_study
from hubbub.planning import Plan, planning_for
from hubbub.planning.plan_tables import ShownColumn

SHAPES = "uniform, bell, bells, zipf, block, dominant, worst"


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.")],
    users: Annotated[
        str | None, typer.Option(metavar="N[,N...]", help="How many people will report: 10000, 1e4, or several.")
    ] = None,
    target: Annotated[
        float | None, typer.Option(metavar="X", help="The error to reach; with --users, the epsilon is looked for.")
    ] = None,
    truth: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|SHAPE", help=f"Assumed: value,count in a file, or {SHAPES}. Several: the worst."),
    ] = None,
    mechanism: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="This mechanism of the study; none: all. Repeatable.")
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="This kind, at --epsilon: rappor, ... Repeatable.")
    ] = None,
    mix: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SHARE,...", help="Users share several: strong=0.3,light=0.7.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="X[,X...]", help="Plain budget of a user, for kinds: 1, or 0.5,1,2.")
    ] = None,
    reports_per_user: Annotated[
        str, typer.Option(metavar="N[,N...]", help="Reports of each user; kinds split their budget.")
    ] = "1",
    method: Annotated[str, typer.Option(help="auto, ibu, ems, mle, inv-n or inv-p")] = "auto",
    distance: Annotated[str, typer.Option(help="tv (total variation) or emd (earth mover's).")] = "tv",
    radius: Annotated[
        float | None, typer.Option(help="Distance that counts as plain epsilon; left out: the domain's diameter.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Share of studies that reach the target.")] = 0.5,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    values: Annotated[
        list[str] | None, typer.Option(metavar="VALUE|all", help="Tell the widths of its interval. Repeatable.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Simulated studies for each number; none: as many as it takes.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="The same seed gives the same plan.")] = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the plan: .json, .csv, .png or .svg.")
    ] = None,
) -> None:
    """Say before collecting how large the error will be, how many users it takes, or which epsilon."""
    if output is not None and output.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(f"{output} must end in {', '.join(ENDINGS)}", param_hint="-o")
    counts = user_counts(users)
    if counts is None and target is None:
        raise typer.BadParameter(
            "say how many people will report (--users 10000) or which error to reach (--target 0.05)",
            param_hint="--users or --target",
        )
    budgets, reports = epsilons(epsilon), whole_numbers(reports_per_user, "--reports-per-user")
    mixtures = [mixture(text) for text in mix or []]
    refuse_over(output, [study, *(truth or [])], "-o")
    check_output_path(output)
    given = read_study(study)
    run = planning_for(
        ways_to_report(given, mechanism or [], kind or [], mixtures, has_epsilon=budgets is not None),
        domain=given.domain,
        epsilon=budgets,
        users=counts,
        target=target,
        truth=truth_of(truth or ["uniform"], given),
        distance=distance,
        reports_per_user=reports,
        method=method,
        runs=runs,
        rng=seed,
        radius=radius,
        confidence=confidence,
        level=level,
        values=labels_of(values, given.domain),
    )
    found = follow(run, "planning")
    document = _document(found, given.fingerprint)
    if output is not None:
        write_plan(found, document, output)
        err().print(f"written: {output}", soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(document, allow_nan=False, ensure_ascii=False))
    elif output is None:
        _show(found)
    else:
        for line in [*found.answers, found.assumed, *found.notes]:
            out().print(printable(line, 10_000))


def _document(found: Plan, fingerprint: str) -> dict[str, Any]:
    whole = found.document()
    return {"version": whole.pop("version"), "fingerprint": fingerprint, **whole}


def _show(found: Plan) -> None:
    console = out()
    for shown in found.tables:
        for part in shown.fitting(console.width):
            console.print(_table(part, console.width))
    console.print()
    for line in [*found.answers, "", found.assumed, *(line for note in found.notes for line in ("", note))]:
        console.print(printable(line, 10_000))


def _table(shown: ShownColumn, width: int) -> Table:
    """Return a table whose numbers stay whole: where it is too wide, headings and then names are folded."""
    bodies = [max(len(row[place]) for row in shown.rows) for place in range(len(shown.header))]
    wide = sum(3 + max(own, len(name)) for own, name in zip(bodies, shown.header, strict=True)) + 1 > width
    table = Table(title=printable(shown.title, 200), title_justify="left")
    for place, (name, own) in enumerate(zip(shown.header, bodies, strict=True)):
        left = place < shown.left
        folded = textwrap.fill(name, max(own, *map(len, name.split()))) if wide and not left else name
        table.add_column(folded, justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for row in shown.rows:
        table.add_row(*map(printable, row))
    return table
