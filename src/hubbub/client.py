"""Privatize one value on a person's device: one file, the standard library alone.

    client = Client("study.toml")
    client.privatize(37, mechanism="strong")     # the output, as reports write it

All randomness is the operating system's. Every probability is a whole number over a power of two, and no float
takes part in a draw. The numbers are rounded so that the promise holds exactly: where ratios of probabilities leave no
room (noise on lines and maps), they are built for epsilon (1 - 2^-50); elsewhere the rounding goes to the safe side.
The library draws its arrays from the same numbers.

Some mechanisms need tables that take more than the standard library to compute (`TABLED`). The command
`hubbub privatize STUDY --export-tables FILE` writes them; `Client(study, tables)` checks that the file is whole and
was written for this study.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate

SHRINK = 1 - Fraction(1, 2**50)  # of epsilon, where ratios leave no room for rounding
GUARD = 192  # bits beyond those that the smallest probability of a table needs
BLOCK = 4096  # steps of noise on a line that one table holds
REACH = 60  # nats that one such table spans
TABLED = ("exponential", "matrix", "planar-laplace")  # and laplace over bins
EARTH_RADIUS_KM = 6371.0088


class ClientError(ValueError):
    """A study, table or value that cannot be used, told in five parts."""

    def __init__(self, what: str, *, where: str, got: object, expected: str, remedy: str) -> None:
        super().__init__(
            f"{what}\n  where:    {where}\n  got:      {got}\n  expected: {expected}\n  remedy:   {remedy}"
        )


# --- whole numbers for probabilities ---------------------------------------------------------------------------------


@cache
def _log_two(bits: int) -> int:
    """Return 2^bits log 2 rounded down, or one less: 2 atanh(1/3)."""
    extra = bits + 32
    power, total, odd = (2 << extra) // 3, 0, 1
    while power:
        total, power, odd = total + power // odd, power // 9, odd + 2
    return (total >> 32) - 1  # fewer than 2^20 terms, each short by less than 2


def exp_minus(x: Fraction, bits: int = 256) -> tuple[int, int, int]:
    """Return low, high and q with low <= 2^(bits + q) exp(-x) <= high, for x >= 0.

    high - low is at most 3, and low about 2^bits: the bounds are close whatever x is.
    """
    inner = bits + 64
    fine = inner + max(0, (x.numerator // x.denominator).bit_length())
    scaled = (x.numerator << fine) // x.denominator
    log_two = _log_two(fine)
    q = scaled // log_two
    y = (scaled - q * log_two) >> (fine - inner + 8)  # the rest over 2^8, short by less than 2^4 units
    total, term, n = 0, 1 << inner, 0
    while term:
        total += term if n % 2 == 0 else -term
        n += 1
        term = (term * y >> inner) // n
    for _ in range(8):
        total = total * total >> inner
    # Each of n terms is off by at most 2 units, y by 2^4; squaring doubles the relative error: 2^8 (2 n + 2^5) in all.
    error = (2 * n + 64) << 8
    return (total - error) >> 64, ((total + error) >> 64) + 1, q


def wide(nats: float) -> int:
    """Return a width in bits, a multiple of 64, for probabilities down to exp(-nats)."""
    return max(256, -(-math.ceil(nats * 1.4427 + GUARD) // 64) * 64)


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


def _decay_above(epsilon: Fraction) -> Fraction:
    """Return a close upper bound of exp(-epsilon)."""
    _, high, q = exp_minus(epsilon)
    return Fraction(high, 1 << (256 + q))


def response(values: int, epsilon: Fraction) -> tuple[int, int]:
    """Return width and `keep`: randomized response keeps the truth with keep / 2^width, otherwise takes any value.

    Each other value then has the probability 1 / (values - 1 + e^epsilon) rounded up, so that the ratio is at most
    e^epsilon.
    """
    width = wide(float(epsilon) + math.log(values))
    decay = _decay_above(epsilon)
    return width, (1 << width) - values * _ceil((decay / (1 + (values - 1) * decay)) * (1 << width))


def flip(epsilon: Fraction) -> tuple[int, int]:
    """Return width and `one`: 1 / (1 + e^epsilon) rounded up, over 2^width."""
    width = wide(float(epsilon))
    decay = _decay_above(epsilon)
    return width, _ceil(decay / (1 + decay) * (1 << width))


def left_out(values: int, size: int, epsilon: Fraction) -> tuple[int, int]:
    """Return width and `out`: that a subset of `size` leaves the true value out, rounded up, over 2^width."""
    width = wide(float(epsilon) + math.log(values))
    others = (values - size) * _decay_above(epsilon)
    return width, _ceil(others / (others + size) * (1 << width))


@dataclass(frozen=True)
class Noise:
    """Noise on whole numbers, the same to both sides: sum of the blocks' whole numbers over 2^width.

    It goes up with probability `side`, down with as much, and stays otherwise. What goes out goes 1 + r steps with
    probability `steps[r]`; with what these leave, `rest`, it goes a block of len(steps) further and draws again.
    """

    width: int
    side: int
    steps: tuple[int, ...]

    @property
    def rest(self) -> int:
        """What the steps leave."""
        return (1 << self.width) - sum(self.steps)

    def probability(self, steps: int) -> Fraction:
        """Return the probability of going so many steps to one side."""
        if steps == 0:
            return 1 - Fraction(2 * self.side, 1 << self.width)
        blocks, step = divmod(steps - 1, len(self.steps))
        return Fraction(self.side * self.steps[step] * self.rest**blocks, 1 << (self.width * (blocks + 2)))

    def beyond(self, steps: int) -> Fraction:
        """Return the probability of going so many steps or more to one side, for at least one step."""
        blocks, step = divmod(steps - 1, len(self.steps))
        left = (1 << self.width) - sum(self.steps[:step])
        return Fraction(self.side * left * self.rest**blocks, 1 << (self.width * (blocks + 2)))

    def draw(self, most: int | None = None) -> int:
        """Draw once; a draw that has gone `most` steps need go no further."""
        word = bits(self.width)
        if word >= 2 * self.side:
            return 0
        sums = list(accumulate(self.steps))
        gone = 0
        while (step := bisect_right(sums, bits(self.width))) == len(sums) and (most is None or gone < most):
            gone += len(sums)
        gone += step + 1
        return gone if word < self.side else -gone


@cache
def noise(rate: Fraction, rounded: bool = False) -> Noise:
    """Return two-sided geometric noise, P(j) ~ exp(-rate |j|); or Laplace noise `rounded` to whole numbers."""
    block = max(1, min(BLOCK, int(REACH / rate)))
    width = wide(float(rate) * block + abs(math.log(rate)))
    one = 1 << width

    def decay(x: Fraction) -> int:  # 2^width exp(-x), rounded down or one less
        low, _, q = exp_minus(x, width)
        return low >> q

    ratio = decay(rate)
    side = decay(rate / 2) // 2 if rounded else ratio * one // (one + ratio)
    powers = accumulate(range(1, block), lambda power, _: power * ratio >> width, initial=one)
    return Noise(width, side, tuple(power * (one - ratio) >> width for power in powers))


@cache
def axis(epsilon: float, side: float) -> Noise:
    """Return the noise along one axis from which planar geometric noise is taken by rejection.

    Its rate is a little below epsilon side / sqrt 2, so that no displacement is more likely than it should be.
    """
    return noise(Fraction(epsilon * side * math.sqrt(0.5) * (1 - 2.0**-40)))


@cache
def accepted(epsilon: float, sides: tuple[float, float], columns: int, rows: int) -> Fraction:
    """Return with which probability a displacement drawn from both axes is taken: at most 1, over a power of two.

    It is exp(-epsilon' d) over the axes' probabilities, relative to no displacement, rounded down to 128 digits. The
    sum over the lattice need not be known: it is the same for all true values.
    """
    if columns == rows == 0:
        return Fraction(1)
    squared = (columns * Fraction(sides[0])) ** 2 + (rows * Fraction(sides[1])) ** 2
    scale = 1 << (512 + 2 * max(0, squared.denominator.bit_length() - squared.numerator.bit_length()))
    distance = Fraction(math.isqrt(squared.numerator * scale * scale // squared.denominator), scale)
    low, _, q = exp_minus(Fraction(epsilon) * SHRINK * distance)
    chance = Fraction(low, 1 << (256 + q))
    for side, steps in zip(sides, (columns, rows), strict=True):
        along = axis(epsilon, side)
        chance *= along.probability(0) / along.probability(abs(steps))
    power = 128 + chance.denominator.bit_length() - chance.numerator.bit_length()
    chance = Fraction((chance.numerator << power) // chance.denominator, 1 << power)
    if chance > 1:  # cannot be: the axes' rates are too small for it
        raise ArithmeticError("a displacement would be drawn too rarely")
    return chance


# --- draws -----------------------------------------------------------------------------------------------------------


def bits(count: int) -> int:
    """Return a whole number of `count` random bits (a multiple of 8) from the operating system."""
    return int.from_bytes(os.urandom(count // 8), "little")


def below(bound: int) -> int:
    """Return a whole number from 0 to bound - 1, each as likely; bits that fit no multiple of the bound are redrawn."""
    count = 8 * (bound.bit_length() // 8 + 8)
    limit = (1 << count) // bound * bound
    while (drawn := bits(count)) >= limit:
        pass
    return drawn % bound


def coin(chance: Fraction) -> bool:
    """Return True with probability `chance`, a whole number over a power of two."""
    width = -(-chance.denominator.bit_length() // 64) * 64
    return bits(width) < chance * (1 << width)


def planar(epsilon: float, sides: tuple[float, float]) -> tuple[int, int]:
    """Draw planar geometric noise, in columns and rows of the infinite lattice."""
    while True:
        columns, rows = (axis(epsilon, side).draw() for side in sides)
        if coin(accepted(epsilon, sides, columns, rows)):
            return columns, rows


def pick(sums: Sequence[int], width: int) -> int:
    """Return a place in a table of running sums, the last of which is 2^width."""
    return bisect_right(sums, bits(width))


def subset(values: int, position: int, size: int, width: int, out: int) -> list[bool]:
    """Draw a subset that holds the true value or not, and is otherwise any."""
    chosen = [False] * values
    chosen[position] = bits(width) >= out
    others = [value for value in range(values) if value != position]
    for place in range(size - chosen[position]):
        other = place + below(len(others) - place)
        others[place], others[other] = others[other], others[place]
        chosen[others[place]] = True
    return chosen


def bucket_of(seed: int, position: int, buckets: int) -> int:
    """Return the bucket of a position under a seed: version 1 of the hash, which never changes."""
    word = _mix(_mix(seed + 0x9E3779B97F4A7C15) + (position + 1) * 0x9E3779B97F4A7C15)
    return ((word >> 32) * buckets) >> 32


def _mix(word: int) -> int:
    word %= 1 << 64
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % (1 << 64)
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % (1 << 64)
    return word ^ (word >> 31)
