"""Columns in plain types: what databases and libraries have beyond numbers, texts and bytes, told in those."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as whole numbers, floats, texts, bytes or truth values; nested ones and dates stay as they are.

    Decimals become texts, exactly and without the zeros that only their type adds: 7.00 is 7, 7.50 is 7.5.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        # First the values, then the entries: Arrow cannot decode all kinds of values.
        parts = [plain(pa.chunked_array([chunk.dictionary])).chunk(0).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(parts)
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return pa.chunked_array([_uuids(chunk.storage) for chunk in column.chunks], pa.string())
        stored = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        if kind.extension_name == "arrow.bool8":
            return stored.cast(pa.bool_())
        # Of others only texts say what they mean: a month of pandas is stored as a number since 1970.
        return plain(stored) if _is_text(kind.storage_type) else column
    if pa.types.is_decimal(kind):
        return trimmed(pc.cast(column, pa.string()))
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    return column


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    texts: bool = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return texts


def trimmed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts of decimals without zeros at the end of the fraction."""
    import pyarrow.compute as pc

    texts = pc.replace_substring_regex(texts, r"^([+-]?\d+)\.0*$", r"\1")
    return pc.replace_substring_regex(texts, r"^([+-]?\d+\.\d*[1-9])0+$", r"\1")


def _uuids(stored: pa.Array) -> pa.Array:
    """Return texts like a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11; a million at once, so not one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    raw = b"".join(pc.fill_null(stored.cast(pa.binary(16)), bytes(16)).to_pylist())
    digits = np.frombuffer(raw.hex().encode(), dtype=np.uint8).reshape(len(stored), 32)
    texts = np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1)
    whole = pa.array(texts.view("S36").ravel(), type=pa.binary()).cast(pa.string())
    return pc.if_else(stored.is_valid(), whole, pa.scalar(None, pa.string()))
