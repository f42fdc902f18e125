"""The loops of exact draws, compiled by Numba at the first call and cached on disk.

Import this module inside the functions that need it: Numba takes longer to load than all of hubbub. Each loop
decides by the first bits of a number whose further bits are not drawn yet, and returns `UNDECIDED` in the rare case
that these do not suffice.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.core.compiling import compiled

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

UNDECIDED = -1
REDRAW = -2
HEAD_WORDS = 4  # that decide most of 64 bits: one bit in 2^4 needs another byte
GUIDE_BITS = 12  # leading bits of a word that select where to start looking


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
    shift = np.uint64(64 - GUIDE_BITS)
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


def _below(fresh: Bytes, used: int, digits: Bytes) -> tuple[bool, int]:
    """Compare fresh bytes with digits until they differ; also return how many bytes are used then."""
    for digit in digits:
        drawn = fresh[used]
        used += 1
        if drawn != digit:
            return drawn < digit, used
    return False, used


_below_loop = compiled(_below, nogil=True)


def _flip(
    words: Words, fresh: Bytes, positions: Positions, values: int, own: Bytes, head: int, tail: Bytes, packed: Bytes
) -> int:
    """Draw rows of bits, 64 at a time: the first digits of 64 random numbers are the bits of `HEAD_WORDS` words.

    A bit is one if its number is below a probability whose first `HEAD_WORDS` digits are `head`, and whose further ones
    are the bytes of `tail`. One number in 2^PLANES begins like it, and is compared on by fresh bytes. The value's own
    bit is drawn by bytes alone. Return how many rows were finished before the bytes could run out.
    """
    used, most = 0, own.size + values * tail.size  # no row can need more than that
    blocks = (values + 63) // 64
    one, none, all_ = np.uint64(1), np.uint64(0), ~np.uint64(0)
    for user in range(positions.size):
        if used + most > fresh.size:
            return user
        for block in range(blocks):
            open_ = all_ if values - 64 * block >= 64 else all_ << np.uint64(64 - (values - 64 * block))
            row = none
            mine = positions[user] - 64 * block
            if 0 <= mine < 64:
                lane = one << np.uint64(63 - mine)
                open_ &= ~lane
                is_one, used = _below_loop(fresh, used, own)
                if is_one:
                    row |= lane
            for plane in range(HEAD_WORDS):
                word = words[(user * blocks + block) * HEAD_WORDS + plane]
                if (head >> (HEAD_WORDS - 1 - plane)) & 1:
                    row |= open_ & ~word
                    open_ &= word
                else:
                    open_ &= ~word
            while open_ != none:
                lane = open_ & (~open_ + one)
                open_ ^= lane
                is_one, used = _below_loop(fresh, used, tail)
                if is_one:
                    row |= lane
            for byte in range(min(8, packed.shape[1] - 8 * block)):
                packed[user, 8 * block + byte] = np.uint8((row >> np.uint64(56 - 8 * byte)) & np.uint64(255))
    return positions.size


_respond_loop = compiled(_respond, nogil=True)
_look_loop = compiled(_look, nogil=True)
_look_rows_loop = compiled(_look_rows, nogil=True)
_flip_loop = compiled(_flip, nogil=True)


def respond(words: Words, positions: Positions, values: int, top: int) -> Positions:
    """Return a value for each position: the truth, any, `UNDECIDED`, or `REDRAW` where any must be drawn anew."""
    drawn = np.empty(words.size, dtype=np.int64)
    _respond_loop(words, positions, values, top, drawn)
    return drawn


def look_up(words: Words, heads: Words, guide: Positions) -> Positions:
    """Return the cell of each word in one table, or `UNDECIDED`."""
    drawn = np.empty(words.size, dtype=np.int64)
    _look_loop(words, heads, guide, drawn)
    return drawn


def look_up_rows(words: Words, heads: Words, rows: Positions) -> Positions:
    """Return the cell of each word in its row's table, or `UNDECIDED`."""
    drawn = np.empty(words.size, dtype=np.int64)
    _look_rows_loop(words, heads, rows, drawn)
    return drawn


def flip(
    words: Words, fresh: Bytes, positions: Positions, values: int, own: Bytes, head: int, tail: Bytes, packed: Bytes
) -> int:
    """Draw rows of bits into `packed`; return how many were finished."""
    return cast("int", _flip_loop(words, fresh, positions, values, own, head, tail, packed))
