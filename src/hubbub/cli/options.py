"""Options that several commands take, each described once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cluster import connect
from hubbub.intake.gathering.scratch import MEMORY

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "MEMORY",
    "AllowRejects",
    "AsJson",
    "Cluster",
    "Memory",
    "RejectsFile",
    "Sources",
    "SourcesOrNone",
    "StudyOrTally",
    "cluster_at",
]

WHAT = "Files (CSV, TSV, JSON lines, Parquet, Arrow), folders, patterns, or addresses of tables."

Sources = Annotated[list[str], typer.Argument(metavar="SOURCE...", help=WHAT)]
SourcesOrNone = Annotated[list[str] | None, typer.Argument(metavar="SOURCE...", help=WHAT)]
StudyOrTally = Annotated[Path, typer.Argument(metavar="STUDY|TALLY", help="The study file, or a tally alone.")]
AllowRejects = Annotated[str, typer.Option(help="Go on with so many rejected rows: 100, or 1%.")]
RejectsFile = Annotated[Path | None, typer.Option("--rejects", help="List the rejected rows in this CSV file.")]
Memory = Annotated[str, typer.Option(help="Memory for sorting; more goes to the disk.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Let a Dask cluster do it: tcp://HOST:8786 (docs/cluster.md).")
]


@contextmanager
def cluster_at(address: str | None) -> Iterator[Client | None]:
    """Open a connection to a cluster for as long as a command needs it; None where none was named."""
    if address is None:
        yield None
        return
    client = connect(address)
    try:
        yield client
    finally:
        client.close()  # type: ignore[no-untyped-call]
