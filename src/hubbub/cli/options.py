"""Options that several commands take, each described once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hubbub.cluster import connect
from hubbub.intake.counting.scratch import DEFAULT_MEMORY as MEMORY

if TYPE_CHECKING:
    from distributed import Client

__all__ = [
    "MEMORY",
    "AllowRejects",
    "AsJson",
    "Cluster",
    "EqualFiles",
    "MechanismColumn",
    "Memory",
    "OutputColumn",
    "RejectsFile",
    "Sources",
    "SourcesOrNone",
    "StudyOrTally",
    "UserColumn",
    "cluster_at",
]

WHAT = "Files (CSV, TSV, JSON lines, Parquet, Arrow), folders, patterns, or addresses of tables."

Sources = Annotated[list[str], typer.Argument(metavar="SOURCE...", help=WHAT)]
SourcesOrNone = Annotated[list[str] | None, typer.Argument(metavar="SOURCE...", help=WHAT)]
StudyOrTally = Annotated[Path, typer.Argument(metavar="STUDY|TALLY", help="The study file, or a tally by itself.")]
AllowRejects = Annotated[str, typer.Option(help="Maximum number of rejected rows: 100, or 1%.")]
RejectsFile = Annotated[Path | None, typer.Option("--rejects", help="Write the rejected rows to this CSV file.")]
Memory = Annotated[str, typer.Option(help="Memory for sorting; anything beyond it goes to disk.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
OutputColumn = Annotated[str | None, typer.Option(metavar="NAME", help="The column of outputs, if not `output`.")]
UserColumn = Annotated[str | None, typer.Option(metavar="NAME", help="The column of users, if not `user`.")]
MechanismColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column of mechanisms, if not `mechanism`.")
]
EqualFiles = Annotated[
    str | None,
    typer.Option(
        metavar="skip|count", help="Files with equal bytes: skip copies, or count them as different people's reports."
    ),
]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster: tcp://HOST:8786 (docs/cluster.md).")
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
