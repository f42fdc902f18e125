"""Epsilons of exact ratios, enclosed: no float decides whether a claim holds.

The rate of a ratio of probabilities r at distance d is log(r) / d. It is enclosed by interval arithmetic (Arb), at
a precision that is doubled until the question is decided. It always is: for a rational r above 1 and an algebraic
number c above 0, r is never equal to exp(c) (Lindemann).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.domains import Categories, Domain, Grid, LineDomain

if TYPE_CHECKING:
    from flint import arb

DIGITS = 17  # of the bounds that are told, rounded outward
FIRST, LAST = 320, 1 << 17  # bits of precision to begin with, and at most


@dataclass(frozen=True)
class Pair:
    """Two values and an output: the positions of `value` and `other`, P(output | value) over P(output | other).

    The distance is kept as its square, a fraction on lines and maps alike; 1 where epsilon is plain. A ratio of
    None is infinite.
    """

    value: int
    other: int
    output: str
    ratio: Fraction | None
    squared: Fraction = Fraction(1)


@dataclass(frozen=True)
class Worst:
    """The pair with the largest rate, bounds of that rate, and whether all rates are proven to be within the claim."""

    pair: Pair
    low: Decimal
    high: Decimal
    holds: bool


def squared_distance(domain: Domain, first: int, second: int) -> Fraction:
    """Return the square of the distance of two values, exactly."""
    if isinstance(domain, LineDomain):
        return (Fraction(float(domain.places[first])) - Fraction(float(domain.places[second]))) ** 2
    if isinstance(domain, Grid):
        across, along = (domain.steps[first] - domain.steps[second]).tolist()
        return squared_length(across, along, domain.sides)
    if isinstance(domain, Categories):
        return Fraction(int(first != second))
    import numpy as np

    return Fraction(float(domain.distances_between(np.array([first]), np.array([second]))[0, 0])) ** 2


def squared_length(columns: int, rows: int, sides: tuple[float, float]) -> Fraction:
    """Return the square of the length of a displacement on a map."""
    return (columns * Fraction(sides[0])) ** 2 + (rows * Fraction(sides[1])) ** 2


def number(fraction: Fraction) -> arb:
    """Return an enclosure of a fraction at the present precision."""
    from flint import arb

    return arb(fraction.numerator) / arb(fraction.denominator)


def worst(pairs: Sequence[Pair], claim: float) -> Worst:
    """Return the pair with the largest rate, and compare all of them with the claim."""
    for pair in pairs:
        if pair.ratio is None or (pair.squared == 0 and pair.ratio > 1):
            return Worst(pair, Decimal("inf"), Decimal("inf"), holds=claim == math.inf)
    from flint import ctx

    finite = [pair for pair in pairs if pair.squared > 0] or list(pairs)
    bits = FIRST
    while bits <= LAST:
        with ctx.workprec(bits):
            found = _try_worst(finite, claim)
        if found is not None:
            return found
        bits *= 2
    raise ArithmeticError("a ratio and its claim cannot be told apart")  # cannot be: they are never equal


def _try_worst(pairs: Sequence[Pair], claim: float) -> Worst | None:
    """Compare at the present precision; None where it does not suffice."""
    rates: dict[tuple[Fraction, Fraction], tuple[Fraction, Fraction]] = {}
    best, top, high = pairs[0], Fraction(-1), Fraction(0)
    for pair in pairs:
        assert pair.ratio is not None  # noqa: S101  # infinite ones were dealt with
        key = pair.ratio, pair.squared
        if key not in rates:
            rates[key] = _enclosed(pair.ratio, pair.squared)
        low, upper = rates[key]
        high = max(high, upper)
        if low > top:
            best, top = pair, low
    limit = None if claim == math.inf else Fraction(claim)
    if limit is not None and top <= limit < high:
        return None
    return Worst(best, outward(top, ROUND_FLOOR), outward(high, ROUND_CEILING), holds=limit is None or high <= limit)


def _enclosed(ratio: Fraction, squared: Fraction) -> tuple[Fraction, Fraction]:
    """Return bounds of log(ratio) / sqrt(squared), at least 0: a pair the other way round has the opposite sign."""
    if ratio <= 1:
        return Fraction(0), Fraction(0)
    rate = number(ratio).log()
    if squared != 1:
        rate /= number(squared).sqrt()
    return max(Fraction(0), exact(rate.lower())), exact(rate.upper())


def exact(ball: arb) -> Fraction:
    """Return the midpoint of an enclosure."""
    digits, power = ball.man_exp()
    return Fraction(int(digits)) * Fraction(2) ** int(power)


def outward(bound: Fraction, rounding: str = ROUND_CEILING) -> Decimal:
    """Return a bound in decimal digits, rounded up unless told otherwise."""
    return Context(prec=DIGITS, rounding=rounding).divide(Decimal(bound.numerator), Decimal(bound.denominator))
