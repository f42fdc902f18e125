"""Codes of a number and a row of bits, as of a cohort and its Bloom filter: four bytes, then eight bits to a byte."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions

NUMBER_BYTES = 4  # in front of the packed bits, the highest first


def with_numbers(numbers: Positions, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return packed rows with a number before each."""
    heads = numbers.astype(">u4").view(np.uint8).reshape(-1, NUMBER_BYTES)
    return np.concatenate([heads, rows], axis=1)


def row_numbers(codes: Codes) -> Positions:
    """Return the numbers before packed rows."""
    heads = np.ascontiguousarray(codes[:, :NUMBER_BYTES], dtype=np.uint8)
    return heads.view(">u4").ravel().astype(np.int64)
