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
import numbers
import os
import re
import stat
import string
import sys
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from reprlib import Repr
from typing import Any

SHRINK = 1 - Fraction(1, 2**50)  # of epsilon, where ratios leave no room for rounding
GUARD = 192  # bits beyond those that the smallest probability of a table needs
BLOCK = 4096  # steps of noise on a line that one table holds
REACH = 60  # nats that one such table spans

# What the library refuses as well: it imports these.
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-12, 500.0  # exp(epsilon) is a number, and not 1
SMALLEST_RATE = 1e-7  # of endless noise, for one step
SMALLEST_STEP = 1e-30  # epsilon times a distance that whole numbers can still tell from none
SHORTEST, LONGEST = 1e-100, 1e100  # sides of cells, and distances of edges from 0: sums and products stay floats
MAX_NATS = 20_000.0  # exp(-20,000) takes 29,000 bits
MAX_WIDTH = 1 << 17  # bits of a probability: enough for that, and for cells beyond the corners of a map
MAX_BUCKETS = 2**31
MAX_VALUES = 100_000_000
MAX_PLACE = 2**53  # whole numbers that floats hold exactly
MAX_INTEGER = 2**62
MAX_INTEGER_BITS = 2048  # which Python still writes down, whatever limit it is given
MAX_TABLE_CELLS = 1 << 25  # of a table of exact probabilities: 256 MiB
MAX_INTEGRALS = 40_000  # of planar Laplace noise, some milliseconds each
MAX_REMAPPED_CELLS = 50_000_000  # lattice cells whose nearest cell is looked up, for grids with missing cells
NEGLIGIBLE_NATS = 45.0  # exp(-45) is below 3e-20: what lies so far beyond does not count
MAX_STUDY_BYTES = 1 << 25
MAX_TABLES_BYTES = 1 << 32
VERSION = 1
LIMITS = ("max_epsilon_per_user", "max_epsilon_per_unit")

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # of a mechanism
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")  # as texts hold it
WHOLE_FLOAT = re.compile(r"[+-]?[0-9]{1,19}\.0")  # as floats are written
NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")  # never tries twice
LOGIN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,30}:/+[^\s/@:]*):[^\n]*@")  # and password, in an address
EARTH_RADIUS_KM = 6371.0088
TIE = 1e-9  # relative difference below which two distances are the same

DOMAINS = ("categories", "integers", "bins", "grid")
MECHANISMS = {  # and the domains on which they are defined
    "cloaking": DOMAINS,
    "exponential": DOMAINS,
    "geometric": ("integers",),
    "laplace": ("integers", "bins"),
    "local-hashing": DOMAINS,
    "longitudinal-rappor": DOMAINS,
    "matrix": DOMAINS,
    "optimized-unary": DOMAINS,
    "planar-geometric": ("grid",),
    "planar-laplace": ("grid",),
    "randomized-response": DOMAINS,
    "rappor": DOMAINS,
    "subset-selection": DOMAINS,
    "truncated-geometric": ("integers",),
}
TABLED = ("exponential", "matrix", "planar-laplace")  # and laplace over uneven bins
REMEDY = "correct the study file: hubbub audit STUDY tells what is wrong with it"
TABLES_REMEDY = "write it again: hubbub privatize STUDY --export-tables FILE"


class ClientError(ValueError):
    """A study, table or value that cannot be used, told in five parts."""

    def __init__(self, what: str, *, where: str, got: object, expected: str, remedy: str) -> None:
        # A path may be an address that was given by mistake: no message shows its password.
        where, got = (LOGIN.sub(r"\1:***@", str(part)) for part in (where, got))
        self.what, self.where, self.got, self.expected, self.remedy = what, where, got, expected, remedy
        super().__init__(
            f"{what}\n  where:    {where}\n  got:      {got}\n  expected: {expected}\n  remedy:   {remedy}"
        )


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
    return rounded_exactly(epsilon, lambda decay: min(math.floor(1 / decay + Fraction(1, 2)) + 1, MAX_BUCKETS))


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


# --- numbers and files -----------------------------------------------------------------------------------------------


