"""Users' rows, one user after the other, merged to distinct patterns and counts."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.core.threads import processors
from hubbub.mechanisms.output_spaces import index_codes, unique_codes

MAX_WAITING_PATTERNS = 4_000_000


class Patterns:
    """How many users sent each set of items (with repetitions), items being numbers below `base`.

    Users may be added from several threads at once.
    """

    def __init__(self, base: int, *, tagged: bool = False) -> None:
        self._tagged = tagged  # does each user's last item say how they were sampled?
        self.singles = np.zeros(base, dtype=np.int64)
        self._base = base
        self._waiting: dict[int, list[Positions]] = {}  # by length: one row, or one number, for each user
        self._merged: dict[int, tuple[Positions, Positions]] = {}  # by length: distinct rows and their counts
        self._lock = Lock()

    def widen(self, base: int) -> None:
        """Make room for more items."""
        if base <= self._base:
            return
        for length in list(self._waiting):  # numbers are made of items by the base as it was
            self._merge(length)
        self._base = base
        self.singles = np.append(self.singles, np.zeros(self._base - self.singles.size, dtype=np.int64))

    def add(self, items: Positions, lengths: Positions) -> None:
        """Add users: `items` in order within each user, `lengths` of them for one user after the other."""
        starts = np.cumsum(lengths) - lengths
        for length in np.flatnonzero(np.bincount(lengths)).tolist():
            own = starts[lengths == length]
            if length == 1:
                counts = np.bincount(items[own], minlength=self._base)
                with self._lock:
                    self.singles += counts
                continue
            if self._is_number(length):
                rows = items[own]
                for place in range(1, length):
                    rows *= self._base
                    rows += items[own + place]
            else:
                rows = items[own[:, None] + np.arange(length)]
            with self._lock:
                self._waiting.setdefault(length, []).append(rows)
                if sum(map(len, self._waiting[length])) > MAX_WAITING_PATTERNS:
                    self._merge(length)

    def add_keys(self, bits: int, keys: Positions) -> None:
        """Add users whose rows are numbers in order: an item in the lowest `bits`, the user above.

        The numbers are used up.
        """
        if not keys.size:
            return
        new = np.empty(keys.size, dtype=bool)
        new[0] = True
        np.greater_equal(keys[1:] ^ keys[:-1], 1 << bits, out=new[1:])  # another user: the upper bits differ
        keys &= (1 << bits) - 1
        self.add(keys, np.diff(np.append(np.flatnonzero(new), keys.size)))

    def _merge(self, length: int) -> None:
        """Merge the users that wait."""
        waiting = self._waiting.pop(length, [])
        if not waiting:
            return
        rows = np.concatenate(waiting)
        if self._is_number(length):
            rows.sort()
            new = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
            self.add_patterns(self._split(rows[new], length), np.diff(np.append(new, rows.size)))
        else:
            distinct, back = index_codes(rows)
            self.add_patterns(distinct, np.bincount(back, minlength=len(distinct)))

    def _is_number(self, length: int) -> bool:
        """Whether `length` items fit into one number: numbers sort quickly."""
        return bool(self._base**length < 2**62) and not self._tagged

    def _split(self, keys: Positions, length: int) -> Positions:
        """Return the items that numbers were made of."""
        rows = np.empty((keys.size, length), dtype=np.int64)
        for place in range(length - 1, -1, -1):
            rest = keys // self._base
            rows[:, place] = keys - rest * self._base
            keys = rest
        return rows

    def add_patterns(self, rows: Positions, counts: Positions) -> None:
        """Add distinct patterns of one length, each with its items in order, and how many users sent each."""
        length = rows.shape[1]
        before = self._merged.get(length)
        if before is not None:
            rows, counts = np.concatenate([before[0], rows]), np.concatenate([before[1], counts])
            rows, counts = unique_codes(rows, counts, None)
        self._merged[length] = rows, counts

    def patterns(self) -> Iterator[tuple[Positions, Positions]]:
        """Yield patterns of two and more items with their counts, length by length."""
        with ThreadPoolExecutor(processors()) as pool:
            list(pool.map(self._merge, sorted(self._waiting)))
        for length in sorted(self._merged):
            yield self._merged[length]
