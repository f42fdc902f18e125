"""Tables in memory as sources: pandas, polars, pyarrow, and any other library that exports Arrow streams."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import IntakeError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.sources.pandas_objects import PandasColumn, wrong_type
from hubbub.intake.sources.row_batches import BATCH_ROWS, gather
from hubbub.intake.stamps import from_metadata

if TYPE_CHECKING:
    import pyarrow as pa

LIBRARIES_WITH_LEN = {"pandas", "polars", "pyarrow"}  # `len` is the number of rows
LIBRARIES_WITH_NAMES = {"polars", "duckdb"}  # `columns` are names; a stream would occupy DuckDB's connection


def is_frame(obj: object) -> bool:
    """Return whether an object is a table: it exports Arrow data, or belongs to pandas or polars."""
    if isinstance(obj, type):
        return False
    exports_arrow = hasattr(obj, "__arrow_c_stream__") or hasattr(obj, "__arrow_c_array__")
    return exports_arrow or _library(obj) in ("pandas", "polars")


def _library(table: object) -> str:
    return type(table).__module__.partition(".")[0]


class FrameSource(Source):
    """The rows of a table in memory."""

    def __init__(self, table: Any) -> None:  # of any library
        self._library = _library(table)
        self.name = f"{self._library} table"
        self._table = table
        self._stream: pa.RecordBatchReader | None = None
        self._is_exhausted = False
        kind = type(table).__name__
        if kind == "LazyFrame":
            got = "a LazyFrame, which is a query and not yet a table"
            raise self._not_a_table(got, "collect it first: frame.collect()")
        if self._library in ("pandas", "polars") and kind != "DataFrame":
            raise self._not_a_table(f"a {kind}", "turn it into a table: series.to_frame('output')")
        if kind == "RecordBatch" and self._library == "pyarrow":
            import pyarrow as pa

            self._table = pa.Table.from_batches([table])

    @property
    def identity(self) -> object:
        """The object itself: two tables with the same rows are not the same table."""
        return self.name, id(self._table)

    def digest(self) -> str | None:
        """Return the SHA-256 of the columns of reports; None for a stream, which can be read only once."""
        if self.size() is None:
            return None
        import pyarrow as pa

        digest = hashlib.sha256()
        outputs = self.columns.place or ("output", *self.columns.attribute_roles)
        header, columns = self.header(), [self.columns.name_of(role) for role in ("mechanism", *outputs, "user")]
        for rows in self.rows([name for name in columns if name in header]):
            roles = [self.columns.role_of(name) for name in rows.columns]
            arrays = [one_array(column) for column in rows.columns.values()]
            digest.update(pa.record_batch(arrays, names=roles).serialize())
            digest.update(repr([place for place, _ in rows.faults]).encode())
        return digest.hexdigest()

    def stamp(self) -> Mapping[str, str] | None:
        """Return the stamp of a table that pyarrow read from a stamped file; other libraries drop it."""
        schema = getattr(self._table, "schema", None)
        return from_metadata(getattr(schema, "metadata", None)) if self._library == "pyarrow" else None

    def size(self) -> int | None:
        """Return the number of rows, if the table knows it."""
        has_len = self._library in LIBRARIES_WITH_LEN and hasattr(self._table, "__len__")
        return len(self._table) if has_len else None

    def header(self) -> list[str]:
        """Return the names of the columns; in pandas, those of a named index come first."""
        if self._library == "pandas":
            return [name for name, _ in _pandas_columns(self._table)]
        if self._library in LIBRARIES_WITH_NAMES:
            return [str(name) for name in self._table.columns]
        return [str(name) for name in self._reader().schema.names]

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield about a million rows at a time."""
        batches = self._pandas_batches(wanted) if self._library == "pandas" else self._batches(wanted)
        yield from gather(self, list(wanted), batches, self.size())

    def _pandas_batches(self, wanted: Sequence[str]) -> Iterator[list[pa.Array]]:
        columns = dict(reversed(_pandas_columns(self._table)))
        arrays = [PandasColumn(f"{self.name}, column {name}", columns[name]) for name in wanted]
        for start in range(0, len(self._table), BATCH_ROWS):
            yield [array.slice(start, start + BATCH_ROWS) for array in arrays]

    def _batches(self, wanted: Sequence[str]) -> Iterator[list[pa.Array]]:
        import pyarrow as pa

        if self._library == "polars":
            reader = self._read(self._polars_columns(wanted))
        else:
            reader = self._reader()
            self._stream, self._is_exhausted = None, isinstance(self._table, pa.RecordBatchReader)
        places = [reader.schema.names.index(name) for name in wanted]
        try:
            with reader:
                for batch in reader:
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        piece = batch.slice(start, BATCH_ROWS)
                        yield [piece.column(place) for place in places]
        except (pa.ArrowException, OSError) as error:
            raise refusal(
                "corrupt-file",
                "the stream of the table broke off",
                where=self.name,
                got=shorten(str(error), 200),
                expected="a stream that can be read to its end",
                remedy="check where the stream comes from, or read it into a pyarrow Table first",
            ) from None

    def _polars_columns(self, wanted: Sequence[str]) -> Any:
        """Return the columns, with numbers of 128 bits as texts: Arrow has no such type."""
        table = self._table.select(wanted)
        kinds = {name: str(kind) for name, kind in zip(wanted, table.dtypes, strict=True)}
        for name, kind in kinds.items():
            if kind == "Object":  # polars would export the addresses of the objects in memory
                where, remedy = f"{self.name}, column {name}", "give the column a type of polars, such as String"
                raise wrong_type(where, "Python objects", remedy)
        return table.cast({name: str for name, kind in kinds.items() if kind in ("Int128", "UInt128")})

    def _reader(self) -> pa.RecordBatchReader:
        """Return the table's stream, opened once: some tables export it only once."""
        if self._is_exhausted:
            got = "a stream that has already been read"
            raise self._not_a_table(got, "read it into a table first: reader.read_all()")
        if self._stream is None:
            self._stream = self._read(self._table)
        return self._stream

    def _read(self, table: Any) -> pa.RecordBatchReader:
        import pyarrow as pa

        if isinstance(table, pa.RecordBatchReader):
            return table
        try:
            return pa.RecordBatchReader.from_stream(table)
        except Exception as error:  # every library has its own exceptions
            got = f"a {type(table).__name__}: {shorten(str(error), 150)}"
            raise self._not_a_table(got, "pass a table with named columns of numbers, texts or bytes") from None

    def _not_a_table(self, got: str, remedy: str) -> IntakeError:
        return refusal(
            "not-a-source",
            "not a table of reports",
            where=self.name,
            got=got,
            expected="a pandas or polars DataFrame, a pyarrow Table, or an object that exports an Arrow stream",
            remedy=remedy,
        )


def _pandas_columns(table: Any) -> list[tuple[str, Any]]:
    """Return names and columns in order, because names may repeat. A named index is a column, too."""
    levels = [(level, name) for level, name in enumerate(table.index.names) if name is not None]
    index = [(str(name), table.index.get_level_values(level).to_series()) for level, name in levels]
    return index + [(str(name), table.iloc[:, place]) for place, name in enumerate(table.columns)]
