"""Columns of numbers, or of their texts, as floats: all at once, and entry by entry where one is no number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.client import NUMBER
from hubbub.core.arrays import Floats
from hubbub.core.arrow import pa, pc
from hubbub.intake.sources.distinct_entries import entry_type, is_text, one_array


def floats_of(column: pa.ChunkedArray | pa.Array) -> tuple[Floats, NDArray[np.bool_] | None]:
    """Return numbers (nan where there is none), and which entries are something else than a number (None: none is).

    Blanks around a text are ignored, as Arrow's parser of CSV ignores them. "nan" and "inf" are texts, not numbers.
    """
    kind = entry_type(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(kind)  # coordinates and amounts rarely repeat: they are written out
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan), None
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _filled(column.cast(pa.float64(), safe=False)), None
    if not is_text(kind):  # truth values, bytes
        return np.full(len(column), np.nan), np.asarray(one_array(column).is_valid())
    try:
        values = _filled(column.cast(pa.float64()))
    except pa.ArrowInvalid:  # one of them is no number: which?
        return _one_by_one(one_array(column))
    if np.isfinite(values).all():
        return values, None
    wrong = ~np.isfinite(values) & np.asarray(one_array(column).is_valid())
    return np.where(wrong, np.nan, values), wrong


def _filled(floats: pa.ChunkedArray | pa.Array) -> Floats:
    array = one_array(floats)
    filled = np.asarray(pc.fill_null(array, np.nan) if array.null_count else array)
    return filled.astype(np.float64, copy=False)


def _one_by_one(texts: pa.Array) -> tuple[Floats, NDArray[np.bool_]]:
    trimmed = [None if text is None else text.strip(" \t") for text in texts.to_pylist()]
    numbers = [float(text) if text and NUMBER.fullmatch(text) else np.nan for text in trimmed]
    values = np.array(numbers, dtype=np.float64)
    values[np.isinf(values)] = np.nan  # 1e999
    wrong = np.isnan(values) & np.array([bool(text) for text in trimmed], dtype=bool)
    return values, wrong