def as_real(value: Any) -> float:
    """Return a number as a float: nan for what is no number (texts and truth values are none), inf if too large."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        return float(value) if number else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_whole(value: Any) -> int | None:
    """Return a whole number, which may be written as 5.0; None for what is none (truth values are none)."""
    number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if number or as_real(value).is_integer() else None


_BRIEF = Repr()
_BRIEF.maxlist = _BRIEF.maxdict = _BRIEF.maxtuple = 9
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 80


def shorten(value: object, limit: int = 60) -> str:
    """Return what `repr` says, on one line of at most `limit` characters; a long list is not written out for that."""
    text = " ".join(_BRIEF.repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def read_file(path: str | Path, limit: int, name: str, form: str, remedy: str) -> bytes:
    """Return the content of a file of at most `limit` bytes; `name`, `form` and `remedy` are for messages."""
    where = str(path)
    try:
        status = Path(path).stat()
    except (OSError, TypeError, ValueError):  # nothing there, no path at all, or one with a NUL in it
        status = None
    if status is None or not stat.S_ISREG(status.st_mode):
        kind = "nothing at that path" if status is None else "a folder" if stat.S_ISDIR(status.st_mode) else "a device"
        raise ClientError(
            f"there is no such {name}",
            where=where,
            got=kind,
            expected=f"a {form} file",
            remedy=f"check the path, or {remedy}",
        )
    if status.st_size > limit:
        raise ClientError(
            f"the {name} is too large",
            where=where,
            got=f"{status.st_size:,} bytes",
            expected=f"at most {limit:,} bytes",
            remedy="check the path",
        )
    try:
        with Path(path).open("rb") as file:
            return file.read(status.st_size)
    except (OSError, MemoryError) as error:
        raise _unreadable(name, where, str(error) or "more than fits into memory", form) from None


def _unreadable(name: str, where: str, got: str, form: str) -> ClientError:
    return ClientError(
        f"the {name} cannot be read",
        where=where,
        got=got,
        expected=f"a text file in UTF-8: {form}",
        remedy="check the path and the encoding",
    )


def study_bytes(path: str | Path) -> bytes:
    """Return the content of a study file."""
    return read_file(path, MAX_STUDY_BYTES, "study file", "TOML", "write one with: hubbub new integers -o study.toml")


_KEY_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?m)(?:^|[\[{{,])[ \t]*+(?:{_KEY_PART}[ \t]*+\.[ \t]*+){{20}}")


def study_text(content: bytes, where: str) -> str:
    """Return the text of a study file."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable("study file", where, str(error), "TOML") from None


def study_document(text: str, where: str) -> dict[str, Any]:
    """Return what a study file says; refuse what is no TOML, is nested too deeply, or has endless numbers."""
    try:
        if _LONG_KEY.search(text):  # on which the parser would take forever
            raise RecursionError
        document = tomllib.loads(text)
    except RecursionError:
        raise ClientError(
            "the study file is nested too deeply",
            where=where,
            got="lists in lists, or tables in tables",
            expected="[domain] and [mechanisms.NAME]",
            remedy="check the path; `hubbub new` writes a commented example",
        ) from None
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"\(at line (\d+)", str(error))
        raise ClientError(
            "the study file is not valid TOML",
            where=f"{where}, line {line[1]}" if line else where,
            got=str(error),
            expected="TOML",
            remedy="correct the line that is named; texts need quotes",
        ) from None
    except ValueError:  # Python refuses to read thousands of digits
        raise _too_many_digits(text, where) from None
    waiting: list[Any] = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict | list):
            waiting.extend(part.values() if isinstance(part, dict) else part)
        elif isinstance(part, int) and part.bit_length() > MAX_INTEGER_BITS:  # hexadecimal digits have no limit
            raise _too_many_digits(text, where)
    return document


def _too_many_digits(text: str, where: str) -> ClientError:
    digits = re.search("[0-9A-Fa-f_]{500}", text)
    return ClientError(
        "a number in the study file has too many digits",
        where=f"{where}, line {text.count(chr(10), 0, digits.start()) + 1}" if digits else where,
        got="a whole number of more than 500 digits",
        expected="numbers that a study can use",
        remedy="correct the number; a label of many digits needs quotes",
    )


# --- the study -------------------------------------------------------------------------------------------------------


_TYPES = {str: "text", int: "whole number", bool: "truth value: true or false", list: "list"}


