"""The division of a line into ranges, or of a map into connected areas."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.intervals import SetShares
from hubbub.resolution.choice_simulation import CHOICE_CRITICAL, told_critical
from hubbub.resolution.lattice import Lattice, Rectangle
from hubbub.resolution.pieces import Piece, add_up_to_one
from hubbub.resolution.rectangle_bounds import ROUNDING, Criticals, RectangleSums
from hubbub.resolution.rectangle_cuts import cut, possible_parts

TOLD_PART = 0.8  # of the probability of an error that is spent on told parts; the others pay for all bounds at once


def lattice_pieces(
    lattice: Lattice, shares: SetShares, shown: Floats, relative: float, level: float, rng: np.random.Generator
) -> Generator[Progress, None, tuple[list[Piece], bool]]:
    """Return the told ranges or areas and what is left, in order, and whether all bounds agree with each other."""
    from hubbub.resolution import compiled_rectangles as compiled

    sums, possible = RectangleSums(lattice, shares.matrix, rng), possible_parts(lattice)
    centre, estimate = lattice.sums(shares.centre), lattice.sums(shown)
    other = sums.critical(1.0 - (1.0 - TOLD_PART) * (1.0 - level))
    told_level = 1.0 - TOLD_PART * (1.0 - level)
    choice = Criticals(CHOICE_CRITICAL * other, other)
    told = yield from told_critical(sums, estimate, possible, relative, choice, told_level)
    low, high = sums.bounds(centre, Criticals(other, other), relative)
    plain = low.copy(), high.copy()
    compiled.tighten(low, high)
    consistent = bool((low <= high + ROUNDING).all())
    if not consistent:
        low, high = plain
    rectangles, left = cut(
        *_narrowed(sums, centre, choice, relative, low, high), sums.corner_sums(estimate), possible, relative
    )
    low, high = _narrowed(sums, centre, Criticals(told, other), relative, low, high)
    pieces = [Piece(lattice.values_in(lattice.cells_in(one)), float(low[one]), float(high[one])) for one in rectangles]
    pieces += _areas(lattice, left, low, high)
    pieces.sort(key=lambda piece: int(piece.positions[0]))
    return add_up_to_one(pieces) if consistent else pieces, consistent


def _narrowed(
    sums: RectangleSums, centre: Floats, criticals: Criticals, relative: float, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Return the bounds narrowed by those of told sums."""
    low, high = low.copy(), high.copy()
    sums.narrow(centre, criticals, relative, low, high)
    return low, np.maximum(low, high)


def _areas(lattice: Lattice, rectangles: list[Rectangle], lows: Floats, highs: Floats) -> list[Piece]:
    """Return the connected areas that some rectangles form, with the sums of their bounds."""
    from scipy.ndimage import label

    uncovered = np.zeros((lattice.rows, lattice.columns), dtype=np.bool_)
    for top, bottom, first, last in rectangles:
        uncovered[top:bottom, first:last] = True
    areas, count = label(uncovered & lattice.kept)
    low, high = np.zeros(count + 1), np.zeros(count + 1)
    for rectangle in rectangles:
        top, bottom, first, last = rectangle
        touched = np.unique(areas[top:bottom, first:last])
        touched = touched[touched > 0]
        high[touched] += highs[rectangle]
        if touched.size == 1:
            low[touched] += lows[rectangle]
    return [
        Piece(lattice.values_in(np.flatnonzero(areas.ravel() == area)), float(low[area]), min(1.0, float(high[area])))
        for area in range(1, count + 1)
    ]
