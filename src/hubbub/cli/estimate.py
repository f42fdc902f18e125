"""``hubbub estimate``."""

from __future__ import annotations

from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hubbub.cli.attribute_tables import Crosstab, crossed, print_attributes
from hubbub.cli.console import err, out, print_json, print_written, printable
from hubbub.cli.input_summary import ALL_USERS, print_summary, read_and_print_notes, read_groups_and_print_notes
from hubbub.cli.options import (
    AsJson,
    By,
    Cluster,
    Fakes,
    Level,
    Method,
    MinGroup,
    ReadingOptions,
    SourcesOrNone,
    StudyOrTally,
    fakes_share,
)
from hubbub.cli.progress_bar import follow
from hubbub.cli.region_table import RegionOptions, print_regions

if TYPE_CHECKING:
    from rich.table import Table

    from hubbub.attribute_shares import AttributeShares
    from hubbub.core.arrays import Positions
    from hubbub.estimators import Estimate
    from hubbub.intake.study_input import StudyInput
    from hubbub.intake.tallies.tally_summary import Summary
    from hubbub.intervals import Band
    from hubbub.polygons import RegionShares
    from hubbub.reports import Reports
    from hubbub.resolution import Resolution
    from hubbub.trust_check import Check

MAX_SHOWN_VALUES = 20
MAX_BAR_LETTERS, MIN_BAR_LETTERS = 24, 4
TABLE_LETTERS = 77  # of the table without its bars
SHOWN_VERDICTS = ("does it fit?", "one answer?", "fake users?")
NO_INTERVALS = (
    "No intervals and verdicts: these shares are no distribution, and an interval for a true share, which is never "
    "negative, could not hold them. --method inv-p shows the nearest distribution."
)
MIN_RESOLVED_VALUES = 3  # with fewer values there is nothing to join


@dataclass(frozen=True)
class EstimateOptions:
    """How the estimate and its intervals are computed."""

    method: Method = "auto"
    delta: Annotated[
        float | None,
        typer.Option(metavar="NATS", help="ibu, ems: stop when the log-likelihood changes by less than this."),
    ] = None
    tol: Annotated[float | None, typer.Option(metavar="NATS", help="mle: stop at this gap per user.")] = None
    max_iter: Annotated[int | None, typer.Option(help="Maximum number of iterations.")] = None
    level: Level = 0.95
    fakes: Fakes = "0"
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out the test of the fit, and the intervals of values.")
    ] = False


class Answer(NamedTuple):
    """What was counted, the estimate from it, and how far to trust it."""

    summary: Summary
    estimate: Estimate
    check: Check | None
    resolution: Resolution | None = None  # where parts say what single values do not
    regions: RegionShares | None = None  # where they were asked for
    attributes: AttributeShares | None = None  # where there are several


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    *,
    options: EstimateOptions,
    crosstab: Crosstab = None,
    by: By = None,
    min_group: MinGroup = 1,
    places: RegionOptions,
    reading: ReadingOptions,
    cluster: Cluster = None,
    as_json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write .json, .csv, .geojson, .parquet, .png or .svg."),
    ] = None,
) -> None:
    """Recover the distribution behind the reports."""
    from hubbub.cluster import ClusterReports, connect
    from hubbub.core import validation
    from hubbub.exporting.json_documents import estimate_document, groups_document
    from hubbub.exporting.result_files import ENDINGS, check_output_path
    from hubbub.intake.read_plan import refuse_overwriting
    from hubbub.rendering import check_on_map
    from hubbub.reports import Reports

    endings = ENDINGS[:2] if by else ENDINGS  # the first two hold the estimates of several groups
    if output is not None and output.suffix.lower() not in endings:
        raise typer.BadParameter(f"{output} must end in {', '.join(endings)}", param_hint="-o")
    validation.level(options.level, "estimate")
    places.refuse_fakes(fakes_share(options.fakes, "estimate"))
    if fakes_share(options.fakes, "estimate") and options.quick:
        raise typer.BadParameter("--quick computes no intervals", param_hint="--fakes with --quick")
    places.check("estimate")
    refuse_overwriting(output, [study, *(sources or []), places.regions], "-o")
    check_output_path(output)
    refuse_overwriting(reading.rejects, [study, output], "--rejects")
    if by and cluster is not None:
        raise typer.BadParameter("groups are estimated on one machine only", param_hint="--by with --cluster")
    if places.regions is not None and cluster is not None:
        raise typer.BadParameter("intervals are computed on one machine only", param_hint="--regions with --cluster")
    is_shown = output is None and not as_json
    with nullcontext() if cluster is None else closing(connect(cluster)) as client:
        if by:
            inputs = read_groups_and_print_notes(study, sources, by, min_group, reading)
        else:
            inputs = {ALL_USERS: read_and_print_notes(study, sources, reading, client)}
        domain = next(iter(inputs.values())).reports.domain
        map_files = (".geojson", ".parquet") if places.regions is not None else (".geojson",)
        if output is not None and output.suffix.lower() in map_files:
            check_on_map(domain)  # before it takes minutes to compute
        own = places.read(domain)
        pair = crossed(crosstab, domain)
        max_intervals = MAX_SHOWN_VALUES if is_shown else None
        if own is not None and not as_json and (output is None or output.suffix.lower() != ".json"):
            max_intervals = 0  # regions take the place of values
            options = replace(options, quick=options.quick or output is not None)  # their files have no verdicts
        if is_shown and domain.product is not None:
            max_intervals = 0  # attributes take the place of combinations
        answers = {}
        for group, study_input in inputs.items():
            answer = _answer(study_input, options, group, max_intervals=max_intervals)
            if own is not None and isinstance(study_input.reports, Reports):
                shares = places.shares(own, study_input.reports, answer.estimate, options.level)
                answer = answer._replace(regions=shares)
            answers[group] = answer
    if is_shown:
        for group, answer in answers.items():
            if by:
                out().print(f"\n{', '.join(by)} {printable(str(group))}", style="bold")
            _show(answer, pair)
            if isinstance(inputs[group].reports, ClusterReports):
                err().print("Intervals and uniqueness are not computed for reports that stay on the cluster.")
        return
    documents = {group: estimate_document(*answer) for group, answer in answers.items()}
    document = groups_document(by, documents) if by else documents[ALL_USERS]
    if output is not None:
        _write(answers, document, output)
        print_written(output)
    if as_json:
        print_json(document)


