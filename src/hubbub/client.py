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

import hashlib
import json
import math
import os
import string
import sys
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

SHRINK = 1 - Fraction(1, 2**50)  # of epsilon, where ratios leave no room for rounding
GUARD = 192  # bits beyond those that the smallest probability of a table needs
BLOCK = 4096  # steps of noise on a line that one table holds
REACH = 60  # nats that one such table spans
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-12, 500.0  # exp(epsilon) is a number, and not 1
SMALLEST_RATE = 1e-7  # of endless noise, for one step
SMALLEST_STEP = 1e-30  # epsilon times a distance that whole numbers can still tell from none
MOST_NATS = 20_000.0  # exp(-20,000) takes 29,000 bits
MOST_BUCKETS = 2**31
NEEDS = {  # domains on which a mechanism is defined; all others take any
    "geometric": ("integers",),
    "truncated-geometric": ("integers",),
    "laplace": ("integers", "bins"),
    "planar-geometric": ("grid",),
    "planar-laplace": ("grid",),
}
TABLED = ("exponential", "matrix", "planar-laplace")  # and laplace over bins
EARTH_RADIUS_KM = 6371.0088


class ClientError(ValueError):
    """A study, table or value that cannot be used, told in five parts."""

    def __init__(self, what: str, *, where: str, got: object, expected: str, remedy: str) -> None:
        super().__init__(
            f"{what}\n  where:    {where}\n  got:      {got}\n  expected: {expected}\n  remedy:   {remedy}"
        )


@contextmanager
def _told(where: str, remedy: str) -> Iterator[None]:
    """Tell what a file lacks in five parts, whatever it is that was missed first."""
    try:
        yield
    except ClientError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        got = f"no {error}" if isinstance(error, KeyError) else f"{type(error).__name__}: {error}"
        raise ClientError(
            "the file cannot be used", where=where, got=got, expected="a whole file", remedy=remedy
        ) from None


# --- whole numbers for probabilities ---------------------------------------------------------------------------------


@cache
def _log_two(bits: int) -> int:
    """Return 2^bits log 2 rounded down, or up to two less: 2 atanh(1/3)."""
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


def second_flip(epsilon: Fraction, first: Fraction) -> tuple[int, int, int]:
    """Return width, `one` and `turned` of RAPPOR with memory.

    The permanent bit is flipped with probability one / 2^width, and each report turns it with turned / 2^width. A bit
    of one report is then wrong with probability turned (1 - 2 one) + one, both over 2^width: at least
    1 / (1 + e^(first/2)), so that one report is worth at most `first`, and any number at most `epsilon`.
    """
    width, one = flip(epsilon / 2)
    decay, kept = _decay_above(first / 2), Fraction(one, 1 << width)
    return width, one, _ceil((decay / (1 + decay) - kept) / (1 - 2 * kept) * (1 << width))


def left_out(values: int, size: int, epsilon: Fraction) -> tuple[int, int]:
    """Return width and `out`: that a subset of `size` leaves the true value out, rounded up, over 2^width."""
    width = wide(float(epsilon) + math.log(values))
    others = (values - size) * _decay_above(epsilon)
    return width, _ceil(others / (others + size) * (1 << width))


def rounded_exactly(epsilon: float, rounding: Callable[[Fraction], int]) -> int:
    """Return `rounding(e^-epsilon)`, a whole number that grows with its argument or falls with it, whatever `exp` says.

    An enclosure of e^-epsilon is narrowed until both of its ends round alike. That comes to an end: a power of e with a
    rational exponent other than 0 is never rational (Lindemann), so that it never lies on a border itself. A float
    `exp` decides such borders by its last bit, which differs between machines: their reports would not agree.
    """
    bits = 128
    while True:
        low, high, steps = exp_minus(Fraction(epsilon), bits)
        least, most = (rounding(Fraction(end, 1 << (bits + steps))) for end in (low, high))
        if least == most:
            return least
        bits *= 2


def default_size(values: int, epsilon: float) -> int:
    """Return the size of a subset where none is given: values / (e^epsilon + 1) rounded, at least 1."""
    return rounded_exactly(epsilon, lambda decay: max(1, math.floor(values * decay / (1 + decay) + Fraction(1, 2))))


def default_buckets(epsilon: float) -> int:
    """Return the number of buckets where none is given: e^epsilon rounded, and 1 more, as far as hashes go."""
    return rounded_exactly(epsilon, lambda decay: min(math.floor(1 / decay + Fraction(1, 2)) + 1, MOST_BUCKETS))


