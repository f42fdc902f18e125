"""``hubbub design``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hubbub.cli.console import out, print_json, print_written, printable, printable_lines
from hubbub.cli.design_arguments import asked_privacy, check_outputs, one_number, read_compared, statistics_of
from hubbub.cli.options import AllowCode, AsJson, StudyFile
from hubbub.cli.plan_arguments import TRUTHS, read_truths
from hubbub.cli.progress_bar import follow
from hubbub.core.defaults import DESIGN_GOALS, UNSEEN_TRUTHS

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.designing import Design
    from hubbub.intake.study import Study
    from hubbub.planning import Plan

DESIGNED = "designed"  # the name of the mechanism in the study that is written
ERROR_ENTRIES = ("median", "low", "high", "mean", "ninth")


def command(
    study: StudyFile,
    epsilon: Annotated[
        float | None,
        typer.Option(metavar="X", help="Privacy of one report: plain, or per unit of distance with --privacy metric."),
    ] = None,
    privacy: Annotated[
        str, typer.Option(metavar="plain|metric", help="All values alike, or the less the farther they are apart.")
    ] = "plain",
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Only these pairs, and chains of them: value,other,bound; or value,other with --epsilon.",
        ),
    ] = None,
    goal: Annotated[str, typer.Option(metavar="NAME", help=f"What is to be best: {', '.join(DESIGN_GOALS)}.")] = "risk",
    prior: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|SHAPE",
            help=f"What is known of the crowd: a file of value,count, or {TRUTHS}. Several: all that are plausible.",
        ),
    ] = None,
    users: Annotated[str, typer.Option(metavar="N", help="Number of users who will report: 10000, or 1e4.")] = "10000",
    outputs: Annotated[
        int | None, typer.Option(metavar="N", help="The most outputs that the mechanism may have.")
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Option(metavar="VALUE|all", help="Goal width: the interval of this value's share. Repeatable."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Loss of a user of each value (row) by each answer (column): value,ANSWER,...; default: the distance.",
        ),
    ] = None,
    max_loss: Annotated[
        float | None, typer.Option(metavar="X", help="Largest expected loss of a user, beside the goal.")
    ] = None,
    level: Annotated[
        float, typer.Option(metavar="SHARE", help="Goal width: confidence level of the intervals.")
    ] = 0.95,
    compare: Annotated[
        bool, typer.Option("--compare", help="Simulate it beside built-in mechanisms, for truths that it has not seen.")
    ] = False,
    truth: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|SHAPE",
            help=f"With --compare: an assumed truth; default: {', '.join(UNSEEN_TRUTHS)}. Repeatable.",
        ),
    ] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --compare: the estimator; default: auto.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="With --compare: number of simulated studies; default: as many as it takes.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, metavar="N", help="Seed of searches and simulations.")] = None,
    path: Annotated[
        Path | None,
        typer.Option(
            "--continue", metavar="FILE", help="Keep what was found in this file; named again, the search continues."
        ),
    ] = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help=f"Write a study with the mechanism `{DESIGNED}` (.toml), or .json, .csv, .png, .svg.",
        ),
    ] = None,
) -> None:
    """Compute the mechanism that is best for a goal, and write a study with it."""
    from hubbub.designing import Design, design
    from hubbub.intake.study_files import read_study

    if not compare and (truth or runs is not None or method is not None):
        raise typer.BadParameter("--truth, --runs and --method are for --compare", param_hint="--compare")
    number = one_number(users)
    check_outputs(output, path, [study, pairs, loss, *(prior or []), *(truth or [])])
    read = read_study(study, allow_code=allow_code)
    budget, policy, losses = asked_privacy(read, epsilon, privacy, pairs, loss)
    names, truths = read_compared(truth or UNSEEN_TRUTHS, read) if compare else ([], [])
    steps = design.steps(
        read.domain,
        budget,
        privacy=policy,
        goal=goal,
        prior=None if prior is None else read_truths(prior, read, "hubbub design --prior"),
        users=number,
        outputs=outputs,
        of=statistics_of(of, read.domain),
        loss=losses,
        max_loss=max_loss,
        level=level,
        rng=seed,
        path=path,
    )
    result = follow(steps, "designing")
    compared: dict[str, Plan] = {}
    if compare:
        run = Design.compare.steps(result, truth=truths, method=method or "auto", runs=runs, rng=seed)
        plans = follow(run, "comparing")
        compared = dict(zip(names, plans.values(), strict=True))
    _write(result, read, compared, output, as_json)


def _write(result: Design, study: Study, compared: dict[str, Plan], output: Path | None, as_json: bool) -> None:
    errors = _comparison(compared)
    whole = result.document()
    document = {
        "version": whole.pop("version"),
        "fingerprint": study.fingerprint,
        **whole,
        "comparison": errors if compared else None,
    }
    if output is not None:
        _write_file(result, document, study, output)
        print_written(output)
    if as_json:
        print_json(document)
        return
    console = out()
    console.print(printable_lines(result.explain()))
    if output is None:
        console.print(_formula_table(result))
    if compared:
        console.print(_errors_table(errors, list(compared)))


def _write_file(result: Design, document: dict[str, Any], study: Study, path: Path) -> None:
    """Write .toml (a study with the mechanism), .json (everything), .csv (the comparison), .png or .svg (a picture)."""
    from hubbub.core.files import write_file
    from hubbub.exporting.result_files import write_json, write_picture
    from hubbub.intake.study_files import write_study
    from hubbub.rendering import csv_bytes, picture_title

    ending = path.suffix.lower()
    if ending == ".toml":
        write_study(_designed_study(study, result), path)
    elif ending == ".json":
        write_json(document, path)
    elif ending == ".csv":
        rows = result.rows()
        write_file(path, csv_bytes(list(rows[0]), (list(row.values()) for row in rows)))
    else:
        write_picture(result, path, picture_title(study.name))


def _designed_study(study: Study, result: Design) -> Study:
    """Return the study with the design as its only mechanism: its name, limits, columns and pages stay."""
    from dataclasses import replace

    question = None if study.question is None else dict(study.question)
    if question is not None and "mechanism" in question:
        question["mechanism"] = DESIGNED
    return replace(study, mechanisms={DESIGNED: result.mechanism}, question=question)


def _comparison(compared: dict[str, Plan]) -> list[dict[str, Any]]:
    """Return the simulated errors, in total variation, of each mechanism under each truth."""
    return [
        {
            "truth": truth,
            "mechanism": setting.label,
            "runs": setting.runs,
            **{name: getattr(setting.tv, name) for name in ERROR_ENTRIES},
        }
        for truth, plan in compared.items()
        for setting in plan.settings
    ]


def _formula_table(result: Design) -> Table:
    """Return the design beside built-in mechanisms, by formula."""
    from rich.table import Table

    table = Table(title="by formula", title_justify="left")
    table.add_column("mechanism", overflow="fold")
    for name in (result.value_name, "relative to the design"):
        table.add_column(name, justify="right")
    for row in result.rows():
        table.add_row(printable(row["mechanism"]), _cell(row["value"]), _cell(row["relative"]))
    return table


def _errors_table(errors: list[dict[str, Any]], truths: list[str]) -> Table:
    """Return the simulated errors, a column for each truth."""
    from rich.table import Table

    table = Table(title="simulated: median total variation, by truth", title_justify="left")
    table.add_column("mechanism", overflow="fold")
    for truth in truths:
        table.add_column(printable(truth, 30), justify="right", overflow="fold")
    medians = {(row["mechanism"], row["truth"]): row["median"] for row in errors}
    for mechanism in dict.fromkeys(row["mechanism"] for row in errors):
        table.add_row(printable(mechanism), *(_cell(medians.get((mechanism, truth))) for truth in truths))
    return table


def _cell(number: float | None) -> str:
    from math import isfinite

    return "–" if number is None or not isfinite(number) else f"{number:.4g}"
