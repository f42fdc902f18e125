"""Reports in a SQLite file: write-ahead log, synchronised in full at every commit."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.intake.collected_table import KEY
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import quoted_name
from hubbub.serve.base import ReportStore, StoreUnavailableError, quoted_literal

if TYPE_CHECKING:
    import pyarrow as pa

UNIQUE_VIOLATION = "UNIQUE constraint failed"  # in SQLite's message
LOCK_MILLISECONDS = 5_000  # to wait for another writer
# Keys are random, so that every commit changes pages all over their index: these stay in memory, and are written back
# to the file after several commits.
CACHE_KIB = 1 << 16
CHECKPOINT_PAGES = 16_000
MAX_LOG_BYTES = 64 << 20  # to which the log is cut after a checkpoint


class SQLiteStore(ReportStore):
    """Reports in a table of a SQLite file."""

    _files: list[tuple[int, int]] | None  # which files are open; None until the first transaction

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
        if path.is_dir():
            raise refusal(
                "wrong-type",
                "the database is a folder",
                where=self.address.name,
                got=str(path),
                expected="a file of SQLite, or none yet",
                remedy=f"name a file in the folder, such as {path / 'reports.db'}",
            )
        self._files = None
        # Transactions are begun and ended by statements of ours: the driver would begin them without a lock.
        self._connection = importlib.import_module("adbc_driver_sqlite.dbapi").connect(str(path), autocommit=True)
        self._ask(f"PRAGMA busy_timeout = {LOCK_MILLISECONDS}")
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

    def _begin(self) -> None:
        self._ask("BEGIN IMMEDIATE")
        if self._files is None:
            self._files = self._files_at_path()

    def _commit(self) -> None:
        self._ask("COMMIT")
        if self._files != self._files_at_path():
            raise StoreUnavailableError("the file was deleted or replaced while it was open")

    def _files_at_path(self) -> list[tuple[int, int]]:
        """Return which files the path and its log name at present.

        The operating system goes on writing to a file that was deleted, and nobody could read it again.
        """
        found = []
        for path in (Path(self.address.target), Path(f"{self.address.target}-wal")):
            try:
                status = path.stat()
            except OSError as error:
                raise StoreUnavailableError(f"{path.name}: {error.strerror}") from None
            found.append((status.st_dev, status.st_ino))
        return found

    def _roll_back(self) -> None:
        self._ask("ROLLBACK")

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

    def among(self, column: str) -> str:
        """Return the SQL for texts of a column that are in a JSON list."""
        return f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608  # quoted

    def insert_new(self, rows: pa.RecordBatch) -> bool:
        """Insert reports without looking for their keys first: few are sent again, and the table has each key once."""
        from adbc_driver_manager import Error

        try:
            self.insert(rows)
        except Error as error:  # the driver hands on no number
            if UNIQUE_VIOLATION not in str(error):
                raise
            self._roll_back()
            self._begin()
            return False
        return True
