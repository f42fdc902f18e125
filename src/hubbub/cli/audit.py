"""``hubbub audit``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, print_json
from hubbub.cli.input_summary import print_notes
from hubbub.cli.options import AllowCode, AsJson, MechanismColumn, OutputColumn
from hubbub.cli.progress_bar import follow
from hubbub.core.defaults import DEFAULT_AUDIT_LEVEL, DEFAULT_DRAWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hubbub.auditing import Audit, SampleAudit, StudyAudit, StudySampleAudit
    from hubbub.intake.study import Study

OUTPUTS = "Audit these outputs of a client instead: a file with columns `value` and `output`, in the order drawn."


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.")],
    draws: Annotated[
        int | None,
        typer.Option(help=f"Number of outputs to draw for each audited value; {DEFAULT_DRAWS} if not given."),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Level of the lower bound from these draws; with --outputs, of the whole audit."
        ),
    ] = DEFAULT_AUDIT_LEVEL,
    mechanism: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Audit only this mechanism; with --outputs, that of all rows."),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|uniform",
            help="Also say how well who knows this guesses a person's value: a file of value,count, or uniform.",
        ),
    ] = None,
    outputs: Annotated[str | None, typer.Option(metavar="FILE", help=OUTPUTS)] = None,
    value_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --outputs: the column of values, if not `value`.")
    ] = None,
    output_column: OutputColumn = None,
    mechanism_column: MechanismColumn = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Prove and test the epsilon that each mechanism claims, or test a client's outputs; exit with 1 if refuted."""
    from hubbub.auditing import audit_study, audit_study_samples
    from hubbub.intake.sources.column_names import ColumnNames
    from hubbub.intake.study_files import read_study

    columns = ColumnNames(output=output_column, mechanism=mechanism_column, value=value_column)
    read = read_study(study, allow_code=allow_code)
    if outputs is None:
        if columns != ColumnNames():
            raise typer.BadParameter("names of columns are for --outputs FILE")
        number = DEFAULT_DRAWS if draws is None else draws
        known, name = (None, None) if prior is None else _read_prior(prior, read)
        run = audit_study.steps(read, mechanism=mechanism, draws=number, level=level, prior=known, prior_name=name)
        audit = follow(run, "auditing")
        _finish(audit, lambda: _show(audit), as_json=as_json)
        return
    if prior is not None:
        raise typer.BadParameter("--prior is for a study by itself: outputs of a client say nothing of an attacker")
    if draws is not None:
        raise typer.BadParameter("--draws is for a study by itself: with --outputs nothing is drawn")
    reading = audit_study_samples.steps(outputs, read, mechanism=mechanism, level=level, columns=columns)
    samples = follow(reading, "auditing")
    print_notes(samples.notes)
    _finish(samples, lambda: _show_samples(samples), as_json=as_json)


def _read_prior(text: str, study: Study) -> tuple[object, str]:
    """Return what an attacker knows, and its name; a file of the name "uniform" is ./uniform."""
    from hubbub.auditing.guessing_attacker import UNIFORM
    from hubbub.intake.value_counts import read_counts

    return (UNIFORM, UNIFORM) if text == UNIFORM else (read_counts(text, study), Path(text).name)


def _finish(result: StudyAudit | StudySampleAudit, show: Callable[[], None], *, as_json: bool) -> None:
    """Print the answer, and exit with 1 if something is refuted."""
    if as_json:
        print_json(result.document())
    else:
        show()
    if result.holds is False:
        raise typer.Exit(1)


def _show(result: StudyAudit) -> None:
    from rich.table import Table

    console = out()
    table = Table()
    for name in ("mechanism", "claimed epsilon", "realised, at most", "by draws, at least", "verdict"):
        table.add_column(name, justify="left" if name in ("mechanism", "verdict") else "right", overflow="fold")
    for name, audit in result.audits.items():
        claimed = _with_unit(audit, audit.claim, f"{audit.claim!r}")
        exact = audit.exact
        realised = "unknown" if exact is None else _with_unit(audit, float(exact.high), str(exact.high))
        table.add_row(name, claimed, realised, f"{audit.empirical.low:.4f}", audit.verdict)
    console.print(table)
    for name, audit in result.audits.items():
        console.print(f"\n{name}: {audit.name}", style="bold")
        console.print("\n".join(audit.sentences()[:-1]), soft_wrap=True)
        if text := result.attacker_text(name):
            console.print(text, soft_wrap=True)
    console.print("\nTotal per user", style="bold")
    console.print(result.budget.explain(), soft_wrap=True)


def _show_samples(result: StudySampleAudit) -> None:
    from rich.table import Table

    console = out()
    table = Table()
    for name in ("mechanism", "outputs", "p-value of the law", "claimed epsilon", "by outputs, at least", "verdict"):
        table.add_column(name, justify="left" if name in ("mechanism", "verdict") else "right", overflow="fold")
    for name, audit in result.audits.items():
        claimed = _with_unit(audit, audit.claim, f"{audit.claim:.6g}")
        low = "unknown" if audit.bound is None else f"{audit.bound.low:.4f}"
        p_value = f"{audit.p_value:.2g}" if audit.tests or audit.impossible else "unknown"
        table.add_row(name, f"{audit.outputs:,}", p_value, claimed, low, audit.verdict)
    console.print(table)
    for name, audit in result.audits.items():
        console.print(f"\n{name}: {audit.name}", style="bold")
        console.print("\n".join(audit.sentences()), soft_wrap=True)


def _with_unit(audit: Audit | SampleAudit, epsilon: float, text: str) -> str:
    if not math.isfinite(epsilon):
        return "unbounded"
    return f"{text} per {audit.unit or 'unit'}" if audit.metric else text
