"""Parquet and Arrow files as sources: typed columns, read in batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows, Snapshot
from hubbub.intake.sources.distinct_entries import is_plain
from hubbub.intake.sources.file_source import FileSource, file_errors
from hubbub.intake.sources.mark_types import MarkBounds, is_before
from hubbub.intake.sources.row_batches import checked_rows, plain
from hubbub.intake.stamps import from_metadata

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET_EXTENSIONS = (".parquet", ".pq")
ARROW_EXTENSIONS = (".arrow", ".feather", ".ipc", ".arrows")
MAX_BATCH_ROWS = 1 << 20
MAX_BATCH_BYTES = 1 << 26  # long entries make smaller batches


class ColumnarFile(FileSource):
    """A file of typed columns."""

    format: str

    @abstractmethod
    def _schema(self) -> pa.Schema:
        """Return the file's schema, with its metadata."""

    def header(self) -> list[str]:
        """Return the names of the columns."""
        with self._errors():
            return list(self._schema().names)

    def stamp(self) -> Mapping[str, str]:
        """Return the stamp in the metadata of the file's schema."""
        with self._errors():
            return from_metadata(self._schema().metadata)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what goes wrong while the file is read as an IntakeError."""
        import pyarrow as pa

        try:
            with file_errors(self.path):
                yield
            return
        except IntakeError as error:
            if error.code != "not-readable" or error.got in ("Permission denied", "Input/output error"):
                raise
            got = error.got
        except (pa.ArrowException, UnicodeDecodeError, MemoryError) as error:
            got = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise refusal(
            "corrupt-file",
            "the file cannot be read",
            where=self.name,
            got=got,
            expected=f"a complete {self.format} file, as its extension says",
            remedy="write or copy the file again",
        ) from None


class ParquetSource(ColumnarFile):
    """A Parquet file, or some of its row groups. Its footer counts the rows."""

    format = "Parquet"

    def __init__(self, path: Path, groups: Sequence[int] | None = None) -> None:
        super().__init__(path)
        self._groups = groups

    def _open(self, as_dictionaries: Sequence[str] = ()) -> Any:
        """Open the file; some columns of texts stay in the dictionaries that the file stores them in."""
        from pyarrow import parquet

        return parquet.ParquetFile(self.path, read_dictionary=list(as_dictionaries), pre_buffer=False)

    def _schema(self) -> pa.Schema:
        with self._open() as file:
            schema = file.schema_arrow  # without metadata if the file's own schema has none
            return schema.with_metadata(schema.metadata or file.metadata.metadata)

    def group_count(self) -> int:
        """Return how many row groups the file has."""
        with self._errors(), self._open() as file:
            return int(file.num_row_groups)

    def parts(self, size: int) -> list[range]:
        """Return its row groups in parts of about `size` bytes on the disk."""
        with self._errors(), self._open() as file:
            unpacked = [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]
        compression = self.size() / max(1, sum(unpacked))
        parts, first, part_bytes = [], 0, 0.0
        for number, group_bytes in enumerate(unpacked):
            if part_bytes and part_bytes + compression * group_bytes > size:
                parts.append(range(first, number))
                first, part_bytes = number, 0.0
            part_bytes += compression * group_bytes
        return [*parts, range(first, len(unpacked))]

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Hold on to the file: row groups that end before a bound need not be read."""
        yield _ParquetSnapshot(self)

    def groups_before(self, bounds: MarkBounds) -> dict[int, int]:
        """Return the row groups whose rows all lie before some bounds, by the footer, and how many rows each has."""
        import pyarrow as pa

        if bounds.low is None or bounds.type.kind == "text":  # writers may shorten the extremes of texts
            return {}
        before = {}
        with self._errors(), self._open() as file:
            place = next((n for n in range(len(file.schema)) if file.schema.column(n).path == bounds.column), None)
            kind = file.schema_arrow.field(bounds.column).type
            for number in range(file.num_row_groups if place is not None else 0):
                group = file.metadata.row_group(number)
                extremes = group.column(place).statistics
                if extremes is None or not extremes.has_min_max or extremes.null_count != 0:
                    continue
                try:
                    keys, missing = bounds.type.keys(pa.chunked_array([pa.array([extremes.max], kind)]), self.name)
                except (IntakeError, pa.ArrowException, TypeError, ValueError):
                    continue  # what the footer says cannot be used: the rows are read
                if not missing.any() and is_before(keys, bounds.low, bounds.is_open).all():
                    before[number] = group.num_rows
        return before

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the batches of each row group."""
        yield from self.group_rows(wanted, self._groups)

    def group_rows(self, wanted: Sequence[str], numbers: Sequence[int] | None) -> Iterator[Rows]:
        """Yield the batches of some row groups (None: all)."""
        import pyarrow as pa

        with self._errors():
            with self._open() as file:
                stored = [file.schema.column(place) for place in range(len(file.schema))]
            texts = {column.path for column in stored if column.physical_type == "BYTE_ARRAY"}  # a list has other paths
            users = [name for name in wanted if name in texts and self.columns.role_of(name) == "user"]
            others = [name for name in wanted if name in texts and name not in users]  # each text is checked once
            with self._open(others) as file, self._open(users) if users else nullcontext() as user_file:
                sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
                starts = np.cumsum([0, *sizes]).tolist()
                for group in range(len(sizes)) if numbers is None else numbers:
                    done = starts[group]
                    missing = sizes[group]  # the footer's count, apart from the pages
                    if missing == 0:
                        continue
                    step = self._batch_rows(file, user_file, group)
                    for batch in file.iter_batches(step, row_groups=[group], columns=list(wanted), use_threads=True):
                        _check_dictionaries(batch)
                        table = pa.Table.from_batches([batch])
                        self.done = min(1.0, (done + table.num_rows) / max(1, file.metadata.num_rows))
                        yield checked_rows(self, {name: _plain_entries(table[name]) for name in wanted}, done + 1)
                        done, missing = done + table.num_rows, missing - table.num_rows
                    if missing:
                        size = sizes[group]
                        raise pa.ArrowInvalid(f"{size - missing:,} rows in a row group of {size:,} rows by the footer")

    def _batch_rows(self, file: Any, user_file: Any, number: int) -> int:
        """Return how many rows of a row group to read at a time.

        A user in a dictionary takes a few bits in the file, but its full length in every row that is read. The
        footer's sizes of single columns are not used: if they are damaged, Arrow ends the process.
        """
        import pyarrow.compute as pc

        group = file.metadata.row_group(number)
        size = group.total_byte_size / group.num_rows
        if user_file is not None:
            for batch in user_file.iter_batches(1, row_groups=[number], columns=[self.columns.name_of("user")]):
                names = batch.column(0).dictionary
                size = max(size, pc.max(pc.binary_length(names)).as_py() or 0)
                break
        return max(1, int(min(MAX_BATCH_ROWS, MAX_BATCH_BYTES / max(1, size))))


class _ParquetSnapshot(Snapshot):
    """A Parquet file, whose footer says which row groups lie before a bound."""

    def __init__(self, source: ParquetSource) -> None:
        super().__init__(source)
        self._file = source

    def rows(self, wanted: Sequence[str], bounds: MarkBounds | None) -> Iterator[Rows]:
        """Yield the rows of all row groups that may hold rows within the bounds."""
        before = {} if bounds is None else self._file.groups_before(bounds)
        self.skipped = sum(before.values())
        count = self._file.group_count()
        yield from self._file.group_rows(wanted, [number for number in range(count) if number not in before])


def _check_dictionaries(batch: pa.RecordBatch) -> None:
    """Refuse indices beyond their dictionary: Arrow does not check them, and rows would mean anything.

    Texts that are not UTF-8 are not checked here: they are faults of single rows.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            extremes, count = pc.min_max(column.indices).as_py(), len(column.dictionary)
            beyond = [index for index in extremes.values() if index is not None and not 0 <= index < count]
            if beyond:
                raise pa.ArrowInvalid(f"index {beyond[0]} into a dictionary of {count} entries, column {name}")


