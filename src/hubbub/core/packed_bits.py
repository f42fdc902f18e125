"""Rows of bits, packed eight to a byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions

ROWS_AT_ONCE = 8192  # so that they stay in the cache while their columns are gone through


def ones_in_rows(packed: NDArray[np.uint8]) -> Positions:
    """Return how many ones each row has: added up column by column, because rows are short and many."""
    ones = np.zeros(packed.shape[0], dtype=np.int64)
    for first in range(0, packed.shape[0], ROWS_AT_ONCE):
        some = ones[first : first + ROWS_AT_ONCE]
        for column in columns_of_words(packed[first : first + ROWS_AT_ONCE]):
            some += np.bitwise_count(column)
    return ones


def columns_of_words(packed: NDArray[np.uint8]) -> Iterator[NDArray[np.unsignedinteger[Any]]]:
    """Yield the columns of packed rows as whole numbers of eight bytes, as far as there are so many, then of fewer."""
    first, width = 0, packed.shape[1]
    rows = np.ascontiguousarray(packed)
    while first < width:
        size = 1 << min(3, (width - first).bit_length() - 1)
        yield np.ndarray(packed.shape[0], np.dtype(f"u{size}"), rows, first, (width,))
        first += size
