"""Tables and queries of databases as sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
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

    def __init__(self, address: Address) -> None:
        self._address = address
        self._header: list[str] | None = None
        self.name = address.name

    @property
    def address(self) -> Address:
        """The address with its password: for whoever opens it, never to be shown."""
        return self._address

    @property
    def files(self) -> tuple[Path, ...]:
        """The database's file, if it is one."""
        return () if self._address.scheme == "postgresql" else (Path(self._address.target),)

    @property
    def identity(self) -> object:
        """The address without its password, and with the full path of a file."""
        return self._address.identity

    def column_advice(self, column: str) -> tuple[str, str]:
        """Return what is expected of a missing column, and a query that gives another column its name."""
        return (
            f"one column {column} in the table or query",
            f"write a query after the #, such as: SELECT answer AS {column} FROM reports",  # noqa: S608  # never run
        )

    def header(self) -> list[str]:
        """Return the names of the columns, as the database spells them."""
        if self._header is None:
            with ENGINES[self._address.scheme](self._address) as engine:
                self._header = self._column_names(engine)
        return list(self._header)

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield all rows; if the stream holds more or fewer than were counted, a last batch says so."""
        with ENGINES[self._address.scheme](self._address) as engine:
            names = self._column_names(engine)
            check_columns(self, names, list(wanted))  # once more: the table may have changed since the header was read
            total = engine.count([names.index(name) for name in wanted], len(names))
            with closing(engine.batches()) as stream:  # also if the rows are not read to their end
                yield from gather(self, list(wanted), stream, total)

    def _column_names(self, engine: Engine) -> list[str]:
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
