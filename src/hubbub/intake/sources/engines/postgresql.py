"""PostgreSQL servers, streamed by a binary COPY."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.database_address import ALIAS, column
from hubbub.intake.sources.engines.base import Engine, database_message
from hubbub.intake.sources.row_batches import without_trailing_zeros

if TYPE_CHECKING:
    import pyarrow as pa

# Types that Arrow has, too. Others are read as texts: the driver would turn money into cents, bits into raw bytes and a
# large oid into a negative number.
ARROW_TYPES = {"int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar", "name", "char", "bytea"}
REFUSED_CATEGORIES = {"A", "C", "D", "T"}  # arrays, rows, dates and times are left as they are, and refused later
MARK_TYPES = {"int2", "int4", "int8", "date", "timestamp", "timestamptz", "text", "varchar"}  # that sort, exactly
# Distinguishes a lost connection from a query that fails: errors in a stream have no code.
LOST_CONNECTION = re.compile(r"PQgetCopyData|FATAL:|closed the connection|connection to|terminating connection")
BATCH_BYTES = str(16 << 20)

# Selects the type beneath all domains, and its category, by their names in PostgreSQL.
TYPES_QUERY = """
WITH RECURSIVE typed(types) AS (
  SELECT ARRAY[{types}] FROM (SELECT 1) AS one LEFT JOIN ({empty}) AS {alias} ON true
), base(place, type) AS (
  SELECT entry.place, entry.type FROM typed, unnest(typed.types) WITH ORDINALITY AS entry(type, place)
  UNION ALL
  SELECT base.place, domains.typbasetype FROM base JOIN pg_catalog.pg_type AS domains ON domains.oid = base.type
  WHERE domains.typtype = 'd'
)
SELECT plain.typname::text, plain.typcategory::text
FROM base JOIN pg_catalog.pg_type AS plain ON plain.oid = base.type
WHERE plain.typtype <> 'd' ORDER BY base.place
"""


class PostgreSQL(Engine):
    """A PostgreSQL server."""

    package = "adbc-driver-postgresql"
    module = "adbc_driver_postgresql.dbapi"
    tables_query = (
        "SELECT table_schema::text, table_name::text FROM information_schema.tables "
        "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
    )
    default_schema = "public"

    def open(self, driver: Any) -> None:
        """Connect, and begin a read-only transaction that sees one snapshot."""
        self._are_texts: dict[int, bool] = {}  # of columns that were asked for their largest entry
        with self.translating(lambda error: self._lost(error, "the database does not answer")):
            self._connection = driver.connect(self.address.target)
        self._begin()

    def _begin(self) -> None:
        with self.translating(), self._connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # The driver reads every text as UTF-8, whatever encoding the server sends.
            cursor.execute("SET client_encoding TO 'UTF8'")

    def columns(self) -> list[str]:
        """Let the server prepare the statement, which it does only for a single one."""
        with self.translating(), self._connection.cursor() as cursor:
            names = list(cursor.adbc_execute_schema(self.address.relation.sql).names)
            cursor.adbc_execute_schema(self.address.relation.within(len(names), "1"))
            return names

    def _types(self, wanted: Sequence[int], width: int) -> list[tuple[str, str]]:
        """Return the types of columns, and their categories."""
        empty = self.address.relation.within(width, "*") + " WHERE false"
        oids = ", ".join(f"pg_typeof({column(place)})::oid" for place in wanted)
        return [
            (name, category) for name, category in self.ask(TYPES_QUERY.format(types=oids, empty=empty, alias=ALIAS))
        ]

    def largest(self, place: int, width: int) -> pa.ChunkedArray:
        """Return the largest entry of a column of a type that sorts; of texts, in the order of their bytes."""
        with self.translating():
            name = self._types([place], width)[0][0]
        if name not in MARK_TYPES:
            raise self.not_a_watermark(place, name)
        self._are_texts[place] = name in ("text", "varchar")
        return super().largest(place, width)

    def sorted_by(self, place: int) -> str:
        """Return the expression by which a column is compared: texts without the rules of a language."""
        return f'{column(place)} COLLATE "C"' if self._are_texts.get(place) else column(place)

    def count(self, wanted: Sequence[int], width: int, where: str = "") -> int:
        """Count the rows, and choose how to select each column by its type."""
        within = self.address.relation.within
        with self.translating():
            types = self._types(wanted, width)
            total = self.ask(within(width, "count(*)") + where)[0][0]
        self._are_numeric = [name == "numeric" for name, _ in types]
        selected = [
            column(place) if name in ARROW_TYPES or category in REFUSED_CATEGORIES else f"{column(place)}::text"
            for place, (name, category) in zip(wanted, types, strict=True)
        ]
        self._statement = within(width, ", ".join(selected)) + where
        return int(total)

    def batches(self) -> Generator[list[pa.Array], None, None]:
        """Yield all rows."""
        for batch in self.stream(**{"adbc.postgresql.batch_size_hint_bytes": BATCH_BYTES}):
            yield [
                without_trailing_zeros(array) if is_numeric else array
                for is_numeric, array in zip(self._are_numeric, batch.columns, strict=True)
            ]

    def tables(self) -> list[str]:
        """Return the tables of the server, in a new transaction: the last one may have failed."""
        self._connection.rollback()
        self._begin()
        return super().tables()

    def error(self, error: BaseException) -> IntakeError:
        """Return the error for a lost connection, or for a table or query that cannot be read."""
        state = getattr(error, "sqlstate", None) or ""
        if state.startswith(("08", "57P")) or LOST_CONNECTION.search(str(error)):
            return self._lost(error, "the connection to the database was lost")
        return self.no_table(_server_message(error))

    def _lost(self, error: BaseException, what: str) -> IntakeError:
        return refusal(
            "no-connection",
            what,
            where=self.address.name,
            got=self.address.scrub(_server_message(error)),
            expected="a server that answers and accepts this user and password",
            remedy="check host, port, database, user and password, and that the server is running; then try again",
        )


def _server_message(error: BaseException) -> str:
    """Return the server's own message, without the driver's prefix and the statement."""
    match = re.search(r"(?:ERROR|FATAL|PANIC): +(.*)", str(error))
    return match[1] if match else database_message(error)
