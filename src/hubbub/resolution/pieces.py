"""Pieces of a division: sets of values with bounds on their shares, which hold together and are shares of one whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hubbub.core.arrays import Floats, Positions

TIE = 1e-4  # what decides between divisions with equally many told parts counts beside their number


class Piece(NamedTuple):
    """The positions of some values, and the bounds on their joint share."""

    positions: Positions
    low: float
    high: float


def is_told(low: float, high: float, relative: float) -> bool:
    """Whether an interval is above 0, and half its width is at most `relative` of its middle."""
    return low > 0.0 and high - low <= relative * (high + low)


def shown_ends(piece: Piece, shown: Floats) -> tuple[float, float]:
    """Return the ends of the interval that is shown: of the bounds and the estimate together."""
    share = float(shown[piece.positions].sum())
    return min(piece.low, share), max(piece.high, share)


def add_up_to_one(pieces: Sequence[Piece]) -> list[Piece]:
    """Narrow the bounds: what one piece holds is what the others leave."""
    lowest, highest = sum(piece.low for piece in pieces), sum(piece.high for piece in pieces)
    if lowest > 1.0 or highest < 1.0:  # the bounds contradict each other: leave them as they are
        return list(pieces)
    return [
        piece._replace(
            low=max(piece.low, 1.0 - (highest - piece.high), 0.0), high=min(piece.high, 1.0 - (lowest - piece.low))
        )
        for piece in pieces
    ]
