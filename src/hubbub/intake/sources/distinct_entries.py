"""Columns as distinct entries, and which of them each row holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.intake.reject_causes import refusal

if TYPE_CHECKING:
    import pyarrow as pa

WIDEST = 1 << 22  # between the smallest and largest whole number of a batch, up to which these need no dictionary


@dataclass(frozen=True)
class Entries:
    """The distinct entries of a column (perhaps some that no row holds), and the entry of each row."""

    kind: str  # of the column's type: 1, 1.0 and true are equal in Python, and not the same entry
    values: Sequence[Any]
    indices: Positions

    def take(self, places: Positions) -> list[object]:
        """Return some of the entries."""
        if isinstance(self.values, _Range):
            return self.values.take(places)
        return [self.values[place] for place in places.tolist()]


class _Range(Sequence[Any]):
    """Whole numbers one after the other, then nothing (null)."""

    def __init__(self, low: int, size: int) -> None:
        self._low, self._size = low, size

    def __len__(self) -> int:
        return self._size + 1

    def __getitem__(self, place: Any) -> Any:
        return None if place == self._size else self._low + place

    def take(self, places: Positions) -> list[object]:
        """Return the numbers at some places."""
        return [None if place == self._size else self._low + place for place in places.tolist()]


def entries_of(column: pa.ChunkedArray, name: str) -> Entries:
    """Return the entries of a column of numbers, texts or bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, inner = column.type, check_column(column, name)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    if pa.types.is_integer(kind) and column.length() > column.null_count:
        ends = pc.min_max(column)
        low, high = ends["min"].as_py(), ends["max"].as_py()
        if high - low < WIDEST:
            filled = pc.fill_null(column, low) if column.null_count else column
            numbers = np.asarray(whole(filled))
            indices = (numbers - numbers.dtype.type(low) if low > 2**62 else numbers.astype(np.int64) - low).astype(
                np.int64
            )
            if column.null_count:
                indices[np.asarray(pc.is_null(column))] = high - low + 1
            return Entries("integer", _Range(low, high - low + 1), indices)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return Entries(str(inner), [None], np.empty(0, dtype=np.int64))
    values = _with_type(column.chunk(0).dictionary.to_pylist(), inner)
    indices = np.concatenate([_filled(chunk.indices, len(values)) for chunk in column.chunks])
    return Entries("text" if _is_text(inner) else str(inner), [*values, None], indices)


def _with_type(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Return entries with the type of their floats, where that is not Python's: it says which may have been rounded."""
    import pyarrow as pa

    if not (pa.types.is_float16(kind) or pa.types.is_float32(kind)):
        return values
    scalar = kind.to_pandas_dtype()
    return [value if value is None or value != value else scalar(value) for value in values]


def check_column(column: pa.ChunkedArray, name: str) -> pa.DataType:
    """Return the type of a column's entries; refuse one that cannot hold what it should."""
    import pyarrow as pa

    inner = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    check_type(inner, name)
    return inner


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column in one piece."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    merged = column.combine_chunks()
    return pa.concat_arrays(merged.chunks) if isinstance(merged, pa.ChunkedArray) else merged


def _filled(indices: pa.Array, missing: int) -> Positions:
    import pyarrow.compute as pc

    filled = pc.fill_null(indices.cast("int64"), missing) if indices.null_count else indices
    return np.asarray(filled).astype(np.int64)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_plain(kind: pa.DataType) -> bool:
    """Whether a type holds numbers, texts, bytes or truth values."""
    import pyarrow as pa

    types = pa.types
    return bool(
        _is_text(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    )


def check_type(kind: pa.DataType, name: str) -> None:
    """Refuse types that hold no output, user or mechanism."""
    import pyarrow as pa

    types = pa.types
    if is_plain(kind) and not (name == "mechanism" and not (_is_text(kind) or types.is_null(kind))):
        return
    nested = types.is_nested(kind)
    raise refusal(
        "nested-column" if nested else "wrong-type",
        "a column holds lists or tables" if nested else "a column's type cannot hold what it should",
        where=f"column {name}",
        got=str(kind),
        expected="a text in every row: the name of a mechanism"
        if name == "mechanism"
        else "one number, one text or one packed row of bits in every row",
        remedy="write outputs as texts, as column:row, as seed:bucket or as a text of 0 and 1"
        if name == "output"
        else "write the column as texts",
    )
