"""Rows of bits, packed eight to a byte."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions

ROWS_AT_ONCE = 8192  # so that they stay in the cache while their columns are gone through


def ones_in_rows(packed: NDArray[np.uint8]) -> Positions:
    """Return how many ones each row has: added up column by column, because rows are short and many."""
    ones = np.zeros(packed.shape[0], dtype=np.int64)
    for first in range(0, packed.shape[0], ROWS_AT_ONCE):
        some = ones[first : first + ROWS_AT_ONCE]
        for column in packed[first : first + ROWS_AT_ONCE].T:
            some += np.bitwise_count(column)
    return ones
