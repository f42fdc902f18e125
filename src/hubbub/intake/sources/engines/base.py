"""What every kind of database provides to be read, and the errors that all of them share."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hubbub.core.errors import IntakeError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import Address

if TYPE_CHECKING:
    import pyarrow as pa


class Engine(ABC):
    """A read-only connection to one snapshot of a table or query.

    A context manager, which closes the connection. Call ``columns`` first, then ``count``, then ``batches``.
    """

    package: str  # as pip knows it
    module: str

    def __init__(self, address: Address) -> None:
        self.address = address

    def __enter__(self) -> Self:
        self.open(self.driver())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(Exception):  # a broken connection cannot be closed properly, and was reported already
            self.close()

    def driver(self) -> Any:  # a module of the driver
        """Import the driver."""
        try:
            return importlib.import_module(self.module)
        except ImportError:
            raise refusal(
                "no-driver",
                f"the driver for {self.address.scheme} databases is not installed",
                where=self.address.name,
                got=f"no module {self.module}",
                expected=f"the package {self.package}",
                remedy=f"pip install {self.package}",
            ) from None

    @abstractmethod
    def open(self, driver: Any) -> None:
        """Connect, read-only."""

    @abstractmethod
    def close(self) -> None:
        """Close what `open` opened."""

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the names of the columns, exactly, including repeated ones."""

    @abstractmethod
    def count(self, wanted: Sequence[int], width: int) -> int:
        """Count the rows, and prepare the query of the columns at some of the `width` places."""

    @abstractmethod
    def batches(self) -> Generator[list[pa.Array], None, None]:
        """Yield the columns that `count` prepared, some rows at a time, in plain types."""

    @abstractmethod
    def tables(self) -> list[str]:
        """Return the names of all tables and views."""

    def no_table(self, detail: str) -> IntakeError:
        """Return the error for a table that does not exist or a query that fails."""
        is_query = bool(self.address.relation.query)
        tables: list[str] = []
        with suppress(Exception):  # the list only helps; the error at hand matters more
            tables = self.tables()
        existing = f" (the database has {shorten(', '.join(tables), 200)})" if tables else " (the database has none)"
        return refusal(
            "no-table",
            "the query fails" if is_query else "the table cannot be read",
            where=self.address.name,
            got=self.address.scrub(detail),
            expected=f"one query that only reads a table or view{existing}"
            if is_query
            else f"a table or view{existing}",
            remedy="try the query in the database's own client; it must be a single statement that does not write"
            if is_query
            else "check the name (case matters; put a name that contains a dot in quotes) and the right to read it",
        )

    def unreadable(self, detail: str, expected: str, remedy: str) -> IntakeError:
        """Return the error for a file that cannot be read as a database."""
        return refusal(
            "corrupt-file",
            "the database cannot be read",
            where=self.address.name,
            got=detail,
            expected=expected,
            remedy=remedy,
        )

    def busy(self, detail: str) -> IntakeError:
        """Return the error for a locked database."""
        return self.unreadable(detail, "a database that is not locked", "close the program that uses it, and try again")


def existing_file(engine: Engine, magic: bytes, place: int, empty: bool, others: dict[bytes, str]) -> Path:
    """Return the path of a database file; refuse one without the magic bytes of its kind. Nothing is created.

    `empty` allows an empty file; `others` names other kinds of databases by their magic bytes.
    """
    address, path, kind = engine.address, Path(engine.address.target), engine.address.scheme
    try:
        if not path.is_file():
            exists = path.exists()
            raise refusal(
                "not-a-file" if exists else "no-such-file",
                "the database is not a file" if exists else "the database does not exist",
                where=address.name,
                got="a folder" if path.is_dir() else "a device, a pipe or a socket" if exists else f"no file {path}",
                expected=f"the file of a {kind} database",
                remedy=f"check the path: write {kind}:/// before a relative path, {kind}://// before an absolute one",
            )
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise refusal(
            "not-readable",
            "the database cannot be opened",
            where=address.name,
            got=error.strerror or str(error),
            expected="a file that this program may read",
            remedy="check its permissions",
        ) from None
    if start[place : place + len(magic)] != magic and not (empty and not start):
        other_kind = next((name for mark, name in others.items() if mark in start), "")
        raise engine.unreadable(
            other_kind or ("an empty file" if not start else f"a file that begins with {shorten(start[:16])}"),
            f"the file of a {kind} database, not encrypted",
            "write that kind before the :///" if other_kind else "check how the file was written and copied",
        )
    return path


def first_message_line(error: BaseException) -> str:
    """Return the first line of a driver's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
