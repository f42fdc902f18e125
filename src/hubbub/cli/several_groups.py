"""What commands about several groups of users share: their input, and how their result is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.cli.console import print_json, print_written
from hubbub.cli.input_summary import load_named_code
from hubbub.cli.options import ReadingOptions
from hubbub.cli.progress_bar import follow

if TYPE_CHECKING:
    from hubbub.comparison import Comparison, GroupComparison
    from hubbub.intake.study_input import StudyInput
    from hubbub.reports import Reports
    from hubbub.trends import Trend


def read_named(
    inputs: Sequence[str], by: list[str] | None, reading: ReadingOptions, command: str, min_group: int | None = None
) -> tuple[dict[str, StudyInput], dict[str, Reports], list[str]]:
    """Read each group; return the inputs, their reports, and what is to be said of them."""
    from hubbub.intake.group_input import read_compared
    from hubbub.reports import Reports

    load_named_code(inputs, reading)
    run = read_compared.steps(inputs, tuple(by or ()), min_group, command, **reading.keywords())
    read = follow(run, "reading reports")
    reports = {name: own.reports for name, own in read.items() if isinstance(own.reports, Reports)}
    return read, reports, list(dict.fromkeys(note for own in read.values() for note in own.summary.notes))


def write_or_print(
    result: Comparison | GroupComparison | Trend,
    document: dict[str, Any],
    output: Path | None,
    show: Callable[[], None],
    *,
    as_json: bool,
    study: str = "",
) -> None:
    """Write the result, print it as JSON, or show it; `study` is the study's name."""
    from hubbub.exporting.result_files import write_comparison
    from hubbub.rendering import picture_title

    if output is not None:
        title = picture_title(study, users=sum(result.users), level=result.level)
        write_comparison(result, document, output, title=title)
        print_written(output)
    if as_json:
        print_json(document)
    elif output is None:
        show()
