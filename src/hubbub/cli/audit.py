"""``hubbub audit``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, print_json
from hubbub.cli.options import AsJson
from hubbub.cli.progress_bar import follow
from hubbub.core.defaults import DEFAULT_AUDIT_LEVEL, DEFAULT_DRAWS

if TYPE_CHECKING:
    from hubbub.auditing import Audit, StudyAudit


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.")],
    draws: Annotated[int, typer.Option(help="Number of outputs to draw for each audited value.")] = DEFAULT_DRAWS,
    level: Annotated[
        float, typer.Option(metavar="SHARE", help="Level of the lower bound from these draws.")
    ] = DEFAULT_AUDIT_LEVEL,
    mechanism: Annotated[str | None, typer.Option(metavar="NAME", help="Audit only this mechanism.")] = None,
    as_json: AsJson = False,
) -> None:
    """Prove and test the epsilon that each mechanism claims; exit with 1 if a claim is refuted."""
    from hubbub.auditing import audit_study
    from hubbub.intake.study_files import read_study

    result = follow(audit_study.steps(read_study(study), mechanism=mechanism, draws=draws, level=level), "auditing")
    if as_json:
        print_json(result.document())
    else:
        _show(result)
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
    console.print("\nTotal per user", style="bold")
    console.print(result.budget.explain(), soft_wrap=True)


def _with_unit(audit: Audit, epsilon: float, text: str) -> str:
    if not math.isfinite(epsilon):
        return "unbounded"
    return f"{text} per {audit.unit or 'unit'}" if audit.metric else text
