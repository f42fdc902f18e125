"""Several populations side by side: each has a distribution of its own, and patterns that only it can send."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hubbub.channels.base import Channel
from hubbub.channels.rounding import RoundingBound
from hubbub.core.arrays import Floats, Positions, frozen


class StackedChannel(Channel):
    """A block-diagonal channel: values and patterns of its parts, one part after the other."""

    def __init__(self, parts: Sequence[Channel]) -> None:
        self.parts = tuple(parts)
        self.starts = tuple(np.cumsum([0, *(part.values for part in self.parts[:-1])]).tolist())
        self.values = sum(part.values for part in self.parts)
        self.patterns = sum(part.patterns for part in self.parts)
        self.log_scale = frozen(np.concatenate([part.log_scale for part in self.parts]))
        self._pattern_starts = np.cumsum([0, *(part.patterns for part in self.parts[:-1])])

    def split_values(self, numbers: Floats) -> list[Floats]:
        """Return the piece of each part, of numbers over the values."""
        return np.split(numbers, self.starts[1:], axis=-1)

    def split_patterns(self, numbers: Floats) -> list[Floats]:
        """Return the piece of each part, of numbers over the patterns."""
        return np.split(numbers, self._pattern_starts[1:], axis=-1)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return self._side_by_side(lambda part, piece: part.forward(piece), self.split_values(theta))

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return self._side_by_side(lambda part, piece: part.backward(piece), self.split_patterns(ratio))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return self._side_by_side(lambda part, piece: part.squares(piece), self.split_patterns(weights))

    def _side_by_side(self, product: Callable[[Channel, Floats], Floats], pieces: list[Floats]) -> Floats:
        return np.concatenate([product(part, own) for part, own in zip(self.parts, pieces, strict=True)], axis=-1)

    def rows(self, positions: Positions) -> Floats:
        """Return rows with zeros for the patterns of other parts."""
        rows = np.zeros((positions.size, self.patterns))
        which = np.searchsorted(self.starts, positions, side="right") - 1
        for place in np.unique(which):
            part, first = self.parts[place], int(self._pattern_starts[place])
            own = part.rows(positions[which == place] - self.starts[place])
            rows[which == place, first : first + part.patterns] = own
        return rows

    def part(self, positions: Positions) -> Channel:
        """Return some values of each part, which keeps its patterns."""
        own = np.split(positions, np.searchsorted(positions, self.starts[1:]))
        pieces = zip(self.parts, own, self.starts, strict=True)
        return StackedChannel([part.part(chosen - start) for part, chosen, start in pieces])

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:
        """Return the largest relative bound of a part, and each part's absolute one."""
        pieces = zip(self.parts, self.split_values(theta), self.split_patterns(fitted), strict=True)
        return _joined([(part.forward_rounding(own, seen), part.patterns) for part, own, seen in pieces])

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the largest relative bound of a part, and each part's absolute one."""
        pieces = zip(self.parts, self.split_patterns(ratio), strict=True)
        return _joined([(part.backward_rounding(own), part.values) for part, own in pieces])

    @property
    def entry_rounding(self) -> float:
        """The largest of all parts."""
        return max(part.entry_rounding for part in self.parts)


def _joined(bounds: Sequence[tuple[RoundingBound, int]]) -> RoundingBound:
    absolute = np.concatenate([np.broadcast_to(bound.absolute, size) for bound, size in bounds])
    return RoundingBound(max(bound.relative for bound, _ in bounds), absolute)
