"""The loops of exact draws, compiled by Numba at the first call and kept on disk after that.

Import this module inside the functions that need it: Numba takes longer to load than all of hubbub. Each loop
decides by the first bits of a number whose further bits are not drawn yet, and says so (`UNDECIDED`) in the rare case
that these do not suffice.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Positions
from hubbub.compiling import compiled

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

UNDECIDED = -1
REDRAW = -2
GUIDED = 12  # leading bits of a word that lead to the first place to look


def _respond(words: Words, positions: Positions, values: int, top: int, drawn: Positions) -> None:
    """Keep the truth if the upper half of a word is below `top`; otherwise take any value by the lower half."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    spare = np.uint64(2**32 % values)
    for place in range(words.size):
        high, low = words[place] >> half, words[place] & mask
        if high < np.uint64(top):
            drawn[place] = positions[place]
        elif high == np.uint64(top):
            drawn[place] = UNDECIDED
        else:
            product = low * np.uint64(values)
            drawn[place] = REDRAW if (product & mask) < spare else np.int64(product >> half)


def _look(words: Words, heads: Words, guide: Positions, drawn: Positions) -> None:
    """Find each word's cell: the place of the first border that is not below it; a border itself decides nothing."""
    shift = np.uint64(64 - GUIDED)
    for place in range(words.size):
        word = words[place]
        cell = guide[word >> shift]
        while cell < heads.size and heads[cell] < word:
            cell += 1
        drawn[place] = UNDECIDED if cell < heads.size and heads[cell] == word else cell


def _look_rows(words: Words, heads: Words, rows: Positions, drawn: Positions) -> None:
    """Do the same with a row of borders for each word, by halving."""
    for place in range(words.size):
        word, row = words[place], rows[place]
        low, high = 0, heads.shape[1]
        while low < high:
            middle = (low + high) // 2
            if heads[row, middle] < word:
                low = middle + 1
            else:
                high = middle
        drawn[place] = UNDECIDED if low < heads.shape[1] and heads[row, low] == word else low


def _flip(fresh: Bytes, positions: Positions, values: int, own: Bytes, other: Bytes, packed: Bytes) -> tuple[int, int]:
    """Draw rows of bits, each by comparing fresh bytes with those of its probability until they differ.

    Return how many rows were finished before the bytes ran out, and how many bytes these used.
    """
    width = own.size
    used = 0
    for user in range(positions.size):
        if used + values * width > fresh.size:  # no row can need more than that
            return user, used
        byte = np.uint8(0)
        for value in range(values):
            mine = value == positions[user]
            one = np.uint8(0)
            for digit in range(width):
                fraction = own[digit] if mine else other[digit]
                drawn = fresh[used]
                used += 1
                if drawn != fraction:
                    one = np.uint8(drawn < fraction)
                    break
            byte = np.uint8((byte << np.uint8(1)) | one)
            if value % 8 == 7:
                packed[user, value // 8] = byte
                byte = np.uint8(0)
        if values % 8:
            packed[user, values // 8] = np.uint8(byte << np.uint8(8 - values % 8))
    return positions.size, used


_respond_loop = compiled(_respond, nogil=True)
_look_loop = compiled(_look, nogil=True)
_look_rows_loop = compiled(_look_rows, nogil=True)
_flip_loop = compiled(_flip, nogil=True)


def respond(words: Words, positions: Positions, values: int, top: int) -> Positions:
    """Return a value for each position: the truth, any, `UNDECIDED`, or `REDRAW` where any must be drawn anew."""
    drawn = np.empty(words.size, dtype=np.int64)
    _respond_loop(words, positions, values, top, drawn)
    return drawn


def look(words: Words, heads: Words, guide: Positions) -> Positions:
    """Return the cell of each word in one table, or `UNDECIDED`."""
    drawn = np.empty(words.size, dtype=np.int64)
    _look_loop(words, heads, guide, drawn)
    return drawn


def look_rows(words: Words, heads: Words, rows: Positions) -> Positions:
    """Return the cell of each word in its row's table, or `UNDECIDED`."""
    drawn = np.empty(words.size, dtype=np.int64)
    _look_rows_loop(words, heads, rows, drawn)
    return drawn


def flip(fresh: Bytes, positions: Positions, values: int, own: Bytes, other: Bytes, packed: Bytes) -> tuple[int, int]:
    """Draw rows of bits into `packed`; return how many were finished, and how many bytes they used."""
    return cast("tuple[int, int]", _flip_loop(fresh, positions, values, own, other, packed))
