"""SQLite files, in which every entry has its own type.

The driver chooses the type of a column by its first rows, and coerces or fails when later rows differ: it turns 1, 3.5
and '1e3' into texts, 9007199254740993 and 3.5 into two rounded floats. So the types that occur are counted first,
together with the rows; a column of one type is read as it is, and a mixed one as texts made by SQLite.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.core.errors import IntakeError
from hubbub.intake.sources.database_address import column
from hubbub.intake.sources.engines.base import Engine, first_message_line

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLES = {"integer": "0", "real": "0.5", "text": "''", "blob": "x''"}  # one entry of each type
BATCH_ROWS = "65536"
LOCK_MILLISECONDS = 5000  # to wait for a lock
DAMAGE_MARKS = ("not a database", "malformed", "disk I/O", "failed to open", "unsupported file")  # in messages


class SelectedColumn(NamedTuple):
    """The expression that selects a column, and a sample of its type."""

    select: str
    sample: str


class SQLite(Engine):
    """A SQLite file."""

    package = "adbc-driver-sqlite"
    module = "adbc_driver_sqlite.dbapi"
    tables_query = (
        "SELECT 'main', name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%' ORDER BY 2"
    )
    default_schema = "main"

    def open(self, driver: Any) -> None:
        """Open the file read-only; the driver begins a transaction at once, so all queries see one snapshot."""
        path = self.existing_file()
        with self.translating():
            self._connection = driver.connect(f"{path.resolve().as_uri()}?mode=ro")
            with self._connection.cursor() as cursor:
                cursor.execute(f"PRAGMA busy_timeout = {LOCK_MILLISECONDS}")

    def columns(self) -> list[str]:
        """Run the statement by itself: inside another one, SQLite renames repeated columns.

        This also checks that the statement is complete: `count` puts it in parentheses, and no text that closes a
        parenthesis or begins a second statement passes both.
        """
        with self.translating(), self._connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "1"})
            cursor.execute(self.address.relation.sql)
            names = [str(entry[0]) for entry in cursor.description or ()]
            self.ask(self.address.relation.within(len(names), "1") + " LIMIT 0")
            return names

    def sorted_by(self, place: int) -> str:
        """Return the expression by which a column is compared: texts in the order of their bytes."""
        return f"{column(place)} COLLATE BINARY"

    def count(self, wanted: Sequence[int], width: int, where: str = "") -> int:
        """Count the rows, and the types that occur in each column."""
        counts = [
            f"count(CASE WHEN typeof({column(place)}) = '{kind}' THEN 1 END)" for place in wanted for kind in SAMPLES
        ]
        with self.translating():
            total, *occurrences = self.ask(
                self.address.relation.within(width, ", ".join(["count(*)", *counts])) + where
            )[0]
        times = np.reshape(occurrences, (len(wanted), len(SAMPLES)))
        kinds = [[kind for kind, number in zip(SAMPLES, row, strict=True) if number] for row in times]
        self._selected = [_select(column(place), kind) for place, kind in zip(wanted, kinds, strict=True)]
        flat = [entry for entries in self._selected for entry in entries]
        # A first row of samples fixes the types: a column may begin with more NULLs than the driver looks at.
        samples = f"SELECT {', '.join(entry.sample for entry in flat)} UNION ALL "
        self._statement = (
            self.address.relation.within(width, ", ".join(entry.select for entry in flat), samples) + where
        )
        return int(total)

    def batches(self) -> Generator[list[pa.Array], None, None]:
        """Yield all rows but the samples."""
        for number, batch in enumerate(self.stream(**{"adbc.sqlite.query.batch_rows": BATCH_ROWS})):
            yield self._merge_floats((batch.slice(1) if number == 0 else batch).columns)

    def _merge_floats(self, arrays: list[pa.Array]) -> list[pa.Array]:
        """Put the floats of mixed columns among the texts, as Python writes them: exactly."""
        import pyarrow as pa
        import pyarrow.compute as pc

        remaining = iter(arrays)
        columns = []
        for entries in self._selected:
            array = next(remaining)
            if len(entries) > 1:
                floats = [None if number is None else repr(number) for number in next(remaining).to_pylist()]
                array = pc.coalesce(array, pa.array(floats, pa.string()))
            columns.append(array)
        return columns

    def error(self, error: BaseException) -> IntakeError:
        """Return the error for a locked or damaged file, or for a table or query that cannot be read."""
        detail = first_message_line(error).split("Failed to prepare query: ")[-1].split("Failed to step query: ")[-1]
        if "locked" in detail or "busy" in detail:
            return self.busy(detail)
        if any(mark in detail for mark in DAMAGE_MARKS):
            return self.unreadable(detail, "a complete SQLite file", "copy the file again, or restore it from a backup")
        return self.no_table(detail)


def _select(name: str, kinds: list[str]) -> list[SelectedColumn]:
    """Return how to select a column in which these types occur: as it is, or as text."""
    if len(kinds) < 2:
        return [SelectedColumn(name, SAMPLES[kinds[0]] if kinds else "NULL")]
    texts = {"text": name, "integer": f"CAST({name} AS TEXT)", "blob": f"lower(hex({name}))"}
    cases = " ".join(f"WHEN '{kind}' THEN {texts[kind]}" for kind in kinds if kind in texts)
    columns = [SelectedColumn(f"CASE typeof({name}) {cases} END", SAMPLES["text"])]
    if "real" in kinds:
        columns.append(SelectedColumn(f"CASE typeof({name}) WHEN 'real' THEN {name} END", SAMPLES["real"]))
    return columns
