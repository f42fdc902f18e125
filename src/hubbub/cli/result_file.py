"""The file that a command writes its result to: a table, a picture or everything as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.options import ReadingOptions

ENDINGS = (".json", ".csv", ".png", ".svg")

ResultFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write .json, .csv, .png or .svg.")
]


def check_output(output: Path | None, inputs: Sequence[str | Path | None], reading: ReadingOptions) -> None:
    """Refuse a result that cannot be written, or would overwrite an input, before anything is read."""
    from hubbub.exporting.result_files import check_output_path
    from hubbub.intake.read_plan import refuse_overwriting

    if output is not None and output.suffix.lower() not in ENDINGS:
        raise typer.BadParameter(f"{output} must end in {', '.join(ENDINGS)}", param_hint="-o")
    refuse_overwriting(output, inputs, "-o")
    check_output_path(output)
    refuse_overwriting(reading.rejects, [*inputs, output], "--rejects")
