"""``hubbub audit``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from hubbub.auditing import Audit, StudyAudit, auditing_study
from hubbub.auditing.api import DRAWS, LEVEL
from hubbub.cli.options import AsJson
from hubbub.cli.show import follow, out
from hubbub.intake.study_files import read_study


def command(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="The study file.")],
    draws: Annotated[int, typer.Option(help="Outputs to draw for each value that is tried.")] = DRAWS,
    level: Annotated[float, typer.Option(help="Level of the bound from these draws.")] = LEVEL,
    mechanism: Annotated[str | None, typer.Option(metavar="NAME", help="This mechanism of the study alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Prove and test the epsilon that each mechanism claims; exit 1 where one is refuted."""
    run = auditing_study(read_study(study), mechanism=mechanism, draws=draws, level=level)
    found = follow(run, "auditing")
    if as_json:
        typer.echo(json.dumps(found.document(), allow_nan=False, ensure_ascii=False))
    else:
        _show(found)
    if found.holds is False:
        raise typer.Exit(1)


def _show(found: StudyAudit) -> None:
    console = out()
    table = Table()
    for name in ("mechanism", "claimed epsilon", "realised, at most", "by draws, at least", "verdict"):
        table.add_column(name, justify="left" if name in ("mechanism", "verdict") else "right", overflow="fold")
    for name, audit in found.audits.items():
        bounds = "unknown" if audit.exact is None else _told(audit, float(audit.exact.high), str(audit.exact.high))
        lower = f"{audit.empirical.low:.4f}"
        table.add_row(name, _told(audit, audit.claim, f"{audit.claim!r}"), bounds, lower, audit.verdict)
    console.print(table)
    for name, audit in found.audits.items():
        console.print(f"\n{name}: {audit.name}", style="bold")
        console.print("\n".join(audit.sentences()[:-1]), soft_wrap=True)
    console.print("\nIn all", style="bold")
    console.print(found.budget.explain(), soft_wrap=True)


def _told(audit: Audit, epsilon: float, text: str) -> str:
    if not math.isfinite(epsilon):
        return "unbounded"
    return f"{text} per {audit.unit or 'unit'}" if audit.metric else text
