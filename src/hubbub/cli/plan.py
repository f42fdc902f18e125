"""``hubbub plan``."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.console import out, print_json, print_written, printable
from hubbub.cli.options import AllowCode, AsJson, Method, share_or_text
from hubbub.cli.plan_arguments import (
    MIX_EXAMPLE,
    TRUTHS,
    labels_of,
    named_mechanisms,
    parse_epsilons,
    parse_whole_numbers,
    read_truths,
)
from hubbub.cli.progress_bar import follow

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.intake.study import Study
    from hubbub.planning import Plan
    from hubbub.planning.plan_tables import TextTable

PLAN_ENDINGS = (".json", ".csv", ".png", ".svg")
MAX_LINE_LETTERS = 10_000  # of a sentence or note
PICTURE_INCHES = (9.0, 5.0)


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.")],
    users: Annotated[
        str | None,
        typer.Option(metavar="N[,N...]", help="Number of users: 10000, 1e4, or several; with --difference, per group."),
    ] = None,
    target: Annotated[
        float | None, typer.Option(metavar="X", help="Error to reach; with --users, find the epsilon it needs.")
    ] = None,
    difference: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|N%",
            help="Find the users per group that show a difference of 5%, or 0.05, between two groups; with --users, "
            "the power.",
        ),
    ] = None,
    power: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|N%", help="Probability of detecting the difference; default: 80%. Not with --users."
        ),
    ] = None,
    truth: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|SHAPE", help=f"Assumed truth: a file of value,count, or {TRUTHS}. Several: the worst."
        ),
    ] = None,
    mechanism: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Mechanism of the study; default: all. Repeatable.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Kind of mechanism at --epsilon: rappor, ..., or all. Repeatable."),
    ] = None,
    mix: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SHARE,...", help=f"Mixture across users: {MIX_EXAMPLE}. Repeatable."),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="X[,X...]", help="Plain epsilon that each user spends, for kinds: 1, or 0.5,1,2."),
    ] = None,
    central_epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="For kinds whose reports are shuffled: the epsilon that all of them together may have."
        ),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(metavar="D", help="Probability that the central epsilon leaves out, such as 1e-9.")
    ] = None,
    reports_per_user: Annotated[
        str, typer.Option(metavar="N[,N...]", help="Number of reports per user; kinds divide their epsilon among them.")
    ] = "1",
    method: Method = "auto",
    distance: Annotated[
        str, typer.Option(metavar="tv|emd", help="tv (total variation) or emd (earth mover's distance).")
    ] = "tv",
    radius: Annotated[
        float | None,
        typer.Option(
            help="Distance over which epsilon per unit counts as plain epsilon; default: the domain's diameter."
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(metavar="SHARE", help="Share of studies that reach the target.")] = 0.5,
    level: Annotated[float, typer.Option(metavar="SHARE", help="Confidence level of the intervals.")] = 0.95,
    values: Annotated[
        list[str] | None,
        typer.Option(metavar="VALUE|all", help="Predict the width of this value's interval. Repeatable."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Number of simulated studies per error; default: as many as it takes.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Seed: the same seed gives the same plan.")
    ] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the plan: .json, .csv, .png or .svg.")
    ] = None,
) -> None:
    """Predict the error of a study before collecting, or the number of users or epsilon that it needs.

    With --difference: the users per group that show a difference between two groups, or with --users the power.
    """
    from hubbub.exporting.result_files import check_output_path
    from hubbub.intake.read_plan import refuse_overwriting
    from hubbub.intake.study_files import read_study
    from hubbub.planning import plan

    if output is not None and output.suffix.lower() not in PLAN_ENDINGS:
        raise typer.BadParameter(f"{output} must end in {', '.join(PLAN_ENDINGS)}", param_hint="-o")
    if users is None and target is None and difference is None:
        raise typer.BadParameter(
            "pass the number of users (--users 10000), the error to reach (--target 0.05), or the difference between "
            "two groups to detect (--difference 5%)",
            param_hint="--users, --target or --difference",
        )
    counts = None if users is None else parse_whole_numbers(users, "--users", "10000, 1e4, or 1000,10000")
    epsilons = None if epsilon is None else parse_epsilons(epsilon)
    reports = parse_whole_numbers(reports_per_user, "--reports-per-user", "2, or 1,2,4")
    refuse_overwriting(output, [study, *(truth or [])], "-o")
    check_output_path(output)
    read = read_study(study, allow_code=allow_code)
    if read.domain.product is not None and target is None and difference is None and central_epsilon is None:
        _plan_attributes(read, counts, epsilons, truth or ["uniform"], runs, seed, output, as_json)
        return
    steps = plan.steps(
        named_mechanisms(
            read,
            mechanism or [],
            kind or [],
            mix or [],
            has_epsilon=epsilons is not None or central_epsilon is not None,
        ),
        domain=read.domain,
        epsilon=epsilons,
        users=counts,
        target=target,
        truth=read_truths(truth or ["uniform"], read),
        distance=distance,
        reports_per_user=reports,
        method=method,
        runs=runs,
        rng=seed,
        radius=radius,
        confidence=confidence,
        level=level,
        values=labels_of(values, read.domain),
        difference=None if difference is None else share_or_text(difference),  # type: ignore[arg-type]  # checked there
        power=None if power is None else share_or_text(power),  # type: ignore[arg-type]
        central_epsilon=central_epsilon,
        delta=delta,
    )
    _write(follow(steps, "planning"), read, output, as_json)


def _plan_attributes(
    study: Study,
    users: list[int] | None,
    epsilons: list[float] | None,
    truth: list[str],
    runs: int | None,
    seed: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Compare the study's ways to report several attributes; with --epsilon, the usual ways at that budget."""
    from hubbub.exporting.result_files import write_json
    from hubbub.planning import plan_attributes
    from hubbub.planning.attribute_plan import DEFAULT_RUNS

    for name, given in (("--users", users), ("--epsilon", epsilons)):
        if given is not None and len(given) != 1:
            raise typer.BadParameter("several attributes are planned for one number", param_hint=name)
    if output is not None and output.suffix.lower() != ".json":
        raise typer.BadParameter(f"{output} must end in .json for several attributes", param_hint="-o")
    if len(truth) != 1:
        raise typer.BadParameter("several attributes are planned for one truth", param_hint="--truth")
    steps = plan_attributes.steps(
        study if epsilons is None else study.domain,
        users=users[0] if users else 0,
        epsilon=None if epsilons is None else epsilons[0],
        truth=read_truths(truth, study),
        runs=DEFAULT_RUNS if runs is None else runs,
        rng=seed,
    )
    result = follow(steps, "planning")
    document = result.document()
    document = {"version": document.pop("version"), "fingerprint": study.fingerprint, **document}
    if output is not None:
        write_json(document, output)
        print_written(output)
    if as_json:
        print_json(document)
        return
    console = out()
    for part in result.table.fitting(console.width):
        console.print(_rich_table(part, console.width))
    for line in ("", *result.sentences()):
        console.print(printable(line, MAX_LINE_LETTERS))


