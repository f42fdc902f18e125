"""What every kind of database provides to be read, and the errors that all of them share."""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hubbub.core.errors import IntakeError, restated, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import Address, column
from hubbub.intake.sources.file_source import check_file, file_errors
from hubbub.intake.sources.mark_types import EXPECTED, MarkBounds, MarkType

if TYPE_CHECKING:
    import pyarrow as pa

# How the files of each kind of database begin: what stands where, and what the file is called in messages.
FILE_MARKS = {"sqlite": (0, b"SQLite format 3\0", "an SQLite database"), "duckdb": (8, b"DUCK", "a DuckDB database")}
FILE_ERRORS = {
    "no-such-file": "the database does not exist",
    "not-a-file": "the database is not a file",
    "not-readable": "the database cannot be opened",
}

DRIVER_WORDS = re.compile(r"^[A-Z_]+: (?:\[\w+\] )?(?:[Ff]ailed to [a-z ]+: )?")  # of ADBC, before a message


class Engine(ABC):
    """A read-only connection to one snapshot of a table or query.

    A context manager, which closes the connection. Call ``columns`` first, then ``count``, then ``batches``.
    """

    package: str  # as pip knows it
    module: str
    tables_query: str  # selects the schema and the name of all tables and views
    default_schema: str  # is not shown before the name of a table
    _connection: Any  # of the driver's own type
    _statement: str

    def __init__(self, address: Address) -> None:
        self.address = address

    def __enter__(self) -> Self:
        import pyarrow as pa

        driver = self._import_driver()
        self._errors = (driver.Error, pa.ArrowException, OSError, UnicodeDecodeError)
        self.open(driver)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(Exception):  # a broken connection cannot be closed properly, and was reported already
            self._connection.close()

    def _import_driver(self) -> Any:  # a module of the driver
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
        """Connect, read-only, and keep the connection as `_connection`."""

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the names of the columns, exactly, including repeated ones."""

    @abstractmethod
    def count(self, wanted: Sequence[int], width: int, where: str = "") -> int:
        """Count the rows, and prepare the query of the columns at some of the `width` places as `_statement`.

        `where` is a condition, as `within_bounds` returns it.
        """

    def count_where(self, width: int, where: str) -> int:
        """Count the rows for which a condition holds."""
        with self.translating():
            return int(self.ask(self.address.relation.within(width, "count(*)") + where)[0][0])

    def largest(self, place: int, width: int) -> pa.ChunkedArray:
        """Return the largest entry of a column, by the database's own order."""
        with self.translating():
            return self.ask_table(self.address.relation.within(width, f"max({self.sorted_by(place)})")).column(0)

    def ask_table(self, statement: str) -> pa.Table:
        """Return all rows of a statement as a table."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetch_arrow_table()

    def sorted_by(self, place: int) -> str:
        """Return the expression by which a column is compared with a watermark."""
        return column(place)

    def within_bounds(self, place: int, bounds: MarkBounds) -> str:
        """Return the condition for rows within bounds; rows without a watermark are within all bounds."""
        value, limits = self.sorted_by(place), []
        if bounds.low is not None:
            limits.append(f"{value} {'>' if bounds.is_open else '>='} {self.literal(bounds.type, bounds.low)}")
        if bounds.high is not None:
            limits.append(f"{value} <= {self.literal(bounds.type, bounds.high)}")
        return f" WHERE ({' AND '.join(limits)}) OR {column(place)} IS NULL" if limits else ""

    def before_bounds(self, place: int, bounds: MarkBounds) -> str:
        """Return the condition for rows before the bounds."""
        assert bounds.low is not None  # noqa: S101  # else none is
        operator = "<=" if bounds.is_open else "<"
        return f" WHERE {self.sorted_by(place)} {operator} {self.literal(bounds.type, bounds.low)}"

    def beyond_bounds(self, place: int, bounds: MarkBounds) -> str:
        """Return the condition for rows beyond the bounds."""
        assert bounds.high is not None  # noqa: S101  # else none is
        return f" WHERE {self.sorted_by(place)} > {self.literal(bounds.type, bounds.high)}"

    def literal(self, kind: MarkType, key: int) -> str:
        """Return a value of a watermark in SQL; it holds nothing but digits and the signs of a time."""
        text = kind.text(key)
        if kind.kind == "integer":
            return text
        if kind.kind == "text":
            return f"'{text}'"
        if kind.kind == "date":
            return f"DATE '{text}'"
        return f"TIMESTAMPTZ '{text.replace('Z', '+00')}'" if text.endswith("Z") else f"TIMESTAMP '{text}'"

    def not_a_watermark(self, place: int, got: str) -> IntakeError:
        """Return the error for a column whose type cannot be a watermark."""
        return refusal(
            "wrong-type",
            "a column of this type cannot be a watermark",
            where=f"{self.address.name}, column {self.columns()[place]}",
            got=got,
            expected=EXPECTED,
            remedy="name another column, or convert it in a query after the #",
        )

    @abstractmethod
    def batches(self) -> Generator[list[pa.Array], None, None]:
        """Yield the columns that `count` prepared, some rows at a time, in plain types."""

    @abstractmethod
    def error(self, error: BaseException) -> IntakeError:
        """Return what the driver raised as an error in five parts."""

    @contextmanager
    def translating(self, translate: Callable[[BaseException], IntakeError] | None = None) -> Iterator[None]:
        """Raise the errors of the driver in five parts, made by `translate` or else by `error`."""
        try:
            yield
        except self._errors as error:
            raise (translate or self.error)(error) from None

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Return all rows of a statement."""
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def tables(self) -> list[str]:
        """Return the names of all tables and views."""
        listed = self.ask(self.tables_query)
        return [name if schema == self.default_schema else f"{schema}.{name}" for schema, name in listed]

    def stream(self, **options: str) -> Generator[pa.RecordBatch, None, None]:
        """Yield the batches of the prepared query from an ADBC driver; `options` are the driver's."""
        with self.translating(), self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**options)
            cursor.execute(self._statement)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def no_table(self, detail: str) -> IntakeError:
        """Return the error for a table that does not exist or a query that fails."""
        tables: list[str] = []
        with suppress(Exception):  # the list only helps; the error at hand matters more
            tables = self.tables()
        what, expected = "the table cannot be read", "a table or view"
        remedy = "check the name (case matters; put a name that contains a dot in quotes) and the right to read it"
        if self.address.relation.query:
            what, expected = "the query fails", "one query that only reads a table or view"
            remedy = "try the query in the database's own client; it must be a single statement that does not write"
        return refusal(
            "no-table",
            what,
            where=self.address.name,
            got=self.address.scrub(detail),
            expected=f"{expected} (the database has {shorten(', '.join(tables), 200) if tables else 'none'})",
            remedy=remedy,
        )

    def unreadable(self, detail: str, expected: str, remedy: str) -> IntakeError:
        """Return the error for a file that cannot be read as a database."""
        what, where = "the database cannot be read", self.address.name
        return refusal("corrupt-file", what, where=where, got=detail, expected=expected, remedy=remedy)

    def busy(self, detail: str) -> IntakeError:
        """Return the error for a locked database."""
        return self.unreadable(detail, "a database that is not locked", "close the program that uses it, and try again")

    def existing_file(self) -> Path:
        """Return the path of the database's file; refuse one that is of another kind. Nothing is created."""
        path, kind = Path(self.address.target), self.address.scheme
        try:
            check_file(path)
            with file_errors(path), path.open("rb") as file:
                start = file.read(64)
        except IntakeError as error:
            raise restated(
                error,
                IntakeError,
                what=FILE_ERRORS[error.code],
                where=self.address.name,
                expected=f"the file of a {kind} database, which this program may read",
                remedy=f"check its permissions and the path: write {kind}:/// before a relative path, {kind}://// "
                "before an absolute one",
            ) from None
        place, mark, _ = FILE_MARKS[kind]
        if start.startswith(mark, place) or (kind == "sqlite" and not start):  # SQLite takes an empty file
            return path
        other_kind = next((name for _, mark, name in FILE_MARKS.values() if mark in start), "")
        raise self.unreadable(
            other_kind or (f"a file that begins with {shorten(start[:16])}" if start else "an empty file"),
            f"the file of a {kind} database, not encrypted",
            "write that kind before the :///" if other_kind else "check how the file was written and copied",
        )


def database_message(error: BaseException) -> str:
    """Return the first line of a message, without the words that an ADBC driver puts before the database's own."""
    return DRIVER_WORDS.sub("", first_message_line(error), count=1)


def first_message_line(error: BaseException) -> str:
    """Return the first line of a driver's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
