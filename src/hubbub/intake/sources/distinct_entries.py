"""Columns as distinct entries and the index of each row's entry, and the types that a column may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.intake.reject_causes import refusal

if TYPE_CHECKING:
    import pyarrow as pa

PLURALS = {"lat": "latitudes", "lon": "longitudes", "x": "coordinates", "y": "coordinates"}  # of what columns hold
MAX_INTEGER_RANGE = 1 << 22  # up to this range, the whole numbers of a batch need no dictionary


@dataclass(frozen=True)
class Entries:
    """The distinct entries of a column (some may occur in no row), and the index of each row's entry."""

    kind: str  # the column's type: 1, 1.0 and True are equal in Python, but not the same entry
    values: Sequence[Any]
    indices: Positions

    def take(self, places: Positions) -> list[object]:
        """Return some of the entries."""
        return [self.values[place] for place in places.tolist()]


class _IntegerRange(Sequence[Any]):
    """Consecutive whole numbers, and null after the last."""

    def __init__(self, low: int, size: int) -> None:
        self._low, self._size = low, size

    def __len__(self) -> int:
        return self._size + 1

    def __getitem__(self, place: Any) -> Any:
        return None if place == self._size else self._low + place


def entries_of(column: pa.ChunkedArray, name: str) -> Entries:
    """Return the entries of a column of numbers, texts or bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, inner = column.type, check_column(column, name)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.string())
    if pa.types.is_integer(kind) and column.length() > column.null_count:
        extremes = pc.min_max(column)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if high - low < MAX_INTEGER_RANGE:
            filled = pc.fill_null(column, low) if column.null_count else column
            numbers = np.asarray(one_array(filled))
            indices = (numbers - numbers.dtype.type(low) if low > 2**62 else numbers.astype(np.int64) - low).astype(
                np.int64
            )
            if column.null_count:
                indices[np.asarray(pc.is_null(column))] = high - low + 1
            return Entries("integer", _IntegerRange(low, high - low + 1), indices)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    column = column.unify_dictionaries()
    if column.num_chunks == 0:
        return Entries(str(inner), [None], np.empty(0, dtype=np.int64))
    values = column.chunk(0).dictionary.to_pylist()
    if pa.types.is_float16(inner) or pa.types.is_float32(inner):
        # Short floats are NumPy scalars: their type says which may have been rounded.
        scalar = inner.to_pandas_dtype()
        values = [value if value is None or value != value else scalar(value) for value in values]
    filled = [pc.fill_null(chunk.indices.cast("int64"), len(values)) for chunk in column.chunks]
    indices = np.concatenate([np.asarray(part) for part in filled])
    return Entries("text" if is_text(inner) else str(inner), [*values, None], indices)


def entry_type(column: pa.ChunkedArray) -> pa.DataType:
    """Return the type of a column's entries, which may be in a dictionary."""
    import pyarrow as pa

    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    merged = column.combine_chunks()
    return pa.concat_arrays(merged.chunks) if isinstance(merged, pa.ChunkedArray) else merged


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type holds bytes."""
    import pyarrow as pa

    types = pa.types
    tests = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    return any(test(kind) for test in tests)


def is_plain(kind: pa.DataType) -> bool:
    """Whether a type holds numbers, texts, bytes or truth values."""
    import pyarrow as pa

    types = pa.types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return is_text(kind) or is_bytes(kind) or any(test(kind) for test in tests)


def check_column(column: pa.ChunkedArray, name: str) -> pa.DataType:
    """Return the type of a column's entries; refuse a type that cannot hold outputs, users or mechanisms."""
    import pyarrow as pa

    kind = entry_type(column)
    role = name.partition(".")[0] if name.startswith("output.") else name
    if name != role and name.rpartition(".")[2] in PLURALS:
        role = name.rpartition(".")[2]
    if is_plain(kind) and (name != "mechanism" or is_text(kind) or pa.types.is_null(kind)):
        return kind
    nested = pa.types.is_nested(kind)
    raise refusal(
        "nested-column" if nested else "wrong-type",
        "the column contains lists or tables"
        if nested
        else f"a column of this type cannot hold {PLURALS.get(role, f'{role}s')}",
        where=f"column {name}",
        got=str(kind),
        expected="the name of a mechanism in every row"
        if name == "mechanism"
        else "one number in every row"
        if role in PLURALS
        else "one number, text or packed row of bits in every row",
        remedy=_type_remedy(kind, role),
    )


def _type_remedy(kind: pa.DataType, name: str) -> str:
    import pyarrow as pa

    if name in ("output", "value") and pa.types.is_temporal(kind):
        return "write the numbers that the study counts in place of dates and times, such as days since the first one"
    if name == "output":
        return "write outputs as text: a label, column:row, seed:bucket, or a string of 0 and 1"
    if name in PLURALS:
        return "write decimal numbers"
    return "convert the column to text"
