"""Tables and queries of databases as sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path

from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.column_names import check_columns
from hubbub.intake.sources.database_address import Address
from hubbub.intake.sources.engines.base import Engine
from hubbub.intake.sources.engines.duckdb import DuckDB
from hubbub.intake.sources.engines.postgresql import PostgreSQL
from hubbub.intake.sources.engines.sqlite import SQLite
from hubbub.intake.sources.row_batches import gather

ENGINES: dict[str, type[Engine]] = {"sqlite": SQLite, "duckdb": DuckDB, "postgresql": PostgreSQL}


class DatabaseSource(Source):
    """The rows of a table or query, streamed from one snapshot of a database that is never written to.

    The database itself counts the rows, in the snapshot that they are read from. Nothing is opened before the header
    or the rows are read.
    """

    is_addressed = True
    expected_column = "one column {} in the table or query"
    column_remedy = "write a query after the #, such as: SELECT answer AS {} FROM reports"

    def __init__(self, address: Address) -> None:
        self.address = address  # with its password: for whoever opens it, never to be shown
        self.name = address.name

    @property
    def files(self) -> tuple[Path, ...]:
        """The database's file, if it is one."""
        return () if self.address.scheme == "postgresql" else (Path(self.address.target),)

    @property
    def identity(self) -> object:
        """The address without its password, and with the full path of a file."""
        return self.address.identity

    @cached_property
    def _names(self) -> list[str]:
        with ENGINES[self.address.scheme](self.address) as engine:
            names = engine.columns()
        if not names:
            raise refusal(
                "no-column",
                "the table has no columns",
                where=self.name,
                got="no columns",
                expected="a column output",
                remedy="check the name of the table",
            )
        return names

    def header(self) -> list[str]:
        """Return the names of the columns, as the database spells them."""
        return list(self._names)

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield all rows; if the stream holds more or fewer than were counted, a last batch says so."""
        with ENGINES[self.address.scheme](self.address) as engine:
            names = engine.columns()
            check_columns(self, names, list(wanted))  # once more: the table may have changed since the header was read
            total = engine.count([names.index(name) for name in wanted], len(names))
            with closing(engine.batches()) as stream:  # also if the rows are not read to their end
                yield from gather(self, list(wanted), stream, total)
