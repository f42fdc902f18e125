"""``hubbub new``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from hubbub.cli.console import err
from hubbub.core.text import listed
from hubbub.intake.study import DOMAINS
from hubbub.intake.study_files import write_template

Kind = Enum("Kind", {kind: kind for kind in DOMAINS})  # type: ignore[misc]  # the names are data
KINDS = f"The kind of domain: {listed(list(DOMAINS), word='or')}."


def command(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=KINDS)],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The study file to write.")] = Path(
        "study.toml"
    ),
) -> None:
    """Write a commented study file to start from."""
    write_template(kind.value, output)
    start = f"{output}: a study over {kind.value}."
    err().print(f"{start} Edit it, then share it with clients and collectors.", soft_wrap=True)
