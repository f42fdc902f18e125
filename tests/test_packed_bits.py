"""Rows of bits, packed eight to a byte."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.core.packed_bits import ROWS_AT_ONCE, ones_in_rows


@pytest.mark.parametrize("rows", [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1])
@pytest.mark.parametrize("width", [1, 13, 300])
def test_ones_of_rows_are_counted(rows: int, width: int) -> None:
    bits = np.random.default_rng(rows + width).random((rows, 8 * width)) < 0.9
    assert ones_in_rows(np.packbits(bits, axis=1)).tolist() == bits.sum(axis=1).tolist()
