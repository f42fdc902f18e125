"""What a database provides to hold reports: transactions that are durable once they are committed.

Databases are spoken to by their ADBC drivers, which take reports by the column and keep no other thread of Python
waiting meanwhile.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import HubbubError, shorten
from hubbub.intake.collected_table import KEY, CollectedTable
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import Address, quoted_name
from hubbub.intake.sources.engines.base import database_message

if TYPE_CHECKING:
    import pyarrow as pa

STUDIES = "hubbub_collector"  # a table beside those of reports: of which study each is
Columns = Sequence[Sequence[str | None]]  # those of the table, keys first


class StoreUnavailableError(Exception):
    """The database does not take reports at present."""


class ReportStore(ABC):
    """One table of reports in a database, used by one thread at a time."""

    _connection: Any

    def __init__(self, address: Address, table: CollectedTable, fingerprint: str) -> None:
        self.address, self.table, self._fingerprint = address, table, fingerprint
        *schema, self._name = address.relation.parts
        self._reports = ".".join(quoted_name(part) for part in address.relation.parts)
        self._studies = ".".join(quoted_name(part) for part in (*schema, STUDIES))
        self._is_open = False

    # -- what databases differ in ---------------------------------------------------------------------

    @abstractmethod
    def _connect(self) -> None:
        """Open a connection, on which a commit returns when it is durable."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction that no other writer of the table overlaps."""

    @abstractmethod
    def _commit(self) -> None:
        """Commit the transaction."""

    @abstractmethod
    def _roll_back(self) -> None:
        """Undo what the transaction has done, and end it."""

    @abstractmethod
    def _existing_columns(self) -> list[str] | None:
        """Return the columns of the table; None if there is no such table."""

    @abstractmethod
    def _create(self) -> None:
        """Create the tables, in a transaction that was begun."""

    @abstractmethod
    def among(self, column: str) -> str:
        """Return the SQL for texts of a column that are in a JSON list, which is the statement's parameter."""

    def schema(self) -> str | None:
        """Return the schema of the table, where there are schemas."""
        return None

    # -- what they have in common ---------------------------------------------------------------------

    def open(self) -> None:
        """Open the database; make the table if there is none, and refuse one that belongs to something else."""
        if self._is_open:
            return
        with self._guarded():
            self._connect()
            self._is_open = True
            self._begin()  # two collectors that start at once make one table
            columns = self._existing_columns()
            if columns is None:
                self._make()
            elif sorted(columns) != sorted([self.table.number, *self.table.columns]):
                raise self._not_ours(f"columns {shorten(columns, 200)}")
            else:
                self._check_study()
            self._commit()

    def close(self) -> None:
        """Close the database; it can be opened again."""
        if self._is_open:
            self._is_open = False
            self._disconnect()

    def _make(self) -> None:
        self._create()
        name = quoted_literal(self._name)
        self._ask(f"DELETE FROM {self._studies} WHERE table_name = {name}")  # noqa: S608  # of a table that was dropped
        names = f"{name}, {quoted_literal(self._fingerprint)}"
        self._ask(f"INSERT INTO {self._studies} (table_name, fingerprint) VALUES ({names})")  # noqa: S608  # quoted

    def _check_study(self) -> None:
        rows = self._ask(
            f"SELECT fingerprint FROM {self._studies} WHERE table_name = {quoted_literal(self._name)}"  # noqa: S608
        )
        found = str(rows[0][0]) if rows else "no study"
        if found != self._fingerprint:
            raise refusal(
                "other-study",
                "the table holds reports of another study",
                where=self.address.name,
                got=found,
                expected=self._fingerprint,
                remedy="name another table after the #: reports of two studies do not mix",
            )

    def _not_ours(self, got: str) -> HubbubError:
        return refusal(
            "wrong-type",
            "the table was not made by a collector of this study",
            where=self.address.name,
            got=got,
            expected=f"columns {', '.join([self.table.number, *self.table.columns])}, or no such table",
            remedy="name a new table after the #, or restore [collector] and [columns] of the study",
        )

    def rows(self, columns: Columns) -> pa.RecordBatch:
        """Return reports in the order of their keys, which becomes that of their numbers.

        It says nothing about the order of arrival, and is quick to index.
        """
        import pyarrow as pa

        arrays = [pa.array(column, pa.string()) for column in columns]
        return pa.record_batch(arrays, self.table.columns).sort_by(KEY)

    def insert_new(self, rows: pa.RecordBatch) -> bool:
        """Insert the first reports of a transaction if none of their keys is stored yet; return whether that is so.

        If one is, the transaction may have been begun again: what was read in it may be old.
        """
        if self.existing(rows.column(KEY).to_pylist()):
            return False
        self.insert(rows)
        return True

    def insert(self, rows: pa.RecordBatch) -> None:
        """Insert reports."""
        with self._connection.cursor() as cursor:
            cursor.adbc_ingest(self._name, rows, mode="append", db_schema_name=self.schema())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a transaction: what was inserted in it is durable at its end, or not there."""
        with self._guarded():
            self.open()
            self._begin()
            yield
            self._commit()

    def probe(self) -> None:
        """Write something that changes nothing: whether the database takes reports."""
        with self.transaction():
            self._ask(f"UPDATE {self._studies} SET table_name = table_name")  # noqa: S608  # quoted

    def existing(self, keys: list[str]) -> dict[str, tuple[object, ...]]:
        """Return the mechanism and outputs of those keys that are stored already."""
        columns = [KEY, self.table.mechanism, *self.table.outputs.values()]
        # No output is an empty text; and a driver may take a column that begins with many NULLs for one of numbers.
        selected = ", ".join(f"coalesce({quoted_name(column)}, '')" for column in columns)
        statement = f"SELECT {selected} FROM {self._reports} WHERE {self.among(quoted_name(KEY))}"  # noqa: S608
        rows = self._ask(statement, json.dumps(sorted(keys)))  # an index is walked through once
        return {str(key): tuple(entry or None for entry in rest) for key, *rest in rows}

    def reports_of(self, users: list[str]) -> dict[str, int]:
        """Return how many reports some users have stored."""
        name = quoted_name(self.table.user or "")
        statement = f"SELECT {name}, count(*) FROM {self._reports} WHERE {self.among(name)} GROUP BY {name}"  # noqa: S608
        return {str(user): int(str(count)) for user, count in self._ask(statement, json.dumps(users))}

    def _ask(self, statement: str, parameter: str | None = None) -> list[Sequence[object]]:
        """Run a statement with at most one parameter, a JSON text, and return its rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement, None if parameter is None else (parameter,))
            return [] if cursor.description is None else cursor.fetchall()

    def _disconnect(self) -> None:
        """Close the connection, whatever state it is in: what was not committed is undone."""
        with suppress(Exception):  # whatever the driver says: it is over
            self._connection.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Close the database if anything fails: the next transaction opens it again."""
        from adbc_driver_manager import Error

        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, Error | StoreUnavailableError):
                raise StoreUnavailableError(self.address.scrub(database_message(error))[:500]) from None
            raise


def quoted_literal(text: str) -> str:
    """Return a text as an SQL literal, whatever it contains."""
    return "'" + text.replace("'", "''") + "'"
