"""Rows put aside as tables: columns of numbers, rows of bytes, and where one user ends and the next begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.intake.sources.distinct_entries import one_array

if TYPE_CHECKING:
    import pyarrow as pa


def byte_table(columns: Mapping[str, NDArray[Any]], content: NDArray[np.uint8] | None) -> pa.Table:
    """Return columns as a table, with rows of bytes as the column code."""
    import pyarrow as pa

    arrays = {name: pa.array(column) for name, column in columns.items()}
    if content is not None:
        fixed = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(content.shape[1]), content.shape[0], [None, pa.py_buffer(np.ascontiguousarray(content))]
        )
        arrays["code"] = fixed.cast(pa.binary())
    return pa.table(arrays)


def content_of(column: pa.ChunkedArray | pa.Array, rows: Positions) -> NDArray[np.uint8]:
    """Return some rows of bytes, all of one length, as a matrix."""
    import pyarrow as pa

    array = one_array(column.take(pa.array(rows))).cast(pa.large_binary())
    _, offsets, content = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64, count=len(array) + 1, offset=8 * array.offset)
    return np.frombuffer(content, dtype=np.uint8)[bounds[0] : bounds[-1]].reshape(rows.size, -1)


def new_users(users: pa.ChunkedArray) -> Positions:
    """Return the rows at which another user begins."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = one_array(users)
    if pa.types.is_integer(array.type):
        numbers = np.asarray(array)
        changes = numbers[1:] != numbers[:-1]
    else:
        changes = np.asarray(pc.not_equal(array.slice(1), array.slice(0, len(array) - 1)))
    return np.flatnonzero(np.append(True, changes))


def between_users(keys: Positions, bits: int, count: int) -> list[Positions]:
    """Return about equal parts of rows in order (user and item as one number), cut where another user begins."""
    middle = [int(keys[keys.size * place // count]) >> bits << bits for place in range(1, count)]
    return np.split(keys, np.searchsorted(keys, middle))
