"""Rows that are put aside to be sorted: in memory as far as allowed, on disk beyond that."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from hubbub.core.defaults import DEFAULT_MEMORY
from hubbub.core.errors import SettingError, shorten
from hubbub.core.threads import processors
from hubbub.intake.counting.scratch_folder import ScratchFolder, sweep
from hubbub.intake.reject_causes import refusal

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

BATCH_ROWS = 1 << 20  # handed out at a time
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?i?B)", re.IGNORECASE)
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
MEMORY_PARTS = 8  # rows may take one part of the memory before they go to the database, or at a time from it
SORTED_ROW_BYTES = 24  # of a row of numbers while it is sorted
MIN_MEMORY_BYTES = 200_000_000  # below this a sort makes no headway


def check_memory(memory: object) -> int:
    """Return a size such as 4GB in bytes."""
    match = SIZE.fullmatch(memory.strip()) if isinstance(memory, str) else None
    size = int(float(match[1]) * UNITS[match[2][:-1].lower()]) if match else 0
    if size < MIN_MEMORY_BYTES:
        raise SettingError(
            "memory must be a size that rows can be sorted in",
            where="memory",
            got=shorten(memory),
            expected=f"a size such as 4GB or 800MiB, at least {MIN_MEMORY_BYTES // 10**6}MB",
            remedy="leave it out for 4GB",
        )
    return size


class Scratch:
    """Tables that exist as long as this object is open."""

    def __init__(self, memory: str = DEFAULT_MEMORY) -> None:
        self._memory = check_memory(memory)
        self._folder: ScratchFolder | None = None
        self._opened: duckdb.DuckDBPyConnection | None = None
        self._opening = Lock()  # rows are put aside in one thread while sorted ones are read in another
        self._waiting: dict[str, list[pa.Table]] = {}  # rows that are still in memory, as they came
        self._held = 0  # bytes of them
        self._stored: set[str] = set()  # tables of the database

    def __enter__(self) -> Scratch:
        with suppress(OSError):  # no place for temporary files: a run that needs one says so
            sweep()
        return self

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()
        if self._folder is not None:
            self._folder.remove()

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        """The database, started when first needed: most runs need none, and starting one takes longer than they do."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        self._folder = ScratchFolder()
        connection = duckdb.connect(
            config={
                "threads": processors(),
                "memory_limit": f"{self._memory // 10**6}MB",
                "temp_directory": str(self._folder.path),
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
            }
        )
        with suppress(duckdb.InvalidInputException):  # in notebooks without ipywidgets: there is no bar
            connection.execute("SET enable_progress_bar = false")  # progress is ours to show
        return connection

    def _holds(self, table: str) -> bool:
        return table in self._stored or table in self._waiting

    def insert(self, table: str, rows: pa.Table) -> None:
        """Add rows to a table. They stay in memory as they are for as long as all of them are few."""
        self._waiting.setdefault(table, []).append(rows)
        self._held += rows.nbytes
        if self._held > self._memory // MEMORY_PARTS:
            for name in list(self._waiting):
                self._put(name)

    def _put(self, table: str) -> None:
        """Hand the rows that wait over to the database, which moves them to the disk when memory is short."""
        waiting = self._waiting.pop(table, [])
        if not waiting:
            return
        self._held -= sum(part.nbytes for part in waiting)
        with _explained():
            self._connection.register("incoming", _together(waiting))
            if table in self._stored:
                self._connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")  # noqa: S608  # our name
            else:
                self._connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")  # noqa: S608
                self._stored.add(table)
            self._connection.unregister("incoming")

    @contextmanager
    def _query(self, table: str, query: str) -> Iterator[duckdb.DuckDBPyRelation]:
        """Run a query about a table, whose name is {table} in it.

        It has a connection of its own, because rows may be inserted while its answer is read.
        """
        with _explained(), self._connection.cursor() as cursor:
            yield cursor.sql(query.format(table=self._name_for(cursor, table)))

    def _name_for(self, cursor: duckdb.DuckDBPyConnection, table: str) -> str:
        """Return what a table is called in queries of a connection, which may read rows in memory."""
        if table in self._stored:
            self._put(table)
            return table
        name = f"{table}_in_memory"
        cursor.register(name, _together(self._waiting[table]))
        return name

    def sorted(self, table: str, columns: str, order: str) -> Iterator[pa.Table]:
        """Yield a table's rows in order."""
        import pyarrow as pa

        if not self._holds(table):
            return
        with self._query(table, f"SELECT {columns} FROM {{table}} ORDER BY {order}") as rows:  # noqa: S608  # our names
            waiting: list[pa.RecordBatch] = []
            for batch in rows.to_arrow_reader(BATCH_ROWS):  # which hands out less at a time
                waiting.append(batch)
                if sum(len(part) for part in waiting) >= BATCH_ROWS:
                    yield pa.Table.from_batches(waiting)
                    waiting = []
            if waiting:
                yield pa.Table.from_batches(waiting)

    def select(self, table: str, condition: str) -> pa.Table | None:
        """Return a table's rows that meet a condition; None where there is no such table."""
        if not self._holds(table):
            return None
        with self._query(table, f"SELECT * FROM {{table}} WHERE {condition}") as rows:  # noqa: S608  # our names
            return rows.to_arrow_table()

    def commonest(self, table: str, column: str) -> tuple[Any, int] | None:
        """Return the entry that most rows of a table have in a column, and how many; None where there is no row."""
        if not self._holds(table):
            return None
        query = f"SELECT {column}, count(*) FROM {{table}} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"  # noqa: S608
        with self._query(table, query) as rows:
            entry, count = rows.fetchall()[0]
            return entry, int(count)

    def in_several(self, tables: Sequence[str], column: str) -> int:
        """Return how many entries of a column are in more than one of some tables."""
        held = [table for table in tables if self._holds(table)]
        if len(held) < 2:
            return 0
        with _explained(), self._connection.cursor() as cursor:
            names = [self._name_for(cursor, table) for table in held]
            entries = " UNION ALL ".join(f"SELECT DISTINCT {column} FROM {name}" for name in names)  # noqa: S608  # our names
            repeated = f"SELECT {column} FROM ({entries}) GROUP BY 1 HAVING count(*) > 1"  # noqa: S608
            return int(cursor.sql(f"SELECT count(*) FROM ({repeated})").fetchall()[0][0])  # noqa: S608

    def drop(self, table: str) -> None:
        """Forget a table."""
        self._held -= sum(part.nbytes for part in self._waiting.pop(table, []))
        if table in self._stored:
            self._stored.remove(table)
            with _explained():
                self._connection.execute(f"DROP TABLE {table}")

    def parts(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield a table in parts that fit in memory, all rows of a user (a number) in one of them."""
        if not self._holds(table):
            return
        if table not in self._stored:
            yield _together(self._waiting[table]).select(list(columns))
            return
        with self._query(table, "SELECT count(*) FROM {table}") as counted:
            rows = counted.fetchall()[0][0]
        count = -(-rows * SORTED_ROW_BYTES // (self._memory // MEMORY_PARTS))
        for number in range(count):
            part = self.select(table, f"(user % {count} + {count}) % {count} = {number}")
            if part is not None and part.num_rows:
                yield part.select(list(columns))


def _together(tables: list[pa.Table]) -> pa.Table:
    """Return the rows of several tables as one; some may lack a column."""
    import pyarrow as pa

    return pa.concat_tables(tables, promote_options="permissive")


@contextmanager
def _explained() -> Iterator[None]:
    """Raise the database's errors as ours."""
    import duckdb

    try:
        yield
    except (duckdb.Error, OSError) as error:
        text = str(error).splitlines()[0]
        full = isinstance(error, duckdb.OutOfMemoryException) or os.strerror(errno.ENOSPC) in text
        raise refusal(
            "out-of-space" if full else "not-written",
            "there is no room to sort the rows" if full else "the rows cannot be sorted",
            where="the folder for temporary files (TMPDIR)",
            got=shorten(text, 200),
            expected="memory, or free space on the disk, of about the size of the rows",
            remedy="allow more with --memory, or set TMPDIR to a folder on a larger disk",
        ) from None
