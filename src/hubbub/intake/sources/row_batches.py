"""Batches of a stream put together to rows: of a useful size, in plain types, counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.base import Rows, Source, spread
from hubbub.intake.sources.plain_types import plain

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1_000_000
BYTES = 256 << 20  # long entries make smaller batches


def gather(source: Source, names: list[str], stream: Iterable[list[pa.Array]], total: int | None) -> Iterator[Rows]:
    """Yield about a million rows at a time of a stream of columns.

    `total` is the number of rows by another count (None where there is none). Where the stream does not agree, a last
    batch counts the difference and holds no rows, so that the sums tell.
    """
    held: list[list[pa.Array]] = []
    rows = size = read = 0
    for arrays in stream:
        held.append(arrays)
        rows += len(arrays[0])
        size += sum(array.nbytes for array in arrays)
        if rows >= ROWS or size >= BYTES:
            yield _rows(source, names, held, read + 1)
            held, read, rows, size = [], read + rows, 0, 0
    if rows:
        yield _rows(source, names, held, read + 1)
        read += rows
    if total is not None and read != total:
        yield Rows(total - read, {name: _nothing() for name in names}, read + 1)


def _nothing() -> pa.ChunkedArray:
    import pyarrow as pa

    return pa.chunked_array([], pa.null())


def _rows(source: Source, names: list[str], held: list[list[pa.Array]], first: int) -> Rows:
    import pyarrow as pa

    columns = {name: plain(pa.chunked_array(parts)) for name, parts in zip(names, zip(*held, strict=True), strict=True)}
    return checked_rows(source, columns, first)


def checked_rows(source: Source, columns: dict[str, pa.ChunkedArray], first: int) -> Rows:
    """Return one batch; rows with a text that is not UTF-8 are faults of it.

    Arrow does not look when it reads texts from Parquet, and other programs go astray on what is none.
    """
    import pyarrow as pa

    count = len(next(iter(columns.values())))
    faults = {
        place: fault for name, column in columns.items() for place, fault in _not_texts(source, name, column, first)
    }
    if not faults:
        return Rows(count, columns, first)
    places = spread(first, count)
    kept = ~np.isin(places, list(faults))
    whole = {name: column.filter(pa.array(kept)) for name, column in columns.items()}
    for name, column in whole.items():  # a dictionary would still hold what is no text
        whole[name] = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return Rows(count, whole, first, places[kept], sorted(faults.items()))


def _not_texts(source: Source, name: str, column: pa.ChunkedArray, first: int) -> Iterator[tuple[int, Fault]]:
    """Yield the places of texts that are not UTF-8: some databases keep any bytes as texts."""
    import pyarrow as pa

    inner = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(inner) or pa.types.is_large_string(inner)):
        return
    parts = [chunk.dictionary for chunk in column.chunks] if inner != column.type else column.chunks
    try:
        for part in parts:
            part.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        texts = column.cast(inner) if inner != column.type else column
        for place, entry in enumerate(texts.cast(pa.large_binary()).to_pylist(), first):
            try:
                (entry or b"").decode()
            except UnicodeDecodeError:
                yield (
                    place,
                    Fault(
                        name,
                        refusal(
                            "not-utf-8",
                            "a text is not UTF-8",
                            where=source.where(place),
                            got=repr(entry[:30]),
                            expected=f"the column {name} in UTF-8",
                            remedy="correct the entry, or keep bytes in a column of bytes",
                        ),
                    ),
                )
