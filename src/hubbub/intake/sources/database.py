"""Tables and queries of databases as sources of reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.database_address import Address, is_address, parse_address
from hubbub.intake.sources.engines.base import Engine
from hubbub.intake.sources.engines.duckdb import DuckDB
from hubbub.intake.sources.engines.postgresql import PostgreSQL
from hubbub.intake.sources.engines.sqlite import SQLite
from hubbub.intake.sources.row_batches import gather

__all__ = ["Query", "is_address", "open_address"]

ENGINES: dict[str, type[Engine]] = {"sqlite": SQLite, "duckdb": DuckDB, "postgresql": PostgreSQL}


def open_address(text: str) -> Query:
    """Return the rows that an address names; nothing is opened before they are asked for."""
    return Query(parse_address(text))


class Query(Source):
    """The rows of a table or query, streamed from one snapshot of a database that is never written to.

    Rows are counted by the database itself, in the snapshot from which they are read.
    """

    addressed = True

    def __init__(self, address: Address) -> None:
        self._address = address
        self._header: list[str] | None = None
        self.name = address.name

    @property
    def address(self) -> Address:
        """The address, with the password: to be sent to who opens it, never to be shown."""
        return self._address

    @property
    def files(self) -> tuple[Path, ...]:
        """The database's file, where it is one."""
        return () if self._address.scheme == "postgresql" else (Path(self._address.target),)

    @property
    def identity(self) -> object:
        """The address without its password, with a file's path in full."""
        return self._address.identity

    def column_advice(self, column: str) -> tuple[str, str]:
        """Return what is expected of a column that is missing, and the query that gives another one its name."""
        return (
            f"one column {column} in the table or query",
            f"name it in a query after the #: SELECT answer AS {column} FROM reports",  # noqa: S608  # nobody runs it
        )

    def header(self) -> list[str]:
        """Return the names of the columns, as the database spells them."""
        if self._header is None:
            with ENGINES[self._address.scheme](self._address) as engine:
                self._header = self._columns(engine)
        return list(self._header)

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield all rows; should the stream hold more or fewer than were counted, a last batch says so."""
        with ENGINES[self._address.scheme](self._address) as engine:
            names = self._columns(engine)
            places = [self._place(names, name) for name in wanted]
            total = engine.count(places, len(names))
            with closing(engine.batches()) as stream:  # also when the rows are dropped half-way
                yield from gather(self, list(wanted), stream, total)

    def _columns(self, engine: Engine) -> list[str]:
        names = engine.columns()
        if not names:
            raise refusal(
                "no-column",
                "the table has no columns",
                where=self.name,
                got="none",
                expected="a column output",
                remedy="check which table is named",
            )
        return names

    def _place(self, names: list[str], name: str) -> int:
        if name not in names:
            expected, remedy = self.column_advice(name)
            raise refusal(
                "no-column",
                f"the table has no column {name}",
                where=self.name,
                got=f"columns {shorten(names, 200)}",
                expected=expected,
                remedy=remedy,
            )
        return names.index(name)
