"""``hubbub independence``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cli.console import out, print_json, print_written, printable
from hubbub.cli.input_summary import print_summary, read_and_print_notes
from hubbub.cli.options import AsJson, Level, ReadingOptions, SourcesOrNone, StudyOrTally
from hubbub.cli.progress_bar import follow
from hubbub.cli.result_file import ResultFile, check_output

if TYPE_CHECKING:
    from hubbub.association import Independence
    from hubbub.reports import Reports


def command(
    study: StudyOrTally,
    sources: SourcesOrNone = None,
    *,
    attributes: Annotated[
        str | None, typer.Option(metavar="A,B", help="The two attributes; may be left out if there are only two.")
    ] = None,
    level: Level = 0.95,
    reading: ReadingOptions,
    as_json: AsJson = False,
    output: ResultFile = None,
) -> None:
    """Test whether two attributes are related, and say how strongly."""
    from hubbub.association import independence
    from hubbub.core import validation
    from hubbub.exporting.json_documents import result_document
    from hubbub.exporting.result_files import write_comparison
    from hubbub.rendering import picture_title
    from hubbub.reports import Reports

    validation.level(level, "independence")
    check_output(output, [str(study), *(sources or [])], reading)
    study_input = read_and_print_notes(study, sources, reading)
    assert isinstance(study_input.reports, Reports)  # noqa: S101  # without a cluster they are here
    run = independence.steps(study_input.reports, *_pair(attributes, study_input.reports), level=level)
    answer = follow(run, "comparing attributes")
    document = result_document(study_input.summary, answer)
    if output is not None:
        summary = study_input.summary
        title = picture_title(summary.study.name, users=summary.users, level=level)
        write_comparison(answer, document, output, title=title)
        print_written(output)
    if as_json:
        print_json(document)
    elif output is None:
        _show(answer)
        print_summary(study_input.summary)


def _pair(text: str | None, reports: Reports) -> tuple[str, str]:
    """Return the two attributes that are named; both where there are two."""
    from hubbub.reports.attribute_reduction import product_of

    product = product_of(reports, "independence(reports)")
    names = list(product.attributes) if text is None else [name.strip() for name in text.split(",")]
    if len(names) != 2:
        raise typer.BadParameter(
            f"name two of {', '.join(product.attributes)}, with a comma between them", param_hint="--attributes"
        )
    product.margin(names, "--attributes")
    return names[0], names[1]


def _show(answer: Independence) -> None:
    import numpy as np
    from rich.table import Table

    console = out()
    console.print(printable(answer.explain(), most=10_000))
    if not answer.testable:
        return
    table = Table()
    for name in answer.names:
        table.add_column(printable(name))
    numbers = ("share", "independent", "difference")
    for name in numbers:
        table.add_column(name, justify="right")
    places = answer.domain.coordinates_of(np.arange(len(answer.domain)))
    titles = [
        [printable(own.title(place)) for place in along.tolist()]
        for own, along in zip(answer.domain.attributes.values(), places, strict=True)
    ]
    shares = answer.to_frame()[list(numbers)].to_numpy().tolist()
    for *labels, row in zip(*titles, shares, strict=True):
        table.add_row(*labels, *(f"{share:.4f}" for share in row))
    console.print(table)
