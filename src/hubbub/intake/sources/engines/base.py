"""What a kind of database supplies to be read, and the words for what can go wrong with any of them."""

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
    """One reading of a table or query: a connection that cannot write, and one snapshot of the data.

    ``columns`` first, then ``count``, then ``batches``; used as a context, which closes the connection.
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
        with suppress(Exception):  # a connection that broke cannot be closed in order, and that was told already
            self.close()

    def driver(self) -> Any:  # a module of the driver
        """Import the driver."""
        try:
            return importlib.import_module(self.module)
        except ImportError:
            raise refusal(
                "no-driver",
                f"the driver of {self.address.scheme} databases is not installed",
                where=self.address.name,
                got=f"no module {self.module}",
                expected=f"the package {self.package}",
                remedy=f"pip install {self.package}",
            ) from None

    @abstractmethod
    def open(self, driver: Any) -> None:
        """Connect, for reading alone."""

    @abstractmethod
    def close(self) -> None:
        """Close what `open` opened."""

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the names of the columns, exactly and with repetitions."""

    @abstractmethod
    def count(self, wanted: Sequence[int], width: int) -> int:
        """Count the rows, and learn what is needed about the columns at some of the `width` places."""

    @abstractmethod
    def batches(self) -> Generator[list[pa.Array], None, None]:
        """Yield the columns that were learned about, some rows at a time, in plain types."""

    @abstractmethod
    def tables(self) -> list[str]:
        """Return the names of all tables and views."""

    def no_table(self, detail: str) -> IntakeError:
        """Return the error for a table that is not there or a query that fails."""
        query = bool(self.address.relation.query)
        tables: list[str] = []
        with suppress(Exception):  # only to help: the error at hand matters more
            tables = self.tables()
        there = f": there are {shorten(', '.join(tables), 200)}" if tables else ": there is none"
        return refusal(
            "no-table",
            "the query fails" if query else "the table cannot be read",
            where=self.address.name,
            got=self.address.scrub(detail),
            expected=f"one query that only reads{there}" if query else f"a table or view{there}",
            remedy="try the query in the database's own terminal; it may not write, and it is one statement"
            if query
            else "check the name (capitals count, and a name with a dot stands in quotes) and the right to read it",
        )

    def not_read(self, detail: str, expected: str, remedy: str) -> IntakeError:
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
        """Return the error for a database that something else has locked."""
        return self.not_read(
            detail, "a database that nobody else has locked", "close the other program or connection, and try again"
        )


def existing_file(engine: Engine, begins: bytes, place: int, empty: bool, others: dict[bytes, str]) -> Path:
    """Return the path of a file that begins as this kind of database does; nothing is ever created."""
    address, path = engine.address, Path(engine.address.target)
    kind = engine.address.scheme
    try:
        if not path.is_file():
            there = path.exists()
            raise refusal(
                "not-a-file" if there else "no-such-file",
                "the database is not a file" if there else "there is no such database",
                where=address.name,
                got="a folder" if path.is_dir() else "a device, a pipe or a socket" if there else f"no file {path}",
                expected=f"the file of a {kind} database",
                remedy=f"check the path: {kind}:/// is followed by a relative one, {kind}://// by an absolute one",
            )
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise refusal(
            "not-readable",
            "the database cannot be opened",
            where=address.name,
            got=error.strerror or str(error),
            expected="a file that may be read",
            remedy="check its permissions",
        ) from None
    if start[place : place + len(begins)] != begins and not (empty and not start):
        other = next((name for mark, name in others.items() if mark in start), "")
        raise engine.not_read(
            other or ("an empty file" if not start else f"a file that begins with {shorten(start[:16])}"),
            f"the file of a {kind} database that is not encrypted",
            "use the scheme of its kind" if other else "check how the file was written and copied",
        )
    return path


def gist(error: BaseException) -> str:
    """Return the first line of a driver's message, without the driver's own preface."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
