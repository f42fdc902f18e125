"""Arrow batches as rows of a source: batches of a useful size, in plain types, counted and valid UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from hubbub.intake.reject_causes import Fault, row_fault
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.distinct_entries import entry_type, is_text

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1_000_000
BATCH_BYTES = 256 << 20  # long entries make smaller batches


def gather(source: Source, names: list[str], stream: Iterable[list[pa.Array]], total: int | None) -> Iterator[Rows]:
    """Yield the rows of a stream of columns, about a million at a time.

    `total` is the number of rows by a separate count (None if there is none). If the stream disagrees, a last batch
    counts the difference and holds no rows, so that the sums show it.
    """
    held: list[list[pa.Array]] = []
    rows = size = read = 0
    for arrays in stream:
        held.append(arrays)
        rows += len(arrays[0])
        size += sum(array.nbytes for array in arrays)
        if rows >= BATCH_ROWS or size >= BATCH_BYTES:
            yield _joined(source, names, held, read + 1)
            held, read, rows, size = [], read + rows, 0, 0
    if rows:
        yield _joined(source, names, held, read + 1)
        read += rows
    if total is not None and read != total:
        yield Rows(total - read, {}, read + 1)


def _joined(source: Source, names: list[str], held: list[list[pa.Array]], first: int) -> Rows:
    import pyarrow as pa

    columns = {name: plain(pa.chunked_array(parts)) for name, parts in zip(names, zip(*held, strict=True), strict=True)}
    return checked_rows(source, columns, first)


def checked_rows(source: Source, columns: dict[str, pa.ChunkedArray], first: int) -> Rows:
    """Return one batch, in which rows with invalid UTF-8 are faults.

    Arrow does not check the texts that it reads from Parquet, and other libraries fail on invalid ones.
    """
    import pyarrow as pa

    count = len(next(iter(columns.values())))
    faults = {
        place: fault for name, column in columns.items() for place, fault in _not_utf8(source, name, column, first)
    }
    if not faults:
        return Rows(count, columns, first)
    places = np.arange(first, first + count)
    valid = ~np.isin(places, list(faults))
    kept = {name: column.filter(pa.array(valid)) for name, column in columns.items()}
    for name, column in kept.items():  # a dictionary would still hold the invalid text
        kept[name] = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return Rows(count, kept, first, places[valid], sorted(faults.items()))


def _not_utf8(source: Source, name: str, column: pa.ChunkedArray, first: int) -> Iterator[tuple[int, Fault]]:
    """Yield the places of texts that are not UTF-8: some databases store any bytes as text."""
    import pyarrow as pa

    inner = entry_type(column)
    if not is_text(inner):
        return
    parts = [chunk.dictionary for chunk in column.chunks] if inner != column.type else column.chunks
    try:
        for part in parts:
            part.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        for place, entry in enumerate(column.cast(inner).cast(pa.large_binary()).to_pylist(), first):
            try:
                (entry or b"").decode()
            except UnicodeDecodeError:
                fault = row_fault(
                    "not-utf-8",
                    "the text is not valid UTF-8",
                    where=source.where(place),
                    got=repr(entry[:30]),
                    expected=f"the column {name} in UTF-8",
                    remedy="correct the entry, or store bytes in a column of bytes",
                    column=name,
                )
                yield place, fault


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as whole numbers, floats, texts, bytes or truth values; nested ones and dates are not changed.

    Decimals become texts, exactly and without the zeros that only their type adds: 7.00 is 7, 7.50 is 7.5.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        # The dictionary is converted before it is decoded: Arrow cannot decode all types of values.
        parts = [plain(pa.chunked_array([chunk.dictionary])).chunk(0).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(parts)
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return pa.chunked_array([_uuid_texts(chunk.storage) for chunk in column.chunks], pa.string())
        stored = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        if kind.extension_name == "arrow.bool8":
            return stored.cast(pa.bool_())
        # Of other types only texts mean what they store: a month of pandas is stored as a number since 1970.
        return plain(stored) if is_text(kind.storage_type) else column
    if pa.types.is_decimal(kind):
        return without_trailing_zeros(pc.cast(column, pa.string()))
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    return column


def without_trailing_zeros(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals in text form without zeros at the end of the fraction."""
    import pyarrow.compute as pc

    texts = pc.replace_substring_regex(texts, r"^([+-]?\d+)\.0*$", r"\1")
    return pc.replace_substring_regex(texts, r"^([+-]?\d+\.\d*[1-9])0+$", r"\1")


def _uuid_texts(stored: pa.Array) -> pa.Array:
    """Return texts like a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11, a million at once rather than one by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    raw = b"".join(pc.fill_null(stored.cast(pa.binary(16)), bytes(16)).to_pylist())
    digits = np.frombuffer(raw.hex().encode(), dtype=np.uint8).reshape(len(stored), 32)
    texts = np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1)
    filled = pa.array(texts.view("S36").ravel(), type=pa.binary()).cast(pa.string())
    return pc.if_else(stored.is_valid(), filled, pa.scalar(None, pa.string()))
