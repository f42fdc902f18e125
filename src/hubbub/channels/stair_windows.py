"""Intervals of a line: each pattern has one likelihood for the values in its interval, and a lower one for others.

An interval begins at the first value, ends at the last one, or is a window of one width. Sums are made without
subtracting, so that no digit is lost: running sums from either end, and those of `sliding_window`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.base import Channel, line_maxima, prefers_matrix
from hubbub.channels.bit_sets import SetChannel
from hubbub.channels.dense import DenseChannel
from hubbub.channels.sliding_window import sums_by_place, window_sums
from hubbub.core.arrays import Floats, Positions


class StairChannel(SetChannel):
    """The set of pattern i are the values from `starts[i]` to before `stops[i]`."""

    takes_rows = True

    def __init__(
        self,
        starts: Positions,
        stops: Positions,
        values: int,
        *,
        width: int,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(values, log_scale, low, among)
        self._starts, self._stops, self._width = starts, stops, width
        self._first = starts == 0
        self._last = (stops == values) & ~self._first
        self._inner = ~self._first & ~self._last  # of these all are of the one width
        self._most_alike = max(int(np.bincount(ends).max(initial=1)) for ends in (starts, stops))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        whole = self._kept(positions)[:, None]
        chosen: Floats = np.where((self._starts <= whole) & (whole < self._stops), 1.0, self._low)
        return chosen

    def merged(self) -> tuple[Channel, Positions] | None:
        """Make one of all patterns with the same interval: far outside, they come again with each step of the stair."""
        ends, places = np.unique(self._starts * (self._whole + 1) + self._stops, return_inverse=True)
        if ends.size == self.patterns:
            return None
        starts, stops = np.divmod(ends, self._whole + 1)
        even = np.zeros(ends.size)
        fewer = StairChannel(
            starts, stops, self._whole, width=self._width, low=self._low, log_scale=even, among=self._among
        )
        return DenseChannel(fewer.dense(), even) if prefers_matrix(fewer.entries) else fewer, places

    def members(self, weights: Floats) -> Floats:
        """Return for each pattern the total weight of the values in its interval."""
        full = self._over_all(weights)
        sums = np.empty((*full.shape[:-1], self.patterns))
        sums[..., self._first] = np.cumsum(full, axis=-1)[..., self._stops[self._first] - 1]
        sums[..., self._last] = _sums_onwards(full)[..., self._starts[self._last]]
        if self._inner.any():
            windows = window_sums(full, self._width, before=0, count=self._whole)
            sums[..., self._inner] = windows[..., self._starts[self._inner]]
        return sums

    def holders(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns whose interval holds it."""
        size = self._whole

        def sent(ends: Positions, which: NDArray[np.bool_]) -> Floats:
            return sums_by_place(ends[which], weights[..., which], size)

        sums = _sums_onwards(sent(self._stops - 1, self._first))
        sums = sums + np.cumsum(sent(self._starts, self._last), axis=-1)
        if self._inner.any():
            sums += window_sums(sent(self._starts, self._inner), self._width, before=self._width - 1, count=size)
        return sums if self._among is None else sums[..., self._among]

    @property
    def member_additions(self) -> float:
        """Through all values, at most."""
        return float(self._whole)

    @property
    def holder_additions(self) -> float:
        """The same, those of the patterns with one end, and the three kinds of intervals."""
        return self._whole + self._most_alike + 2.0

    @property
    def local(self) -> bool:
        """Neighbouring values have similar likelihoods."""
        return True

    def local_maxima(self, scores: Floats) -> Positions:
        """Return the values whose score neither neighbour exceeds."""
        return line_maxima(scores)


def _sums_onwards(numbers: Floats) -> Floats:
    """Return the sum of each number and of all after it."""
    return np.cumsum(numbers[..., ::-1], axis=-1)[..., ::-1]