class _Table:
    """A table of the study. Entries are taken one by one; whatever is missing, unfit or left over is refused."""

    def __init__(self, fields: object, where: str) -> None:
        if not isinstance(fields, dict):
            raise _refused(where, "nothing" if fields is None else shorten(fields), "a table")
        self.where = where
        self._left = dict(fields)
        self._known: dict[str, None] = {}  # the names asked for, in order

    def refused(self, name: str, value: object, expected: str) -> ClientError:
        return _refused(f"{self.where}, {name}", shorten(value), expected)

    def has(self, *names: str) -> bool:
        self._known.update(dict.fromkeys(names))
        return any(name in self._left for name in names)

    def take(self, name: str) -> Any:
        if not self.has(name):
            raise _refused(self.where, f"no {name!r}", f"{name} = ...")
        return self._left.pop(name)

    def close(self) -> None:
        """Refuse entries that nobody asked for: they would be ignored."""
        if self._left:
            got = f"an entry {shorten(next(iter(self._left)))}"
            raise _refused(self.where, got, f"the entries {', '.join(self._known)}")

    def kind(self, kinds: Sequence[str]) -> str:
        kind = self.take("kind")
        if not isinstance(kind, str) or kind not in kinds:
            raise _refused(f"{self.where}, kind", shorten(kind), ", ".join(kinds), "no such kind")
        return kind

    def whole(self, name: str, low: int, high: int) -> int:
        number = as_whole(value := self.take(name))
        if number is None or not low <= number <= high:
            raise self.refused(name, value, f"a whole number from {low} to {high}")
        return number

    def real(self, name: str, low: float, high: float) -> float:
        number = as_real(value := self.take(name))
        if not low <= number <= high:
            raise self.refused(name, value, f"a number from {low:g} to {high:g}")
        return number

    def typed(self, name: str, kind: type) -> Any:
        value = self.take(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.refused(name, value, f"a {_TYPES[kind]}")
        return value

    def labels(self, name: str, kinds: tuple[type, ...] = (str, int)) -> list[Any]:
        """Take a list of labels; those that files could not tell apart are refused."""
        labels: list[Any] = self.typed(name, list)
        if not all(is_label(label, kinds) for label in labels):
            raise self.refused(name, labels, "texts that are not empty, or numbers")
        if min(len(set(labels)), len({str(label) for label in labels})) < len(labels):  # 1 and 1.0; 1 and "1"
            raise self.refused(name, labels, "labels that differ when written down, each once")
        return labels


def is_label(label: object, kinds: tuple[type, ...] = (str, int)) -> bool:
    """Whether something can label a value, region or output: a text that is not empty, or a number."""
    return isinstance(label, kinds) and not isinstance(label, bool) and label != "" and label == label


def _refused(where: str, got: str, expected: str, what: str = "the study cannot be used") -> ClientError:
    """Return the error for something in the study that the library refuses as well."""
    return ClientError(what, where=where, got=got, expected=expected, remedy=REMEDY)


@dataclass(frozen=True)
class Values:
    """The values of a study: their labels, where they lie on a line or map, and how one is found."""

    kind: str
    labels: Sequence[Any]
    find: Callable[[Any], int | None]
    step: Fraction | None = None  # between neighbours on a line, where they are evenly spaced
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
                expected=f"one of {len(self.labels)} values ({shorten(self.labels[0])} ...), a number in a bin, or "
                "(lat, lon)",
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
        least = min(away) * (1 + TIE)
        return next(place for place, distance in enumerate(away) if distance <= least)


def _number(value: Any) -> float:
    """Return a raw number, or its text, as a float; nan for what is none."""
    if isinstance(value, str):
        return float(value) if NUMBER.fullmatch(value) else math.nan
    number = isinstance(value, numbers.Number) and not isinstance(value, bool)
    return float(value) if number else math.nan


def _whole(value: Any) -> int | None:
    """Return a whole number, or its text; None for what is none, and for a float that may have been rounded."""
    if isinstance(value, str):
        if WHOLE_NUMBER.fullmatch(value):
            return int(value)
        value = float(value) if WHOLE_FLOAT.fullmatch(value) else None
    return None if isinstance(value, float) and abs(value) >= MAX_PLACE else as_whole(value)


def _values(table: _Table) -> Values:
    kind = table.kind(DOMAINS)
    values = {"categories": _categories, "integers": _integers, "bins": _bins, "grid": _cells}[kind](table)
    table.close()
    if not 2 <= (count := len(values.labels)) <= MAX_VALUES:
        raise _refused(table.where, f"{count:,} values", f"two values or more, at most {MAX_VALUES:,}")
    return values


def _categories(table: _Table) -> Values:
    labels = table.labels("labels")
    places = {label: place for place, label in enumerate(labels)}
    texts = {str(label): place for place, label in enumerate(labels)}

    def find(value: Any) -> int | None:  # a text may be that of a number, which is how files hold it
        if isinstance(value, str) and value in texts:
            return texts[value]
        number = _whole(value) if isinstance(value, float) or (isinstance(value, str) and "." in value) else value
        return None if isinstance(number, bool | str) else places.get(number)

    return Values("categories", labels, find)


def _integers(table: _Table) -> Values:
    low, high = (table.whole(name, -MAX_PLACE, MAX_PLACE) for name in ("low", "high"))

    def find(value: Any) -> int | None:
        number = _whole(value)
        return None if number is None or not low <= number <= high else number - low

    return Values("integers", range(low, high + 1), find, Fraction(1))


def _bins(table: _Table) -> Values:
    listed = table.typed("edges", list)
    edges = [as_real(edge) for edge in listed]
    if not all(abs(edge) <= LONGEST for edge in edges) or any(left >= right for left, right in pairwise(edges)):
        raise table.refused("edges", listed, f"increasing numbers, at most {LONGEST:g} from 0")

    def find(value: Any) -> int | None:
        number = _number(value)
        return min(bisect_right(edges, number), len(edges) - 1) - 1 if edges[0] <= number <= edges[-1] else None

    centres = [(left + right) / 2 for left, right in pairwise(edges)]
    return Values("bins", range(len(centres)), find, even_step(centres) if len(centres) > 1 else None)


def _cells(table: _Table) -> Values:
    over = table.has("south", "west", "north", "east")
    columns, rows = (table.whole(name, 1, MAX_INTEGER) for name in ("columns", "rows"))
    if columns * rows > MAX_VALUES:
        raise _refused(table.where, f"{columns} x {rows} cells", f"at most {MAX_VALUES:,}")
    if over:
        south, north = (table.real(name, -90, 90) for name in ("south", "north"))
        west, east = (table.real(name, -180, 180) for name in ("west", "east"))
        if not (south < north and west < east):
            raise _refused(table.where, f"from {south}, {west} to {north}, {east}", "south < north and west < east")
        degree = math.radians(EARTH_RADIUS_KM)
        width = (east - west) * degree * math.cos(math.radians((south + north) / 2))
        sides = width / columns, (north - south) * degree / rows
    else:
        cell = table.take("cell") if table.has("cell") else 0.5
        pair = [as_real(side) for side in (cell if isinstance(cell, list) else [cell, cell])]
        sides = (pair[0], pair[1]) if len(pair) == 2 else (math.nan, math.nan)
        if table.has("unit") and not table.typed("unit", str):
            raise table.refused("unit", "", "the name of a unit of length")
    if not all(SHORTEST <= side <= LONGEST for side in sides):
        raise _refused(f"{table.where}, cell", shorten(sides), f"sides from {SHORTEST:g} to {LONGEST:g}")
    labels: Sequence[int] = range(columns * rows)
    whole = not table.has("cells")
    if not whole:
        listed = [as_whole(cell) for cell in table.typed("cells", list)]
        labels = sorted({cell for cell in listed if cell is not None and 0 <= cell < columns * rows})
        if None in listed or not set(listed) <= set(labels):
            raise table.refused("cells", listed, f"cells of the grid: numbers from 0 to {columns * rows - 1}")
    places = None if whole else {cell: place for place, cell in enumerate(labels)}

    def find(value: Any) -> int | None:
        if over and isinstance(value, list | tuple):
            latitude, longitude = (_number(part) for part in value)
            if not (south <= latitude <= north and west <= longitude <= east):
                return None
            column = min(int((longitude - west) / (east - west) * columns), columns - 1)
            value = min(int((latitude - south) / (north - south) * rows), rows - 1) * columns + column
        number = _whole(value)
        if number is None or not 0 <= number < columns * rows:
            return None
        return number if places is None else places.get(number)

    return Values("grid", labels, find, None, columns, rows, sides, whole)


def even_step(places: Sequence[float]) -> Fraction | None:
    """Return the step between places that are evenly spaced, None where they are not."""
    exact = [Fraction(place) for place in places]
    step = exact[1] - exact[0]
    return step if all(right - left == step for left, right in pairwise(exact)) else None


@dataclass(frozen=True)
class Described:
    """A mechanism of the study, checked as far as the library checks it when it reads the study."""

    kind: str
    where: str
    epsilon: float
    extra: Any  # size, buckets, regions, outputs, the epsilon of a first report, or whether outputs are truncated

    def tabled(self, values: Values) -> bool:
        """Whether its numbers take more than the standard library to compute."""
        return self.kind in TABLED or (self.kind == "laplace" and values.step is None)


def _mechanism(table: _Table, values: Values) -> Described:
    kind, count = table.kind(tuple(MECHANISMS)), len(values.labels)
    if values.kind not in MECHANISMS[kind]:
        raise _refused(table.where, f"{kind} on {values.kind}", f"a domain of {' or '.join(MECHANISMS[kind])}")
    epsilon = 0.0
    extra: Any = None
    if kind not in ("cloaking", "matrix"):
        epsilon = table.real("epsilon", SMALLEST_EPSILON, LARGEST_EPSILON)
    if kind == "cloaking":
        extra = _regions(table, values)
    elif kind == "matrix":
        extra = table.labels("outputs", (str, int, float))
        _check_rows(table, count, len(extra))
    elif kind == "longitudinal-rappor":
        extra = table.real("first", SMALLEST_EPSILON, LARGEST_EPSILON)
        if extra >= epsilon:
            raise table.refused("first", extra, f"first below epsilon, which is {epsilon:g}")
    elif kind == "subset-selection":
        extra = table.whole("size", 1, count - 1) if table.has("size") else default_size(count, epsilon)
    elif kind == "local-hashing":
        extra = table.whole("buckets", 2, MAX_BUCKETS) if table.has("buckets") else default_buckets(epsilon)
    elif kind == "planar-geometric":
        extra = table.typed("truncated", bool) if table.has("truncated") else True
    table.close()
    if not values.whole and (kind == "planar-laplace" or (kind == "planar-geometric" and extra)):
        reach = [remapped_reach(epsilon, side) for side in values.sides]
        if (values.columns + 2 * reach[0]) * (values.rows + 2 * reach[1]) > MAX_REMAPPED_CELLS:
            expected = f"noise that reaches at most {MAX_REMAPPED_CELLS:,} cells, where some are missing"
            raise table.refused("epsilon", epsilon, expected)
    return Described(kind, table.where, epsilon, extra)


def remapped_reach(epsilon: float, side: float) -> int:
    """Return how many cells beyond a grid with missing cells the noise is followed."""
    return math.ceil(NEGLIGIBLE_NATS / (epsilon * side))


def _regions(table: _Table, values: Values) -> list[Any]:
    regions, count = table.take("regions"), len(values.labels)
    listed = list(regions.values()) if isinstance(regions, dict) else regions
    if not isinstance(listed, list) or len(listed) != count or not all(is_label(region) for region in listed):
        raise table.refused("regions", regions, f"a text or whole number, one for each of {count} values")
    if isinstance(regions, dict):
        if not all(label in regions for label in values.labels):
            raise table.refused("regions", regions, "a region for each value, under its label")
        listed = [regions[label] for label in values.labels]
    distinct = set(listed)
    if len({str(region) for region in distinct}) < len(distinct):
        raise table.refused("regions", regions, "labels that differ when written down")
    return listed


def _check_rows(table: _Table, count: int, outputs: int) -> None:
    rows = table.typed("probabilities", list)
    if len(rows) != count or not all(isinstance(row, list) and len(row) == outputs for row in rows):
        raise table.refused("probabilities", rows, f"{count} rows of {outputs} probabilities")
    for row in rows:
        shares = [float(share) if isinstance(share, bool) else as_real(share) for share in row]
        if not all(0 <= share < 2 for share in shares) or not abs(math.fsum(shares) - 1) <= 1e-9:
            raise table.refused("probabilities", row, "probabilities of at least 0 that sum to 1 in every row")


# --- the draws of a study --------------------------------------------------------------------------------------------

Draw = Callable[[int], str]


def _draw(mechanism: Described, values: Values) -> Draw:
    """Return what draws an output for the value at a position, as reports write it."""
    kind, epsilon, extra = mechanism.kind, mechanism.epsilon, mechanism.extra
    count, labels, exact = len(values.labels), values.labels, Fraction(mechanism.epsilon)
    if mechanism.tabled(values):
        raise ClientError(
            "this mechanism needs a file of tables",
            where=mechanism.where,
            got=f"{kind} on {values.kind}, and no tables",
            expected="a file written by: hubbub privatize STUDY --export-tables FILE",
            remedy="pass it as Client(study, tables)",
        )
    if kind == "cloaking":
        return lambda position: str(extra[position])
    if kind == "randomized-response":
        width, keep = response(count, exact)
        return lambda position: str(labels[responded(position, count, width, keep)])
    if kind == "geometric":
        _check_steps(mechanism, epsilon, epsilon, SMALLEST_RATE)
        along = noise(exact * SHRINK)
        return lambda position: str(labels[position] + along.draw())
    if kind in ("truncated-geometric", "laplace"):
        rate = exact * SHRINK * (values.step if values.step is not None else 1)
        if kind == "laplace":
            _check_steps(mechanism, float(rate), float(rate), SMALLEST_STEP)
        along = noise(rate, rounded=kind == "laplace")
        return lambda position: str(labels[min(max(position + along.draw(count), 0), count - 1)])
    if kind == "planar-geometric":
        _check_steps(mechanism, epsilon * min(values.sides), epsilon * max(values.sides), SMALLEST_RATE)
        return _on_map(values, lambda: planar(epsilon, values.sides), truncated=extra)
    if kind in ("rappor", "optimized-unary"):
        width, one = flip(exact / 2 if kind == "rappor" else exact)
        own = (1 << width) - one if kind == "rappor" else 1 << (width - 1)
        return lambda position: packed(flips(count, position, width, own, one))
    if kind == "longitudinal-rappor":
        width, one, turned = second_flip(exact, Fraction(extra))
        return lambda position: packed(turn(flips(count, position, width, (1 << width) - one, one), width, turned))
    if kind == "subset-selection":
        width, out = left_out(count, extra, exact)
        return lambda position: packed(subset(count, position, extra, width, out))
    return _hashed(extra, *response(extra, exact))


def _check_steps(mechanism: Described, nearest: float, farthest: float, least: float) -> None:
    """Refuse noise that has no end, or that whole numbers cannot hold: epsilon times the shortest and longest step."""
    if nearest < least or farthest > MAX_NATS:
        raise _refused(
            f"{mechanism.where}, epsilon",
            f"{mechanism.epsilon!r}, which is {nearest if nearest < least else farthest:g} for one step",
            f"from {least:g} to {MAX_NATS:g} for one step",
            "no noise can be drawn with this epsilon",
        )


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


def packed(ones: Sequence[bool]) -> str:
    """Return bits as reports write them: eight to a byte, the first one highest, in hexadecimal digits.

    Without the 0x programs take some of them for numbers.
    """
    number = int("".join("1" if one else "0" for one in ones), 2) << (-len(ones) % 8)
    return "0x" + number.to_bytes(-(-len(ones) // 8), "big").hex()


# --- tables ----------------------------------------------------------------------------------------------------------


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a file of tables, in hexadecimal: of all but the digest that it carries itself."""
    content = {name: part for name, part in document.items() if name != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _read_tables(path: str | Path, study: str, digest: str | None) -> dict[str, Any]:
    """Return the tables of a file that is whole and was written for the study file with this SHA-256."""
    content = read_file(path, MAX_TABLES_BYTES, "file of tables", "JSON", TABLES_REMEDY)
    where = str(path)
    try:
        document = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_each_once)
        found = digest_of(document) if isinstance(document, dict) else ""
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, endless digits; nested too deeply
        raise _no_tables(where, f"{type(error).__name__}: {error}"[:200], "a JSON file that is whole") from None
    if not found:
        raise _no_tables(where, shorten(document), "a JSON object")
    stated = {name: document.get(name) for name in ("digest", "study")}
    if stated != {"digest": found, "study": study} or digest not in (None, found):
        raise ClientError(
            "the file of tables is damaged, or belongs to another study",
            where=where,
            got=f"digest {found}, for the study file {shorten(stated['study'], 80)}",
            expected=f"digest {shorten(digest or stated['digest'], 80)}, for the study file {study}",
            remedy=TABLES_REMEDY,
        )
    tables, version = document.get("tables"), document.get("version")
    if set(document) != {"version", "study", "fingerprint", "tables", "digest"} or not isinstance(tables, dict):
        raise _no_tables(
            where, f"entries {shorten(sorted(document))}", "version, study, fingerprint, tables and digest"
        )
    if type(version) is not int or version != VERSION:
        raise _no_tables(f"{where}, version", shorten(version), f"version {VERSION}")
    return tables


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; a name that stands there twice would make one of the two be ignored."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


def _no_tables(where: str, got: str, expected: str) -> ClientError:
    return ClientError(
        "the file of tables cannot be used", where=where, got=got, expected=expected, remedy=TABLES_REMEDY
    )


def _weights(entries: object, count: int, width: int, where: str) -> list[int]:
    """Return a list of whole numbers from their hexadecimal digits."""
    most = width // 4 + 1
    digits = re.compile(f"[0-9a-f]{{1,{most}}}").fullmatch
    if not isinstance(entries, list) or len(entries) != count:
        raise _no_tables(where, shorten(entries), f"a list of {count} probabilities")
    if not all(isinstance(entry, str) and digits(entry) for entry in entries):
        raise _no_tables(where, shorten(entries), f"texts of up to {most} hexadecimal digits")
    return [int(entry, 16) for entry in entries]


def _sums(weights: Sequence[int], width: int, where: str) -> list[int]:
    """Return running sums, if they add up to certainty."""
    sums = list(accumulate(weights))
    if not sums or sums[-1] != 1 << width:
        raise _no_tables(where, "probabilities that do not add up to 1", f"whole numbers that add up to 2^{width}")
    return sums


def _from_table(table: object, mechanism: Described, values: Values, where: str) -> Draw:
    """Return what draws from a table, once all of it is checked."""
    kind = "clipped" if mechanism.kind == "planar-laplace" else "rows"
    names = {"kind", "width", *({"quarter", "window"} if kind == "clipped" else {"rows", "outputs"})}
    if not isinstance(table, dict) or set(table) != names or table["kind"] != kind:
        raise _no_tables(where, shorten(table), f"an object of kind {kind} with {', '.join(sorted(names))}")
    width = table["width"]
    if type(width) is not int or not 64 <= width <= MAX_WIDTH or width % 64:
        raise _no_tables(f"{where}, width", shorten(width), f"a multiple of 64 up to {MAX_WIDTH}")
    return _clipped(table, width, values, where) if kind == "clipped" else _rows(table, width, mechanism, values, where)


def _rows(table: Mapping[str, Any], width: int, mechanism: Described, values: Values, where: str) -> Draw:
    outputs, rows = table["outputs"], table["rows"]
    labels = mechanism.extra if mechanism.kind == "matrix" else values.labels
    if not isinstance(outputs, list) or not all(is_label(output, (str,)) for output in outputs):
        raise _no_tables(f"{where}, outputs", shorten(outputs), "a list of texts")
    same = all(output == str(label) for output, label in zip(outputs, labels, strict=False))
    if mechanism.kind == "matrix" and all(isinstance(label, int | float) for label in labels):
        # Beside numbers with a fraction whole ones are such numbers, too: the library writes 1 as 1.0.
        same = same or outputs == [str(as_real(label)) for label in labels]
    if not same or len(outputs) != len(labels) or len(set(outputs)) < len(labels):
        raise _no_tables(f"{where}, outputs", shorten(outputs), f"the study's: {shorten(labels)}")
    if not isinstance(rows, list) or len(rows) != len(values.labels):
        raise _no_tables(f"{where}, rows", shorten(rows), f"a list of {len(values.labels)} rows")
    sums = []
    for position, row in enumerate(rows):
        place = f"{where}, row {position}"
        sums.append(_sums(_weights(row, len(outputs), width, place), width, place))
    return lambda position: str(outputs[bisect_right(sums[position], bits(width))])


def _clipped(table: Mapping[str, Any], width: int, values: Values, where: str) -> Draw:
    quarter, sizes = table["quarter"], f"{values.columns} x {values.rows} cells"
    if not isinstance(quarter, list) or not quarter or not isinstance(quarter[0], list):
        raise _no_tables(f"{where}, quarter", shorten(quarter), "a list of columns")
    columns, rows = len(quarter) - 1, len(quarter[0]) - 1  # whatever goes so far leaves the window
    beyond = columns - values.columns, rows - values.rows  # where cells are missing, noise is followed beyond the grid
    if min(beyond) < 0 or (values.whole and max(beyond) > 0):
        raise _no_tables(f"{where}, quarter", f"{columns + 1} x {rows + 1} displacements", f"those of {sizes}")
    (left, bottom), (right, top) = window = [[-beyond[0], -beyond[1]], [columns - 1, rows - 1]]
    if repr(table["window"]) != repr(window):  # 1.0 and true are no columns
        raise _no_tables(f"{where}, window", shorten(table["window"]), f"{window}, around {sizes}")
    masses = [_weights(column, rows + 1, width, f"{where}, column {place}") for place, column in enumerate(quarter)]
    away = [(column, row) for column in range(-columns, columns + 1) for row in range(-rows, rows + 1)]
    sums = _sums([masses[abs(column)][abs(row)] for column, row in away], width, where)

    def moved(position: int) -> str:
        row, column = divmod(values.labels[position], values.columns)
        across, along = away[bisect_right(sums, bits(width))]
        column, row = min(max(column + across, left), right), min(max(row + along, bottom), top)
        return str(values.labels[values.nearest(column, row)])

    return moved


# --- the client ------------------------------------------------------------------------------------------------------


class Client:
    """Privatizes values by the mechanisms of a study.

    `tables` is the file that `hubbub privatize STUDY --export-tables FILE` writes, needed for some mechanisms only;
    `digest`, if given, is the one that the file must have. Study and tables are checked as a whole, before any draw.
    """

    def __init__(self, study: str | Path, tables: str | Path | None = None, *, digest: str | None = None) -> None:
        content, where = study_bytes(study), str(study)
        table = _Table(study_document(study_text(content, where), where), where)
        _check_study(table)
        self._values = _values(_Table(table.take("domain"), f"{where}, [domain]"))
        mechanisms = table.take("mechanisms")
        table.close()
        if not isinstance(mechanisms, dict) or not mechanisms:
            raise _refused(
                f"{where}, [mechanisms]", shorten(mechanisms), "a table [mechanisms.NAME] for each mechanism"
            )
        self._mechanisms: dict[str, Described] = {}
        for name, fields in mechanisms.items():
            place = f"{where}, [mechanisms.{name[:64]}]"
            if not NAME.fullmatch(name):
                raise _refused(place, shorten(name), "a name of up to 64 letters, digits, - and _, no - or _ first")
            self._mechanisms[name] = _mechanism(_Table(fields, place), self._values)
        self._draws: dict[str, Draw] = {}
        if tables is not None:
            try:
                self._load(tables, hashlib.sha256(content).hexdigest(), digest)
            except MemoryError:
                got = "tables that do not fit into this device's memory"
                raise _no_tables(str(tables), got, "a smaller study") from None

    def _load(self, path: str | Path, study: str, digest: str | None) -> None:
        tables = _read_tables(path, study, digest)
        tabled = [name for name, mechanism in self._mechanisms.items() if mechanism.tabled(self._values)]
        if set(tables) != set(tabled):
            got = f"tables of {shorten(sorted(tables))}"
            raise _no_tables(str(path), got, f"tables of {shorten(sorted(tabled))}: the mechanisms that need them")
        for name in tabled:
            where = f"{path}, table of {name}"
            self._draws[name] = _from_table(tables[name], self._mechanisms[name], self._values, where)

    def privatize(self, value: Any, mechanism: str | None = None) -> str:
        """Return one output for a value; the mechanism may be left out where the study has one.

        Texts are read as rows of a file are. Every call is a report that spends epsilon anew, of RAPPOR with memory
        `first`: for several reports about one value keep what `permanent` returns, and send what `instantaneous` makes
        of it.
        """
        name = self._named(mechanism)
        if name not in self._draws:
            self._draws[name] = _draw(self._mechanisms[name], self._values)
        return self._draws[name](self._values.position(value))

    def permanent(self, value: Any, mechanism: str | None = None) -> str:
        """Return the permanent response of RAPPOR with memory: to be kept here while the value stays the same."""
        width, one, _ = self._memory(mechanism)
        row = flips(len(self._values.labels), self._values.position(value), width, (1 << width) - one, one)
        return packed(row)

    def instantaneous(self, permanent: str, mechanism: str | None = None) -> str:
        """Return one report from a permanent response."""
        width, _, turned = self._memory(mechanism)
        count = len(self._values.labels)
        digits = permanent.removeprefix("0x") if isinstance(permanent, str) else ""
        fits = len(digits) == 2 * -(-count // 8) and set(digits) <= set(string.hexdigits)
        kept = f"{int(digits, 16):0{4 * len(digits)}b}" if fits else "1"
        if not fits or "1" in kept[count:]:
            raise ClientError(
                "this is no permanent response",
                where="instantaneous(permanent)",
                got=f"something of type {type(permanent).__name__}",  # which is as private as the value
                expected=f"0x and {2 * -(-count // 8)} hexadecimal digits: {count} bits, then zeros",
                remedy="pass what permanent(value) returned for this study",
            )
        return packed(turn([bit == "1" for bit in kept[:count]], width, turned))

    def _memory(self, mechanism: str | None) -> tuple[int, int, int]:
        found = self._mechanisms[self._named(mechanism)]
        if found.kind != "longitudinal-rappor":
            raise ClientError(
                "this mechanism has no memory",
                where=found.where,
                got=found.kind,
                expected="longitudinal-rappor",
                remedy="use privatize",
            )
        return second_flip(Fraction(found.epsilon), Fraction(found.extra))

    def _named(self, mechanism: str | None) -> str:
        name = next(iter(self._mechanisms)) if mechanism is None and len(self._mechanisms) == 1 else mechanism
        if not isinstance(name, str) or name not in self._mechanisms:
            raise ClientError(
                "no such mechanism",
                where="privatize(mechanism=)",
                got=shorten(mechanism),
                expected=f"one of {', '.join(self._mechanisms)}",
                remedy="name a mechanism of the study",
            )
        return name


def _check_study(table: _Table) -> None:
    """Check the entries of the study itself, which are not needed to draw."""
    version = table.take("version")
    if version != VERSION or isinstance(version, bool):
        raise ClientError(
            "the study's version is not known",
            where=f"{table.where}, version",
            got=shorten(version),
            expected=f"version = {VERSION}",
            remedy="use the client of the study's version",
        )
    if table.has("name"):
        table.typed("name", str)
    if table.has("max_reports_per_user") and (limit := table.typed("max_reports_per_user", int)) < 1:
        raise table.refused("max_reports_per_user", limit, "a whole number from 1")
    for name in LIMITS:
        if table.has(name) and not 0 < as_real(limit := table.take(name)) < math.inf:
            raise table.refused(name, limit, "a positive number")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one report as a JSON line: study file, mechanism, value (or latitude and longitude)."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m hubbub.client", description="Privatize one value on this device.")
    parser.add_argument("study", help="the study file")
    parser.add_argument("mechanism", help="a mechanism of the study")
    parser.add_argument("value", nargs="+", help="the value; for a map also latitude and longitude")
    parser.add_argument("--tables", help="the file that hubbub privatize STUDY --export-tables FILE writes")
    given, unknown = parser.parse_known_args(arguments)
    if unknown:  # which may be the value, and is not repeated
        parser.error("an option is not known; a value that begins with - comes after --")
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
