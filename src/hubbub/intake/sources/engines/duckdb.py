"""DuckDB files, streamed as Arrow batches."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import IntakeError
from hubbub.intake.sources.database_address import column
from hubbub.intake.sources.engines.base import Engine, existing_file, first_message_line

if TYPE_CHECKING:
    import pyarrow as pa

# Types that Arrow has, too. Others are read as texts: Arrow would turn 2^128 - 1 into -1, and bits into raw bytes.
ARROW_TYPES = {
    *("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("float", "double", "decimal", "varchar", "blob"),
    *("list", "array", "struct", "map", "union", "date", "interval", "null"),
}
BATCH_ROWS = 122_880


class DuckDB(Engine):
    """A DuckDB file."""

    package = "duckdb"
    module = "duckdb"

    def open(self, driver: Any) -> None:
        """Open the file read-only; until it is closed, DuckDB lets nobody write, so all queries see the same data."""
        import pyarrow as pa

        path = existing_file(self, b"DUCK", 8, False, {b"SQLite format 3\0": "an SQLite database"})
        self._driver = driver
        self._errors = (driver.Error, pa.ArrowException, OSError)
        try:
            # Without this, DuckDB looks for a missing table among the variables of the program.
            settings = {"python_enable_replacements": False}
            self._connection = driver.connect(str(path), read_only=True, config=settings)
        except self._errors as error:
            if "lock" in str(error) or isinstance(error, driver.ConnectionException):
                raise self.busy(first_message_line(error)) from None
            raise self._damaged(error) from None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def columns(self) -> list[str]:
        """Return the names; a table is looked up first, because DuckDB would read "file.csv" as a file."""
        relation = self.address.relation
        try:
            if relation.parts and not self._has_table(relation.parts):
                raise self.no_table(f"no table {'.'.join(relation.parts)}")
            statements = self._connection.extract_statements(relation.sql)
            if len(statements) != 1 or statements[0].type != self._driver.StatementType.SELECT:
                raise self.no_table(f"{len(statements)} statements, or a statement that writes")
            return list(self._connection.sql(relation.sql).columns)
        except self._errors as error:
            raise self._error(error) from None

    def count(self, wanted: Sequence[int], width: int) -> int:
        """Count the rows, and choose how to select each column by its type."""
        within = self.address.relation.within
        try:
            types = self._connection.sql(within(width, ", ".join(map(column, wanted)))).types
            selected = [
                column(place)
                if kind.id in ARROW_TYPES or kind.id.startswith("time")
                else f"CAST({column(place)} AS VARCHAR)"
                for place, kind in zip(wanted, types, strict=True)
            ]
            self._statement = within(width, ", ".join(selected))
            return int(self._connection.execute(within(width, "count(*)")).fetchall()[0][0])
        except self._errors as error:
            raise self._error(error) from None

    def batches(self) -> Generator[list[pa.Array], None, None]:
        """Yield all rows."""
        try:
            # A relation streams; the result of `execute` is in memory before the first batch.
            with self._connection.sql(self._statement).to_arrow_reader(BATCH_ROWS) as reader:
                for batch in reader:
                    yield batch.columns
        except self._errors as error:
            raise self._error(error) from None

    def tables(self) -> list[str]:
        """Return the tables of the catalog."""
        return [name if schema == "main" else f"{schema}.{name}" for _, schema, name in self._catalog()]

    def _catalog(self) -> list[tuple[str, str, str]]:
        listed = "SELECT table_catalog, table_schema, table_name FROM information_schema.tables ORDER BY ALL"
        rows: list[tuple[str, str, str]] = self._connection.execute(listed).fetchall()
        return rows

    def _has_table(self, parts: tuple[str, ...]) -> bool:
        """Return whether a table has this name; DuckDB ignores case."""
        name = [part.casefold() for part in parts]
        for row in self._catalog():
            full = [part.casefold() for part in row]
            if full[-len(name) :] == name or (len(name) == 2 and [full[0], full[2]] == name):
                return True
        return False

    def _error(self, error: BaseException) -> IntakeError:
        damage = (self._driver.IOException, self._driver.FatalException, self._driver.InternalException)
        return self._damaged(error) if isinstance(error, damage) else self.no_table(first_message_line(error))

    def _damaged(self, error: BaseException) -> IntakeError:
        remedy = "copy the file again; a file of a newer DuckDB needs the newer package"
        return self.unreadable(first_message_line(error), "a complete DuckDB database, not encrypted", remedy)
