"""The division of a lattice into rectangles with the most parts that are told.

The whole is cut in two, and each half again: among all ways to do that, dynamic programming over rectangles finds one
with the most told parts; between equally many, the one that leaves fewer pieces and fewer cells wins. To prefer narrow
intervals picks parts whose estimates are too high by accident: with nothing else changed, all parts held in 85% of 150
studies of five spikes on a line, instead of 98% of 250.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.resolution.lattice import Lattice, Rectangle


def possible_parts(lattice: Lattice) -> NDArray[np.bool_]:
    """Return which rectangles may be parts: those whose cells are connected, but not the whole."""
    from hubbub.resolution import compiled_rectangles as compiled

    rows, columns = lattice.rows, lattice.columns
    shape = (rows + 1, rows + 1, columns + 1, columns + 1)
    possible = np.ones(shape, dtype=np.bool_) if lattice.kept.all() else compiled.connected(lattice.kept)
    possible[0, rows, 0, columns] = False  # its share is known
    return np.asarray(possible)


def cut(
    low: Floats, high: Floats, shown: Floats, possible: NDArray[np.bool_], relative: float
) -> tuple[list[Rectangle], list[Rectangle]]:
    """Return the rectangles that are told, and those that are left; `shown` are sums of the estimate at corners."""
    from hubbub.resolution import compiled_rectangles as compiled

    choices = compiled.divide(low, high, shown, possible, relative)
    rows, columns = low.shape[0] - 1, low.shape[2] - 1
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
    return told, left