def _answer(study_input: StudyInput, options: EstimateOptions, group: str, *, max_intervals: int | None) -> Answer:
    """Estimate, and check what will be seen: verdicts, and intervals of all values or of so many, as time allows."""
    import numpy as np

    from hubbub.cluster import ClusterReports
    from hubbub.estimators import estimate
    from hubbub.estimators.validation import check_distribution
    from hubbub.rendering import most_probable
    from hubbub.trust_check import affordable, check

    (reports, summary), method = study_input, options.method
    what = f"{group}: estimating by {method}".removeprefix(": ")
    run = estimate.steps(reports, method, delta=options.delta, tol=options.tol, max_iter=options.max_iter)
    estimated = follow(run, what)
    allowed = fakes_share(options.fakes, "estimate")
    if allowed:
        check_distribution(estimated, "hubbub estimate --method with --fakes")
    elif not estimated.is_distribution and not options.quick:
        err().print(NO_INTERVALS, soft_wrap=True)
    if isinstance(reports, ClusterReports) or options.quick or not estimated.is_distribution:
        return Answer(summary, estimated, None, attributes=_attributes(estimated, None, options))
    attributes = _attributes(estimated, reports, options)
    domain, shares = estimated.domain, estimated.probabilities
    largest_first = np.argsort(-shares, kind="stable")
    wanted = largest_first if max_intervals is None else most_probable(domain, shares, max(1, max_intervals))
    values = domain.labels[affordable(reports, domain.labels[wanted])]
    checking = check.steps(reports, options.level, estimate=estimated, values=values, fakes=allowed)
    checked = follow(checking, "intervals")
    resolved = None if max_intervals == 0 else _resolution(reports, estimated, checked, options.level)
    return Answer(summary, estimated, checked, resolved, attributes=attributes)


def _attributes(estimated: Estimate, reports: Reports | None, options: EstimateOptions) -> AttributeShares | None:
    """Return the shares of each attribute, if there are several."""
    from hubbub.attribute_shares import MAX_PROFILE_COMBINATIONS, attribute_shares
    from hubbub.intervals.set_intervals import SetShares, set_shares

    if estimated.domain.product is None:
        return None
    linear = None
    if reports is not None and len(estimated.domain) > MAX_PROFILE_COMBINATIONS:
        linear = follow(set_shares.steps(reports, estimated.probabilities), "intervals of sets")
    run = attribute_shares.steps(
        estimated,
        reports,
        options.level,
        linear=linear if isinstance(linear, SetShares) else None,
        fakes=fakes_share(options.fakes, "estimate"),
        conditionals=False,
    )
    return follow(run, "attributes")


