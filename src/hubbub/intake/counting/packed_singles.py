"""Packed outputs (rows of bits, seeds with buckets) of users who sent one: put aside, sorted, equal ones merged.

Sorting makes what is written independent of the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.intake.sources.packed_bytes import from_bytes
from hubbub.mechanisms import Mechanism

if TYPE_CHECKING:
    import pyarrow as pa


class PackedSingles:
    """The table in which packed outputs wait to be sorted."""

    def __init__(self, mechanisms: list[Mechanism], scratch: Scratch, prefix: str) -> None:
        self._mechanisms, self._scratch, self._table = mechanisms, scratch, prefix + "packed"

    def put(self, mechanism: int, content: NDArray[np.uint8], users: Positions | None = None) -> None:
        """Put outputs aside, as rows of bytes, with how many users sent each (None: one)."""
        if not len(content):
            return
        columns: dict[str, NDArray[Any]] = {
            "mechanism": np.full(len(content), mechanism, dtype=np.int16),
            "users": np.ones(len(content), dtype=np.int64) if users is None else users,
        }
        self._scratch.insert(self._table, byte_table(columns, content))

    def merged(self) -> Iterator[tuple[int, Codes, Positions]]:
        """Yield the outputs in order, each once with its count: mechanism, codes, users."""
        rest: tuple[int, NDArray[np.uint8], Positions] | None = None
        for batch in self._scratch.sorted(self._table, "mechanism, code, users", "mechanism, code"):
            which, counts = np.asarray(batch["mechanism"]), np.asarray(batch["users"])
            for number in np.unique(which).tolist():
                own = np.flatnonzero(which == number)
                content, users = content_of(batch["code"], own), counts[own]
                if rest is not None and rest[0] == number:
                    content, users = np.concatenate([rest[1], content]), np.concatenate([rest[2], users])
                elif rest is not None:
                    yield self._codes(*rest)
                new = np.append(True, (content[1:] != content[:-1]).any(axis=1))
                content, users = content[new], np.add.reduceat(users, np.flatnonzero(new))
                if len(content) > 1:
                    yield self._codes(number, content[:-1], users[:-1])
                rest = number, content[-1:], users[-1:]
        if rest is not None:
            yield self._codes(*rest)

    def _codes(self, number: int, content: NDArray[np.uint8], users: Positions) -> tuple[int, Codes, Positions]:
        return number, from_bytes(self._mechanisms[number], content), users


def byte_table(columns: Mapping[str, NDArray[Any]], content: NDArray[np.uint8] | None) -> pa.Table:
    """Return columns as a table, with rows of bytes as the column code."""
    import pyarrow as pa

    arrays = {name: pa.array(column) for name, column in columns.items()}
    if content is not None:
        arrays["code"] = binary_array(content)
    return pa.table(arrays)


def binary_array(content: NDArray[np.uint8]) -> pa.Array:
    """Return rows of bytes as an Arrow array."""
    import pyarrow as pa

    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(content.shape[1]), content.shape[0], [None, pa.py_buffer(np.ascontiguousarray(content))]
    )
    return fixed.cast(pa.binary())


def content_of(column: pa.ChunkedArray | pa.Array, rows: Positions) -> NDArray[np.uint8]:
    """Return some rows of bytes, all of one length, as a matrix."""
    import pyarrow as pa

    array = one_array(column.take(pa.array(rows))).cast(pa.large_binary())
    _, offsets, content = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64, count=len(array) + 1, offset=8 * array.offset)
    return np.frombuffer(content, dtype=np.uint8)[bounds[0] : bounds[-1]].reshape(rows.size, -1)
