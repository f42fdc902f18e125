"""``hubbub new``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import err
from hubbub.intake.study import DOMAINS
from hubbub.intake.study_files import write_template

Kind = Enum("Kind", {kind: kind for kind in DOMAINS})  # type: ignore[misc]  # the names are data


def command(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="The kind of domain.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The study file to write.")] = Path("study.toml"),
) -> None:
    """Write a commented study file to start from."""
    write_template(kind.value, output)
    err().print(
        f"{output}: a study over {kind.value}. Edit it, then share it with clients and collectors.", soft_wrap=True
    )
