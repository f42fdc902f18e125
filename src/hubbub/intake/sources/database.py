"""Tables and queries of databases as sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Snapshot, Source
from hubbub.intake.sources.column_names import check_columns
from hubbub.intake.sources.database_address import Address
from hubbub.intake.sources.engines.base import Engine
from hubbub.intake.sources.engines.duckdb import DuckDB
from hubbub.intake.sources.engines.postgresql import PostgreSQL
from hubbub.intake.sources.engines.sqlite import SQLite
from hubbub.intake.sources.row_batches import gather

if TYPE_CHECKING:
    import pyarrow as pa

    from hubbub.intake.sources.mark_types import MarkBounds

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

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Open the database: all that is read before it is closed is of one moment."""
        with ENGINES[self.address.scheme](self.address) as engine:
            yield _DatabaseSnapshot(self, engine)

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield all rows; if the stream holds more or fewer than were counted, a last batch says so."""
        with self.snapshot() as snapshot:
            yield from snapshot.rows(wanted, None)


class _DatabaseSnapshot(Snapshot):
    """One snapshot of a database, which selects the rows that are wanted by itself."""

    is_indexed = True

    def __init__(self, source: DatabaseSource, engine: Engine) -> None:
        super().__init__(source)
        self._engine = engine

    def _places(self, wanted: Sequence[str]) -> tuple[list[int], int]:
        """Return the places of some columns, and how many there are."""
        names = self._engine.columns()
        check_columns(self.source, names, list(wanted))  # once more: the table may have changed since it was planned
        return [names.index(name) for name in wanted], len(names)

    def largest(self, column: str) -> Iterator[pa.ChunkedArray]:
        """Yield the largest entry of a column, as the database finds it."""
        (place,), width = self._places([column])
        yield self._engine.largest(place, width)

    def rows(self, wanted: Sequence[str], bounds: MarkBounds | None) -> Iterator[Rows]:
        """Yield the rows within the bounds, and count those before."""
        places, width = self._places(wanted)
        where = ""
        if bounds is not None:
            place = places[list(wanted).index(bounds.column)]
            where = self._engine.within_bounds(place, bounds)
            if bounds.low is not None:
                before = self._engine.before_bounds(place, bounds)
                self.skipped = self._engine.count_where(width, before) if bounds.counts_before else None
            if bounds.high is not None:
                self.beyond = self._engine.count_where(width, self._engine.beyond_bounds(place, bounds))
        total = self._engine.count(places, width, where)
        with closing(self._engine.batches()) as stream:  # also if the rows are not read to their end
            yield from gather(self.source, list(wanted), stream, total)
