"""Parquet and Arrow files: columns with types, read in batches."""

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
from hubbub.intake.sources.file_source import File
from hubbub.intake.sources.plain_types import plain
from hubbub.intake.sources.row_batches import checked_rows
from hubbub.intake.sources.text_files import reading
from hubbub.intake.stamps import from_metadata

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc", ".arrows")
BATCH = 1 << 20  # rows at a time
BYTES = 1 << 26  # of a batch: long entries make smaller ones


class Columnar(File):
    """A file of typed columns."""

    @abstractmethod
    def _metadata(self) -> Mapping[bytes, bytes] | None:
        """Return what the file says beside its columns."""

    def stamp(self) -> Mapping[str, str]:
        """Return the stamp within the file."""
        return from_metadata(self._metadata())

    @contextmanager
    def _reading(self, kind: str) -> Iterator[None]:
        """Tell what goes wrong in five parts."""
        import pyarrow as pa

        try:
            with reading(self.path):
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
            expected=f"a whole {kind} file, as its ending says",
            remedy="write or copy the file again, and check how it was saved",
        )


class Parquet(Columnar):
    """A Parquet file, or some of its row groups. The rows are counted by its footer."""

    def __init__(self, path: Path, groups: range | None = None) -> None:
        super().__init__(path)
        self._groups = groups

    def _open(self, wanted: Sequence[str] = ()) -> Any:
        from pyarrow import parquet

        file = parquet.ParquetFile(self.path, pre_buffer=False)
        flat = {file.schema.column(place).path for place in range(len(file.schema))}
        short = [name for name in wanted if self.columns.role_of(name) != "user" and name in flat]
        if not short:
            return file
        file.close()
        # Texts that the file keeps in a dictionary stay in one: each is looked at once.
        return parquet.ParquetFile(self.path, read_dictionary=short, pre_buffer=False)

    def parts(self, size: int) -> list[range]:
        """Return its row groups in parts of about `size` bytes, as they lie on the disk."""
        with self._reading("Parquet"), self._open() as file:
            unpacked = [file.metadata.row_group(number).total_byte_size for number in range(file.num_row_groups)]
        packed = self.weight() / max(1, sum(unpacked))  # the share that is left on the disk
        parts, first, part_bytes = [], 0, 0.0
        for number, group_bytes in enumerate(unpacked):
            if part_bytes and part_bytes + packed * group_bytes > size:
                parts.append(range(first, number))
                first, part_bytes = number, 0.0
            part_bytes += packed * group_bytes
        return [*parts, range(first, len(unpacked))]

    def header(self) -> list[str]:
        """Return the names of the columns."""
        with self._reading("Parquet"), self._open() as file:
            return list(file.schema_arrow.names)

    def _metadata(self) -> Mapping[bytes, bytes] | None:
        with self._reading("Parquet"), self._open() as file:
            found: Mapping[bytes, bytes] | None = file.schema_arrow.metadata or file.metadata.metadata
            return found

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield batches of one row group after the other."""
        import pyarrow as pa

        with self._reading("Parquet"), self._open(wanted) as file, self._open_users(file, wanted) as users:
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            groups = self._groups or range(len(sizes))
            done = sum(sizes[: groups.start])
            for group in groups:
                missing = sizes[group]  # counted by the footer, apart from the pages
                if missing == 0:
                    continue
                step = self._step(file, users, group)
                for batch in file.iter_batches(step, row_groups=[group], columns=list(wanted), use_threads=True):
                    _check_dictionaries(batch)
                    table = pa.Table.from_batches([batch])
                    self.done = min(1.0, (done + table.num_rows) / max(1, file.metadata.num_rows))
                    yield checked_rows(self, {name: _plain(table[name]) for name in wanted}, done + 1)
                    done, missing = done + table.num_rows, missing - table.num_rows
                if missing:
                    size = sizes[group]
                    raise pa.ArrowInvalid(
                        f"{size - missing:,} rows in a row group for which the footer counts {size:,}"
                    )

    def _open_users(self, file: Any, wanted: Sequence[str]) -> Any:
        """Open the file again, with users as a dictionary of names; None where users are not read, or are no texts."""
        from pyarrow import parquet

        user = self.columns.name_of("user")
        columns = map(file.schema.column, range(len(file.schema)))
        texts = {column.path for column in columns if column.physical_type == "BYTE_ARRAY"}
        if user in wanted and user in texts:  # Arrow knows no dictionary of lists, and raises a KeyError
            return parquet.ParquetFile(self.path, read_dictionary=[user], pre_buffer=False)
        return nullcontext()

    def _step(self, file: Any, users: Any, number: int) -> int:
        """Return how many rows of a row group to read at a time.

        A user in a dictionary takes a few bits in the file however long its name is, and is written out in each row.
        What the footer says of single columns is not asked for: where it is damaged, Arrow would end the process.
        """
        import pyarrow.compute as pc

        group = file.metadata.row_group(number)
        size = group.total_byte_size / group.num_rows
        if users is not None:
            for batch in users.iter_batches(1, row_groups=[number], columns=[self.columns.name_of("user")]):
                names = batch.column(0).dictionary
                size = max(size, pc.max(pc.binary_length(names)).as_py() or 0)
                break
        return max(1, int(min(BATCH, BYTES / max(1, size))))


def _check_dictionaries(batch: pa.RecordBatch) -> None:
    """Refuse entries that are not in their dictionary: Arrow does not look, and rows would say anything.

    Texts that are not UTF-8 are not looked for here: they are faults of their rows alone.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            ends, count = pc.min_max(column.indices).as_py(), len(column.dictionary)
            beyond = [end for end in ends.values() if end is not None and not 0 <= end < count]
            if beyond:
                raise pa.ArrowInvalid(f"index {beyond[0]} into a dictionary of {count} entries, column {name}")


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in plain types; a dictionary of plain entries stays one, so that each is looked at once."""
    import pyarrow as pa

    kind = column.type
    kept = pa.types.is_dictionary(kind) and is_plain(kind.value_type) and not pa.types.is_decimal(kind.value_type)
    return column if kept else plain(column)


class Arrow(Columnar):
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
        with self._reading("Arrow"), self._open() as file:
            return list(file.schema.names)

    def _metadata(self) -> Mapping[bytes, bytes] | None:
        with self._reading("Arrow"), self._open() as file:
            found: Mapping[bytes, bytes] | None = file.schema.metadata
            return found

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the batches of the file."""
        import pyarrow as pa

        with self._reading("Arrow"), self._open() as file:
            done = 0
            batches = (
                (file.get_batch(place) for place in range(file.num_record_batches))
                if hasattr(file, "num_record_batches")
                else file
            )
            for number, batch in enumerate(batches, 1):
                batch.validate(full=True)  # a damaged file could point anywhere
                table = pa.Table.from_batches([batch])
                self.done = number / file.num_record_batches if hasattr(file, "num_record_batches") else 0.0
                for start in range(0, batch.num_rows, BATCH):  # a batch may hold billions of rows with nothing in them
                    part = table.slice(start, BATCH)
                    yield Rows(part.num_rows, {name: _plain(part[name]) for name in wanted}, done + 1)
                    done += part.num_rows
