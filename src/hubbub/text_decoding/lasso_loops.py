"""The loop of LASSO, compiled by Numba at the first call; import it inside the function that needs it."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.compiling import compiled


@compiled
def descend(gram: Floats, products: Floats, start: Floats, penalty: float, tolerance: float, rounds: int) -> Floats:
    """Minimise b' gram b / 2 - products' b + penalty sum b over b >= 0, one coefficient after the other.

    All coefficients once, then those that are not 0 until they stay, and again, until all of them stay.
    """
    size = start.size
    slope = products - gram @ start  # what is left of the products
    for _ in range(rounds):
        moved = 0.0
        for every in (True, False):
            for _inner in range(rounds):
                largest = 0.0
                for place in range(size):
                    old, curvature = start[place], gram[place, place]
                    if curvature <= 0.0 or (not every and old == 0.0):
                        continue
                    new = max(0.0, old + (slope[place] - penalty) / curvature)
                    change = new - old
                    if change != 0.0:
                        start[place] = new
                        slope -= change * gram[place]
                        largest = max(largest, curvature * change * change)
                if every:
                    moved = largest
                if every or largest <= tolerance:
                    break
        if moved <= tolerance:
            break
    return np.maximum(start, 0.0)
