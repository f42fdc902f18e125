"""The Parquet file of a tally: opened so that damage is noticed, and the digest of its rows.

The digest does not depend on how Parquet stores the rows (pages, dictionaries, compression), only on what they say: for
each column, in order, the SHA-256 of three streams of bytes, and of all these together the SHA-256 again.

    present   one byte for each row: 1, or 0 for null
    numbers   of the rows that are present: the number (8 bytes; 4 in `times`), or how many bytes the text has
              (4 bytes); small end first
    content   of the rows that are present: the text in UTF-8, or the bytes, one after the other
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.errors import HubbubError, IntakeError, shorten
from hubbub.intake.reject_causes import refusal
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.tallies.tally_summary import damaged

if TYPE_CHECKING:
    import pyarrow as pa

# What Arrow raises, beside its own errors, for bytes that are not Parquet or no longer.
ARROW_FAULTS = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    OSError,
)


def open_parquet(path: Path, **options: Any) -> Any:
    """Open a Parquet file; each page is compared with its checksum as it is read."""
    from pyarrow import parquet

    return parquet.ParquetFile(path, page_checksum_verification=True, pre_buffer=False, **options)


@contextmanager
def explaining_damage(where: str, explain: Callable[[str, str], IntakeError] = damaged) -> Iterator[None]:
    """Raise what goes wrong while a tally is read as an error of ours: `explain` gets the path and what was found."""
    import pyarrow as pa

    try:
        yield
    except HubbubError:
        raise
    except (*ARROW_FAULTS, pa.ArrowException) as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise explain(where, shorten(lines[0], 200)[1:-1]) from None


def not_a_tally(where: str, got: str) -> IntakeError:
    """Return the error for a file that is not Parquet, or no longer."""
    return refusal(
        "not-a-tally",
        "the file is not a tally",
        where=where,
        got=got,
        expected="a tally that hubbub collect wrote",
        remedy="check the path; if the file was copied, copy it again",
    )


class RowsDigest:
    """The digest of rows that are added a table at a time."""

    def __init__(self, columns: int) -> None:
        self._streams = [[hashlib.sha256() for _ in ("present", "numbers", "content")] for _ in range(columns)]

    def update(self, table: pa.Table) -> None:
        """Add rows, of the columns of a tally."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for column, (present, numbers, content) in zip(table.columns, self._streams, strict=True):
            array = one_array(column)
            if pa.types.is_dictionary(array.type):
                array = array.cast(array.type.value_type)
            present.update(np.asarray(array.is_valid()).astype(np.uint8).data)
            array = array.drop_null()
            if pa.types.is_integer(array.type):
                values = np.asarray(array)
                numbers.update(values.astype(values.dtype.newbyteorder("<"), copy=False).data)
            elif len(array):
                numbers.update(np.asarray(pc.binary_length(array)).astype("<i4", copy=False).data)
                content.update(_content(array))

    def hexdigest(self) -> str:
        """Return the digest of all rows so far, in hexadecimal."""
        digests = b"".join(stream.digest() for streams in self._streams for stream in streams)
        return hashlib.sha256(digests).hexdigest()


def digest_of_rows(table: pa.Table) -> str:
    """Return the digest of the rows of one table."""
    digest = RowsDigest(table.num_columns)
    digest.update(table)
    return digest.hexdigest()


def _content(array: pa.Array) -> memoryview:
    """Return all texts of an array without nulls, one after the other."""
    _, offsets, content = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32, count=len(array) + 1, offset=4 * array.offset)
    first, last = int(bounds[0]), int(bounds[-1])
    return memoryview(content)[first:last] if last > first else memoryview(b"")
