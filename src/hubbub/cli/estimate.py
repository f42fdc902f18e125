"""``hubbub estimate``."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from hubbub.cli.console import err, follow, out, printable
from hubbub.cli.input_summary import tell_given, tell_notes
from hubbub.cli.options import (
    MEMORY,
    AllowRejects,
    AsJson,
    Cluster,
    EqualFiles,
    MechanismColumn,
    Memory,
    OutputColumn,
    RejectsFile,
    SourcesOrNone,
    StudyOrTally,
    UserColumn,
    cluster_at,
)
from hubbub.cluster import ClusterReports
from hubbub.core import validation
from hubbub.estimators import Estimate, estimate
from hubbub.intake.json_documents import estimate_document, groups_document
from hubbub.intake.read_plan import refuse_over
from hubbub.intake.result_files import ENDINGS, check_output_path, write_groups, write_result
from hubbub.intake.sources.column_names import ColumnNames
from hubbub.intake.study_input import StudyInput, read_input, read_input_groups
from hubbub.intervals import Band
from hubbub.rendering import check_on_map, facts_text, most_probable
from hubbub.reports import Reports
from hubbub.trust_check import Check, affordable
from hubbub.trust_check import check as check_reports

MOST_SHOWN = 20


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    method: Annotated[str, typer.Option(help="auto, ibu, ems, mle, inv-n or inv-p")] = "auto",
    delta: Annotated[float | None, typer.Option(help="ibu, ems: stop when the log-likelihood changes by less.")] = None,
    tol: Annotated[float | None, typer.Option(help="mle: stop at this gap, in nats per user.")] = None,
    max_iter: Annotated[int | None, typer.Option(help="Maximum number of iterations.")] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    quick: Annotated[bool, typer.Option("--quick", help="Only the estimate, without intervals.")] = False,
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="Estimate each group separately.")] = None,
    allow_rejects: AllowRejects = "0",
    rejects: RejectsFile = None,
    memory: Memory = MEMORY,
    output_column: OutputColumn = None,
    user_column: UserColumn = None,
    mechanism_column: MechanismColumn = None,
    equal_files: EqualFiles = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write .json, .csv, .geojson, .png or .svg.")
    ] = None,
) -> None:
    """Recover the distribution behind the reports."""
    endings = ENDINGS if by is None else ENDINGS[:2]
    if output is not None and output.suffix.lower() not in endings:
        raise typer.BadParameter(f"{output} must end in {', '.join(endings)}", param_hint="-o")
    level = validation.level(level, "estimate")
    refuse_over(output, [study, *(sources or [])], "-o")
    check_output_path(output)
    refuse_over(rejects, [study, output], "--rejects")
    options: dict[str, Any] = {
        "allow_rejects": allow_rejects,
        "rejects": rejects,
        "memory": memory,
        "columns": ColumnNames(output_column, user_column, mechanism_column),
        "equal_files": equal_files,
    }
    everything = as_json or output is not None

    def answer(given: StudyInput, what: str) -> tuple[Estimate, Check | None]:
        found = follow(estimate.steps(given.reports, method, delta=delta, tol=tol, max_iter=max_iter), what)
        if quick or isinstance(given.reports, ClusterReports):
            return found, None
        return found, follow(_checking(given.reports, found, level, everything), "intervals")

    if by is not None:
        if cluster is not None:
            raise typer.BadParameter("groups are estimated on one machine only", param_hint="--by with --cluster")
        groups = follow(read_input_groups.steps(study, sources or [], by, **options), "reading reports")
        tell_notes(dict.fromkeys(note for given in groups.values() for note in given.summary.notes))
        answers = {group: answer(given, f"{group}: estimating by {method}") for group, given in groups.items()}
        document = groups_document(by, {group: (groups[group].summary, *answers[group]) for group in groups})
        if output is not None:
            write_groups(document, output)
        _finish(document, output, as_json)
        if output is None and not as_json:
            for group, (found, check) in answers.items():
                out().print(f"\n{by} {printable(str(group))}", style="bold")
                _show(found, check)
                tell_given(groups[group].summary)
        return
    with cluster_at(cluster) as client:
        given = follow(read_input.steps(study, sources or [], cluster=client, **options), "reading reports")
        tell_notes(given.summary.notes)
        if output is not None and output.suffix.lower() == ".geojson":
            check_on_map(given.reports.domain)  # before it takes minutes to compute
        found, check = answer(given, f"estimating by {method}")
    document = estimate_document(given.summary, found, check)
    if output is not None:
        write_result(found, document, output, None if check is None else check.band)
    _finish(document, output, as_json)
    if output is None and not as_json:
        _show(found, check)
        tell_given(given.summary)
        if isinstance(given.reports, ClusterReports):
            err().print("Intervals and uniqueness are not computed for reports that stay on the cluster.")


def _finish(document: dict[str, Any], output: Path | None, as_json: bool) -> None:
    if output is not None:
        err().print(f"written: {output}", soft_wrap=True)
    if as_json:
        typer.echo(json.dumps(document, allow_nan=False, ensure_ascii=False))


def _checking(reports: Reports, found: Estimate, level: float, everything: bool) -> Generator[Any, None, Check]:
    """Look for intervals of what will be seen: of all values where they are written, of the table's otherwise."""
    order = np.argsort(-found.probabilities, kind="stable")
    wanted = found.domain.labels[order if everything else most_probable(found.domain, found.probabilities, MOST_SHOWN)]
    some = found.domain.labels[affordable(reports, wanted)]
    return check_reports.steps(reports, level, estimate=found, values=some, fit=False)


def _show(found: Estimate, check: Check | None) -> None:
    console = out()
    facts = found.facts()
    if check is not None:
        facts += [fact for fact in check.facts() if fact.label in ("one answer?", "fake users?")]
    console.print(facts_text(facts), soft_wrap=True)
    shown = most_probable(found.domain, found.probabilities, MOST_SHOWN)
    top = max(float(found.probabilities.max()), 1e-300)
    bar = max(4, min(24, console.width - 64))
    table = Table(title=None if shown.size == len(found.domain) else f"The {MOST_SHOWN} most probable values")
    table.add_column("value", overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    if check is not None:
        table.add_column(f"{100 * check.band.level:g}% interval", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for place in shown:
        share = float(found.probabilities[place])
        told = [] if check is None else [_interval(check.band, int(place))]
        table.add_row(printable(found.domain.title(int(place))), f"{share:.4f}", *told, "█" * round(bar * share / top))
    console.print(table)
    if check is not None and check.band.outside[shown].any():
        console.print("*: outside the interval of the true share; the estimate is smoother than the reports")
    rest = len(found.domain) - shown.size
    if rest:
        console.print(f"and {rest:,} more; write them all with -o estimate.csv")


def _interval(band: Band, place: int) -> str:
    if np.isnan(band.low[place]):
        return ""
    return f"{band.low[place]:.4f} to {band.high[place]:.4f}" + ("*" if band.outside[place] else " ")
