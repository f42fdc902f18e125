"""The loops of exact draws, compiled by Numba at the first call and cached on disk.

Import this module inside the functions that need it: Numba takes longer to load than all of hubbub. Each loop
decides by the first bits of a number whose further bits are not drawn yet, and returns `UNDECIDED` in the rare case
that these do not suffice.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.core.compiling import compiled

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Pieces = NDArray[np.unsignedinteger[Any]]

UNDECIDED = -1
REDRAW = -2
HEAD_WORDS = 4  # that decide most of 64 bits: one bit in 2^4 needs another byte
GUIDE_BITS = 12  # leading bits of a word that select where to start looking


def _respond(words: Words, half: int, positions: Positions, values: int, top: int, drawn: Positions) -> None:
    """Keep the truth if the upper `half` bits of a word are below `top`; otherwise take any value by the lower ones."""
    bits, mask, number = np.uint64(half), np.uint64((1 << half) - 1), np.uint64(values)
    spare, border = np.uint64((1 << half) % values), np.uint64(top)
    for place in range(words.size):
        word = np.uint64(words[place])
        high = word >> bits
        if high < border:
            drawn[place] = positions[place]
        elif high == border:
            drawn[place] = UNDECIDED
        else:
            product = (word & mask) * number
            drawn[place] = REDRAW if (product & mask) < spare else np.int64(product >> bits)


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
    bit is drawn by bytes alone. Short rows share the 64 numbers. Return how many rows were finished before the bytes
    could run out.
    """
    used, blocks, share = 0, (values + 63) // 64, max(1, 64 // values)
    one, none, all_ = np.uint64(1), np.uint64(0), ~np.uint64(0)
    for first in range(0, positions.size, share):
        sharing = min(share, positions.size - first)
        if used + sharing * (own.size + values * tail.size) > fresh.size:  # no row can need more than that
            return first
        for block in range(blocks):
            left = sharing * values - 64 * block
            open_ = all_ if left >= 64 else all_ << np.uint64(64 - left)
            row = none
            for user in range(first, first + sharing):
                mine = positions[user] - 64 * block
                if 0 <= mine < 64:
                    lane = one << np.uint64(63 - mine - (user - first) * values)
                    open_ &= ~lane
                    is_one, used = _below_loop(fresh, used, own)
                    if is_one:
                        row |= lane
            for plane in range(HEAD_WORDS):
                word = words[(first // share * blocks + block) * HEAD_WORDS + plane]
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
            bits = min(64, values - 64 * block)
            for user in range(first, first + sharing):
                ones = (row << np.uint64((user - first) * values)) & (all_ << np.uint64(64 - bits))
                for byte in range((bits + 7) // 8):
                    packed[user, 8 * block + byte] = np.uint8((ones >> np.uint64(56 - 8 * byte)) & np.uint64(255))
    return positions.size


def _choose(pieces: Pieces, positions: Positions, taken: Flags, values: int, size: int, packed: Bytes) -> int:
    """Draw subsets of `size` values into rows of zeros, by Floyd's method.

    `taken` says which subsets hold the true value. What else they hold is any of the other values: in each step, one of
    the first few of them, or, where that is chosen already, the last of these. A piece of random bits that would favour
    some numbers is passed over. Return how many rows were finished before the pieces ran out.
    """
    used, others, bits = 0, values - 1, np.uint64(8 * pieces.itemsize)
    mask, whole = (np.uint64(1) << bits) - np.uint64(1), np.int64(1) << np.int64(bits)
    for user in range(positions.size):
        mine = positions[user]
        if taken[user]:
            packed[user, mine >> 3] |= np.uint8(128 >> (mine & 7))
        for last in range(others - size + np.int64(taken[user]), others):
            number = np.uint64(last + 1)
            while True:
                if used == pieces.size:
                    packed[user] = 0
                    return user
                product = np.uint64(pieces[used]) * number
                used += 1
                rest = product & mask
                if rest >= number or rest >= np.uint64(whole % (last + 1)):
                    break
            drawn = np.int64(product >> bits)
            column = others if drawn == mine else drawn  # the last column stands in for the true value's
            if packed[user, column >> 3] & np.uint8(128 >> (column & 7)):
                column = others if last == mine else last
            packed[user, column >> 3] |= np.uint8(128 >> (column & 7))
    return positions.size


_respond_loop = compiled(_respond, nogil=True)
_look_loop = compiled(_look, nogil=True)
_look_rows_loop = compiled(_look_rows, nogil=True)
_flip_loop = compiled(_flip, nogil=True)
_choose_loop = compiled(_choose, nogil=True)


def respond(words: Words | NDArray[np.uint32], positions: Positions, values: int, top: int) -> Positions:
    """Return a value for each position: the truth, any, `UNDECIDED`, or `REDRAW` where any must be drawn anew."""
    drawn = np.empty(words.size, dtype=np.int64)
    _respond_loop(words, 4 * words.itemsize, positions, values, top, drawn)
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


def choose(pieces: Pieces, positions: Positions, taken: Flags, values: int, size: int, packed: Bytes) -> int:
    """Draw subsets into `packed`, rows of zeros; return how many were finished."""
    return cast("int", _choose_loop(pieces, positions, taken, values, size, packed))
