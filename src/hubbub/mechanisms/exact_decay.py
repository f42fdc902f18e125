"""Exponentials of distances as whole numbers, for tables of exact probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from hubbub.client import exp_minus, hypotenuse
from hubbub.domains import Domain

DECAY_BITS = 256  # of each exponential


class DecayTable:
    """exp(-rate t) at increasing points t, each a whole number of 256 bits and a power of two."""

    def __init__(self, points: Sequence[Fraction], rate: Fraction) -> None:
        self._parts = [exp_minus(rate * (point - points[0]), DECAY_BITS) for point in points]

    def ratio(self, near: int, far: int, width: int) -> int:
        """Return 2^width exp(-rate (t_far - t_near)), rounded; `far` is not before `near`."""
        low, _, steps = self._parts[near]
        other, _, further = self._parts[far]
        return (other << width) // low >> (further - steps)


def decays_between(domain: Domain, rate: Fraction, width: int) -> Callable[[int], list[int]]:
    """Return a function from a position to 2^width exp(-rate d) over all values, each rounded down."""
    size, places, grid = len(domain), domain.places, domain.grid
    if places is not None:
        along = DecayTable([Fraction(place) for place in places.tolist()], rate)
        return lambda own: [along.ratio(min(own, other), max(own, other), width) for other in range(size)]
    if grid is not None:
        sides = Fraction(grid.width), Fraction(grid.height)
        by_displacement = {
            (column, row): _scaled(rate * hypotenuse(column * sides[0], row * sides[1]), width)
            for column in range(grid.columns)
            for row in range(grid.rows)
        }
        steps = grid.steps
        return lambda own: [by_displacement[column, row] for column, row in np.abs(steps - steps[own]).tolist()]
    if domain.is_equidistant:
        elsewhere = _scaled(rate, width)
        return lambda own: [1 << width if other == own else elsewhere for other in range(size)]

    def row(own: int) -> list[int]:
        distances = domain.distances_between(np.array([own]), np.arange(size))[0]
        return [_scaled(rate * Fraction(distance), width) for distance in distances.tolist()]

    return row


def _scaled(exponent: Fraction, width: int) -> int:
    low, _, steps = exp_minus(exponent, width)
    return low >> steps
