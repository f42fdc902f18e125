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

if TYPE_CHECKING:
    from flint import arb

DIGITS = 17  # of the bounds that are told, rounded outward
FIRST, LAST = 320, 1 << 17  # bits of precision to begin with, and at most


@dataclass(frozen=True)
class Pair:
    """Two values (their positions) and an output: P(output | value) to P(output | other) is `above` to `below`.

    These are whole numbers that need not be in lowest terms: thousands of pairs of them are compared, and few are told.
    The distance is kept as its square, a fraction on lines and maps alike; 1 where epsilon is plain.
    """

    value: int
    other: int
    output: str
    above: int
    below: int
    squared: Fraction = Fraction(1)

    @property
    def ratio(self) -> Fraction | None:
        """The ratio, None where it is infinite."""
        return Fraction(self.above, self.below) if self.below else None


@dataclass(frozen=True)
class Worst:
    """The pair with the largest rate, bounds of that rate, and whether all rates are proven to be within the claim."""

    pair: Pair
    low: Decimal
    high: Decimal
    holds: bool


def squared_length(columns: int, rows: int, sides: tuple[float, float]) -> Fraction:
    """Return the square of the length of a displacement on a map."""
    return (columns * Fraction(sides[0])) ** 2 + (rows * Fraction(sides[1])) ** 2


def number(fraction: Fraction) -> arb:
    """Return an enclosure of a fraction at the present precision."""
    from flint import arb

    return arb(fraction.numerator) / arb(fraction.denominator)


def largest(pairs: Sequence[Pair]) -> Pair:
    """Return the pair with the largest ratio, of pairs at one distance."""
    found = pairs[0]
    for pair in pairs:
        if pair.above * found.below > found.above * pair.below:
            found = pair
    return found


def worst(pairs: Sequence[Pair], claim: float) -> Worst:
    """Return the pair with the largest rate, and compare all of them with the claim."""
    for pair in pairs:
        if pair.below == 0 or (pair.squared == 0 and pair.above > pair.below):
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
    best, top, high = pairs[0], Fraction(-1), Fraction(0)
    for pair in pairs:
        low, upper = _enclosed(pair)
        high = max(high, upper)
        if low > top:
            best, top = pair, low
    limit = None if claim == math.inf else Fraction(claim)
    if limit is not None and top <= limit < high:
        return None
    return Worst(best, outward(top, ROUND_FLOOR), outward(high, ROUND_CEILING), holds=limit is None or high <= limit)


def _enclosed(pair: Pair) -> tuple[Fraction, Fraction]:
    """Return bounds of log(ratio) / distance, at least 0: a pair the other way round has the opposite sign."""
    from flint import arb

    if pair.above <= pair.below:
        return Fraction(0), Fraction(0)
    rate = (arb(pair.above) / arb(pair.below)).log()
    if pair.squared != 1:
        rate /= number(pair.squared).sqrt()
    return max(Fraction(0), exact(rate.lower())), exact(rate.upper())


def exact(ball: arb) -> Fraction:
    """Return the midpoint of an enclosure."""
    digits, power = ball.man_exp()
    return Fraction(int(digits)) * Fraction(2) ** int(power)


def outward(bound: Fraction, rounding: str = ROUND_CEILING) -> Decimal:
    """Return a bound in decimal digits, rounded up unless told otherwise."""
    return Context(prec=DIGITS, rounding=rounding).divide(Decimal(bound.numerator), Decimal(bound.denominator))
