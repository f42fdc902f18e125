"""Exact ratios of output probabilities, and the epsilon that the largest of them implies.

The rate of a probability ratio r at distance d is log(r) / d. It is enclosed by interval arithmetic (Arb), whose
precision is doubled until the comparison with the claim is decided. No float decides it, and the loop always ends: for
a rational r above 1 and an algebraic number c above 0, r never equals exp(c) (Lindemann).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.core.errors import MechanismError

if TYPE_CHECKING:
    from flint import arb

BOUND_DIGITS = 17  # significant digits of the bounds, rounded outward
INITIAL_PRECISION_BITS = 320
MAX_PRECISION_BITS = 1 << 17


@dataclass(frozen=True)
class OutputRatio:
    """The ratio P(output | value) / P(output | other), for two values (as positions) and one output.

    Numerator and denominator are whole numbers that need not be in lowest terms: thousands of ratios are compared, and
    few are shown. The distance is kept as its square, which is a fraction on lines and maps alike; it is 1 where
    epsilon is plain.
    """

    value: int
    other: int
    output: str
    numerator: int
    denominator: int
    squared_distance: Fraction = Fraction(1)

    @property
    def ratio(self) -> Fraction | None:
        """The ratio, or None if it is infinite."""
        return Fraction(self.numerator, self.denominator) if self.denominator else None

    @classmethod
    def at_least_one(
        cls, value: int, other: int, output: str, first: int, second: int, squared_distance: Fraction = Fraction(1)
    ) -> OutputRatio:
        """Return the ratio of `first` to `second`, with the two values swapped if it would be below 1."""
        if first < second:
            value, other, first, second = other, value, second, first
        return cls(value, other, output, first, second, squared_distance)


@dataclass(frozen=True)
class EnclosedRate:
    """The ratio with the largest rate, bounds of that rate, and whether every rate is proven to be within the claim."""

    worst: OutputRatio
    low: Decimal
    high: Decimal
    holds: bool


def unproven(name: str, got: str, expected: str) -> MechanismError:
    """Return the error of a mechanism, by its class's name, whose epsilon cannot be proven."""
    return MechanismError(
        "the epsilon of this kind of law cannot be proven",
        where=f"audit({name})",
        got=got,
        expected=expected,
        remedy="the draws are tested all the same",
    )


def squared_length(columns: int, rows: int, sides: tuple[float, float]) -> Fraction:
    """Return the exact squared length of a displacement on a map."""
    return (columns * Fraction(sides[0])) ** 2 + (rows * Fraction(sides[1])) ** 2


def largest_ratio(ratios: Sequence[OutputRatio]) -> OutputRatio:
    """Return the largest of several ratios at one distance."""
    largest = ratios[0]
    for ratio in ratios:
        if ratio.numerator * largest.denominator > largest.numerator * ratio.denominator:
            largest = ratio
    return largest


def enclose_part(worst: OutputRatio, high: Decimal, whole: EnclosedRate, name: str, claim: float) -> EnclosedRate:
    """Return bounds over some of the ratios: the largest that was found, and a bound, given those over all of them."""
    rate = enclose_largest_rate([worst], claim)
    holds = whole.holds or (high.is_finite() and Fraction(high) <= Fraction(claim))
    if rate.holds and not holds:
        raise unproven(name, f"a bound of {high} over a ratio with {rate.high}", f"a bound of at most {claim!r}")
    return EnclosedRate(rate.worst, rate.low, high, holds)


def enclose_largest_rate(ratios: Sequence[OutputRatio], claim: float) -> EnclosedRate:
    """Return bounds of the largest rate, and whether every rate is within the claimed epsilon."""
    for ratio in ratios:
        if ratio.denominator == 0 or (ratio.squared_distance == 0 and ratio.numerator > ratio.denominator):
            return EnclosedRate(ratio, Decimal("inf"), Decimal("inf"), holds=claim == math.inf)
    from flint import ctx

    apart = [ratio for ratio in ratios if ratio.squared_distance > 0] or list(ratios)
    bits = INITIAL_PRECISION_BITS
    while bits <= MAX_PRECISION_BITS:
        with ctx.workprec(bits):
            enclosed = _enclose_at_precision(apart, claim)
        if enclosed is not None:
            return enclosed
        bits *= 2
    raise ArithmeticError("a ratio cannot be compared with its claim")  # impossible: the two are never equal


def _enclose_at_precision(ratios: Sequence[OutputRatio], claim: float) -> EnclosedRate | None:
    """Compare at the present precision; return None if it does not suffice."""
    worst, largest_low, largest_high = ratios[0], Fraction(-1), Fraction(0)
    for ratio in ratios:
        low, high = _rate_bounds(ratio)
        largest_high = max(largest_high, high)
        if low > largest_low:
            worst, largest_low = ratio, low
    limit = None if claim == math.inf else Fraction(claim)
    if limit is not None and largest_low <= limit < largest_high:
        return None
    holds = limit is None or largest_high <= limit
    return EnclosedRate(worst, to_decimal(largest_low, ROUND_FLOOR), to_decimal(largest_high, ROUND_CEILING), holds)


def _rate_bounds(ratio: OutputRatio) -> tuple[Fraction, Fraction]:
    """Return bounds of log(ratio) / distance; 0 for ratios below 1, since swapping the values changes the sign."""
    from flint import arb

    if ratio.numerator <= ratio.denominator:
        return Fraction(0), Fraction(0)
    rate = (arb(ratio.numerator) / arb(ratio.denominator)).log()
    if ratio.squared_distance != 1:
        rate /= to_arb(ratio.squared_distance).sqrt()
    return max(Fraction(0), midpoint(rate.lower())), midpoint(rate.upper())


def to_arb(fraction: Fraction) -> arb:
    """Return an enclosure of a fraction, at the present precision."""
    from flint import arb

    return arb(fraction.numerator) / arb(fraction.denominator)


def midpoint(ball: arb) -> Fraction:
    """Return the exact midpoint of an enclosure."""
    mantissa, exponent = ball.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def to_decimal(bound: Fraction, rounding: str) -> Decimal:
    """Return a bound in decimal digits, rounded up (ROUND_CEILING) or down (ROUND_FLOOR)."""
    return Context(prec=BOUND_DIGITS, rounding=rounding).divide(Decimal(bound.numerator), Decimal(bound.denominator))
