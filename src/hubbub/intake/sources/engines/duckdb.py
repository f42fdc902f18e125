"""DuckDB files, streamed as Arrow batches."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import column
from hubbub.intake.sources.engines.base import Engine, first_message_line
from hubbub.intake.sources.mark_types import MarkType

if TYPE_CHECKING:
    import pyarrow as pa

# Types that Arrow has, too. Others are read as texts: Arrow would turn 2^128 - 1 into -1, and bits into raw bytes.
ARROW_TYPES = {
    *("boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint"),
    *("float", "double", "decimal", "varchar", "blob"),
    *("list", "array", "struct", "map", "union", "date", "interval", "null"),
}
MARK_TYPES = {*(name for name in ARROW_TYPES if name.endswith(("int", "integer"))), "date", "varchar"}  # that sort
BATCH_ROWS = 122_880
# A view in somebody's file must not read other files or addresses, nor load native code: with access to them, it could
# have a secret counted, or written to the rejects. Spilling to disk works all the same.
CLOSED = {
    "python_enable_replacements": False,  # else a missing table is looked for among the variables of the program
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "lock_configuration": True,
}
EXTENSION_MARK = re.compile(r"exists in the (\w+) extension|requires the extension (\w+)", re.IGNORECASE)


class DuckDB(Engine):
    """A DuckDB file."""

    package = "duckdb"
    module = "duckdb"
    tables_query = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
    default_schema = "main"

    def open(self, driver: Any) -> None:
        """Open the file read-only; until it is closed, DuckDB lets nobody write, so all queries see the same data."""
        self._driver = driver
        path = self.existing_file()
        with self.translating(self._opening_error):
            self._connection = driver.connect(str(path), read_only=True, config=CLOSED)

    def columns(self) -> list[str]:
        """Return the names; a table is looked up first, because DuckDB would read "file.csv" as a file."""
        relation = self.address.relation
        with self.translating():
            if relation.parts and not self._has_table(relation.parts):
                raise self.no_table(f"no table {'.'.join(relation.parts)}")
            statements = self._connection.extract_statements(relation.sql)
            if len(statements) != 1 or statements[0].type != self._driver.StatementType.SELECT:
                raise self.no_table(f"{len(statements)} statements, or a statement that writes")
            return list(self._connection.sql(relation.sql).columns)

    def largest(self, place: int, width: int) -> pa.ChunkedArray:
        """Return the largest entry of a column of a type that sorts."""
        with self.translating():
            kind = self._connection.sql(self.address.relation.within(width, column(place))).types[0]
        if kind.id not in MARK_TYPES and not kind.id.startswith("timestamp"):
            raise self.not_a_watermark(place, kind.id)
        return super().largest(place, width)

    def ask_table(self, statement: str) -> pa.Table:
        """Return all rows of a statement as a table."""
        return self._connection.sql(statement).to_arrow_table()

    def literal(self, kind: MarkType, key: int) -> str:
        """Return a value of a watermark in SQL; nanoseconds have a type of their own."""
        text = super().literal(kind, key)
        return text.replace("TIMESTAMP ", "TIMESTAMP_NS ") if kind.unit == "ns" and kind.kind == "time" else text

    def count(self, wanted: Sequence[int], width: int, where: str = "") -> int:
        """Count the rows, and choose how to select each column by its type."""
        within = self.address.relation.within
        with self.translating():
            types = self._connection.sql(within(width, ", ".join(map(column, wanted)))).types
            selected = [
                column(place)
                if kind.id in ARROW_TYPES or kind.id.startswith("time")
                else f"CAST({column(place)} AS VARCHAR)"
                for place, kind in zip(wanted, types, strict=True)
            ]
            self._statement = within(width, ", ".join(selected)) + where
            return int(self.ask(within(width, "count(*)") + where)[0][0])

    def batches(self) -> Generator[list[pa.Array], None, None]:
        """Yield all rows."""
        # A relation streams; the result of `execute` is in memory before the first batch.
        with self.translating(), self._connection.sql(self._statement).to_arrow_reader(BATCH_ROWS) as reader:
            for batch in reader:
                yield batch.columns

    def _has_table(self, parts: tuple[str, ...]) -> bool:
        """Return whether a table has this name; DuckDB ignores case."""
        name = [part.casefold() for part in parts]
        for row in self.ask("SELECT table_catalog, table_schema, table_name FROM information_schema.tables"):
            full = [part.casefold() for part in row]
            if full[-len(name) :] == name or (len(name) == 2 and [full[0], full[2]] == name):
                return True
        return False

    def error(self, error: BaseException) -> IntakeError:
        """Return the error for a damaged file, or for a table or query that cannot be read or reads something else."""
        if isinstance(error, self._driver.PermissionException) or EXTENSION_MARK.search(str(error)):
            return self._reaching_out(error)
        damage = (self._driver.IOException, self._driver.FatalException, self._driver.InternalException)
        return self._damaged(error) if isinstance(error, damage) else self.no_table(first_message_line(error))

    def _reaching_out(self, error: BaseException) -> IntakeError:
        return refusal(
            "no-table",
            "the table or query reads something outside the database",
            where=self.address.name,
            got=self.address.scrub(first_message_line(error)),
            expected="a table, view or query of this file alone: other files, addresses and extensions are closed",
            remedy="if you trust it, copy the rows in DuckDB itself: CREATE TABLE copied AS SELECT * FROM the view",
        )

    def _opening_error(self, error: BaseException) -> IntakeError:
        if "lock" in str(error) or isinstance(error, self._driver.ConnectionException):
            return self.busy(first_message_line(error))
        return self._damaged(error)

    def _damaged(self, error: BaseException) -> IntakeError:
        remedy = "copy the file again; a file of a newer DuckDB needs the newer package"
        return self.unreadable(first_message_line(error), "a complete DuckDB database, not encrypted", remedy)
