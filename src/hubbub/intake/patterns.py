"""Users' rows, one user after the other, merged to distinct patterns and counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hubbub.arrays import Positions
from hubbub.mechanisms.outputs import index_codes

MERGE = 4_000_000  # patterns that wait to be merged


class Patterns:
    """How many users sent each set of items (with repetitions), items being numbers below `base`."""

    def __init__(self, base: int) -> None:
        self.singles = np.zeros(base, dtype=np.int64)
        self._base = base
        self._waiting: dict[int, list[Positions]] = {}  # by length: one row for each user, not merged yet
        self._merged: dict[int, tuple[Positions, Positions]] = {}  # by length: distinct rows and their counts

    def widen(self, base: int) -> None:
        """Make room for more items."""
        self._base = max(self._base, base)
        self.singles = np.append(self.singles, np.zeros(self._base - self.singles.size, dtype=np.int64))

    def add(self, items: Positions, lengths: Positions) -> None:
        """Add users: `items` in order within each user, `lengths` of them for one user after the other."""
        starts = np.cumsum(lengths) - lengths
        for length in np.flatnonzero(np.bincount(lengths)).tolist():
            own = starts[lengths == length]
            if length == 1:
                self.singles += np.bincount(items[own], minlength=self._base)
                continue
            rows = np.empty((own.size, length), dtype=np.int64)
            for place in range(length):
                rows[:, place] = items[own + place]
            self._waiting.setdefault(length, []).append(rows)
            if sum(map(len, self._waiting[length])) > MERGE:
                self._merge(length)

    def add_patterns(self, rows: Positions, counts: Positions) -> None:
        """Add patterns of one length, each with its items in order, and how many users sent each."""
        self._join(rows, counts)

    def _merge(self, length: int) -> None:
        """Merge the users that wait."""
        waiting = self._waiting.pop(length, [])
        if not waiting:
            return
        rows = np.concatenate(waiting)
        if self._base**length < 2**62:  # a row is one number, and numbers sort quickly
            powers = self._base ** np.arange(length - 1, -1, -1, dtype=np.int64)
            keys = np.sort(rows @ powers)
            new = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
            self._join(keys[new][:, None] // powers % self._base, np.diff(np.append(new, keys.size)))
        else:
            distinct, back = index_codes(rows)
            self._join(distinct, np.bincount(back, minlength=len(distinct)))

    def _join(self, rows: Positions, counts: Positions) -> None:
        """Add distinct rows to those that were merged before."""
        length = rows.shape[1]
        before = self._merged.get(length)
        if before is not None:
            rows, back = index_codes(np.concatenate([before[0], rows]))
            both = np.concatenate([before[1], counts])
            counts = np.zeros(len(rows), dtype=np.int64)
            np.add.at(counts, back, both)
        self._merged[length] = rows, counts

    def patterns(self) -> Iterator[tuple[Positions, Positions]]:
        """Yield patterns of two and more items with their counts, length by length."""
        for length in list(self._waiting):
            self._merge(length)
        for length in sorted(self._merged):
            yield self._merged[length]