@dataclass(frozen=True)
class Noise:
    """Noise on whole numbers, the same to both sides: sum of the blocks' whole numbers over 2^width.

    It goes up with probability `side`, down with as much, and stays otherwise. What goes out goes 1 + r steps with
    probability `steps[r]`; with what these leave, `rest`, it goes a block of len(steps) further and draws again.
    """

    width: int
    side: int
    steps: tuple[int, ...]

    @cached_property
    def _sums(self) -> tuple[int, ...]:
        return tuple(accumulate(self.steps))

    @property
    def rest(self) -> int:
        """What the steps leave."""
        return (1 << self.width) - self._sums[-1]

    def probability(self, steps: int) -> Fraction:
        """Return the probability of going so many steps to one side."""
        if steps == 0:
            return 1 - Fraction(2 * self.side, 1 << self.width)
        blocks, step = divmod(steps - 1, len(self.steps))
        return Fraction(self.side * self.steps[step] * self.rest**blocks, 1 << (self.width * (blocks + 2)))

    def beyond(self, steps: int) -> Fraction:
        """Return the probability of going so many steps or more to one side, for at least one step."""
        blocks, step = divmod(steps - 1, len(self.steps))
        left = (1 << self.width) - (self._sums[step - 1] if step else 0)
        return Fraction(self.side * left * self.rest**blocks, 1 << (self.width * (blocks + 2)))

    def draw(self, most: int | None = None) -> int:
        """Draw once; a draw that has gone `most` steps need go no further."""
        word = bits(self.width)
        if word >= 2 * self.side:
            return 0
        gone, block = 0, len(self.steps)
        while (step := bisect_right(self._sums, bits(self.width))) == block and (most is None or gone < most):
            gone += block
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


