"""Reports in a SQLite file: write-ahead log, synchronised in full at every commit."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from hubbub.intake.collected_table import KEY
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import quoted_name
from hubbub.serve.base import ReportStore, quoted_literal

UNIQUE_VIOLATION = "UNIQUE constraint failed"  # in SQLite's message
LOCK_MILLISECONDS = 5_000  # to wait for another writer
# Keys are random, so that every commit changes pages all over their index: these stay in memory, and are written back
# to the file after several commits.
CACHE_KIB = 1 << 16
CHECKPOINT_PAGES = 16_000
MAX_LOG_BYTES = 64 << 20  # to which the log is cut after a checkpoint


class SQLiteStore(ReportStore):
    """Reports in a table of a SQLite file."""

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

    def _commit(self) -> None:
        self._ask("COMMIT")

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

    def listed(self) -> str:
        """Return the SQL of the texts in a JSON list."""
        return "SELECT value FROM json_each(?)"

    def is_repeated_key(self, error: Any) -> bool:
        """Whether SQLite says that a unique key is there already; the driver hands on no number."""
        return UNIQUE_VIOLATION in str(error)
