"""The division of a line into ranges, or of a map into areas, with the most parts that are told.

The whole is cut in two, and each half again: among all ways to do that, dynamic programming over rectangles finds one
with the most told parts; between equally many, narrower intervals win. What is not told is joined to connected areas.
"""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.resolution.lattice import Lattice, Rectangle
from hubbub.resolution.pieces import Piece, add_up_to_one
from hubbub.resolution.rectangle_bounds import RectangleBounds


def lattice_pieces(lattice: Lattice, bounds: RectangleBounds, shown: Floats, relative: float) -> list[Piece]:
    """Return the told rectangles in the order of their cells, and the connected areas that are left."""
    from hubbub.resolution import compiled_rectangles as compiled

    rows, columns = lattice.rows, lattice.columns
    sums = np.zeros((rows + 1, columns + 1))
    sums[1:, 1:] = lattice.sums(shown).reshape(rows, columns).cumsum(axis=0).cumsum(axis=1)
    connected = np.ones(bounds.low.shape, dtype=np.bool_) if lattice.kept.all() else compiled.connected(lattice.kept)
    connected[0, rows, 0, columns] = False  # the whole is no part, although its share is known
    choices = compiled.divide(bounds.low, bounds.high, sums, connected, relative)
    told, left = [], []
    waiting: list[Rectangle] = [(0, rows, 0, columns)]
    while waiting:
        rectangle = top, bottom, first, last = waiting.pop()
        choice = int(choices[rectangle])
        if choice == compiled.TOLD:
            told.append(rectangle)
        elif choice == compiled.LEAF:
            left.append(rectangle)
        elif choice < rows:
            waiting += [(top, choice, first, last), (choice, bottom, first, last)]
        else:
            waiting += [(top, bottom, first, choice - rows), (top, bottom, choice - rows, last)]
    pieces = [
        Piece(lattice.values_in(lattice.cells_in(one)), float(bounds.low[one]), float(bounds.high[one])) for one in told
    ]
    pieces += _areas(lattice, left, bounds)
    pieces.sort(key=lambda piece: int(piece.positions[0]))
    return add_up_to_one(pieces) if bounds.consistent else pieces


def _areas(lattice: Lattice, rectangles: list[Rectangle], bounds: RectangleBounds) -> list[Piece]:
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
        high[touched] += bounds.high[rectangle]
        if touched.size == 1:
            low[touched] += bounds.low[rectangle]
    return [
        Piece(lattice.values_in(np.flatnonzero(areas.ravel() == area)), float(low[area]), min(1.0, float(high[area])))
        for area in range(1, count + 1)
    ]
