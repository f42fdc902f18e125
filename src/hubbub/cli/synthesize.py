"""``hubbub synthesize``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import print_written
from hubbub.cli.input_summary import print_summary, read_and_print_notes
from hubbub.cli.options import Method, ReadingOptions, SourcesOrNone, StudyOrTally
from hubbub.cli.progress_bar import follow

ENDINGS = (".csv", ".parquet")


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    *,
    records: Annotated[int, typer.Option("-n", "--records", min=1, metavar="N", help="How many records to draw.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Write .csv or .parquet.")],
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Draw with this seed; 0 by default: the same records again.")
    ] = None,
    method: Method = "auto",
    reading: ReadingOptions,
) -> None:
    """Draw records of people who do not exist, from the estimated distribution."""
    from hubbub.estimators import estimate
    from hubbub.exporting.result_files import check_output_path, write_records
    from hubbub.intake.read_plan import refuse_overwriting
    from hubbub.synthesis import synthesize

    if output.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(f"{output} must end in {' or '.join(ENDINGS)}", param_hint="-o")
    refuse_overwriting(output, [study, *(sources or [])], "-o")
    check_output_path(output)
    refuse_overwriting(reading.rejects, [study, output], "--rejects")
    study_input = read_and_print_notes(study, sources, reading)
    estimated = follow(estimate.steps(study_input.reports, method), f"estimating by {method}")
    write_records(synthesize(estimated, records, rng=seed), output)
    print_summary(study_input.summary)
    print_written(output)