def hypotenuse(across: Fraction, along: Fraction) -> Fraction:
    """Return the length of a displacement, within 2^-510 of itself, rounded down."""
    squared = across**2 + along**2
    if squared == 0:
        return Fraction(0)
    scale = 1 << (512 + max(0, squared.denominator.bit_length() - squared.numerator.bit_length()))
    return Fraction(math.isqrt(squared.numerator * scale * scale // squared.denominator), scale)


@cache
def accepted(epsilon: float, sides: tuple[float, float], columns: int, rows: int) -> Fraction:
    """Return with which probability a displacement drawn from both axes is taken: at most 1, over a power of two.

    It is exp(-epsilon' d) over the axes' probabilities, relative to no displacement, rounded down to 128 digits. The
    sum over the lattice need not be known: it is the same for all true values.
    """
    if columns == rows == 0:
        return Fraction(1)
    distance = hypotenuse(columns * Fraction(sides[0]), rows * Fraction(sides[1]))
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


def responded(position: int, values: int, width: int, keep: int) -> int:
    """Return the truth or any value. Both are drawn each time: how long it takes must not tell which one it was."""
    return (below(values), position)[bits(width) < keep]


def flips(values: int, position: int, width: int, own: int, other: int) -> list[bool]:
    """Draw a bit for each value: one with probability own / 2^width for the true value, other / 2^width for others."""
    return [bits(width) < (own if value == position else other) for value in range(values)]


def turn(row: Sequence[bool], width: int, turned: int) -> list[bool]:
    """Turn each bit of a row with probability turned / 2^width."""
    return [bit ^ (bits(width) < turned) for bit in row]


def subset(values: int, position: int, size: int, width: int, out: int) -> list[bool]:
    """Draw a subset that holds the true value or not, and is otherwise any."""
    chosen = [False] * values
    chosen[position] = bits(width) >= out
    others = [value for value in range(values) if value != position]
    for place in range(min(size, len(others))):  # as many draws with the true value as without it
        other = place + below(len(others) - place)
        others[place], others[other] = others[other], others[place]
    for other in others[: size - chosen[position]]:
        chosen[other] = True
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


# --- the study -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """The values of a study: their labels, where they lie on a line or map, and how one is found."""

    kind: str
    labels: list[Any]
    find: Callable[[Any], int | None]
    places: list[float] | None = None  # on a line
    columns: int = 0  # of a map, and so on
    rows: int = 0
    sides: tuple[float, float] = (0.0, 0.0)
    whole: bool = True  # whether all cells are kept

    def position(self, value: Any) -> int:
        """Return the place of a value among the labels."""
        try:
            found = self.find(value)
        except (TypeError, ValueError, OverflowError):
            found = None
        if found is None:
            raise ClientError(
                "the value is not in the study's domain",
                where="privatize(value)",
                got=f"a value of type {type(value).__name__}",  # an error may travel: it does not tell the value
                expected=f"one of {len(self.labels)} values ({self.labels[0]} ...), a number in a bin, or (lat, lon)",
                remedy="correct the value; what lies outside the study is not reported",
            )
        return found

    def nearest(self, column: int, row: int) -> int:
        """Return the position of the nearest cell that is kept; at equal distance the first."""
        if self.whole:
            return min(max(row, 0), self.rows - 1) * self.columns + min(max(column, 0), self.columns - 1)
        away = [
            math.hypot((cell % self.columns - column) * self.sides[0], (cell // self.columns - row) * self.sides[1])
            for cell in self.labels
        ]
        least = min(away) * (1 + 1e-9)
        return next(place for place, distance in enumerate(away) if distance <= least)


def _values(fields: Mapping[str, Any]) -> Values:
    kind = fields["kind"]
    if kind == "categories":
        labels = list(fields["labels"])
        texts = {str(label): place for place, label in enumerate(labels)}
        return Values(kind, labels, lambda value: texts.get(str(value)))
    if kind == "integers":
        whole = range(int(fields["low"]), int(fields["high"]) + 1)
        return Values(kind, list(whole), lambda value: whole.index(_whole(value)), [float(label) for label in whole])
    if kind == "bins":
        edges = [float(edge) for edge in fields["edges"]]

        def bin_of(value: Any) -> int | None:
            number = float(value)
            return min(bisect_right(edges, number), len(edges) - 1) - 1 if edges[0] <= number <= edges[-1] else None

        centres = [(left + right) / 2 for left, right in pairwise(edges)]
        return Values(kind, list(range(len(centres))), bin_of, centres)
    if kind == "grid":
        return _cells(fields)
    raise ClientError(
        "no such kind of domain",
        where="[domain], kind",
        got=repr(kind),
        expected="categories, integers, bins or grid",
        remedy="use the client of the study's version",
    )


def _whole(value: Any) -> int:
    if isinstance(value, bool) or float(value) != int(value):
        raise ValueError(value)
    return int(value)


def _cells(fields: Mapping[str, Any]) -> Values:
    columns, rows = int(fields["columns"]), int(fields["rows"])
    kept = sorted(set(fields["cells"])) if "cells" in fields else list(range(columns * rows))
    positions = {cell: place for place, cell in enumerate(kept)}
    if "south" not in fields:
        cell = fields.get("cell", 0.5)
        sides = (float(cell[0]), float(cell[1])) if isinstance(cell, list) else (float(cell), float(cell))
        return Values(
            "grid", kept, lambda value: positions.get(_whole(value)), None, columns, rows, sides, "cells" not in fields
        )
    south, west, north, east = (float(fields[side]) for side in ("south", "west", "north", "east"))
    degree = math.radians(EARTH_RADIUS_KM)
    width = (east - west) * degree * math.cos(math.radians((south + north) / 2))

    def cell_of(value: Any) -> int | None:
        if not isinstance(value, list | tuple):
            return positions.get(_whole(value))
        latitude, longitude = (float(part) for part in value)
        if not (south <= latitude <= north and west <= longitude <= east):
            return None
        column = min(int((longitude - west) / (east - west) * columns), columns - 1)
        return positions.get(min(int((latitude - south) / (north - south) * rows), rows - 1) * columns + column)

    sides = width / columns, (north - south) * degree / rows
    return Values("grid", kept, cell_of, None, columns, rows, sides, "cells" not in fields)


def _checked(values: Values, where: str) -> Values:
    """Refuse values that the library refuses as well: fewer than two, equal when written down, or off the map."""
    texts = {str(label) for label in values.labels}
    outside = values.kind == "grid" and not all(0 <= cell < values.columns * values.rows for cell in values.labels)
    if len(texts) < max(2, len(values.labels)) or outside:
        raise ClientError(
            "the study's values cannot be used",
            where=where,
            got=f"{len(values.labels)} values, {len(texts)} of them different",
            expected="cells of the grid" if outside else "two values or more, each once",
            remedy=REMEDY,
        )
    return values


def even_step(places: Sequence[float]) -> Fraction | None:
    """Return the step between places that are evenly spaced, None where they are not."""
    exact = [Fraction(place) for place in places]
    step = exact[1] - exact[0]
    return step if all(right - left == step for left, right in pairwise(exact)) else None


Draw = Callable[[int], str]


def _draw(fields: Mapping[str, Any], values: Values, table: Mapping[str, Any] | None, where: str) -> Draw:
    """Return what draws an output for the value at a position, as reports write it."""
    kind, count, labels = fields["kind"], len(values.labels), values.labels
    if values.kind not in NEEDS.get(kind, (values.kind,)):
        raise _refused(where, f"{kind} on {values.kind}", f"a domain of {' or '.join(NEEDS[kind])}")
    if kind == "cloaking":
        regions = fields["regions"]
        listed = [regions[str(label)] for label in labels] if isinstance(regions, Mapping) else list(regions)
        if len(listed) != count:
            raise _refused(where, f"{len(listed)} regions", f"one for each of {count} values")
        return lambda position: str(listed[position])
    if table is not None:
        return _from_table(table, values)
    step = even_step(values.places) if values.places is not None else None
    steps = values.sides if kind == "planar-geometric" else (float(step),) if kind == "laplace" and step else (1.0,)
    epsilon = 0.0 if kind in TABLED else _epsilon(fields, steps, where)
    exact = Fraction(epsilon)
    if kind == "randomized-response":
        width, keep = response(count, exact)
        return lambda position: str(labels[responded(position, count, width, keep)])
    if kind == "geometric":
        along = noise(exact * SHRINK)
        return lambda position: str(labels[position] + along.draw())
    if kind == "truncated-geometric" or (kind == "laplace" and step is not None):
        along = noise(exact * SHRINK) if kind != "laplace" else noise(exact * SHRINK * (step or 1), rounded=True)
        return lambda position: str(labels[min(max(position + along.draw(count), 0), count - 1)])
    if kind == "planar-geometric":
        return _on_map(values, lambda: planar(epsilon, values.sides), bool(fields.get("truncated", True)))
    if kind in ("rappor", "optimized-unary"):
        width, one = flip(exact / 2 if kind == "rappor" else exact)
        own = (1 << width) - one if kind == "rappor" else 1 << (width - 1)
        return lambda position: packed(flips(count, position, width, own, one))
    if kind == "longitudinal-rappor":
        width, one, turned = _stages(fields, where)
        return lambda position: packed(turn(flips(count, position, width, (1 << width) - one, one), width, turned))
    if kind == "subset-selection":
        size = _number(fields, "size", default_size(count, epsilon), (1, count - 1), where)
        return lambda position: packed(subset(count, position, size, *left_out(count, size, exact)))
    if kind == "local-hashing":
        buckets = _number(fields, "buckets", default_buckets(epsilon), (2, MOST_BUCKETS), where)
        return _hashed(buckets, *response(buckets, exact))
    raise ClientError(
        "this mechanism needs a file of tables" if kind in (*TABLED, "laplace") else "no such kind of mechanism",
        where=where,
        got=kind,
        expected="a file written by: hubbub privatize STUDY --export-tables FILE",
        remedy="pass it as Client(study, tables)",
    )


REMEDY = "correct the study file: hubbub audit STUDY tells what is wrong with it"


def _refused(where: str, got: object, expected: str) -> ClientError:
    """Return the error for an entry of the study that the library refuses as well."""
    return ClientError("the study's mechanism cannot be used", where=where, got=got, expected=expected, remedy=REMEDY)


def _number(fields: Mapping[str, Any], name: str, best: int, limits: tuple[int, int], where: str) -> int:
    """Return a whole number of the study within limits."""
    found = fields.get(name, best)
    if not isinstance(found, int) or isinstance(found, bool) or not limits[0] <= found <= limits[1]:
        raise _refused(f"{where}, {name}", repr(found), f"a whole number from {limits[0]} to {limits[1]}")
    return found


def _epsilon(fields: Mapping[str, Any], steps: Sequence[float], where: str, name: str = "epsilon") -> float:
    """Return the study's epsilon, or refuse one that the library refuses as well; `steps` are lengths of one step."""
    found = fields.get(name)
    number = float(found) if isinstance(found, int | float) and not isinstance(found, bool) else math.nan
    least = SMALLEST_RATE if fields["kind"] in ("geometric", "planar-geometric") else SMALLEST_STEP
    in_steps = least <= number * min(steps) and number * max(steps) <= MOST_NATS
    if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON or not in_steps:
        raise ClientError(
            f"no noise can be drawn with this {name}",
            where=f"{where}, {name}",
            got=repr(found),
            expected=f"a number from {SMALLEST_EPSILON:g} to {LARGEST_EPSILON:g}"
            + ("" if in_steps else f", and from {least:g} to {MOST_NATS:g} for one step"),
            remedy=REMEDY,
        )
    return number


def _stages(fields: Mapping[str, Any], where: str) -> tuple[int, int, int]:
    """Return the whole numbers of RAPPOR with memory."""
    epsilon, first = (_epsilon(fields, (1.0,), where, name) for name in ("epsilon", "first"))
    if first >= epsilon:
        raise _refused(f"{where}, first", f"first {first}, epsilon {epsilon}", "first below epsilon")
    return second_flip(Fraction(epsilon), Fraction(first))


def _on_map(values: Values, drawn: Callable[[], tuple[int, int]], truncated: bool) -> Draw:
    def draw(position: int) -> str:
        row, column = divmod(values.labels[position], values.columns)
        columns, rows = drawn()
        if truncated:
            return str(values.labels[values.nearest(column + columns, row + rows)])
        return f"{column + columns}:{row + rows}"

    return draw


def _hashed(buckets: int, width: int, keep: int) -> Draw:
    def draw(position: int) -> str:
        seed = bits(64)
        return f"{seed}:{responded(bucket_of(seed, position, buckets), buckets, width, keep)}"

    return draw


def _from_table(table: Mapping[str, Any], values: Values) -> Draw:
    width = table["width"]
    if table["kind"] == "rows":
        rows, outputs = table["rows"], table["outputs"]

        def of_row(position: int) -> str:
            sums = list(accumulate(int(weight, 16) for weight in rows[position]))
            return str(outputs[bisect_right(sums, bits(width))])

        return of_row
    quarter = [[int(mass, 16) for mass in column] for column in table["quarter"]]
    columns, rows = len(quarter) - 1, len(quarter[0]) - 1
    away = [(column, row) for column in range(-columns, columns + 1) for row in range(-rows, rows + 1)]
    sums = list(accumulate(quarter[abs(column)][abs(row)] for column, row in away))
    (first_column, first_row), (last_column, last_row) = table["window"]

    def moved(position: int) -> str:
        row, column = divmod(values.labels[position], values.columns)
        across, along = away[bisect_right(sums, bits(width))]
        column = min(max(column + across, first_column), last_column)
        row = min(max(row + along, first_row), last_row)
        return str(values.labels[values.nearest(column, row)])

    return moved


def packed(ones: Sequence[bool]) -> str:
    """Return bits as reports write them: eight to a byte, the first one highest, in hexadecimal digits.

    Without the 0x programs take some of them for numbers.
    """
    number = int("".join("1" if one else "0" for one in ones), 2) << (-len(ones) % 8)
    return "0x" + number.to_bytes(-(-len(ones) // 8), "big").hex()


# --- the client ------------------------------------------------------------------------------------------------------


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a file of tables, in hexadecimal: of all but the digest that it carries itself."""
    content = {name: part for name, part in document.items() if name != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Client:
    """Privatizes values by the mechanisms of a study.

    `tables` is the file that `hubbub privatize STUDY --export-tables FILE` writes, needed for some mechanisms only;
    `digest`, if given, is the one that the file must have.
    """

    def __init__(self, study: str | Path, tables: str | Path | None = None, *, digest: str | None = None) -> None:
        content = Path(study).read_bytes()
        with _told(str(study), REMEDY):
            document = tomllib.loads(content.decode("utf-8-sig"))
        if document.get("version") != 1:
            raise ClientError(
                "the study's version is not known",
                where=f"{study}, version",
                got=document.get("version"),
                expected="version = 1",
                remedy="use the client of the study's version",
            )
        self._study = str(study)
        with _told(f"{study}, [mechanisms]", REMEDY):
            self._mechanisms: dict[str, dict[str, Any]] = dict(document["mechanisms"])
        with _told(f"{study}, [domain]", REMEDY):
            self._values = _checked(_values(document["domain"]), f"{study}, [domain]")
        self._tables = {} if tables is None else _read_tables(Path(tables), hashlib.sha256(content).hexdigest(), digest)
        self._draws: dict[str, Draw] = {}

    def privatize(self, value: Any, mechanism: str | None = None) -> str:
        """Return one output for a value; the mechanism may be left out where the study has one.

        Every call is a report that spends epsilon anew, of RAPPOR with memory `first`: for several reports about one
        value keep what `permanent` returns, and send what `instantaneous` makes of it.
        """
        name = self._named(mechanism)
        if name not in self._draws:
            where = f"{self._study}, [mechanisms.{name}]"
            with _told(where, REMEDY):
                self._draws[name] = _draw(self._mechanisms[name], self._values, self._tables.get(name), where)
        return self._draws[name](self._values.position(value))

    def permanent(self, value: Any, mechanism: str | None = None) -> str:
        """Return the permanent response of RAPPOR with memory: to be kept here while the value stays the same."""
        width, one, _ = self._memory(mechanism)
        row = flips(len(self._values.labels), self._values.position(value), width, (1 << width) - one, one)
        return packed(row)

    def instantaneous(self, permanent: str, mechanism: str | None = None) -> str:
        """Return one report from a permanent response."""
        width, _, turned = self._memory(mechanism)
        count, digits = len(self._values.labels), permanent.removeprefix("0x")
        if len(digits) != 2 * -(-count // 8) or not set(digits) <= set(string.hexdigits):
            raise ClientError(
                "this is no permanent response",
                where="instantaneous(permanent)",
                got=f"a text of {len(permanent)} characters",  # which is as private as the value
                expected=f"0x and {2 * -(-count // 8)} hexadecimal digits",
                remedy="pass what permanent(value) returned for this study",
            )
        kept = f"{int(digits, 16):0{4 * len(digits)}b}"[:count]
        return packed(turn([bit == "1" for bit in kept], width, turned))

    def _memory(self, mechanism: str | None) -> tuple[int, int, int]:
        name = self._named(mechanism)
        fields, where = self._mechanisms[name], f"{self._study}, [mechanisms.{name}]"
        with _told(where, REMEDY):
            if fields["kind"] == "longitudinal-rappor":
                return _stages(fields, where)
        raise ClientError(
            "this mechanism has no memory",
            where=where,
            got=fields["kind"],
            expected="longitudinal-rappor",
            remedy="use privatize",
        )

    def _named(self, mechanism: str | None) -> str:
        name = mechanism or (next(iter(self._mechanisms)) if len(self._mechanisms) == 1 else "")
        if name not in self._mechanisms:
            raise ClientError(
                "no such mechanism",
                where="privatize(mechanism=)",
                got=repr(mechanism),
                expected=f"one of {', '.join(self._mechanisms)}",
                remedy="name a mechanism of the study",
            )
        return name


def _read_tables(path: Path, study: str, digest: str | None) -> dict[str, Any]:
    remedy = "write it again: hubbub privatize STUDY --export-tables FILE"
    content = path.read_bytes()
    with _told(str(path), remedy):
        document = json.loads(content)
        found = digest_of(document)
    if found != document.get("digest") or (digest is not None and found != digest) or document.get("study") != study:
        raise ClientError(
            "the file of tables is damaged, or belongs to another study",
            where=str(path),
            got=f"digest {found}, for the study file {document.get('study')}",
            expected=f"digest {digest or document.get('digest')}, for the study file {study}",
            remedy=remedy,
        )
    tables: dict[str, Any] = document["tables"]
    return tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one report as a JSON line: study file, mechanism, value (or latitude and longitude)."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m hubbub.client", description="Privatize one value on this device.")
    parser.add_argument("study", help="the study file")
    parser.add_argument("mechanism", help="a mechanism of the study")
    parser.add_argument("value", nargs="+", help="the value; for a map also latitude and longitude")
    parser.add_argument("--tables", help="the file that hubbub privatize STUDY --export-tables FILE writes")
    given = parser.parse_args(arguments)
    try:
        client = Client(given.study, given.tables)
        output = client.privatize(given.value[0] if len(given.value) == 1 else given.value, given.mechanism)
    except (ClientError, OSError) as error:
        sys.stderr.write(f"hubbub.client: {error}\n")
        return 1
    sys.stdout.write(json.dumps({"mechanism": given.mechanism, "output": output}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