def _plain_entries(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in plain types; a dictionary of plain entries stays one, so that each is checked once."""
    import pyarrow as pa

    kind = column.type
    is_kept = pa.types.is_dictionary(kind) and is_plain(kind.value_type) and not pa.types.is_decimal(kind.value_type)
    return column if is_kept else plain(column)


class ArrowSource(ColumnarFile):
    """An Arrow file or stream."""

    format = "Arrow"

    def _open(self) -> Any:
        import pyarrow as pa

        try:
            return pa.ipc.open_file(pa.memory_map(str(self.path), "r"))
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.memory_map(str(self.path), "r"))

    def _schema(self) -> pa.Schema:
        with self._open() as file:
            return file.schema

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the batches of the file."""
        import pyarrow as pa

        with self._errors(), self._open() as file:
            done, total = 0, getattr(file, "num_record_batches", None)  # a stream does not know it
            batches = file if total is None else map(file.get_batch, range(total))
            for number, batch in enumerate(batches, 1):
                batch.validate(full=True)  # offsets of a damaged file may point anywhere
                table = pa.Table.from_batches([batch])
                self.done = number / total if total else 0.0
                for start in range(0, batch.num_rows, MAX_BATCH_ROWS):  # a batch of nulls may have billions of rows
                    part = table.slice(start, MAX_BATCH_ROWS)
                    yield Rows(part.num_rows, {name: _plain_entries(part[name]) for name in wanted}, done + 1)
                    done += part.num_rows
