"""The loops of exact draws, compiled by Numba at the first call and cached on disk.

Import this module inside the functions that need it: Numba takes longer to load than all of hubbub. Each loop
decides by the first bits of a number whose further bits are not drawn yet, and returns `UNDECIDED` in the rare case
that these do not suffice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.core.compiling import compiled

if TYPE_CHECKING:
    from hubbub.sampling.bit_rows import ByteTable

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Places = NDArray[np.int16]
Pieces = NDArray[np.unsignedinteger[Any]]

UNDECIDED = -1
REDRAW = -2
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


def _fill(
    fresh: Pieces,
    positions: Positions,
    values: int,
    order: Bytes,
    places: Places,
    heads: Words,
    own: Pieces,
    packed: Bytes,
    column: int,
) -> tuple[int, int, bool, np.uint64]:
    """Draw rows of bits from pieces of 16 random bits, beginning with a column of the first row.

    Return how many rows were finished, and which column of the next one is to be drawn: the first, or the one for
    whose number all of the returned word was not enough (after the last, the value's own bit).
    """
    used, columns, none = 0, packed.shape[1], np.uint64(0)
    most, unused = own.size * (columns + 1), np.uint8(255 << (8 * columns - values) & 255)
    for user in range(positions.size):
        if used + most > fresh.size:  # no row can need more
            return user, column, False, none
        for byte in range(column, columns):
            place = np.int64(places[fresh[used]])
            used += 1
            if place < 0:
                word = np.uint64(fresh[used - 1])
                for _ in range(3):
                    word = (word << np.uint64(16)) | np.uint64(fresh[used])
                    used += 1
                place, high = np.int64(0), np.int64(heads.size)
                while place < high:
                    middle = (place + high) // np.int64(2)
                    if heads[middle] < word:
                        place = middle + np.int64(1)
                    else:
                        high = middle
                if place < heads.size and heads[place] == word:
                    return user, byte, True, word
            packed[user, byte] = order[place]
        mine, column = positions[user], 0
        lane = np.uint8(128 >> (mine & 7))
        packed[user, columns - 1] &= unused
        packed[user, mine >> 3] &= ~lane
        drawn = 0
        while drawn < own.size and fresh[used + drawn] == own[drawn]:
            drawn += 1
        if drawn == own.size:
            return user, columns, True, none
        if fresh[used + drawn] < own[drawn]:
            packed[user, mine >> 3] |= lane
        used += drawn + 1
    return positions.size, 0, False, none


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
_fill_loop = compiled(_fill, nogil=True)
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


def fill_rows(
    fresh: Pieces, positions: Positions, values: int, table: ByteTable, own: Pieces, packed: Bytes, column: int
) -> tuple[int, int, int | None]:
    """Draw rows of bits into `packed`, and return where it stopped: rows, column, and the word that was not enough."""
    rows, column, is_open, word = _fill_loop(
        fresh, positions, values, table.order, table.places, table.heads, own, packed, column
    )
    return rows, column, int(word) if is_open else None


def choose(pieces: Pieces, positions: Positions, taken: Flags, values: int, size: int, packed: Bytes) -> int:
    """Draw subsets into `packed`, rows of zeros; return how many were finished."""
    return cast("int", _choose_loop(pieces, positions, taken, values, size, packed))
