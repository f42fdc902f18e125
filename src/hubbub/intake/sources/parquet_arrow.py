"""Parquet and Arrow files as sources: typed columns, read in batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import IntakeError
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.base import Rows
from hubbub.intake.sources.distinct_entries import is_plain
from hubbub.intake.sources.file_source import FileSource, file_errors
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

    @abstractmethod
    def _metadata(self) -> Mapping[bytes, bytes] | None:
        """Return the metadata of the file's schema."""

    def stamp(self) -> Mapping[str, str]:
        """Return the stamp in the file's metadata."""
        return from_metadata(self._metadata())

    @contextmanager
    def _errors(self, kind: str) -> Iterator[None]:
        """Raise what goes wrong while the file is read as an IntakeError."""
        import pyarrow as pa

        try:
            with file_errors(self.path):
                yield
        except IntakeError as error:
            if error.code != "not-readable" or error.got in ("Permission denied", "Input/output error"):
                raise
            raise self._corrupt(kind, error.got) from None
        except (pa.ArrowException, UnicodeDecodeError, MemoryError) as error:
            raise self._corrupt(kind, str(error).splitlines()[0] if str(error) else type(error).__name__) from None

    def _corrupt(self, kind: str, got: str) -> IntakeError:
        return refusal(
            "corrupt-file",
            "the file cannot be read",
            where=self.name,
            got=got,
            expected=f"a complete {kind} file, as its extension says",
            remedy="write or copy the file again",
        )


class ParquetSource(ColumnarFile):
    """A Parquet file, or some of its row groups. Its footer counts the rows."""

    def __init__(self, path: Path, groups: range | None = None) -> None:
        super().__init__(path)
        self._groups = groups

    def _open(self, wanted: Sequence[str] = ()) -> Any:
        from pyarrow import parquet

        file = parquet.ParquetFile(self.path, pre_buffer=False)
        flat = {file.schema.column(place).path for place in range(len(file.schema))}
        encoded = [name for name in wanted if self.columns.role_of(name) != "user" and name in flat]
        if not encoded:
            return file
        file.close()
        # Texts that the file stores in a dictionary stay in one, so that each is checked once.
        return parquet.ParquetFile(self.path, read_dictionary=encoded, pre_buffer=False)

    def parts(self, size: int) -> list[range]:
        """Return its row groups in parts of about `size` bytes on the disk."""
        with self._errors("Parquet"), self._open() as file:
            unpacked = [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]
        compression = self.size() / max(1, sum(unpacked))
        parts, first, part_bytes = [], 0, 0.0
        for number, group_bytes in enumerate(unpacked):
            if part_bytes and part_bytes + compression * group_bytes > size:
                parts.append(range(first, number))
                first, part_bytes = number, 0.0
            part_bytes += compression * group_bytes
        return [*parts, range(first, len(unpacked))]

    def header(self) -> list[str]:
        """Return the names of the columns."""
        with self._errors("Parquet"), self._open() as file:
            return list(file.schema_arrow.names)

    def _metadata(self) -> Mapping[bytes, bytes] | None:
        with self._errors("Parquet"), self._open() as file:
            metadata: Mapping[bytes, bytes] | None = file.schema_arrow.metadata or file.metadata.metadata
            return metadata

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the batches of each row group."""
        import pyarrow as pa

        with self._errors("Parquet"), self._open(wanted) as file, self._open_users(file, wanted) as users:
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            groups = self._groups or range(len(sizes))
            done = sum(sizes[: groups.start])
            for group in groups:
                missing = sizes[group]  # the footer's count, apart from the pages
                if missing == 0:
                    continue
                step = self._batch_rows(file, users, group)
                for batch in file.iter_batches(step, row_groups=[group], columns=list(wanted), use_threads=True):
                    _check_dictionaries(batch)
                    table = pa.Table.from_batches([batch])
                    self.done = min(1.0, (done + table.num_rows) / max(1, file.metadata.num_rows))
                    yield checked_rows(self, {name: _plain_entries(table[name]) for name in wanted}, done + 1)
                    done, missing = done + table.num_rows, missing - table.num_rows
                if missing:
                    size = sizes[group]
                    raise pa.ArrowInvalid(f"{size - missing:,} rows in a row group of {size:,} rows by the footer")

    def _open_users(self, file: Any, wanted: Sequence[str]) -> Any:
        """Open the file again, with users in a dictionary; yield None if users are not read, or are not texts."""
        from pyarrow import parquet

        user = self.columns.name_of("user")
        columns = map(file.schema.column, range(len(file.schema)))
        texts = {column.path for column in columns if column.physical_type == "BYTE_ARRAY"}
        if user in wanted and user in texts:  # Arrow raises a KeyError for a dictionary of lists
            return parquet.ParquetFile(self.path, read_dictionary=[user], pre_buffer=False)
        return nullcontext()

    def _batch_rows(self, file: Any, users: Any, number: int) -> int:
        """Return how many rows of a row group to read at a time.

        A user in a dictionary takes a few bits in the file, but its full length in every row that is read. The
        footer's sizes of single columns are not used: if they are damaged, Arrow ends the process.
        """
        import pyarrow.compute as pc

        group = file.metadata.row_group(number)
        size = group.total_byte_size / group.num_rows
        if users is not None:
            for batch in users.iter_batches(1, row_groups=[number], columns=[self.columns.name_of("user")]):
                names = batch.column(0).dictionary
                size = max(size, pc.max(pc.binary_length(names)).as_py() or 0)
                break
        return max(1, int(min(MAX_BATCH_ROWS, MAX_BATCH_BYTES / max(1, size))))


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

    def _open(self) -> Any:
        import pyarrow as pa

        source = pa.memory_map(str(self.path), "r")
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.memory_map(str(self.path), "r"))

    def header(self) -> list[str]:
        """Return the names of the columns."""
        with self._errors("Arrow"), self._open() as file:
            return list(file.schema.names)

    def _metadata(self) -> Mapping[bytes, bytes] | None:
        with self._errors("Arrow"), self._open() as file:
            metadata: Mapping[bytes, bytes] | None = file.schema.metadata
            return metadata

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the batches of the file."""
        import pyarrow as pa

        with self._errors("Arrow"), self._open() as file:
            done = 0
            batches = (
                (file.get_batch(place) for place in range(file.num_record_batches))
                if hasattr(file, "num_record_batches")
                else file
            )
            for number, batch in enumerate(batches, 1):
                batch.validate(full=True)  # offsets of a damaged file may point anywhere
                table = pa.Table.from_batches([batch])
                self.done = number / file.num_record_batches if hasattr(file, "num_record_batches") else 0.0
                for start in range(0, batch.num_rows, MAX_BATCH_ROWS):  # a batch of nulls may have billions of rows
                    part = table.slice(start, MAX_BATCH_ROWS)
                    yield Rows(part.num_rows, {name: _plain_entries(part[name]) for name in wanted}, done + 1)
                    done += part.num_rows
