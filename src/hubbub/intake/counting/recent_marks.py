"""The watermarks of the rows that were read last, so that a rejected row can be told by more than its number."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.intake.sources.mark_types import MarkType

MAX_ROWS = 1 << 22  # whose marks are kept: 64 MiB
MIN_BATCHES = 4  # that are kept whatever their size: the one that is counted, those that are read ahead, and one more


class _Batch(NamedTuple):
    """The places of some rows, in ascending order, and the keys of their marks."""

    places: Positions
    keys: Positions
    type: MarkType


class RecentMarks:
    """The marks of the last few million rows.

    Most rows are rejected while their batch is counted. A user who is rejected as a whole may have sent rows long ago:
    of a larger run, those are told by their number alone.
    """

    def __init__(self) -> None:
        self._batches: deque[_Batch] = deque()

    def put(self, places: Positions, keys: Positions, kind: MarkType) -> None:
        """Keep the marks of some rows; batches that are older, and too many rows, are forgotten."""
        batches = deque([*self._batches, _Batch(places, keys, kind)])
        rows = sum(batch.places.size for batch in batches)
        while rows > MAX_ROWS and len(batches) > MIN_BATCHES:
            rows -= batches.popleft().places.size
        self._batches = batches  # in one step: another thread may be looking for a mark

    def text(self, place: int) -> str | None:
        """Return the mark of the row at a place; None if it has none, or is not kept."""
        for batch in self._batches:
            at = int(np.searchsorted(batch.places, place))
            if at < batch.places.size and batch.places[at] == place:
                return batch.type.text(int(batch.keys[at]))
        return None
