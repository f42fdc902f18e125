"""Exponentials of distances as whole numbers, for tables of exact probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from hubbub.client import exp_minus, hypotenuse
from hubbub.domains import Categories, Domain, Grid, LineDomain

DECAY_BITS = 256  # of each number


class DecayTable:
    """exp(-rate t) at increasing points t, each a whole number of 256 bits and a power of two."""

    def __init__(self, points: Sequence[Fraction], rate: Fraction) -> None:
        self._parts = [exp_minus(rate * (point - points[0]), DECAY_BITS) for point in points]

    def ratio(self, near: int, far: int, width: int) -> int:
        """Return 2^width exp(-rate (t_far - t_near)), rounded; `far` is not before `near`."""
        low, _, steps = self._parts[near]
        other, _, further = self._parts[far]
        return (other << width) // low >> (further - steps)


def exact_distance(domain: Domain, first: int, second: int) -> Fraction:
    """Return the distance of two values: exact on lines, within 2^-512 of itself on maps, rounded down."""
    if isinstance(domain, LineDomain):
        return abs(Fraction(float(domain.places[first])) - Fraction(float(domain.places[second])))
    if isinstance(domain, Grid):
        away = np.abs(domain.steps[first] - domain.steps[second]).tolist()
        return hypotenuse(away[0] * Fraction(domain.width), away[1] * Fraction(domain.height))
    return Fraction(float(domain.distances_between(np.array([first]), np.array([second]))[0, 0]))


def nearest_distance(domain: Domain) -> float:
    """Return a lower bound of the distance of two different values."""
    if isinstance(domain, LineDomain):
        return float(np.diff(domain.places).min())
    if isinstance(domain, Grid):
        return min(domain.sides)
    if isinstance(domain, Categories):
        return 1.0
    every = np.arange(len(domain))
    between = domain.distances_between(every, every)
    return float(between[between > 0].min(initial=math.inf))


def decays_between(domain: Domain, rate: Fraction, width: int) -> Callable[[int], list[int]]:
    """Return a function from a position to 2^width exp(-rate d) over all values, each rounded down."""
    size = len(domain)
    if isinstance(domain, LineDomain):
        along = DecayTable([Fraction(place) for place in domain.places.tolist()], rate)
        return lambda own: [along.ratio(min(own, other), max(own, other), width) for other in range(size)]
    if isinstance(domain, Grid):
        sides = Fraction(domain.width), Fraction(domain.height)
        away = {
            (column, row): _scaled(rate * hypotenuse(column * sides[0], row * sides[1]), width)
            for column in range(domain.columns)
            for row in range(domain.rows)
        }
        steps = domain.steps
        return lambda own: [away[column, row] for column, row in np.abs(steps - steps[own]).tolist()]
    if isinstance(domain, Categories):
        apart = _scaled(rate, width)
        return lambda own: [1 << width if other == own else apart for other in range(size)]

    def row(own: int) -> list[int]:
        return [_scaled(rate * exact_distance(domain, own, other), width) for other in range(size)]

    return row


def _scaled(exponent: Fraction, width: int) -> int:
    low, _, steps = exp_minus(exponent, width)
    return low >> steps
