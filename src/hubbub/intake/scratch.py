"""Rows that are put aside to be sorted: in memory as far as allowed, on disk beyond that."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from hubbub.errors import SettingError, shorten
from hubbub.intake.causes import refusal
from hubbub.intake.folder import Folder
from hubbub.threads import processors

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY = "4GB"
BATCH = 1 << 20  # rows handed out at a time
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?i?B)", re.IGNORECASE)
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
LEAST = 200_000_000  # bytes below which a sort makes no headway


def check_memory(memory: object) -> int:
    """Return a size such as 4GB in bytes."""
    match = SIZE.fullmatch(memory.strip()) if isinstance(memory, str) else None
    size = int(float(match[1]) * UNITS[match[2][:-1].lower()]) if match else 0
    if size < LEAST:
        raise SettingError(
            "not an amount of memory to sort in",
            where="memory",
            got=shorten(memory),
            expected=f"a size such as 4GB or 800MiB, at least {LEAST // 10**6}MB",
            remedy="leave it out for 4GB",
        )
    return size


class Scratch:
    """Tables that exist as long as this object is open."""

    def __init__(self, memory: str = MEMORY) -> None:
        self._memory = check_memory(memory)
        self._folder: Folder | None = None
        self._tables: dict[str, int] = {}

    def __enter__(self) -> Scratch:
        import duckdb

        with _telling():
            self._folder = Folder()
            try:
                self._connection = duckdb.connect(
                    config={
                        "threads": processors(),
                        "memory_limit": f"{self._memory // 10**6}MB",
                        "temp_directory": str(self._folder.path),
                        "preserve_insertion_order": False,
                        "autoinstall_known_extensions": False,
                    }
                )
            except BaseException:
                self._folder.remove()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        if self._folder is not None:
            self._folder.remove()

    def rows(self, table: str) -> int:
        """Return how many rows a table has."""
        return self._tables.get(table, 0)

    def insert(self, table: str, rows: pa.Table) -> None:
        """Add rows to a table, which the first of them make."""
        with _telling():
            self._connection.register("incoming", rows)
            if table in self._tables:
                self._connection.execute(f"INSERT INTO {table} SELECT * FROM incoming")  # noqa: S608  # our own name
            else:
                self._connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")  # noqa: S608
            self._connection.unregister("incoming")
        self._tables[table] = self.rows(table) + rows.num_rows

    def sorted(self, table: str, columns: str, order: str) -> Iterator[pa.Table]:
        """Yield a table's rows in order."""
        import pyarrow as pa

        if table not in self._tables:
            return
        with _telling():
            query = f"SELECT {columns} FROM {table} ORDER BY {order}"  # noqa: S608  # our own names
            waiting: list[pa.RecordBatch] = []
            with self._connection.cursor() as reading:  # of its own: rows may be put aside while these come
                for batch in reading.sql(query).to_arrow_reader(BATCH):  # which hands out less at a time
                    waiting.append(batch)
                    if sum(len(part) for part in waiting) >= BATCH:
                        yield pa.Table.from_batches(waiting)
                        waiting = []
            if waiting:
                yield pa.Table.from_batches(waiting)

    def drop(self, table: str) -> None:
        """Forget a table."""
        if self._tables.pop(table, None) is not None:
            with _telling():
                self._connection.execute(f"DROP TABLE {table}")


@contextmanager
def _telling() -> Iterator[None]:
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
