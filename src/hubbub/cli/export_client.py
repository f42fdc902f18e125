"""``hubbub export-client``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import out, print_json
from hubbub.cli.options import AllowCode, AsJson, StudyFile
from hubbub.cli.progress_bar import follow


def command(
    study: StudyFile,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The JSON file to write.")] = Path(
        "study.json"
    ),
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Write a study for clients in JavaScript and other languages."""
    from hubbub.intake import export_client
    from hubbub.intake.read_plan import refuse_overwriting

    refuse_overwriting(output, [study], "-o")
    digest = follow(export_client.steps(study, output, allow_code=allow_code), "computing tables")
    if as_json:
        print_json({"version": 1, "output": str(output), "digest": digest})
    else:
        out().print(f"{output}: digest {digest}", soft_wrap=True)
