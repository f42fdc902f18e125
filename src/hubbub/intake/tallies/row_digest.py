"""A digest of rows, by which any change of a tally is noticed.

It does not depend on how Parquet stores the rows (pages, dictionaries, compression), only on what they say: for each
column, in order, the SHA-256 of three streams of bytes, and of all these together the SHA-256 again.

    present   one byte for each row: 1, or 0 for null
    numbers   of the rows that are present: the number (8 bytes; 4 in `times`), or how many bytes the text has
              (4 bytes); small end first
    content   of the rows that are present: the text in UTF-8, or the bytes, one after the other
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from hubbub.intake.sources.distinct_entries import one_array

if TYPE_CHECKING:
    import pyarrow as pa


class RowsDigest:
    """The digest of rows that come a table at a time."""

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
        return hashlib.sha256(b"".join(one.digest() for streams in self._streams for one in streams)).hexdigest()


def digest_of_rows(table: pa.Table) -> str:
    """Return the digest of the rows of one table."""
    found = RowsDigest(table.num_columns)
    found.update(table)
    return found.hexdigest()


def _content(array: pa.Array) -> memoryview:
    """Return all texts of an array without nulls, one after the other."""
    _, offsets, content = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32, count=len(array) + 1, offset=4 * array.offset)
    first, last = int(bounds[0]), int(bounds[-1])
    return memoryview(content)[first:last] if last > first else memoryview(b"")