def _resolution(reports: Reports, estimated: Estimate, checked: Check, level: float) -> Resolution | None:
    """Return the parts that the reports tell apart, if they say what single values do not."""
    from hubbub.resolution import MAX_RESOLVED_VALUES, is_mostly_unknown, resolve

    is_possible = MIN_RESOLVED_VALUES <= len(estimated.domain) <= MAX_RESOLVED_VALUES
    if not is_possible or reports.survey is not None or not is_mostly_unknown(checked.band.low):
        return None
    return follow(resolve.steps(reports, level=level, estimate=estimated), "resolving")


def _write(answers: dict[str, Answer], document: dict[str, Any], output: Path) -> None:
    from hubbub.exporting.result_files import write_groups, write_regions, write_result

    if ALL_USERS not in answers:
        write_groups(document, output)
        return
    summary, estimated, checked, _, shares, _ = answers[ALL_USERS]
    if shares is not None:
        write_regions(shares, document, output, study=summary.study.name)
        return
    band = None if checked is None else checked.band
    write_result(estimated, document, output, band, study=summary.study.name)


def _show(answer: Answer, pair: tuple[str, str] | None) -> None:
    from hubbub.rendering import Fact, facts_text

    summary, estimated, checked, resolution, shares, attributes = answer
    console = out()
    if checked is not None and checked.contradiction:
        console.print(f"{checked.contradiction}\n", style="bold red", soft_wrap=True)
    facts = estimated.facts()
    if checked is not None:
        facts += [Fact(label, text.split("\n")[0]) for label, text in checked.facts() if label in SHOWN_VERDICTS]
    console.print(facts_text(facts), soft_wrap=True)
    if shares is not None:
        print_regions(shares)
    elif attributes is not None:
        print_attributes(estimated, attributes, pair)
    else:
        _show_values(estimated, checked, resolution)
    print_summary(summary)


def _show_values(estimated: Estimate, checked: Check | None, resolution: Resolution | None) -> None:
    """Print the most probable values, and what to know about their intervals."""
    from hubbub.intervals.robust_intervals import fakes_note
    from hubbub.rendering import most_probable
    from hubbub.resolution import suggestion

    console = out()
    shown = most_probable(estimated.domain, estimated.probabilities, MAX_SHOWN_VALUES)
    rest = len(estimated.domain) - shown.size
    console.print(_table(estimated, checked, shown, console.width))
    if checked is not None and checked.band.extended[shown].any():
        console.print("*: extended to the estimate, which is smoother than the confidence interval alone allows")
    if checked is not None and (note := checked.band.errors_note(shown)):
        console.print(f"std. error: {note}", soft_wrap=True)
    if checked is not None and checked.band.fakes:
        console.print(fakes_note(checked.band.fakes))
    if checked is not None and resolution is not None:
        where = " hubbub resolve shows them." if resolution.told else ""
        console.print(f"{suggestion(resolution, checked.band.low)}{where}", soft_wrap=True)
    if rest:
        console.print(f"and {rest:,} more; write them all with -o estimate.csv")


def _table(estimated: Estimate, checked: Check | None, shown: Positions, width: int) -> Table:
    """Return the most probable values with their intervals and bars."""
    from rich.table import Table

    domain, shares = estimated.domain, estimated.probabilities
    largest = max(float(shares.max()), 1e-300)
    bar_letters = max(MIN_BAR_LETTERS, min(MAX_BAR_LETTERS, width - TABLE_LETTERS))
    table = Table(title=None if shown.size == len(domain) else f"The {MAX_SHOWN_VALUES} most probable values")
    table.add_column("value", overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    if checked is not None:
        table.add_column(f"{100 * checked.band.level:g}% interval", justify="right", no_wrap=True)
        table.add_column("std. error", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for position in shown.tolist():
        share = float(shares[position])
        interval = [] if checked is None else _interval(checked.band, position)
        bar = "█" * round(bar_letters * share / largest)
        table.add_row(printable(domain.title(position)), f"{share:.4f}", *interval, bar)
    return table


def _interval(band: Band, position: int) -> tuple[str, str]:
    """Return the interval and the standard error of a value; empty if they were not computed."""
    import numpy as np

    from hubbub.intervals.result import error_text

    low, high = band.low[position], band.high[position]
    if np.isnan(low):
        return "", ""
    marked = "*" if band.extended[position] else " "
    return f"{low:.4f} to {high:.4f}{marked}", error_text(float(band.standard_error[position]))
