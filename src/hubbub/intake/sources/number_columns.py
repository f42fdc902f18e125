"""Columns of numbers, or of their texts, as floats; and which entries are something else."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from hubbub.client import NUMBER
from hubbub.core.arrays import Floats
from hubbub.core.arrow import pa, pc
from hubbub.intake.sources.distinct_entries import entry_type, is_text, one_array

# The same pattern for Arrow, which never backtracks and has no possessive quantifiers: "++" is "+", "*+" is "*".
NUMBER_TEXT = "^(?:" + re.sub("([+*])[+]", r"\1", NUMBER.pattern) + ")$"


def floats_of(column: pa.ChunkedArray | pa.Array, *, trim: bool = False) -> tuple[Floats, NDArray[np.bool_] | None]:
    """Return numbers (nan where there is none), and which entries are something else than a number (None: none is).

    With `trim`, blanks around a text are ignored, as Arrow's parser of CSV does. "nan" and "inf" are no numbers.
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
        return _matching(one_array(column), trim=trim)
    if np.isfinite(values).all():
        return values, None
    wrong = ~np.isfinite(values) & np.asarray(one_array(column).is_valid())
    return np.where(wrong, np.nan, values), wrong


def _filled(floats: pa.ChunkedArray | pa.Array) -> Floats:
    array = one_array(floats)
    filled = np.asarray(pc.fill_null(array, np.nan) if array.null_count else array)
    return filled.astype(np.float64, copy=False)


def _matching(texts: pa.Array, *, trim: bool) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the numbers among texts, and which are none; an empty text is nothing at all."""
    if trim:
        texts = pc.utf8_trim(texts, characters=" \t")
    is_number = np.array(pc.fill_null(pc.match_substring_regex(texts, NUMBER_TEXT), False))
    values = np.full(len(texts), np.nan)
    values[is_number] = np.asarray(texts.filter(pa.array(is_number)).cast(pa.float64()))
    values[np.isinf(values)] = np.nan  # 1e999
    return values, np.isnan(values) & np.asarray(pc.fill_null(pc.not_equal(texts, ""), False))
