"""Options that several commands take, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hubbub.intake.scratch import MEMORY

__all__ = ["MEMORY", "AllowRejects", "AsJson", "Memory", "RejectsFile", "Sources", "SourcesOrNone", "StudyOrTally"]

WHAT = "Files (CSV, TSV, JSON lines, Parquet, Arrow), folders, patterns, or addresses of tables."

Sources = Annotated[list[str], typer.Argument(metavar="SOURCE...", help=WHAT)]
SourcesOrNone = Annotated[list[str] | None, typer.Argument(metavar="SOURCE...", help=WHAT)]
StudyOrTally = Annotated[Path, typer.Argument(metavar="STUDY|TALLY", help="The study file, or a tally alone.")]
AllowRejects = Annotated[str, typer.Option(help="Go on with so many rejected rows: 100, or 1%.")]
RejectsFile = Annotated[Path | None, typer.Option("--rejects", help="List the rejected rows in this CSV file.")]
Memory = Annotated[str, typer.Option(help="Memory for sorting; more goes to the disk.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
