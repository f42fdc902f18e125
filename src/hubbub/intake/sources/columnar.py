"""Parquet and Arrow files: columns with types, read in batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.errors import IntakeError
from hubbub.intake.causes import refusal
from hubbub.intake.sources.batches import checked_rows
from hubbub.intake.sources.entries import is_plain
from hubbub.intake.sources.files import File
from hubbub.intake.sources.plain import plain
from hubbub.intake.sources.rows import Rows
from hubbub.intake.sources.text import reading
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
            sizes = [
                sum(group.column(place).total_compressed_size for place in range(group.num_columns))
                for group in (file.metadata.row_group(number) for number in range(file.num_row_groups))
            ]
        found, first, held = [], 0, 0
        for number, one in enumerate(sizes):
            if held and held + one > size:
                found.append(range(first, number))
                first, held = number, 0
            held += one
        return [*found, range(first, len(sizes))]

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

        with self._reading("Parquet"), self._open(wanted) as file:
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            groups = self._groups or range(len(sizes))
            done = sum(sizes[: groups.start])
            for group in groups:
                counted = file.metadata.row_group(group).num_rows  # by the footer, apart from the pages
                if counted == 0:
                    continue
                step = self._step(file.metadata, group, wanted)
                for batch in file.iter_batches(step, row_groups=[group], columns=list(wanted), use_threads=True):
                    table = pa.Table.from_batches([batch])
                    self.done = min(1.0, (done + table.num_rows) / max(1, file.metadata.num_rows))
                    yield checked_rows(self, {name: _plain(table[name]) for name in wanted}, done + 1)
                    done, counted = done + table.num_rows, counted - table.num_rows
                if counted:
                    yield Rows(counted, {}, done + 1)

    def _step(self, metadata: Any, number: int, wanted: Sequence[str]) -> int:
        """Return how many rows of a row group to read at a time.

        A user in a dictionary takes a few bits in the file however long its name is, and is written out in each row.
        """
        import pyarrow.compute as pc
        from pyarrow import parquet

        group, user = metadata.row_group(number), self.columns.name_of("user")
        columns = [group.column(place) for place in range(group.num_columns)]
        size = sum(one.total_uncompressed_size for one in columns if one.path_in_schema in wanted) / group.num_rows
        for one in columns:
            if one.path_in_schema == user in wanted and one.physical_type == "BYTE_ARRAY" and one.has_dictionary_page:
                with parquet.ParquetFile(self.path, read_dictionary=[user], pre_buffer=False) as file:
                    for batch in file.iter_batches(1, row_groups=[number], columns=[user]):
                        entries = batch.column(0).dictionary
                        size = max(size, pc.max(pc.binary_length(entries)).as_py() or 0)
                        break
        return max(1, int(min(BATCH, BYTES / max(1, size))))


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
