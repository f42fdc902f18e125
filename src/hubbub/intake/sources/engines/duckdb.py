"""DuckDB, whose relations stream to Arrow."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import IntakeError
from hubbub.intake.sources.database_address import column
from hubbub.intake.sources.engines.base import Engine, existing_file, gist

if TYPE_CHECKING:
    import pyarrow as pa

# Types that Arrow has too. Others are read as texts: of 2^128 - 1 Arrow would make -1, and of bits their inner form.
SAME = {
    *("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("float", "double", "decimal", "varchar", "blob"),
    *("list", "array", "struct", "map", "union", "date", "interval", "null"),
}
BATCH = 122_880


class DuckDB(Engine):
    """A file of DuckDB."""

    package = "duckdb"
    module = "duckdb"

    def open(self, driver: Any) -> None:
        """Open the file for reading; until it is closed DuckDB lets nobody write, so all queries see the same."""
        import pyarrow as pa

        path = existing_file(self, b"DUCK", 8, False, {b"SQLite format 3\0": "an SQLite database"})
        self._driver = driver
        self._errors = (driver.Error, pa.ArrowException, OSError)
        try:
            # A table that is not there must not be found among the variables of a program.
            settings = {"python_enable_replacements": False}
            self._connection = driver.connect(str(path), read_only=True, config=settings)
        except self._errors as error:
            if "lock" in str(error) or isinstance(error, driver.ConnectionException):
                raise self.busy(gist(error)) from None
            raise self._damaged(error) from None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def columns(self) -> list[str]:
        """Return the names; a table is looked up first, or DuckDB would take "file.csv" for a file."""
        relation = self.address.relation
        try:
            if relation.parts and not self._listed(relation.parts):
                raise self.no_table(f"no table {'.'.join(relation.parts)}")
            statements = self._connection.extract_statements(relation.sql)
            if len(statements) != 1 or statements[0].type != self._driver.StatementType.SELECT:
                raise self.no_table(f"{len(statements)} statements, or one that writes")
            return list(self._connection.sql(relation.sql).columns)
        except self._errors as error:
            raise self._refuse(error) from None

    def count(self, wanted: Sequence[int], width: int) -> int:
        """Count the rows, and look at the types."""
        within = self.address.relation.within
        try:
            types = self._connection.sql(within(width, ", ".join(map(column, wanted)))).types
            selected = [
                column(place) if kind.id in SAME or kind.id.startswith("time") else f"CAST({column(place)} AS VARCHAR)"
                for place, kind in zip(wanted, types, strict=True)
            ]
            self._statement = within(width, ", ".join(selected))
            return int(self._connection.execute(within(width, "count(*)")).fetchall()[0][0])
        except self._errors as error:
            raise self._refuse(error) from None

    def batches(self) -> Generator[list[pa.Array], None, None]:
        """Yield all rows."""
        try:
            # A relation streams; what `execute` gives is all in memory before the first batch.
            with self._connection.sql(self._statement).to_arrow_reader(BATCH) as reader:
                for batch in reader:
                    yield batch.columns
        except self._errors as error:
            raise self._refuse(error) from None

    def tables(self) -> list[str]:
        """Return what the catalog lists."""
        return [name if schema == "main" else f"{schema}.{name}" for _, schema, name in self._catalog()]

    def _catalog(self) -> list[tuple[str, str, str]]:
        listed = "SELECT table_catalog, table_schema, table_name FROM information_schema.tables ORDER BY ALL"
        rows: list[tuple[str, str, str]] = self._connection.execute(listed).fetchall()
        return rows

    def _listed(self, parts: tuple[str, ...]) -> bool:
        """Return whether a table has this name; capitals do not count for DuckDB."""
        name = [part.casefold() for part in parts]
        for row in self._catalog():
            full = [part.casefold() for part in row]
            if full[-len(name) :] == name or (len(name) == 2 and [full[0], full[2]] == name):
                return True
        return False

    def _refuse(self, error: BaseException) -> IntakeError:
        damage = (self._driver.IOException, self._driver.FatalException, self._driver.InternalException)
        return self._damaged(error) if isinstance(error, damage) else self.no_table(gist(error))

    def _damaged(self, error: BaseException) -> IntakeError:
        remedy = "check how the file was written and copied; one of a newer DuckDB needs the newer package"
        return self.not_read(gist(error), "a whole DuckDB database that is not encrypted", remedy)
