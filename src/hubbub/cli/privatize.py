"""``hubbub privatize``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import err, out, print_json, printable
from hubbub.cli.input_summary import print_notes
from hubbub.cli.options import AllowCode, AsJson, EqualFiles, MechanismColumn, StudyFile, UserColumn
from hubbub.cli.progress_bar import follow
from hubbub.core.text import plural

VALUES = "A file of values (CSV, TSV, JSON lines, Parquet, Arrow), a folder, a pattern, or the address of a table."


def command(
    study: StudyFile,
    values: Annotated[str | None, typer.Argument(metavar="VALUES", help=VALUES)] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The reports: .parquet, .arrow, .csv, .tsv, .jsonl."),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The mechanism of all rows; by default a column names each row's."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Simulate with this seed: such reports protect nobody.")
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            "--export-tables", metavar="FILE", help="Write the tables that hubbub.client on devices cannot compute."
        ),
    ] = None,
    value_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of values, if not `value`.")
    ] = None,
    user_column: UserColumn = None,
    mechanism_column: MechanismColumn = None,
    equal_files: EqualFiles = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Privatize values into reports, with the operating system's randomness."""
    from hubbub.exporting.json_documents import privatized_document
    from hubbub.intake import export_tables, privatize_file, read_study
    from hubbub.intake.read_plan import refuse_overwriting

    if (values is None) != (output is None) or (values is None and tables is None):
        raise typer.BadParameter("pass VALUES and -o REPORTS, or --export-tables FILE")
    if tables is not None:
        refuse_overwriting(tables, [study], "--export-tables")
        digest = follow(export_tables.steps(study, tables, allow_code=allow_code), "computing tables")
        if as_json and values is None:
            print_json({"version": 1, "tables": str(tables), "digest": digest})
        else:
            (err() if as_json else out()).print(f"{tables}: digest {digest}", soft_wrap=True)
    if values is None or output is None:
        return
    refuse_overwriting(output, [study], "-o")
    if seed is not None:
        err().print("--seed: these reports are simulated, not private: the seed undoes the noise", soft_wrap=True)
    run = privatize_file.steps(
        values,
        read_study(study, allow_code=allow_code),
        mechanism,
        output,
        rng=seed,
        value_column=value_column,
        user_column=user_column,
        mechanism_column=mechanism_column,
        equal_files=equal_files,
    )
    privatized = follow(run, "privatizing")
    print_notes(privatized.notes)
    for name in privatized.columns_left_out:
        err().print(f"column {printable(name)}: left out of the reports", soft_wrap=True)
    if as_json:
        print_json(privatized_document(privatized))
        return
    by = "" if privatized.mechanism is None else f" by {privatized.mechanism}"
    reports = plural(privatized.rows, "report")
    out().print(f"{privatized.path}: {reports}{by}, {privatized.randomness} randomness", soft_wrap=True)