def _write(result: Plan, study: Study, output: Path | None, as_json: bool) -> None:
    whole = result.document()
    document = {"version": whole.pop("version"), "fingerprint": study.fingerprint, **whole}
    if output is not None:
        _write_file(result, document, output, study.name)
        print_written(output)
    if as_json:
        print_json(document)
        return
    console = out()
    lines = [*result.answers, result.assumed, *result.notes]
    if output is None:
        for part in (part for table in result.tables for part in table.fitting(console.width)):
            console.print(_rich_table(part, console.width))
        lines = ["", *result.answers, *(line for text in lines[len(result.answers) :] for line in ("", text))]
    for line in lines:
        console.print(printable(line, MAX_LINE_LETTERS))


def _write_file(result: Plan, document: dict[str, Any], path: Path, study: str) -> None:
    """Write .json (everything), .csv (the complete table, safe in spreadsheets), .png or .svg (the picture)."""
    from hubbub.core.files import write_file
    from hubbub.exporting.result_files import write_json, write_picture
    from hubbub.planning.plan_data import COLUMNS
    from hubbub.rendering import csv_bytes, picture_title

    ending = path.suffix.lower()
    if ending == ".json":
        write_json(document, path)
    elif ending == ".csv":
        write_file(path, csv_bytes(COLUMNS, ([row[name] for name in COLUMNS] for row in result.rows())))
    else:
        write_picture(result, path, picture_title(study), PICTURE_INCHES)


def _rich_table(shown: TextTable, width: int) -> Table:
    """Return a table whose numbers are never broken: if it is too wide, headings and then names are folded."""
    from rich.table import Table

    widths, folded_widths = shown.widths(), shown.widths(folded=True)
    is_wide = sum(3 + column for column in widths) + 1 > width
    table = Table(title=printable(shown.title, 200), title_justify="left")
    for number, (name, column_width) in enumerate(zip(shown.header, folded_widths, strict=True)):
        is_first = number == 0
        heading = textwrap.fill(name, column_width) if is_wide and not is_first else name
        table.add_column(heading, justify="left" if is_first else "right", overflow="fold", no_wrap=not is_first)
    for row in shown.rows:
        table.add_row(*map(printable, row))
    return table
