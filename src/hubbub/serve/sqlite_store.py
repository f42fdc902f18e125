"""Reports in a SQLite file: write-ahead log, synchronised in full at every commit.

A statement releases Python's lock while it runs and takes it again afterwards. One statement for each row would wait
for the event loop at every row; so a statement inserts up to a thousand.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from hubbub.intake.collected_table import KEY
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import quoted_name
from hubbub.serve.base import ReportStore, Row, StoreUnavailableError, quoted_literal

LOCK_SECONDS = 5.0  # to wait for another writer
MAX_STATEMENT_ROWS = 1024
MAX_EXACT_ROWS = 64  # in a statement of just this size
MAX_VARIABLES = 30_000  # of a statement: SQLite takes 32,766
# Keys are random, so that every commit changes pages all over their index: these stay in memory, and are written back
# to the file after several commits.
CACHE_KIB = 1 << 16
CHECKPOINT_PAGES = 4000
MAX_LOG_BYTES = 64 << 20  # to which the log is cut after a checkpoint


class SQLiteStore(ReportStore):
    """Reports in a table of a SQLite file."""

    _connection: sqlite3.Connection

    def _connect(self) -> None:
        path = Path(self.address.target)
        if not path.parent.is_dir():
            raise refusal(
                "no-such-file",
                "the folder of the database does not exist",
                where=self.address.name,
                got=str(path.parent),
                expected="a folder that exists",
                remedy="make the folder, or correct the address",
            )
        self._connection = sqlite3.connect(path, timeout=LOCK_SECONDS, isolation_level=None, cached_statements=256)
        mode = self._ask("PRAGMA journal_mode = WAL")[0][0]
        if mode != "wal":
            raise refusal(
                "not-written",
                "this file cannot have a write-ahead log",
                where=self.address.name,
                got=f"journal_mode {mode}",
                expected="a file system of this machine: not a network's, not memory",
                remedy="put the database on a local disk, or use PostgreSQL",
            )
        self._ask("PRAGMA synchronous = FULL")
        self._ask(f"PRAGMA journal_size_limit = {MAX_LOG_BYTES}")
        self._ask(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        self._ask(f"PRAGMA cache_size = -{CACHE_KIB}")
        if len(self.address.relation.parts) > 1:
            raise refusal(
                "bad-address",
                "a table of SQLite has no schema",
                where=self.address.name,
                got=".".join(self.address.relation.parts),
                expected="the name of a table after the #",
                remedy='write the name alone; put one that contains a dot in quotes ("my.table")',
            )

    def _disconnect(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()  # rolls back what was not committed

    def _begin(self) -> None:
        self._ask("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        self._ask("COMMIT")

    def _ask(self, statement: str, parameter: str | None = None) -> list[Sequence[object]]:
        return self._connection.execute(statement, () if parameter is None else (parameter,)).fetchall()

    def _existing_columns(self) -> list[str] | None:
        rows = self._ask(f"SELECT name FROM pragma_table_info({quoted_literal(self._name)})")  # noqa: S608
        return [str(name) for (name,) in rows] or None

    def _create(self) -> None:
        texts = "".join(f", {quoted_name(name)} TEXT" for name in self.table.columns if name != KEY)
        # AUTOINCREMENT: the number of a row that was deleted never comes again, so that the table can be continued.
        number = f"{quoted_name(self.table.number)} INTEGER PRIMARY KEY AUTOINCREMENT"
        self._ask(f"CREATE TABLE {self._reports} ({number}, {quoted_name(KEY)} TEXT NOT NULL UNIQUE{texts})")
        self._ask(
            f"CREATE TABLE IF NOT EXISTS {self._studies} (table_name TEXT PRIMARY KEY, fingerprint TEXT NOT NULL)"
        )
        if self.table.user is not None:
            index = quoted_name(f"{self._name}_by_user")
            self._ask(f"CREATE INDEX {index} ON {self._reports} ({quoted_name(self.table.user)})")

    def listed(self) -> str:
        """Return the SQL of the texts in a JSON list."""
        return "SELECT value FROM json_each(?)"

    def insert_new(self, rows: Sequence[Row]) -> bool:
        """Insert rows and count them, which is quicker than to look for their keys first: few are sent again."""
        before = self._connection.total_changes
        self._insert("INSERT OR IGNORE", rows)
        is_new = self._connection.total_changes - before == len(rows)
        if not is_new:  # a savepoint would keep a copy of every page that changes
            self._ask("ROLLBACK")
            self._begin()
        return is_new

    def insert(self, rows: Sequence[Row]) -> None:
        """Insert rows."""
        self._insert("INSERT", rows)

    def _insert(self, verb: str, rows: Sequence[Row]) -> None:
        """Insert a thousand rows in a statement; statements of few sizes, so that the driver keeps them prepared."""
        columns = self.table.columns
        names = ", ".join(map(quoted_name, columns))
        row = f"({', '.join('?' * len(columns))})"
        size = 1
        while 2 * size <= min(MAX_STATEMENT_ROWS, MAX_VARIABLES // len(columns)):
            size *= 2
        start = 0
        while start < len(rows):
            left = len(rows) - start
            while size > left > MAX_EXACT_ROWS:
                size //= 2
            size = min(size, left)
            statement = f"{verb} INTO {self._reports} ({names}) VALUES {', '.join([row] * size)}"  # quoted
            self._connection.execute(statement, list(chain.from_iterable(rows[start : start + size])))
            start += size

    def translated(self, error: BaseException) -> bool:
        """Whether SQLite refused: the disk is full, the file is locked or damaged, or a folder is not writable."""
        return isinstance(error, sqlite3.Error | StoreUnavailableError)
