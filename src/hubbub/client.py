"""Privatize one value on a person's device: one file that needs only the standard library.

    client = Client("study.toml")
    client.privatize(37, mechanism="strong")     # the output, as reports write it

All randomness comes from the operating system. Every probability is a whole number over a power of two, or a fraction
that the study states, and no float takes part in a draw. The numbers are rounded so that the promise holds exactly:
where ratios of probabilities leave no room for rounding (noise on lines and maps), they are built for epsilon (1 -
2^-50); elsewhere they are rounded to the safe side. The library draws its arrays from the same numbers.

Some mechanisms need tables that take more than the standard library to compute (`TABLED_MECHANISMS`). The command
`hubbub privatize STUDY --export-tables FILE` writes them; `Client(study, tables)` checks that the file is complete and
was written for this study.

Sections: limits, errors, exact probabilities, random draws, numbers and files, the study's domain, the study's
mechanisms, budgets of several attributes, draws from a study, draws from tables, the client, words that nobody can
list, the command line.
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
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, partial
from itertools import accumulate, pairwise
from itertools import combinations as pairs_of
from itertools import count as counting_from
from itertools import product as combinations_of
from pathlib import Path
from reprlib import Repr
from typing import Any

# --- limits ----------------------------------------------------------------------------------------------------------

FORMAT_VERSION = 1  # of study files and of files of tables

EPSILON_SHRINK = 1 - Fraction(1, 2**50)  # factor on epsilon where ratios leave no room for rounding
GUARD_BITS = 192  # bits beyond those that the smallest probability of a table needs
MAX_BLOCK_STEPS = 4096  # steps of noise on a line that one table holds
BLOCK_NATS = 60  # nats that one such table spans

# The library imports the following limits and refuses what the client refuses.
MIN_EPSILON, MAX_EPSILON = 1e-12, 500.0  # exp(epsilon) is finite, and not 1
MIN_NOISE_RATE = 1e-7  # nats for one step of unbounded noise
MIN_STEP_NATS = 1e-30  # epsilon times a distance that whole numbers can still distinguish from 0
MIN_LENGTH, MAX_LENGTH = 1e-100, 1e100  # sides of cells, and distances of edges from 0: sums and products stay finite
MAX_NATS = 20_000.0  # exp(-20,000) takes 29,000 bits
MAX_WIDTH = 1 << 17  # bits of a probability: enough for that, and for cells beyond the corners of a map
MAX_BUCKETS = 2**31
MAX_COHORTS, MAX_FILTER_BITS, MAX_HASHES = 65_536, 256, 16  # an MD5 has 16 bytes, and each is one hash
MAX_OUTPUTS = 2**31  # of mechanisms that list them as whole numbers
MAX_SKETCH_HASHES, DEFAULT_HASHES = 1 << 16, 1_024
MAX_SKETCH_BITS, DEFAULT_SKETCH_BITS = 1 << 16, 256  # into which a hash maps the values
MAX_VALUES = 100_000_000
MAX_EXACT_INTEGER = 2**53  # floats hold every whole number up to this
MAX_INTEGER = 2**62
MAX_INTEGER_BITS = 2048  # Python prints integers of this size whatever its digit limit is
MAX_PROVENANCE_LETTERS = 1_000  # of what a study says of where a matrix is from
MAX_TABLE_CELLS = 1 << 25  # of a table of exact probabilities: 256 MiB
MAX_INTEGRALS = 40_000  # of planar Laplace noise, some milliseconds each
MAX_REMAPPED_CELLS = 50_000_000  # lattice cells whose nearest cell is looked up, for grids with missing cells
NEGLIGIBLE_NATS = 45.0  # exp(-45) is below 3e-20: noise that reaches further is ignored
MAX_STUDY_BYTES = 1 << 25
MAX_TABLES_BYTES = 1 << 32
EPSILON_LIMITS = ("max_epsilon_per_user", "max_epsilon_per_unit")  # entries of a study
STUDY_COLUMNS = (  # entries of a study's table [columns]: what the columns of its reports are called
    *("output", "user", "mechanism", "weight", "stratum", "cluster", "group", "time", "watermark"),
    *("lat", "lon", "x", "y"),
)
QUESTION_ENTRIES = ("text", "help", "thanks", "mechanism")  # of a study's table [question]: what a page asks
MAX_QUESTION_LETTERS = 10_000
MAX_WORD_LETTERS = 256  # of a search over words that nobody can list
COLLECTOR_CHOICES = {  # entries of a study's table [collector], the first is the default
    "access": ("open", "tokens"),  # who may send: everybody, or people with a token
    "time": ("day", "none", "hour"),  # what is kept of the time of arrival
}
COLLECTOR_LIMITS = {  # whole numbers: least, default, most
    "max_requests_per_minute": (1, 600, 1_000_000_000),
    "max_request_bytes": (1_000, 1_000_000, 1_000_000_000),
}

MECHANISM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
FOREIGN_KIND = re.compile(
    r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*|\w+(?:\.\w+)*:\w+(?:\.\w+)*"
)  # registered, or a class's place
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")  # as text
WHOLE_FLOAT = re.compile(r"[+-]?[0-9]{1,19}\.0")  # as floats are written
PROBABILITY = re.compile(r"[0-9]{1,60}(?:/[0-9]{1,60}|(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,3})?)")
NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")  # possessive: never backtracks
ORIGIN = re.compile(r"https?://(?:[a-z0-9_.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")  # as browsers send it
ADDRESS_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,30}:/+[^\s/@:]*):[^\n]*@")
EARTH_RADIUS_KM = 6371.0088
RELATIVE_TIE = 1e-9  # distances that differ by less, relatively, count as equal

ATTRIBUTE_DOMAINS = ("categories", "integers", "bins", "grid")
DOMAINS = (*ATTRIBUTE_DOMAINS, "product")
WAYS_TO_REPORT = {  # several attributes; each with its own entries
    "split": (),
    "sample-one": ("probabilities",),
    "sample-one-with-fakes": ("probabilities", "fakes"),
}
RESERVED_NAMES = (  # of attributes: columns of reports, of values to privatize and of estimates, and keywords
    *("output", "user", "mechanism", "value", "probability", "low", "high", "standard_error"),
    *("impossible", "probabilities", "fakes"),
)
MECHANISMS = {  # each with the domains on which it is defined
    "bloom-rappor": ("categories",),
    "cloaking": DOMAINS,
    "count-mean-sketch": DOMAINS,
    "crosswise-model": ("categories",),
    "d-bit-flip": DOMAINS,
    "duchi": ("integers", "bins"),
    "exponential": DOMAINS,
    "forced-response": ("categories",),
    "geometric": ("integers",),
    "hadamard-count-mean-sketch": DOMAINS,
    "hadamard-response": DOMAINS,
    "laplace": ("integers", "bins"),
    "local-hashing": DOMAINS,
    "longitudinal-hashing": DOMAINS,
    "longitudinal-rappor": DOMAINS,
    "longitudinal-response": DOMAINS,
    "longitudinal-unary": DOMAINS,
    "matrix": DOMAINS,
    "optimized-unary": DOMAINS,
    "piecewise": ("integers", "bins"),
    "planar-geometric": ("grid",),
    "planar-laplace": ("grid",),
    "projective-response": DOMAINS,
    "randomized-response": DOMAINS,
    "rappor": DOMAINS,
    "square-wave": ("integers", "bins"),
    "staircase": ("integers", "bins"),
    "subset-selection": DOMAINS,
    "truncated-geometric": ("integers",),
    "unary": DOMAINS,
    "unrelated-question": ("categories",),
    "warner": ("categories",),
    **dict.fromkeys(WAYS_TO_REPORT, ("product",)),
}
METRIC_MECHANISMS = (  # whose epsilon is per unit of distance
    *("exponential", "geometric", "laplace", "planar-geometric", "planar-laplace", "truncated-geometric"),
)
MEMORY_MECHANISMS = (  # whose devices keep a permanent response, from which all reports about a value are made
    *("bloom-rappor", "d-bit-flip", "longitudinal-hashing", "longitudinal-rappor"),
    *("longitudinal-response", "longitudinal-unary"),
)
UNARY_STAGES = ("oue", "sue")  # how one stage of longitudinal unary encoding treats bits
SHORT_NAMES: dict[str, tuple[str, dict[str, Any]]] = {  # in the literature: the kind, and what the name itself says
    "krr": ("randomized-response", {}),
    "grr": ("randomized-response", {}),
    "rr": ("randomized-response", {}),
    "sue": ("rappor", {}),  # each bit kept with probability e^(epsilon/2) / (1 + e^(epsilon/2))
    "oue": ("optimized-unary", {}),
    "olh": ("local-hashing", {"buckets": None}),  # the best number, which local hashing takes by default
    "blh": ("local-hashing", {"buckets": 2}),
    "sw": ("square-wave", {}),
    "pm": ("piecewise", {}),
    "hr": ("hadamard-response", {}),
    "pgr": ("projective-response", {}),
    "cms": ("count-mean-sketch", {}),
    "hcms": ("hadamard-count-mean-sketch", {}),
    "lgrr": ("longitudinal-response", {}),
    "lsue": ("longitudinal-rappor", {}),
    "losue": ("longitudinal-unary", {"permanent_bits": "oue", "instantaneous_bits": "sue"}),
    "lsoue": ("longitudinal-unary", {"permanent_bits": "sue", "instantaneous_bits": "oue"}),
    "loue": ("longitudinal-unary", {"permanent_bits": "oue", "instantaneous_bits": "oue"}),
    "loloha": ("longitudinal-hashing", {}),
    "biloloha": ("longitudinal-hashing", {"buckets": 2}),
    "ololoha": ("longitudinal-hashing", {"buckets": None}),
    "dbitflip": ("d-bit-flip", {}),
}
SURVEY_DESIGNS = {  # each with its probabilities, and what these have to be
    "crosswise-model": (("p",), "p between 0 and 1, and not 1/2"),
    "forced-response": (("p_yes", "p_no"), "p_yes + p_no below 1"),
    "unrelated-question": (("p", "prevalence"), "p between 0 and 1"),
    "warner": (("p",), "p between 0 and 1, and not 1/2"),
}
CROSSWISE_ANSWERS = ("same", "different")  # other designs answer with the two values
TABLED_MECHANISMS = ("exponential", "matrix", "planar-laplace")  # also laplace, if bins are uneven
STUDY_REMEDY = "correct the study file; `hubbub audit STUDY` says what is wrong with it"
TABLES_REMEDY = "write it again: hubbub privatize STUDY --export-tables FILE"


# --- errors ----------------------------------------------------------------------------------------------------------


class ClientError(ValueError):
    """A study, table or value that cannot be used.

    The message says what is wrong, where, what was given, what was expected, and how to correct it.

    Parameters
    ----------
    what, where, got, expected, remedy
        The parts of the message; each is an attribute, too.

    Examples
    --------
    >>> from hubbub.client import Client, ClientError
    >>> try:
    ...     Client("nowhere.toml")
    ... except ClientError as error:
    ...     print(error.what)
    no such study file
    """

    def __init__(self, what: str, *, where: str, got: object, expected: str, remedy: str) -> None:
        # A path may be a database address given by mistake: no message shows its password.
        where, got = (ADDRESS_PASSWORD.sub(r"\1:***@", str(part)) for part in (where, got))
        self.what, self.where, self.got, self.expected, self.remedy = what, where, got, expected, remedy
        super().__init__(
            f"{what}\n  where:    {where}\n  got:      {got}\n  expected: {expected}\n  remedy:   {remedy}"
        )


# --- exact probabilities ---------------------------------------------------------------------------------------------


@cache
def _log_two(bits: int) -> int:
    """Return 2^bits log 2 = 2^bits 2 atanh(1/3), rounded down or up to two less."""
    extra = bits + 32
    power, total, odd = (2 << extra) // 3, 0, 1
    while power:
        total, power, odd = total + power // odd, power // 9, odd + 2
    return (total >> 32) - 1  # fewer than 2^20 terms, each too small by less than 2


def exp_minus(x: Fraction, bits: int = 256) -> tuple[int, int, int]:
    """Return low, high and q with low <= 2^(bits + q) exp(-x) <= high, for x >= 0.

    high - low is at most 3 and low is about 2^bits, so the bounds are close for every x.
    """
    inner = bits + 64
    fine = inner + max(0, (x.numerator // x.denominator).bit_length())
    scaled = (x.numerator << fine) // x.denominator
    log_two = _log_two(fine)
    q = scaled // log_two
    y = (scaled - q * log_two) >> (fine - inner + 8)  # the remainder over 2^8, too small by less than 2^4 units
    total, term, n = 0, 1 << inner, 0
    while term:
        total += term if n % 2 == 0 else -term
        n += 1
        term = (term * y >> inner) // n
    for _ in range(8):
        total = total * total >> inner
    # Each of n terms is off by at most 2 units, y by 2^4; squaring doubles the relative error: 2^8 (2 n + 2^5).
    error = (2 * n + 64) << 8
    return (total - error) >> 64, ((total + error) >> 64) + 1, q


def probability_width(nats: float) -> int:
    """Return the bits, a multiple of 64, in which to write probabilities down to exp(-nats)."""
    return max(256, -(-math.ceil(nats * 1.4427 + GUARD_BITS) // 64) * 64)


def _decay_above(epsilon: Fraction) -> Fraction:
    """Return a close upper bound of exp(-epsilon)."""
    _, high, q = exp_minus(epsilon)
    return Fraction(high, 1 << (256 + q))


def response_parameters(outputs: int, epsilon: Fraction, size: int = 1) -> tuple[int, int]:
    """Return width and `keep`: with probability keep / 2^width the response is the truth, otherwise any output.

    Where each value stands for a set of `size` outputs, the truth is any of these. All other outputs then have the
    probability 1 / (outputs - size + size e^epsilon) rounded up, so that the ratio is at most e^epsilon.
    """
    width = probability_width(float(epsilon) + math.log(outputs))
    decay = _decay_above(epsilon)
    return width, (1 << width) - outputs * math.ceil((decay / (size + (outputs - size) * decay)) * (1 << width))


def kept_truth(values: int, p: Fraction) -> Fraction:
    """Return how likely the truth is kept, where otherwise any value is sent, and the true one has `p` in all."""
    return (values * p - 1) / (values - 1)


def design_chances(kind: str, parameters: Sequence[Fraction]) -> tuple[Fraction, Fraction] | None:
    """Return the probabilities of a survey design's first answer, for the sensitive value and for the other one.

    None if the parameters are not what `SURVEY_DESIGNS` says.
    """
    if kind == "forced-response":
        yes, no = parameters
        return (1 - no, yes) if yes + no < 1 else None
    p = parameters[0]
    if not 0 < p < 1:
        return None
    if kind == "unrelated-question":
        innocuous = (1 - p) * parameters[1]
        return p + innocuous, innocuous
    return (p, 1 - p) if p != Fraction(1, 2) else None


def largest_chance_ratio(chances: tuple[Fraction, Fraction]) -> Fraction | None:
    """Return the largest ratio of the probabilities of one of two answers; None if it is infinite."""
    answers = [sorted(pair) for pair in (chances, (1 - chances[0], 1 - chances[1]))]
    return max(high / low for low, high in answers) if all(low for low, _ in answers) else None


def epsilon_of_ratio(ratio: Fraction | None) -> float:
    """Return the smallest float that is at least log(ratio), so that it can be claimed; infinity if there is no ratio.

    What is refused, below `MIN_EPSILON` and above `MAX_EPSILON`, is only close.
    """
    if ratio is None:
        return math.inf
    rough = math.log(ratio.numerator) - math.log(ratio.denominator)
    if rough > MAX_EPSILON:
        return rough
    if ratio - 1 < MIN_EPSILON / 2:
        return float(ratio - 1)
    epsilon = (math.log1p(ratio - 1) if ratio < 2 else math.log(ratio)) * (1 - 2.0**-50)
    while True:
        _, high, q = exp_minus(Fraction(epsilon))
        if high * ratio <= 1 << (256 + q):
            return epsilon
        epsilon = math.nextafter(epsilon, math.inf)


def flip_parameters(epsilon: Fraction) -> tuple[int, int]:
    """Return width and `one`: 1 / (1 + e^epsilon) rounded up, over 2^width."""
    width = probability_width(float(epsilon))
    decay = _decay_above(epsilon)
    return width, math.ceil(decay / (1 + decay) * (1 << width))


def longitudinal_parameters(epsilon: Fraction, first: Fraction) -> tuple[int, int, int]:
    """Return width, `one` and `turned` of longitudinal RAPPOR.

    The permanent bit is flipped with probability one / 2^width, and each report flips it with turned / 2^width. A bit
    of one report is then wrong with probability turned (1 - 2 one) + one, both over 2^width. This is at least
    1 / (1 + e^(first/2)), so that one report spends at most `first`, and any number of them at most `epsilon`.
    """
    width, one = flip_parameters(epsilon / 2)
    decay, kept = _decay_above(first / 2), Fraction(one, 1 << width)
    return width, one, math.ceil((decay / (1 + decay) - kept) / (1 - 2 * kept) * (1 << width))


def bloom_parameters(bits: int, hashes: int, epsilon: Fraction, first: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Return f, p and q of Bloom-filter RAPPOR, where both stages treat ones and zeros alike.

    Two texts differ in at most min(2 hashes, bits) bits of their filters, each of which may tell its part of epsilon.
    With first = epsilon, reports repeat the permanent response: p is 0, and q 1.
    """
    differing = min(2 * hashes, bits)
    if first == epsilon:
        width, one = flip_parameters(epsilon / differing)
        return Fraction(2 * one, 1 << width), Fraction(0), Fraction(1)
    width, one, turned = longitudinal_parameters(2 * epsilon / differing, 2 * first / differing)
    p = Fraction(turned, 1 << width)
    return Fraction(2 * one, 1 << width), p, 1 - p


def bloom_chances(f: Fraction, p: Fraction, q: Fraction) -> tuple[Fraction, Fraction]:
    """Return how likely a report has a one where the filter has a zero, and where it has a one."""
    return p + f / 2 * (q - p), q - f / 2 * (q - p)


def bloom_ratio(zero: Fraction, one: Fraction, bits: int, hashes: int) -> Fraction | None:
    """Return the largest ratio of any two filters, for bits that are 1 with these probabilities; None if infinite."""
    if zero == 0 or one == 1:
        return None
    return max(
        (one / zero) ** only * ((1 - zero) / (1 - one)) ** lacking
        for only in range(1, hashes + 1)
        for lacking in range(1, hashes + 1)
        if only + lacking <= bits
    )


def asked_parameters(epsilon: Fraction, bits: int) -> dict[str, int]:
    """Return width, `own` and `other` of answers about `bits` buckets: the own one is 1 with own / 2^width.

    Two values differ in two answers, each worth epsilon/2, but in one if a person answers about one bucket alone.
    """
    width, one = flip_parameters(epsilon / min(2, bits))
    return {"width": width, "own": (1 << width) - one, "other": one}


def two_stage_response_parameters(outputs: int, epsilon: Fraction, first: Fraction) -> tuple[int, int, int]:
    """Return width, `permanent` and `instantaneous` of a k-RR response to a k-RR response.

    Each stage keeps what it is given with probability permanent / 2^width, or instantaneous / 2^width, and otherwise
    takes any output. Both together therefore keep the truth with the product of the two, which is rounded down: it is
    at most that of one response with `first`.
    """
    width, permanent = response_parameters(outputs, epsilon)
    own_width, both = response_parameters(outputs, first)
    return width, permanent, (both << (2 * width - own_width)) // permanent


def unary_parameters(stage: str, epsilon: Fraction) -> tuple[int, int, int]:
    """Return width, `own` and `other` of unary encoding: a value's own bit is 1 with own / 2^width, others likewise."""
    width, one = flip_parameters(epsilon / 2 if stage == "sue" else epsilon)
    return width, (1 << width) - one if stage == "sue" else 1 << (width - 1), one


def two_stage_unary_parameters(
    epsilon: Fraction, first: Fraction, permanent_bits: str, instantaneous_bits: str
) -> tuple[int, int, int, int, int]:
    """Return width, `own`, `other`, `lost` and `raised` of unary encoding in two stages.

    The permanent bits are those of `unary_parameters`. Each report sends a permanent one as 0 with probability
    lost / 2^width, and a permanent zero as 1 with raised / 2^width. As the stage is `sue` or `oue`, both are the same,
    or `lost` is 1/2. `raised` is the least for which one report spends at most `first`: more of it only adds noise, so
    that whole numbers can be halved. It is 0 where even that is noise enough, and `first` too large for these stages.
    """
    width, own, other = unary_parameters(permanent_bits, epsilon)
    whole, decay = 1 << width, _decay_above(first)

    def lost(raised: int) -> int:
        return raised if instantaneous_bits == "sue" else whole >> 1

    def suffices(raised: int) -> bool:
        true, false = (one * (whole - lost(raised)) + (whole - one) * raised for one in (own, other))
        square = whole * whole
        return true * (square - false) * decay.numerator <= (square - true) * false * decay.denominator

    low, high = -1, whole >> 1  # the report says nothing at `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return width, own, other, lost(high), high


def largest_first(epsilon: float, permanent_bits: str) -> str:
    """Return, rounded down, how large `first` can be where reports are made by optimized unary encoding.

    It is what one report would spend if no permanent zero were ever sent as 1.
    """
    if permanent_bits == "sue":
        decay = math.exp(-epsilon / 2)
        limit = epsilon / 2 + math.log((2 + decay) / (1 + 2 * decay))
    else:
        limit = epsilon + math.log((2 + math.exp(-epsilon)) / 3)
    return f"{limit * (1 - 5e-6):.6g}"


def subset_parameters(values: int, size: int, epsilon: Fraction) -> tuple[int, int]:
    """Return width and `out`: a subset of `size` values excludes the true one with probability out / 2^width."""
    width = probability_width(float(epsilon) + math.log(values))
    others = (values - size) * _decay_above(epsilon)
    return width, math.ceil(others / (others + size) * (1 << width))


def rounded_exactly(epsilon: float, rounding: Callable[[Fraction], int]) -> int:
    """Return `rounding(e^-epsilon)` for a monotone `rounding`, the same on every machine.

    An enclosure of e^-epsilon is narrowed until both of its ends round to the same number. This ends, because a power
    of e with a rational exponent other than 0 is never rational (Lindemann) and so never on a border itself. A float
    `exp` would decide borders by its last bit, which differs between machines, and their reports would not agree.
    """
    bits = 128
    while True:
        low, high, steps = exp_minus(Fraction(epsilon), bits)
        least, most = (rounding(Fraction(end, 1 << (bits + steps))) for end in (low, high))
        if least == most:
            return least
        bits *= 2


def default_size(values: int, epsilon: float) -> int:
    """Return the default size of a subset: values / (e^epsilon + 1), rounded, at least 1."""
    return rounded_exactly(epsilon, lambda decay: max(1, math.floor(values * decay / (1 + decay) + Fraction(1, 2))))


def default_buckets(epsilon: float) -> int:
    """Return the default number of buckets: e^epsilon rounded, plus 1, at most `MAX_BUCKETS`."""
    return rounded_exactly(epsilon, lambda decay: min(math.floor(1 / decay + Fraction(1, 2)) + 1, MAX_BUCKETS))


def default_memory_buckets(epsilon: float, first: float) -> int:
    """Return the default number of buckets of longitudinal hashing, as published (OLOLOHA), from 2 to `MAX_BUCKETS`.

    With a = e^epsilon and b = e^first it is 1 + max(1, r), where r is this number, rounded::

        (1 - a^2 + sqrt(a^4 - 14 a^2 + 12 a b (1 - a b) + 12 a^3 b + 1)) / (6 (a - b))

    The number is at least n - 1/2 if and only if, with c = 6 n - 3, c^2 (a - b) + 2 c (a^2 - 1) is at most
    12 a (a b - 1). That is a polynomial in powers of e, which is never 0, so that intervals around them decide.
    """

    def is_at_least(n: int) -> bool:
        bits, c = 128, 6 * n - 3
        while True:
            (low, high), (first_low, first_high) = _decays(epsilon, bits), _decays(first, bits)
            least = 12 - 12 * high * first_high - c * c * high * (first_high - low)
            most = 12 - 12 * low * first_low - c * c * low * max(Fraction(0), first_low - high)
            if least - 2 * c * first_high * (1 - low * low) > 0:
                return True
            if most - 2 * c * first_low * (1 - high * high) < 0:
                return False
            bits *= 2

    low, high = 1, MAX_BUCKETS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_at_least(middle) else (low, middle)
    return 1 + low


def _decays(epsilon: float, bits: int) -> tuple[Fraction, Fraction]:
    """Return close bounds of exp(-epsilon)."""
    low, high, q = exp_minus(Fraction(epsilon), bits)
    return Fraction(low, 1 << (bits + q)), Fraction(high, 1 << (bits + q))


def default_reach(values: int, epsilon: float) -> int:
    """Return the default reach of a square wave, as published: what gives the outputs most information, rounded down.

    It is (eps - 1 + e^-eps) / (2 (e^eps - 1 - eps)) times the number of values.
    """
    exact = Fraction(epsilon)

    def rounding(decay: Fraction) -> int:  # grows with the decay; a bound of it too rough to divide by is for later
        room = 1 / decay - 1 - exact
        return math.floor(values * (exact - 1 + decay) / (2 * room)) if room > 0 else values

    return rounded_exactly(epsilon, lambda decay: min(rounding(decay), values))


def default_mean_reach(values: int, epsilon: float) -> int:
    """Return the default reach of the piecewise mechanism: windows of e^(-epsilon/2) of the line, rounded down."""
    return rounded_exactly(epsilon / 2, lambda decay: math.floor((values - 1) * decay / 2))


def stair_reach(values: int, gamma: Fraction) -> int:
    """Return the reach of the lowest stair of staircase noise that is the share `gamma` of the others: rounded up."""
    return math.ceil(gamma * (values - 1)) - 1


def default_stair_reach(values: int, epsilon: float) -> int:
    """Return the reach of the lowest stair for which the noise has the least variance.

    Let the stairs begin at r + s D, s = 0, 1, ..., for D = values - 1, and let n be the end of a stair: r + s D with
    probability (1 - b) b^s, where b = e^-epsilon. The variance for r + 1 is at least that for r if and only if
    6 E(n^2) E(n) - 2 E(n^3) - E(n) is at least 0, which it stays as r grows. The reach is r - 1.
    """
    stair = values - 1

    def rounding(decay: Fraction) -> int:
        rest = 1 - decay  # never 0: the bounds have many more bits than the smallest epsilon takes
        first, second = decay / rest * stair, decay * (1 + decay) / rest**2 * stair**2
        third = decay * (1 + 4 * decay + decay**2) / rest**3 * stair**3

        def is_least(r: int) -> bool:
            mean, square = r + first, r * r + 2 * r * first + second
            return 6 * square * mean - 2 * (r**3 + 3 * r * r * first + 3 * r * second + third) - mean >= 0

        return bisect_left(range(1, stair), True, key=is_least)

    return rounded_exactly(epsilon, rounding)


def default_blocks(values: int, epsilon: float) -> int:
    """Return the default number of blocks of Hadamard response, as published: a power of two below e^eps and 2k."""
    below = rounded_exactly(epsilon, lambda decay: min(math.floor(1 / decay), 2 * values - 1))
    return int(1 << (below.bit_length() - 1))


def block_size(values: int, blocks: int) -> int:
    """Return the number of outputs in each block: a power of two above the number of values in any block."""
    return int(1 << (-(-values // blocks)).bit_length())


def block_member(position: int, place: int, blocks: int, size: int) -> int:
    """Return the output at a place, from 0 to size/2 - 1, in the set of a value, where its row of a matrix is +1.

    Values are dealt to the blocks in turn, and have the rows 1, 2, ... of their block.
    """
    row = position // blocks + 1
    bit = row & -row
    column = place + (place & -bit)  # a zero comes in where the row has its lowest one, and makes the parity even
    return position % blocks * size + column + bit * (bin(row & column).count("1") % 2)


def is_prime(number: int) -> bool:
    """Return whether a number is prime.

    >>> [number for number in range(20) if is_prime(number)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    return number == 2 or (number > 2 and all(number % factor for factor in (2, *range(3, math.isqrt(number) + 1, 2))))


def default_prime(values: int, epsilon: float) -> int:
    """Return the default prime of projective response, as published: the one nearest to e^epsilon + 1.

    It is at most the first one with which every value is the only member of its set.
    """
    most = next(number for number in counting_from(max(2, values - 1)) if is_prime(number))
    twice = rounded_exactly(epsilon, lambda decay: min(2 + math.floor(2 / decay), 2 * most))
    below = next(number for number in range(twice // 2, 1, -1) if is_prime(number))
    above = next(number for number in counting_from(below + 1) if is_prime(number))
    return below if twice < below + above or below == most else above


def points(prime: int, dimensions: int) -> int:
    """Return the number of points of a projective space over the remainders of a prime."""
    return int((prime**dimensions - 1) // (prime - 1))


def space_dimensions(values: int, prime: int) -> int:
    """Return the least number of coordinates, from 2, with which there is a point for each value."""
    return next(dimensions for dimensions in counting_from(2) if points(prime, dimensions) >= values)


def point_digits(index: int, prime: int) -> list[int]:
    """Return the coordinates of a point that come before its 1, after which all are 0."""
    free = next(free for free in counting_from() if points(prime, free + 1) > index)
    index -= points(prime, free)
    return [index // prime**place % prime for place in range(free)]


def point_member(position: int, place: int, prime: int, dimensions: int) -> int:
    """Return the output at a place in the set of a value: a point whose inner product with the value's is 0.

    Points have as last coordinate other than 0 a 1. Those of values are read backwards: then the first one is 1, say
    at p, and any point of the other coordinates has exactly one coordinate at p that makes the product 0.
    """
    own = point_digits(position, prime)[::-1]
    point = [*point_digits(place, prime), 1]
    point += [0] * (dimensions - 1 - len(point))
    at = dimensions - 1 - len(own)
    point.insert(at, -sum(map(int.__mul__, own, point[at:])) % prime)
    last = max(place for place, digit in enumerate(point) if digit)
    return points(prime, last) + sum(int(digit * prime**place) for place, digit in enumerate(point[:last]))


@dataclass(frozen=True)
class Noise:
    """Symmetric noise on whole numbers, with probabilities over 2^width.

    The noise is positive with probability `side`, negative with the same probability, and 0 otherwise. Its size is
    1 + r with probability `steps[r]`; with the remaining probability, `rest`, it grows by a block of len(steps) and
    is drawn again.
    """

    width: int
    side: int
    steps: tuple[int, ...]

    @cached_property
    def _sums(self) -> tuple[int, ...]:
        return tuple(accumulate(self.steps))

    @property
    def rest(self) -> int:
        """The probability, over 2^width, of going beyond a block."""
        return (1 << self.width) - self._sums[-1]

    def probability(self, steps: int) -> Fraction:
        """Return the probability of `steps` steps to one side."""
        if steps == 0:
            return 1 - Fraction(2 * self.side, 1 << self.width)
        blocks, step = divmod(steps - 1, len(self.steps))
        return Fraction(self.side * self.steps[step] * self.rest**blocks, 1 << (self.width * (blocks + 2)))

    def beyond(self, steps: int) -> Fraction:
        """Return the probability of `steps` steps or more to one side, for `steps` of at least 1."""
        blocks, step = divmod(steps - 1, len(self.steps))
        left = (1 << self.width) - (self._sums[step - 1] if step else 0)
        return Fraction(self.side * left * self.rest**blocks, 1 << (self.width * (blocks + 2)))

    def draw(self, most: int | None = None) -> int:
        """Draw once; a draw of more than `most` steps may stop there."""
        word = random_bits(self.width)
        if word >= 2 * self.side:
            return 0
        gone, block = 0, len(self.steps)
        while (step := bisect_right(self._sums, random_bits(self.width))) == block and (most is None or gone < most):
            gone += block
        gone += step + 1
        return gone if word < self.side else -gone


@cache
def line_noise(rate: Fraction, rounded: bool = False) -> Noise:
    """Return two-sided geometric noise, P(j) ~ exp(-rate |j|), or Laplace noise `rounded` to whole numbers."""
    block = max(1, min(MAX_BLOCK_STEPS, int(BLOCK_NATS / rate)))
    width = probability_width(float(rate) * block + abs(math.log(rate)))
    one = 1 << width

    def decay(x: Fraction) -> int:  # 2^width exp(-x), rounded down or one less
        low, _, q = exp_minus(x, width)
        return low >> q

    ratio = decay(rate)
    side = decay(rate / 2) // 2 if rounded else ratio * one // (one + ratio)
    return _falling_noise(width, side, ratio, block)


def _falling_noise(width: int, side: int, ratio: int, block: int) -> Noise:
    """Return noise of which every step has `ratio` / 2^width of the probability of the step before."""
    one = 1 << width
    powers = accumulate(range(1, block), lambda power, _: power * ratio >> width, initial=one)
    return Noise(width, side, tuple(power * (one - ratio) >> width for power in powers))


@cache
def stair_noise(epsilon: Fraction, reach: int, stair: int) -> Noise:
    """Return which stair of staircase noise is drawn: 0 has 2 reach + 1 places, all others `stair` places each.

    A place of one stair is e^-epsilon times as likely as a place of the stair before.
    """
    block = max(1, min(MAX_BLOCK_STEPS, int(BLOCK_NATS / epsilon)))
    width = probability_width(float(epsilon) * block + abs(math.log(epsilon)) + math.log(2 * stair + 1))
    low, _, q = exp_minus(epsilon, width)
    one, ratio = 1 << width, low >> q
    side = stair * ratio * one // ((2 * reach + 1) * (one - ratio) + 2 * stair * ratio)
    return _falling_noise(width, side, ratio, block)


@cache
def axis_noise(epsilon: float, side: float) -> Noise:
    """Return the noise along one axis that planar geometric noise is drawn from by rejection.

    Its rate is slightly below epsilon side / sqrt 2, so that it proposes every displacement often enough.
    """
    return line_noise(Fraction(epsilon * side * math.sqrt(0.5) * (1 - 2.0**-40)))


def hypotenuse(across: Fraction, along: Fraction) -> Fraction:
    """Return the length of a displacement, rounded down with a relative error below 2^-510."""
    squared = across**2 + along**2
    if squared == 0:
        return Fraction(0)
    scale = 1 << (512 + max(0, squared.denominator.bit_length() - squared.numerator.bit_length()))
    return Fraction(math.isqrt(squared.numerator * scale * scale // squared.denominator), scale)


@cache
def acceptance_probability(epsilon: float, sides: tuple[float, float], columns: int, rows: int) -> Fraction:
    """Return the probability of accepting a displacement drawn from both axes: at most 1, over a power of two.

    It is exp(-epsilon' d) over the axes' probabilities, relative to no displacement, rounded down to 128 bits. The
    normalising sum over the lattice need not be known: it is the same for all true values.
    """
    if columns == rows == 0:
        return Fraction(1)
    distance = hypotenuse(columns * Fraction(sides[0]), rows * Fraction(sides[1]))
    low, _, q = exp_minus(Fraction(epsilon) * EPSILON_SHRINK * distance)
    chance = Fraction(low, 1 << (256 + q))
    for side, steps in zip(sides, (columns, rows), strict=True):
        along = axis_noise(epsilon, side)
        chance *= along.probability(0) / along.probability(abs(steps))
    power = 128 + chance.denominator.bit_length() - chance.numerator.bit_length()
    chance = Fraction((chance.numerator << power) // chance.denominator, 1 << power)
    if chance > 1:  # impossible: the axes' rates are too small for it
        raise ArithmeticError("a displacement is proposed too rarely")
    return chance


# --- random draws ----------------------------------------------------------------------------------------------------


def random_bits(count: int) -> int:
    """Return a whole number of `count` random bits (a multiple of 8) from the operating system."""
    return int.from_bytes(os.urandom(count // 8), "little")


def random_below(bound: int) -> int:
    """Return a uniform whole number from 0 to bound - 1; words beyond the last multiple of the bound are redrawn."""
    count = 8 * (bound.bit_length() // 8 + 8)
    limit = (1 << count) // bound * bound
    while (drawn := random_bits(count)) >= limit:
        pass
    return drawn % bound


def random_event(chance: Fraction) -> bool:
    """Return True with probability `chance`, a whole number over a power of two."""
    width = -(-chance.denominator.bit_length() // 64) * 64
    return random_bits(width) < chance * (1 << width)


def draw_planar_noise(epsilon: float, sides: tuple[float, float]) -> tuple[int, int]:
    """Draw planar geometric noise, in columns and rows of the infinite lattice."""
    while True:
        columns, rows = (axis_noise(epsilon, side).draw() for side in sides)
        if random_event(acceptance_probability(epsilon, sides, columns, rows)):
            return columns, rows


def draw_response(position: int, values: int, width: int, keep: int) -> int:
    """Return the truth or any value. Both are drawn each time, so that the duration does not reveal the choice."""
    return (random_below(values), position)[random_bits(width) < keep]


def draw_chance(chance: Fraction) -> bool:
    """Return True with probability `chance`, any fraction."""
    return random_below(chance.denominator) < chance.numerator


def draw_stairs(noise: Noise, reach: int, stair: int) -> int:
    """Draw staircase noise: a stair, and any of its places."""
    step = noise.draw()
    if step == 0:
        return random_below(2 * reach + 1) - reach
    away = reach + 1 + (abs(step) - 1) * stair + random_below(stair)
    return away if step > 0 else -away


def draw_bits(values: int, position: int, width: int, own: int, other: int) -> list[bool]:
    """Draw a bit for each value: 1 with probability own / 2^width for the true value, other / 2^width for others."""
    return [random_bits(width) < (own if value == position else other) for value in range(values)]


def flip_bits(row: Sequence[bool], width: int, lost: int, raised: int) -> list[bool]:
    """Flip each one of a row with probability lost / 2^width, and each zero with raised / 2^width."""
    return [bit ^ (random_bits(width) < (lost if bit else raised)) for bit in row]


def draw_answers(asked: Sequence[bool], bucket: int, width: int, own: int, other: int) -> list[bool]:
    """Draw a bit for each bucket that is asked, as `draw_bits` does; the others have zeros, for which nothing is drawn.

    No bucket is the value's own if `bucket` is -1.
    """
    return [bit and random_bits(width) < (own if place == bucket else other) for place, bit in enumerate(asked)]


def bloom_bits(text: str, cohort: int, bits: int, hashes: int) -> list[int]:
    """Return which bits of its Bloom filter a text sets: the hash of google/rappor's clients, which never changes.

    The bytes of the MD5 of the cohort (four bytes, the highest first) and the text, modulo the number of bits. Two may
    be the same.
    """
    digest = hashlib.md5(cohort.to_bytes(4, "big") + text.encode(errors="replace"), usedforsecurity=False).digest()
    return [byte % bits for byte in digest[:hashes]]


def draw_filter(places: Sequence[int], bits: int, half: Fraction) -> list[bool]:
    """Draw the permanent bits of a Bloom filter: each one of them wrong with probability `half`."""
    own = set(places)
    return [(place in own) ^ draw_chance(half) for place in range(bits)]


def draw_subset(values: int, position: int, size: int, width: int, out: int) -> list[bool]:
    """Draw a subset of `size` values: without the true value with probability out / 2^width, otherwise with it."""
    chosen = [False] * values
    chosen[position] = random_bits(width) >= out
    others = [value for value in range(values) if value != position]
    for place in range(min(size, len(others))):  # the same number of draws with and without the true value
        other = place + random_below(len(others) - place)
        others[place], others[other] = others[other], others[place]
    for other in others[: size - chosen[position]]:
        chosen[other] = True
    return chosen


def draw_places(count: int, chosen: int) -> list[int]:
    """Draw `chosen` of `count` places, any of them with the same probability; return them in increasing order."""
    moved: dict[int, int] = {}  # of the list of all places, only those that were exchanged
    drawn = []
    for place in range(chosen):
        other = place + random_below(count - place)
        drawn.append(moved.get(other, other))
        moved[other] = moved.get(place, place)
    return sorted(drawn)


def bucket_of(seed: int, position: int, buckets: int) -> int:
    """Return the bucket of a position under a seed, by version 1 of the hash, which never changes."""
    word = _mix(_mix(seed + 0x9E3779B97F4A7C15) + (position + 1) * 0x9E3779B97F4A7C15)
    return ((word >> 32) * buckets) >> 32


def _mix(word: int) -> int:
    word %= 1 << 64
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % (1 << 64)
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % (1 << 64)
    return word ^ (word >> 31)


# --- numbers and files -----------------------------------------------------------------------------------------------


def as_real(value: Any) -> float:
    """Return a number as a float: nan for anything else (also texts and booleans), inf if it is too large."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        return float(value) if number else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_whole(value: Any) -> int | None:
    """Return a whole number, which may be the float 5.0; None for anything else (also booleans)."""
    number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return int(value) if number or as_real(value).is_integer() else None


def as_probability(value: Any) -> Fraction | None:
    """Return a probability exactly as it is written: 0.7 is 7/10, "1/6" is a sixth; None for anything else."""
    if not isinstance(value, str | numbers.Number):
        return None
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        value = repr(as_real(value))  # the shortest decimal number that is this float
    try:
        text = str(value)
        probability = Fraction(text) if PROBABILITY.fullmatch(text) else None
    except (ValueError, ZeroDivisionError):  # thousands of digits, or 1/0
        return None
    return probability if probability is not None and probability <= 1 else None


_BRIEF = Repr()
_BRIEF.maxlist = _BRIEF.maxdict = _BRIEF.maxtuple = 9
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 80


def shorten(value: object, limit: int = 60) -> str:
    """Return `repr(value)` on one line of at most `limit` characters, without writing a long list out first."""
    text = " ".join(_BRIEF.repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def read_file(path: str | Path, limit: int, name: str, form: str, remedy: str) -> bytes:
    """Return the content of a file of at most `limit` bytes; `name`, `form` and `remedy` appear in messages."""
    where = str(path)
    try:
        status = Path(path).stat()
    except (OSError, TypeError, ValueError):  # no such file, not a path, or a path with a NUL
        status = None
    if status is None or not stat.S_ISREG(status.st_mode):
        kind = "nothing at that path" if status is None else "a folder" if stat.S_ISDIR(status.st_mode) else "a device"
        raise ClientError(
            f"no such {name}",
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
        raise _unreadable(name, where, str(error) or "a file that does not fit into memory", form) from None


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
    """Return the content of a study file; refuse invalid TOML, deep nesting, and very long numbers."""
    try:
        if _LONG_KEY.search(text):  # the parser would take forever on these
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
            remedy="correct this line; texts need quotes",
        ) from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise _too_many_digits(text, where) from None
    unchecked: list[Any] = [document]
    while unchecked:
        part = unchecked.pop()
        if isinstance(part, dict | list):
            unchecked.extend(part.values() if isinstance(part, dict) else part)
        elif isinstance(part, int) and part.bit_length() > MAX_INTEGER_BITS:  # hexadecimal integers have no such limit
            raise _too_many_digits(text, where)
    return document


def _too_many_digits(text: str, where: str) -> ClientError:
    digits = re.search("[0-9A-Fa-f_]{500}", text)
    return ClientError(
        "a number in the study file has too many digits",
        where=f"{where}, line {text.count(chr(10), 0, digits.start()) + 1}" if digits else where,
        got=f"a whole number of more than {MAX_INTEGER_BITS:,} bits",
        expected=f"whole numbers of at most {MAX_INTEGER_BITS:,} bits, about 600 digits",
        remedy="correct the number; a label of many digits needs quotes",
    )


# --- the study's domain ----------------------------------------------------------------------------------------------

_TYPES = {str: "text", int: "whole number", bool: "boolean: true or false", list: "list"}


class _StudyTable:
    """A table of the study, whose entries are taken one by one; missing, unfit and unknown entries are refused."""

    def __init__(self, fields: object, where: str) -> None:
        if not isinstance(fields, dict):
            raise _unusable_study(where, "nothing" if fields is None else shorten(fields), "a table")
        self.where = where
        self._left = dict(fields)
        self._known: dict[str, None] = {}  # the names that were asked for, in order

    def unusable(self, name: str, value: object, expected: str) -> ClientError:
        return _unusable_study(f"{self.where}, {name}", shorten(value), expected)

    def has(self, *names: str) -> bool:
        self._known.update(dict.fromkeys(names))
        return any(name in self._left for name in names)

    def take(self, name: str) -> Any:
        if not self.has(name):
            raise _unusable_study(self.where, f"no {name!r}", f"{name} = ...")
        return self._left.pop(name)

    def peek(self, name: str) -> Any:
        return self._left.get(name)

    def close(self) -> None:
        """Refuse entries that were never taken: they would be ignored."""
        if self._left:
            got = f"an entry {shorten(next(iter(self._left)))}"
            raise _unusable_study(self.where, got, f"the entries {', '.join(self._known)}")

    def kind(self, kinds: Sequence[str]) -> str:
        kind = self.take("kind")
        if not isinstance(kind, str) or kind not in kinds:
            raise _unusable_study(f"{self.where}, kind", shorten(kind), ", ".join(kinds), "no such kind")
        return kind

    def whole(self, name: str, low: int, high: int) -> int:
        number = as_whole(value := self.take(name))
        if number is None or not low <= number <= high:
            raise self.unusable(name, value, f"a whole number from {low} to {high}")
        return number

    def real(self, name: str, low: float, high: float) -> float:
        number = as_real(value := self.take(name))
        if not low <= number <= high:
            raise self.unusable(name, value, f"a number from {low:g} to {high:g}")
        return number

    def probability(self, name: str) -> Fraction:
        probability = as_probability(value := self.take(name))
        if probability is None:
            raise self.unusable(name, value, "a probability: a number from 0 to 1, or a text such as '1/6'")
        return probability

    def typed(self, name: str, kind: type) -> Any:
        value = self.take(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.unusable(name, value, f"a {_TYPES[kind]}")
        return value

    def labels(self, name: str, kinds: tuple[type, ...] = (str, int)) -> list[Any]:
        """Take a list of labels; labels that look the same in a file are refused."""
        labels: list[Any] = self.typed(name, list)
        if not all(is_label(label, kinds) for label in labels):
            raise self.unusable(name, labels, "non-empty texts, or numbers")
        if min(len(set(labels)), len({str(label) for label in labels})) < len(labels):  # 1 and 1.0; 1 and "1"
            raise self.unusable(name, labels, "labels that differ when written down, each once")
        return labels


def is_label(label: object, kinds: tuple[type, ...] = (str, int)) -> bool:
    """Whether something can be the label of a value, region or output: a non-empty text, or a number."""
    return isinstance(label, kinds) and not isinstance(label, bool) and label != "" and label == label


def _unusable_study(where: str, got: str, expected: str, what: str = "the study cannot be used") -> ClientError:
    """Return the error for a part of the study that the library refuses as well."""
    return ClientError(what, where=where, got=got, expected=expected, remedy=STUDY_REMEDY)


@dataclass(frozen=True)
class StudyValues:
    """The values of a study: their labels, their place on a line or map, and how to find one."""

    kind: str
    labels: Sequence[Any]
    find: Callable[[Any], int | None]
    step: Fraction | None = None  # between neighbours on a line, if they are evenly spaced
    columns: int = 0  # this and the following describe a map
    rows: int = 0
    sides: tuple[float, float] = (0.0, 0.0)
    whole: bool = True  # no cell of the map is missing
    diameter: float = 1.0  # the largest distance between two values
    bounds: tuple[float, ...] = ()  # edges of bins; south, west, north and east of a map
    attributes: Mapping[str, StudyValues] = field(default_factory=dict)  # of a product
    barred: Sequence[Mapping[str, frozenset[int]]] = ()  # rules: positions of attributes that cannot meet

    def distance(self, first: int, second: int) -> float:
        """Return the distance between two values that are no combinations of attributes, by their positions."""
        if self.kind == "grid":
            (row, column), (other_row, other_column) = (
                divmod(self.labels[place], self.columns) for place in (first, second)
            )
            return math.hypot((column - other_column) * self.sides[0], (row - other_row) * self.sides[1])
        if self.kind == "categories":
            return float(first != second)
        if self.kind == "bins":
            here, there = ((self.bounds[place] + self.bounds[place + 1]) / 2 for place in (first, second))
            return abs(here - there)
        return float(abs(self.labels[first] - self.labels[second]))

    def coordinates(self, value: Any) -> tuple[int, ...]:
        """Return the position of each attribute of a combination: a tuple in order, or a mapping from their names."""
        missing: list[str] = []
        if isinstance(value, Mapping):
            missing = [name for name in self.attributes if name not in value]
            value = value if missing or len(value) > len(self.attributes) else [value[name] for name in self.attributes]
        if not isinstance(value, list | tuple) or len(value) != len(self.attributes):
            several = isinstance(value, list | tuple | Mapping)
            raise ClientError(
                "the value does not have one entry for each attribute",
                where="privatize(value)",
                got=f"no entry for {', '.join(missing)}"
                if missing
                else f"{len(value)} entries"
                if several
                else "one entry",
                expected=f"({', '.join(self.attributes)}), or a dictionary with these names",
                remedy="pass a value of each attribute",
            )
        pairs = zip(self.attributes.items(), value, strict=True)
        places = tuple(own.position(entry, f"privatize(value), attribute {name}") for (name, own), entry in pairs)
        if self.is_barred(dict(zip(self.attributes, places, strict=True))):
            raise ClientError(
                "the study calls this combination impossible",
                where="privatize(value)",
                got="a combination that a rule bars",  # errors end up in logs, so the value is not shown
                expected="a combination that no rule of `impossible` bars",
                remedy="correct the value; values outside the study are not reported",
            )
        return places

    def is_barred(self, places: Mapping[str, int]) -> bool:
        """Whether a rule bars these positions of attributes."""
        return any(all(places[name] in values for name, values in rule.items()) for rule in self.barred)

    def position(self, value: Any, where: str = "privatize(value)") -> int:
        """Return the position of a value among the labels; `where` is its place, for messages."""
        try:
            position = self.find(value)
        except ClientError:  # of several attributes, which says more
            raise
        except (TypeError, ValueError, OverflowError):
            position = None
        if position is None:
            raise ClientError(
                "the value is not in the study's domain",
                where=where,
                got=f"a value of type {type(value).__name__}",  # errors end up in logs, so the value is not shown
                expected=f"one of {len(self.labels)} values ({shorten(self.labels[0])} ...), a number in a bin, or "
                "(lat, lon)",
                remedy="correct the value; values outside the study are not reported",
            )
        return position

    def cell_at(self, position: int, displacement: tuple[int, int]) -> tuple[int, int]:
        """Return the column and row at a displacement from a cell of the map."""
        row, column = divmod(self.labels[position], self.columns)
        return column + displacement[0], row + displacement[1]

    def nearest(self, column: int, row: int) -> int:
        """Return the position of the nearest cell of the grid; at equal distances the first."""
        if self.whole:
            return min(max(row, 0), self.rows - 1) * self.columns + min(max(column, 0), self.columns - 1)
        distances = [
            math.hypot((cell % self.columns - column) * self.sides[0], (cell // self.columns - row) * self.sides[1])
            for cell in self.labels
        ]
        limit = min(distances) * (1 + RELATIVE_TIE)
        return next(position for position, distance in enumerate(distances) if distance <= limit)


def _parse_number(value: Any) -> float:
    """Return a number, or its text, as a float; nan for anything else."""
    if isinstance(value, str):
        return float(value) if NUMBER.fullmatch(value) else math.nan
    number = isinstance(value, numbers.Number) and not isinstance(value, bool)
    return float(value) if number else math.nan


def _parse_whole(value: Any) -> int | None:
    """Return a whole number, or its text, as an int; None for anything else, and for floats that may be rounded."""
    if isinstance(value, str):
        if WHOLE_NUMBER.fullmatch(value):
            return int(value)
        value = float(value) if WHOLE_FLOAT.fullmatch(value) else None
    return None if isinstance(value, float) and abs(value) >= MAX_EXACT_INTEGER else as_whole(value)


def _parse_domain(table: _StudyTable, kinds: Sequence[str] = DOMAINS) -> StudyValues:
    kind = table.kind(kinds)
    parsers = {
        "categories": _parse_categories,
        "integers": _parse_integers,
        "bins": _parse_bins,
        "grid": _parse_grid,
        "product": _parse_product,
    }
    values = parsers[kind](table)
    table.close()
    if not 2 <= (count := len(values.labels)) <= MAX_VALUES:
        raise _unusable_study(table.where, f"{count:,} values", f"two values or more, at most {MAX_VALUES:,}")
    return values


def _parse_categories(table: _StudyTable) -> StudyValues:
    labels = table.labels("labels")
    positions = {label: position for position, label in enumerate(labels)}
    texts = {str(label): position for position, label in enumerate(labels)}

    def find(value: Any) -> int | None:  # files hold numbers as text
        if isinstance(value, str) and value in texts:
            return texts[value]
        number = _parse_whole(value) if isinstance(value, float) or (isinstance(value, str) and "." in value) else value
        return None if isinstance(number, bool | str) else positions.get(number)

    return StudyValues("categories", labels, find)


def _parse_integers(table: _StudyTable) -> StudyValues:
    low, high = (table.whole(name, -MAX_EXACT_INTEGER, MAX_EXACT_INTEGER) for name in ("low", "high"))

    def find(value: Any) -> int | None:
        number = _parse_whole(value)
        return None if number is None or not low <= number <= high else number - low

    return StudyValues("integers", range(low, high + 1), find, Fraction(1), diameter=float(high - low))


def _parse_bins(table: _StudyTable) -> StudyValues:
    listed = table.typed("edges", list)
    edges = [as_real(edge) for edge in listed]
    if not all(abs(edge) <= MAX_LENGTH for edge in edges) or any(left >= right for left, right in pairwise(edges)):
        raise table.unusable("edges", listed, f"increasing numbers, at most {MAX_LENGTH:g} from 0")

    def find(value: Any) -> int | None:
        number = _parse_number(value)
        return min(bisect_right(edges, number), len(edges) - 1) - 1 if edges[0] <= number <= edges[-1] else None

    centres = [(left + right) / 2 for left, right in pairwise(edges)]
    if len(centres) < 2:
        return StudyValues("bins", range(len(centres)), find)
    step, diameter = even_step(centres), centres[-1] - centres[0]
    return StudyValues("bins", range(len(centres)), find, step, diameter=diameter, bounds=tuple(edges))


def _parse_grid(table: _StudyTable) -> StudyValues:
    on_map = table.has("south", "west", "north", "east")
    columns, rows = (table.whole(name, 1, MAX_INTEGER) for name in ("columns", "rows"))
    if columns * rows > MAX_VALUES:
        raise _unusable_study(table.where, f"{columns} x {rows} cells", f"at most {MAX_VALUES:,}")
    if on_map:
        south, north = (table.real(name, -90, 90) for name in ("south", "north"))
        west, east = (table.real(name, -180, 180) for name in ("west", "east"))
        if not (south < north and west < east):
            raise _unusable_study(
                table.where, f"from {south}, {west} to {north}, {east}", "south < north and west < east"
            )
        degree = math.radians(EARTH_RADIUS_KM)
        width = (east - west) * degree * math.cos(math.radians((south + north) / 2))
        sides = width / columns, (north - south) * degree / rows
    else:
        cell = table.take("cell") if table.has("cell") else 0.5
        pair = [as_real(side) for side in (cell if isinstance(cell, list) else [cell, cell])]
        sides = (pair[0], pair[1]) if len(pair) == 2 else (math.nan, math.nan)
        if table.has("unit") and not table.typed("unit", str):
            raise table.unusable("unit", "", "the name of a unit of length")
    if not all(MIN_LENGTH <= side <= MAX_LENGTH for side in sides):
        raise _unusable_study(f"{table.where}, cell", shorten(sides), f"sides from {MIN_LENGTH:g} to {MAX_LENGTH:g}")
    labels: Sequence[int] = range(columns * rows)
    whole = not table.has("cells")
    if not whole:
        listed = [as_whole(cell) for cell in table.typed("cells", list)]
        labels = sorted({cell for cell in listed if cell is not None and 0 <= cell < columns * rows})
        if None in listed or not set(listed) <= set(labels):
            raise table.unusable("cells", listed, f"cells of the grid: numbers from 0 to {columns * rows - 1}")
    positions = None if whole else {cell: position for position, cell in enumerate(labels)}

    def find(value: Any) -> int | None:
        if on_map and isinstance(value, list | tuple):
            latitude, longitude = (_parse_number(part) for part in value)
            if not (south <= latitude <= north and west <= longitude <= east):
                return None
            column = min(int((longitude - west) / (east - west) * columns), columns - 1)
            value = min(int((latitude - south) / (north - south) * rows), rows - 1) * columns + column
        number = _parse_whole(value)
        if number is None or not 0 <= number < columns * rows:
            return None
        return number if positions is None else positions.get(number)

    diameter = math.hypot((columns - 1) * sides[0], (rows - 1) * sides[1])
    if not whole:
        diameter = _kept_diameter([divmod(cell, columns) for cell in labels], sides)
    bounds = (south, west, north, east) if on_map else ()
    return StudyValues("grid", labels, find, None, columns, rows, sides, whole, diameter, bounds)


def _kept_diameter(cells: Sequence[tuple[int, int]], sides: tuple[float, float]) -> float:
    """Return the largest distance between cells, given as row and column in order: outermost ones of some rows."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for row, column in cells:
        first.setdefault(row, column)
        last[row] = column
    ends = [*first.items(), *last.items()]
    return max(
        (
            math.hypot((here - there) * sides[0], (row - other) * sides[1])
            for row, here in ends
            for other, there in ends
        ),
        default=0.0,
    )


class Combinations(Sequence[str]):
    """The possible combinations of a product, as reports write them, without listing them."""

    def __init__(self, attributes: Mapping[str, StudyValues], count: int, cells: Callable[[], Sequence[int]]) -> None:
        self._attributes, self._count, self._cells = attributes, count, cells

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: Any) -> Any:
        texts = []
        cell = self._cells()[position]
        for own in reversed(list(self._attributes.values())):
            cell, place = divmod(cell, len(own.labels))
            texts.append(str(own.labels[place]))
        return _written(dict(zip(self._attributes, reversed(texts), strict=True)))


def _parse_product(table: _StudyTable) -> StudyValues:
    tables = table.take("attributes")
    place = f"{table.where.rstrip(']')}.attributes"
    if not isinstance(tables, dict) or len(tables) < 2:
        raise _unusable_study(f"{place}]", shorten(tables), "a table for each of two attributes or more")
    attributes: dict[str, StudyValues] = {}
    for name, fields in tables.items():
        if not MECHANISM_NAME.fullmatch(name) or name in RESERVED_NAMES:
            expected = f"a name of up to 64 letters, digits, - and _, and none of {', '.join(RESERVED_NAMES)}"
            raise _unusable_study(f"{place}.{name[:64]}]", shorten(name), expected)
        attributes[name] = _parse_domain(_StudyTable(fields, f"{place}.{name}]"), ATTRIBUTE_DOMAINS)
    if table.has("order"):
        order = table.typed("order", list)
        if not all(isinstance(name, str) for name in order) or sorted(order) != sorted(attributes):
            raise table.unusable("order", order, f"each of {', '.join(attributes)} once")
        attributes = {name: attributes[name] for name in order}
    sides = [len(own.labels) for own in attributes.values()]
    size = math.prod(sides)
    if size > MAX_VALUES:
        raise _unusable_study(table.where, f"{size:,} combinations", f"at most {MAX_VALUES:,}")
    barred = _parse_rules(table, attributes) if table.has("impossible") else ()
    named = {name for rule in barred for name in rule}  # the others do not matter
    ranges = {name: range(side) for name, side in zip(attributes, sides, strict=True) if name in named}
    product = StudyValues("product", (), lambda _: None, attributes=attributes, barred=barred)
    possible = sum(
        not product.is_barred(dict(zip(ranges, at, strict=True))) for at in combinations_of(*ranges.values())
    )
    count = size // math.prod(map(len, ranges.values())) * possible

    @cache
    def cells() -> Sequence[int]:
        if not barred:
            return range(size)
        everything = enumerate(combinations_of(*(range(side) for side in sides)))
        return [cell for cell, at in everything if not product.is_barred(dict(zip(attributes, at, strict=True)))]

    def find(value: Any) -> int:
        cell = 0
        for side, at in zip(sides, product.coordinates(value), strict=True):
            cell = cell * side + at
        return bisect_left(cells(), cell)

    labels = Combinations(attributes, count, cells)
    diameter = float(len(attributes))
    return StudyValues("product", labels, find, diameter=diameter, attributes=attributes, barred=barred)


def _parse_rules(table: _StudyTable, attributes: Mapping[str, StudyValues]) -> list[dict[str, frozenset[int]]]:
    """Return combinations that are impossible: for some attributes, the positions of the values that cannot meet."""
    rules = []
    for rule in table.typed("impossible", list):
        if not isinstance(rule, dict) or not rule or not set(rule) <= set(attributes):
            raise table.unusable("impossible", rule, f"a table of values of {', '.join(attributes)}")
        places: dict[str, frozenset[int]] = {}
        for name, values in rule.items():
            found = [
                _label_position(attributes[name], value) for value in (values if isinstance(values, list) else [values])
            ]
            if not found or None in found:
                raise table.unusable("impossible", rule, f"values of {name}: labels, or lists of them")
            places[name] = frozenset(place for place in found if place is not None)
        rules.append(places)
    return rules


def _label_position(values: StudyValues, label: Any) -> int | None:
    """Return the position of a label itself, not of its text; for bins the number of a bin."""
    if values.kind != "categories":
        label = as_whole(label)
    known = not isinstance(label, bool | list | dict | None) and label in values.labels
    return values.labels.index(label) if known else None


def even_step(places: Sequence[float]) -> Fraction | None:
    """Return the step between evenly spaced places; None if they are not evenly spaced."""
    exact = [Fraction(place) for place in places]
    step = exact[1] - exact[0]
    return step if all(right - left == step for left, right in pairwise(exact)) else None


# --- the study's mechanisms ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MechanismFields:
    """A mechanism of the study, with the checks that the library makes when it reads the study."""

    kind: str
    where: str
    epsilon: float
    extra: Any  # size, buckets, regions, outputs, probabilities, the epsilon of one report, or whether it truncates
    plain: float = 0.0  # epsilon between the two values that are farthest apart
    parts: Mapping[str, MechanismFields] = field(default_factory=dict)  # of several attributes
    is_foreign: bool = False  # none of `MECHANISMS`: all that is known of it is its table
    rows: Sequence[Sequence[float]] = ()  # of a matrix whose epsilon is per unit of distance

    def plain_on(self, values: StudyValues) -> float:
        """Return epsilon between the two values that are farthest apart; of a matrix it is computed here."""
        return largest_rate(self.rows, values) * values.diameter if self.rows else self.plain

    def needs_tables(self, values: StudyValues) -> bool:
        """Whether its probabilities take more than the standard library to compute; those of its parts aside."""
        return self.is_foreign or self.kind in TABLED_MECHANISMS or (self.kind == "laplace" and values.step is None)


def _parse_mechanism(table: _StudyTable, values: StudyValues) -> MechanismFields:
    if table.has("kind") and is_foreign(kind := table.peek("kind")):
        return MechanismFields(kind, table.where, 0.0, None, is_foreign=True)
    kind = table.kind(tuple(MECHANISMS))
    if values.kind not in MECHANISMS[kind]:
        raise _unusable_study(table.where, f"{kind} on {values.kind}", f"a domain of {' or '.join(MECHANISMS[kind])}")
    if kind in WAYS_TO_REPORT:
        return _parse_way(table, kind, values)
    extra: Any = None
    epsilon = 0.0
    rows: Sequence[Sequence[float]] = ()
    if kind in _LINES and values.step is None:
        raise _unusable_study(table.where, f"{kind} on uneven bins", "integers, or bins of one width")
    if kind in _RATIOS or (kind == "randomized-response" and (table.has("p") or not table.has("epsilon"))):
        extra, plain = _RATIOS.get(kind, _parse_kept_truth)(table, values, kind)
    else:
        epsilon = table.real("epsilon", MIN_EPSILON, MAX_EPSILON)
        plain = epsilon * values.diameter if kind in METRIC_MECHANISMS else epsilon
        extra = _EXTRAS[kind](table, values, epsilon) if kind in _EXTRAS else None
    if kind == "matrix":
        extra, rows = extra
    table.close()
    if not values.whole and (kind == "planar-laplace" or (kind == "planar-geometric" and extra)):
        reach = [remapped_reach(epsilon, side) for side in values.sides]
        if (values.columns + 2 * reach[0]) * (values.rows + 2 * reach[1]) > MAX_REMAPPED_CELLS:
            expected = f"noise that reaches at most {MAX_REMAPPED_CELLS:,} cells, if cells are missing"
            raise table.unusable("epsilon", epsilon, expected)
    return MechanismFields(kind, table.where, epsilon, extra, plain, rows=rows)


def is_foreign(kind: object) -> bool:
    """Whether a kind may be that of a mechanism that is not hubbub's own. Its class is never imported here."""
    return isinstance(kind, str) and kind not in MECHANISMS and FOREIGN_KIND.fullmatch(kind) is not None


def _parse_way(table: _StudyTable, kind: str, values: StudyValues) -> MechanismFields:
    """Return a mechanism over several attributes; `extra` is which attribute is chosen, and how fakes are drawn."""
    tables = table.take("parts")
    if not isinstance(tables, dict) or set(tables) != set(values.attributes):
        raise table.unusable("parts", tables, f"a table for each of {', '.join(values.attributes)}")
    spelt = {}
    for name in values.attributes:
        place = _part_place(table.where, name)
        if not isinstance(tables[name], dict):
            raise _unusable_study(place, shorten(tables[name]), "a table")
        spelt[name] = spelt_out(tables[name], place)
    total = table.take("epsilon") if table.has("epsilon") else None
    budgets = part_budgets(kind, total, spelt, table.where)
    parts = {}
    for name, own in values.attributes.items():
        entries, part_kind = spelt[name], spelt[name].get("kind")
        if part_kind in (*WAYS_TO_REPORT, *MEMORY_MECHANISMS):
            expected = "a mechanism over one attribute, whose outputs do not depend on earlier ones"
            raise _unusable_study(f"{_part_place(table.where, name)}, kind", shorten(part_kind), expected)
        if name in budgets:
            metric = part_kind in METRIC_MECHANISMS
            epsilon = metric_epsilon(budgets[name], own.diameter) if metric else budgets[name]
            entries = {**{key: value for key, value in entries.items() if key != "share"}, "epsilon": epsilon}
        parts[name] = _parse_mechanism(_StudyTable(entries, _part_place(table.where, name)), own)
    if total is not None and not budgets and not any(part.is_foreign for part in parts.values()):
        plain = {name: part.plain_on(values.attributes[name]) for name, part in parts.items()}
        check_budget(kind, total, plain, table.where)
    chances = [Fraction(1, len(parts))] * len(parts)
    if "probabilities" in WAYS_TO_REPORT[kind] and table.has("probabilities"):
        given = table.take("probabilities")
        named = isinstance(given, dict) and set(given) == set(parts)
        exact = fractions_of_one([given[name] for name in parts]) if named else None
        if exact is None:
            raise table.unusable("probabilities", given, f"numbers that add up to 1 for {', '.join(parts)}")
        chances = exact
    fakes = _parse_fakes(table, values) if "fakes" in WAYS_TO_REPORT[kind] and table.has("fakes") else {}
    table.close()
    return MechanismFields(kind, table.where, 0.0, (chances, fakes), parts=parts)


def _parse_fakes(table: _StudyTable, values: StudyValues) -> dict[str, list[Fraction]]:
    """Return the distributions of fake values: floats as they are, and what lacks to 1 for the largest."""
    given = table.take("fakes")
    if not isinstance(given, dict) or not set(given) <= set(values.attributes):
        raise table.unusable("fakes", given, f"distributions for some of {', '.join(values.attributes)}")
    fakes = {}
    for name, listed in given.items():
        count = len(values.attributes[name].labels)
        shares = [as_real(share) for share in listed] if isinstance(listed, list) else []
        if len(shares) != count or not all(0 <= share < 2 for share in shares) or abs(math.fsum(shares) - 1) > 1e-9:
            raise table.unusable("fakes", listed, f"{count} probabilities that add up to 1, for {name}")
        if min(shares) < max(shares):  # equal ones are drawn as whole numbers
            exact = [Fraction(share) for share in shares]
            exact[shares.index(max(shares))] += 1 - sum(exact)
            fakes[name] = exact
    return fakes


def _parse_kept_truth(table: _StudyTable, values: StudyValues, _kind: str) -> tuple[Fraction, float]:
    """Return p of randomized response and its epsilon."""
    count = len(values.labels)
    if table.has("epsilon") == table.has("p"):
        raise _unusable_study(table.where, "epsilon and p, or neither", "one of epsilon and p")
    p = table.probability("p")
    if not Fraction(1, count) < p < 1:
        raise table.unusable("p", str(p), f"p above 1/{count} and below 1")
    return p, _checked_ratio(table, p * (count - 1) / (1 - p))


def _parse_chances(table: _StudyTable, values: StudyValues, kind: str) -> tuple[tuple[Fraction, Fraction], float]:
    """Return the probabilities of a survey design's first answer, for each of two values, and its epsilon."""
    (names, expected), count = SURVEY_DESIGNS[kind], len(values.labels)
    if count != 2:
        raise _unusable_study(table.where, f"{kind} on {count} values", "two values, the sensitive one first")
    parameters = [table.probability(name) for name in names]
    chances = design_chances(kind, parameters)
    if chances is None:
        raise table.unusable(" and ".join(names), [str(each) for each in parameters], expected)
    return chances, _checked_ratio(table, largest_chance_ratio(chances))


def _parse_bit_chances(table: _StudyTable, _values: StudyValues, _kind: str) -> tuple[tuple[Fraction, Fraction], float]:
    """Return the probabilities of a one in the value's own bit and in another's, and their epsilon."""
    p, q = table.probability("p"), table.probability("q")
    if not 0 < q < p < 1:
        raise table.unusable("p and q", [str(p), str(q)], "0 < q < p < 1")
    return (p, q), _checked_ratio(table, p * (1 - q) / (q * (1 - p)))


def _checked_ratio(table: _StudyTable, ratio: Fraction | None) -> float:
    """Return the epsilon of a ratio; refuse one too small or too large, but not an infinite one, chosen on purpose."""
    epsilon = epsilon_of_ratio(ratio)
    if ratio is not None and not MIN_EPSILON <= epsilon <= MAX_EPSILON:
        expected = f"probabilities that make epsilon at least {MIN_EPSILON:g} and at most {MAX_EPSILON:g}"
        raise _unusable_study(table.where, f"epsilon {epsilon:g}", expected)
    return epsilon


def _parse_regions(table: _StudyTable, values: StudyValues, _kind: str) -> tuple[list[Any], float]:
    """Return the region of each value; there is no bound on what regions give away."""
    regions, count = table.take("regions"), len(values.labels)
    listed = list(regions.values()) if isinstance(regions, dict) else regions
    if not isinstance(listed, list) or len(listed) != count or not all(is_label(region) for region in listed):
        raise table.unusable("regions", regions, f"a text or whole number, one for each of {count} values")
    if isinstance(regions, dict):
        if not all(label in regions for label in values.labels):
            raise table.unusable("regions", regions, "a region for each value, under its label")
        listed = [regions[label] for label in values.labels]
    distinct = set(listed)
    if len({str(region) for region in distinct}) < len(distinct):
        raise table.unusable("regions", regions, "labels that differ when written down")
    return listed, math.inf


def _parse_matrix(
    table: _StudyTable, values: StudyValues, _kind: str
) -> tuple[tuple[list[Any], Sequence[Sequence[float]]], float]:
    """Return the outputs of a matrix, its rows where epsilon is per unit of distance, and plain epsilon elsewhere."""
    listed, count = table.labels("outputs", (str, int, float)), len(values.labels)
    rows, outputs = table.typed("probabilities", list), len(listed)
    if len(rows) != count or not all(isinstance(row, list) and len(row) == outputs for row in rows):
        raise table.unusable("probabilities", rows, f"{count} rows of {outputs} probabilities")
    for row in rows:
        shares = [float(share) if isinstance(share, bool) else as_real(share) for share in row]
        if not all(0 <= share < 2 for share in shares) or not abs(math.fsum(shares) - 1) <= 1e-9:
            raise table.unusable("probabilities", row, "probabilities of at least 0 that sum to 1 in every row")
    metric = table.has("metric") and table.typed("metric", bool)
    if table.has("origin") and not is_provenance(origin := table.take("origin")):
        raise table.unusable("origin", origin, f"one line of at most {MAX_PROVENANCE_LETTERS:,} characters")
    floats = [[float(share) for share in row] for row in rows]
    if metric:
        return (listed, floats), 0.0
    return (listed, ()), _largest_log_ratio(zip(*floats, strict=True))


def is_provenance(text: object) -> bool:
    """Whether something can say where a matrix is from: one line that a terminal shows as it is."""
    return isinstance(text, str) and len(text) <= MAX_PROVENANCE_LETTERS and text.isprintable()


def _largest_log_ratio(columns: Iterable[Sequence[float]]) -> float:
    """Return the largest log-ratio within a column; infinity where only some values can have an output."""
    largest = 0.0
    for column in columns:
        low, high = min(column), max(column)
        if high > 0:
            largest = max(largest, math.log(high) - math.log(low) if low > 0 else math.inf)
    return largest


def largest_rate(rows: Sequence[Sequence[float]], values: StudyValues) -> float:
    """Return the largest log-ratio of two rows per unit of distance; on a line neighbours decide."""
    on_line = values.kind in ("integers", "bins")
    pairs = pairwise(range(len(rows))) if on_line else pairs_of(range(len(rows)), 2)
    largest = 0.0
    for value, other in pairs:
        apart, log = values.distance(value, other), _largest_log_ratio(zip(rows[value], rows[other], strict=True))
        largest = max(largest, log / apart if apart else math.inf if log else 0.0)
    return largest


def _parse_bloom(table: _StudyTable, values: StudyValues, _kind: str) -> tuple[dict[str, Any], float]:
    """Return cohorts, bits, hashes, f, p and q of Bloom-filter RAPPOR, and the label of texts that are not listed."""
    limits = {"cohorts": (1, MAX_COHORTS), "bits": (2, MAX_FILTER_BITS), "hashes": (1, MAX_HASHES)}
    sizes = {name: table.whole(name, *limits[name]) for name in limits}
    bits, hashes = sizes["bits"], sizes["hashes"]
    given = [name for name in ("f", "p", "q") if table.has(name)]
    if table.has("epsilon") == bool(given):
        raise _unusable_study(table.where, "epsilon and f, or neither", "epsilon, or f, p and q")
    if given:
        f, p, q = (table.probability(name) for name in ("f", "p", "q"))
        if f == 1 or p >= q or (f == 0 and (p == 0 or q == 1)):
            got = f"f = {f}, p = {p}, q = {q}"
            raise _unusable_study(table.where, got, "f below 1, p below q, and some noise in each bit")
        _checked_ratio(table, bloom_ratio(*bloom_chances(f, p, q), bits, hashes))
        _checked_ratio(table, bloom_ratio(f / 2, 1 - f / 2, bits, hashes))
    else:
        epsilon = table.real("epsilon", MIN_EPSILON, MAX_EPSILON)
        first = table.real("first", MIN_EPSILON, MAX_EPSILON) if table.has("first") else epsilon
        if first > epsilon:
            raise table.unusable("first", first, f"first at most epsilon, which is {epsilon:g}")
        f, p, q = bloom_parameters(bits, hashes, Fraction(epsilon), Fraction(first))
    rest = table.take("rest") if table.has("rest") else None
    if rest is not None and (not isinstance(rest, str) or values.find(rest) is None):
        raise table.unusable("rest", rest, "one of the labels")
    listed = [str(label) for label in values.labels if str(label) != rest]
    differ = rest is not None or any(
        set(bloom_bits(text, cohort, bits, hashes)) != set(bloom_bits(listed[0], cohort, bits, hashes))
        for cohort in range(sizes["cohorts"])
        for text in listed[1:]
    )
    if not differ:
        raise _unusable_study(table.where, "the same filter for all texts", "more bits, or more cohorts")
    return {**sizes, "f": f, "p": p, "q": q, "rest": rest}, 0.0


_RATIOS = {  # mechanisms whose epsilon follows from other entries: what these say, and the epsilon
    "bloom-rappor": _parse_bloom,
    "cloaking": _parse_regions,
    "matrix": _parse_matrix,
    **dict.fromkeys(SURVEY_DESIGNS, _parse_chances),
    "unary": _parse_bit_chances,
}


def _parse_first(table: _StudyTable, _values: StudyValues, epsilon: float) -> float:
    """Return the epsilon of a single report."""
    first = table.real("first", MIN_EPSILON, MAX_EPSILON)
    if first >= epsilon:
        raise table.unusable("first", first, f"first below epsilon, which is {epsilon:g}")
    return first


def _parse_stages(table: _StudyTable, values: StudyValues, epsilon: float) -> dict[str, Any]:
    """Return the epsilon of a single report, and how the two stages of unary encoding treat bits."""
    first = _parse_first(table, values, epsilon)
    stages = {}
    for name, default in (("permanent_bits", "oue"), ("instantaneous_bits", "sue")):
        stages[name] = table.take(name) if table.has(name) else default
        if stages[name] not in UNARY_STAGES:
            raise table.unusable(name, stages[name], f"one of {', '.join(UNARY_STAGES)}")
    if two_stage_unary_parameters(Fraction(epsilon), Fraction(first), **stages)[-1] == 0:
        limit = largest_first(epsilon, stages["permanent_bits"])
        raise table.unusable("first", first, f"first below {limit}, or instantaneous_bits = 'sue'")
    return {"first": first, **stages}


def _parse_memory_buckets(table: _StudyTable, values: StudyValues, epsilon: float) -> tuple[float, int]:
    """Return the epsilon of a single report, and the number of buckets."""
    first = _parse_first(table, values, epsilon)
    given = table.has("buckets")
    return first, table.whole("buckets", 2, MAX_BUCKETS) if given else default_memory_buckets(epsilon, first)


def _parse_asked(table: _StudyTable, values: StudyValues, _epsilon: float) -> tuple[int, int]:
    """Return the number of buckets, and about how many of them a person is asked."""
    count = len(values.labels)
    buckets = table.whole("buckets", 2, count) if table.has("buckets") else count
    return buckets, table.whole("bits", 1, buckets) if table.has("bits") else buckets


def _parse_size(table: _StudyTable, values: StudyValues, epsilon: float) -> int:
    count = len(values.labels)
    return table.whole("size", 1, count - 1) if table.has("size") else default_size(count, epsilon)


def _parse_buckets(table: _StudyTable, _values: StudyValues, epsilon: float) -> int:
    return table.whole("buckets", 2, MAX_BUCKETS) if table.has("buckets") else default_buckets(epsilon)


def _parse_reach(table: _StudyTable, values: StudyValues, epsilon: float) -> int:
    count = len(values.labels)
    return table.whole("reach", 0, count) if table.has("reach") else default_reach(count, epsilon)


def _parse_mean_reach(table: _StudyTable, values: StudyValues, epsilon: float) -> int:
    count = len(values.labels)
    return table.whole("reach", 0, count) if table.has("reach") else default_mean_reach(count, epsilon)


def _parse_stairs(table: _StudyTable, values: StudyValues, epsilon: float) -> int:
    """Return the reach of the lowest stair."""
    count = len(values.labels)
    if not table.has("gamma"):
        return default_stair_reach(count, epsilon)
    gamma = table.probability("gamma")
    if gamma == 0:
        raise table.unusable("gamma", "0", "a number above 0, and at most 1")
    return stair_reach(count, gamma)


def _parse_blocks(table: _StudyTable, values: StudyValues, epsilon: float) -> int:
    count = len(values.labels)
    if not table.has("blocks"):
        return default_blocks(count, epsilon)
    blocks = table.whole("blocks", 1, 2 * count - 1)
    if blocks & (blocks - 1):
        raise table.unusable("blocks", blocks, "a power of two")
    return blocks


def _parse_prime(table: _StudyTable, values: StudyValues, epsilon: float) -> int:
    count = len(values.labels)
    prime = table.whole("prime", 2, MAX_OUTPUTS - 1) if table.has("prime") else default_prime(count, epsilon)
    if not is_prime(prime):
        raise table.unusable("prime", prime, "a prime number")
    if points(prime, space_dimensions(count, prime)) > MAX_OUTPUTS:
        raise table.unusable("prime", prime, f"a prime for which there are at most {MAX_OUTPUTS} points")
    return prime


def _parse_sketch(table: _StudyTable, _values: StudyValues, _epsilon: float) -> tuple[int, int]:
    """Return the number of hashes, and the number of bits into which each maps the values."""
    hashes = table.whole("hashes", 1, MAX_SKETCH_HASHES) if table.has("hashes") else DEFAULT_HASHES
    return hashes, table.whole("width", 2, MAX_SKETCH_BITS) if table.has("width") else DEFAULT_SKETCH_BITS


def _parse_signs(table: _StudyTable, values: StudyValues, epsilon: float) -> tuple[int, int]:
    """Return the same; the number of bits is a power of two."""
    hashes, width = _parse_sketch(table, values, epsilon)
    if width & (width - 1):
        raise table.unusable("width", width, "a power of two")
    return hashes, width


def _parse_truncated(table: _StudyTable, _values: StudyValues, _epsilon: float) -> bool:
    return bool(table.typed("truncated", bool)) if table.has("truncated") else True


_EXTRAS: dict[
    str, Callable[[_StudyTable, StudyValues, float], Any]
] = {  # what else defines a mechanism with an epsilon
    "count-mean-sketch": _parse_sketch,
    "d-bit-flip": _parse_asked,
    "hadamard-count-mean-sketch": _parse_signs,
    "hadamard-response": _parse_blocks,
    "local-hashing": _parse_buckets,
    "longitudinal-hashing": _parse_memory_buckets,
    "longitudinal-rappor": _parse_first,
    "longitudinal-response": _parse_first,
    "longitudinal-unary": _parse_stages,
    "piecewise": _parse_mean_reach,
    "planar-geometric": _parse_truncated,
    "projective-response": _parse_prime,
    "square-wave": _parse_reach,
    "staircase": _parse_stairs,
    "subset-selection": _parse_size,
}
_LINES = ("duchi", "piecewise", "staircase")  # which need evenly spaced values


def short_name(kind: object) -> str | None:
    """Return the entry of `SHORT_NAMES` that a kind is, in any case and with or without a hyphen; None if it is none.

    >>> short_name("k-RR"), short_name("OUE"), short_name("randomized-response")
    ('krr', 'oue', None)
    """
    name = kind.lower().replace("-", "") if isinstance(kind, str) else ""
    return name if name in SHORT_NAMES else None


def spelt_out(fields: Any, where: str) -> Any:
    """Return the entries of a mechanism with its kind in full, so that two spellings are one mechanism."""
    short = short_name(fields.get("kind")) if isinstance(fields, Mapping) else None
    if short is None:
        return fields
    kind, implied = SHORT_NAMES[short]
    for name in implied:
        if name in fields:
            raise ClientError(
                f"{short} says what {name} is",
                where=f"{where}, {name}",
                got=f"kind = {shorten(fields['kind'])}, and {name} = {shorten(fields[name])}",
                expected=f"{short} alone, or kind = {kind!r} with {name}",
                remedy=f"leave {name} out, or write the kind in full",
            )
    return {**fields, **{name: value for name, value in implied.items() if value is not None}, "kind": kind}


def remapped_reach(epsilon: float, side: float) -> int:
    """Return how many cells beyond a grid with missing cells noise is remapped from."""
    return math.ceil(NEGLIGIBLE_NATS / (epsilon * side))


# --- budgets of several attributes -----------------------------------------------------------------------------------


def fractions_of_one(values: Sequence[Any]) -> list[Fraction] | None:
    """Return numbers as fractions that add up to 1, divided by their sum if rounding made that differ; else None."""
    fractions = [as_probability(value) for value in values]
    exact = [each for each in fractions if each]
    total = sum(exact, Fraction(0))
    if len(exact) < len(values) or abs(total - 1) > Fraction(1, 10**9):
        return None
    divided = [each / total for each in exact]
    return divided if all(PROBABILITY.fullmatch(str(each)) for each in divided) else None


def metric_epsilon(plain: float, diameter: float) -> float:
    """Return the epsilon per unit of distance that a plain one allows: no two values are farther apart."""
    epsilon = plain / diameter
    while Fraction(epsilon) * Fraction(diameter) > plain:  # rounding must not spend more
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon


def divided_budget(total: float, shares: Sequence[Fraction]) -> list[float]:
    """Return the parts of a budget: shares of it, rounded so that their exact sum is not above it.

    >>> divided_budget(0.23, [Fraction(1, 3)] * 3)  # thrice the nearest number is 0.23000000000000004
    [0.07666666666666666, 0.07666666666666666, 0.07666666666666666]
    """
    exact = [Fraction(total) * share for share in shares]
    parts = [float(part) for part in exact]
    if sum(map(Fraction, parts)) <= total:
        return parts
    return [math.nextafter(part, 0.0) if part > own else part for part, own in zip(parts, exact, strict=True)]


def part_budgets(kind: str, total: Any, parts: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, float]:
    """Return the plain epsilon of each attribute, of a total for all; nothing where each states its own.

    `split` divides the total by the parts' shares, equally if there are none. The others report one attribute with
    the whole total.
    """
    sharing = [name for name, entries in parts.items() if "share" in entries]
    stated = [name for name, entries in parts.items() if _states_epsilon(entries)]
    twice = [name for name in sharing if "epsilon" in parts[name] or "p" in parts[name]]
    if sharing and (kind != "split" or total is None or twice):
        name = (twice or sharing)[0]
        if kind != "split":
            what, got = f"{kind} does not divide a budget", f"share = {shorten(parts[name]['share'])}"
            expected, remedy = "the same epsilon for every attribute: only one of them is reported", "leave share out"
        elif total is None:
            what, got, expected = (
                "a share of nothing",
                "no epsilon for all attributes",
                "epsilon = ..., and shares of it",
            )
            remedy = "add epsilon to the mechanism, or give each part its own instead of a share"
        else:
            what, got = f"{name} has two budgets", "epsilon and share" if "epsilon" in parts[name] else "p and share"
            expected, remedy = "one of the two", "leave one of them out"
        raise ClientError(what, where=_part_place(where, name, "share"), got=got, expected=expected, remedy=remedy)
    if total is None:
        return {}
    if not MIN_EPSILON <= as_real(total) <= MAX_EPSILON:
        raise ClientError(
            "the budget is not a positive number",
            where=f"{where}, epsilon",
            got=shorten(total),
            expected=f"a number from {MIN_EPSILON:g} to {MAX_EPSILON:g}",
            remedy="typical values lie between 0.1 and 10",
        )
    some = sharing or stated
    if some and len(some) < len(parts):
        name = next(name for name in parts if name not in some)
        word = "share" if sharing else "epsilon"
        fixed = sharing and name in stated
        raise ClientError(
            f"{name} has no {word}",
            where=_part_place(where, name),
            got=f"an epsilon of its own, and a share for {', '.join(some)}" if fixed else f"one for {', '.join(some)}",
            expected=f"{word} for every attribute, or for none",
            remedy="state epsilon for every attribute instead" if fixed else f"add {word} = ...",
        )
    if not some:
        if kind != "split":
            return dict.fromkeys(parts, as_real(total))
        return dict(zip(parts, divided_budget(as_real(total), [Fraction(1, len(parts))] * len(parts)), strict=True))
    if not sharing:
        return {}
    shares = fractions_of_one([parts[name]["share"] for name in parts])
    if shares is None:
        given = [as_probability(entries["share"]) for entries in parts.values()]
        bad = next((name for name, share in zip(parts, given, strict=True) if not share), None)
        raise ClientError(
            "the shares do not add up to 1" if bad is None else "a share is not between 0 and 1",
            where=f"{where}, epsilon" if bad is None else _part_place(where, bad, "share"),
            got=f"a sum of {float(sum(share or 0 for share in given)):.12g}"
            if bad is None
            else shorten(parts[bad]["share"]),
            expected="1" if bad is None else "a number above 0 and up to 1, or a text such as '1/3'",
            remedy="divide each by their sum" if bad is None else "state which part of epsilon the attribute gets",
        )
    return dict(zip(parts, divided_budget(as_real(total), shares), strict=True))


def check_budget(kind: str, total: float, plain: Mapping[str, float], where: str) -> None:
    """Refuse a total that the epsilons of the parts (plain) do not make."""
    made = math.fsum(plain.values()) if kind == "split" else max(plain.values())
    if abs(made - total) <= 1e-9 * total:
        return
    terms = (" + " if kind == "split" else ", ").join(f"{epsilon:.6g} for {name}" for name, epsilon in plain.items())
    raise ClientError(
        "the budgets of the attributes do not add up" if kind == "split" else "no attribute has the stated budget",
        where=f"{where}, epsilon",
        got=f"epsilon = {total:.6g}, and {terms}" + (f" = {made:.6g}" if kind == "split" else ""),
        expected=f"the {'sum' if kind == 'split' else 'largest'}, {made:.6g}; an epsilon per unit of distance counts "
        "with the diameter of its domain",
        remedy="leave epsilon out of the mechanism, or out of its parts"
        + (", which then get a share each" if kind == "split" else ", which then get all of it"),
    )


def _states_epsilon(entries: Mapping[str, Any]) -> bool:
    """Whether a part says how private it is."""
    return "epsilon" in entries or "p" in entries or entries.get("kind") in ("cloaking", "matrix", *SURVEY_DESIGNS)


def _part_place(where: str, name: str, entry: str = "") -> str:
    """Return the place of a part's table, or of an entry in it."""
    return f"{where.rstrip(']')}.parts.{name[:64]}]" + (f", {entry}" if entry else "")


# --- draws from a study ----------------------------------------------------------------------------------------------

Draw = Callable[[int], str]  # from the position of a value to an output, as reports write it
CombinationDraw = Callable[[tuple[int, ...]], str]  # from the positions of several attributes


def drawn_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    """Return the whole numbers, fractions and texts that outputs of a mechanism without tables are drawn from.

    Clients in other languages get the same ones (`hubbub export-client`).
    """
    return _NUMBERS[mechanism.kind](mechanism, values)


def _region_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    return {"regions": [str(region) for region in mechanism.extra]}


def _design_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    answers = CROSSWISE_ANSWERS if mechanism.kind == "crosswise-model" else values.labels
    return {"answers": [str(answer) for answer in answers], "chances": list(mechanism.extra)}


def _response_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    count = len(values.labels)
    if mechanism.extra is not None:
        return {"kept": kept_truth(count, mechanism.extra)}
    return _keep_numbers(count, mechanism.epsilon)


def _keep_numbers(count: int, epsilon: float) -> dict[str, Any]:
    return dict(zip(("width", "keep"), response_parameters(count, Fraction(epsilon)), strict=True))


def _hashing_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    return {"buckets": mechanism.extra, **_keep_numbers(mechanism.extra, mechanism.epsilon)}


def _window_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    reach = mechanism.extra
    width, keep = response_parameters(len(values.labels) + 2 * reach, Fraction(mechanism.epsilon), 2 * reach + 1)
    return {"reach": reach, "width": width, "keep": keep}


def _end_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    return _keep_numbers(2, mechanism.epsilon)


def _stair_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    _check_steps(mechanism, mechanism.epsilon, mechanism.epsilon, MIN_NOISE_RATE)
    epsilon = Fraction(mechanism.epsilon) * EPSILON_SHRINK
    return {"reach": mechanism.extra, "noise": stair_noise(epsilon, mechanism.extra, len(values.labels) - 1)}


def _chance_bit_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    return {"chances": list(mechanism.extra)}


def _block_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    blocks = mechanism.extra
    size = block_size(len(values.labels), blocks)
    width, keep = response_parameters(blocks * size, Fraction(mechanism.epsilon), size // 2)
    return {"blocks": blocks, "width": width, "keep": keep}


def _point_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    prime, dimensions = mechanism.extra, space_dimensions(len(values.labels), mechanism.extra)
    outputs, size = (points(prime, dimensions - part) for part in (0, 1))
    width, keep = response_parameters(outputs, Fraction(mechanism.epsilon), size)
    return {"prime": prime, "width": width, "keep": keep}


def _sketch_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    hashes, buckets = mechanism.extra
    return {"hashes": hashes, "buckets": buckets, **_symmetric_bit_numbers(mechanism, values)}


def _sign_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    hashes, buckets = mechanism.extra
    return {"hashes": hashes, "buckets": buckets, **_keep_numbers(2, mechanism.epsilon)}


def _symmetric_bit_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    width, one = flip_parameters(Fraction(mechanism.epsilon) / 2)
    return {"width": width, "own": (1 << width) - one, "other": one}


def _optimized_bit_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    width, one = flip_parameters(Fraction(mechanism.epsilon))
    return {"width": width, "own": 1 << (width - 1), "other": one}


def _longitudinal_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    parameters = longitudinal_parameters(Fraction(mechanism.epsilon), Fraction(mechanism.extra))
    return dict(zip(("width", "one", "turned"), parameters, strict=True))


def _two_response_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    return _two_keep_numbers(len(values.labels), mechanism.epsilon, mechanism.extra)


def _two_keep_numbers(count: int, epsilon: float, first: float) -> dict[str, Any]:
    parameters = two_stage_response_parameters(count, Fraction(epsilon), Fraction(first))
    return dict(zip(("width", "permanent", "instantaneous"), parameters, strict=True))


def _two_hashing_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    first, buckets = mechanism.extra
    return {"buckets": buckets, **_two_keep_numbers(buckets, mechanism.epsilon, first)}


def _two_unary_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    stages = {name: entry for name, entry in mechanism.extra.items() if name != "first"}
    parameters = two_stage_unary_parameters(Fraction(mechanism.epsilon), Fraction(mechanism.extra["first"]), **stages)
    return dict(zip(("width", "own", "other", "lost", "raised"), parameters, strict=True))


def _asked_numbers(mechanism: MechanismFields, _values: StudyValues) -> dict[str, Any]:
    buckets, bits = mechanism.extra
    return {"buckets": buckets, "bits": bits, **asked_parameters(Fraction(mechanism.epsilon), bits)}


def _bloom_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    extra = mechanism.extra
    rest = None if extra["rest"] is None else values.find(extra["rest"])
    return {
        **{name: extra[name] for name in ("cohorts", "bits", "hashes")},
        "half": extra["f"] / 2,
        "p": extra["p"],
        "q": extra["q"],
        **({} if rest is None else {"rest": rest}),
    }


def _subset_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    width, out = subset_parameters(len(values.labels), mechanism.extra, Fraction(mechanism.epsilon))
    return {"size": mechanism.extra, "width": width, "out": out}


def _planar_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    epsilon = mechanism.epsilon
    _check_steps(mechanism, epsilon * min(values.sides), epsilon * max(values.sides), MIN_NOISE_RATE)
    axes = [axis_noise(epsilon, side) for side in values.sides]
    return {"rate": Fraction(epsilon) * EPSILON_SHRINK, "axes": axes, "truncated": mechanism.extra}


def _line_numbers(mechanism: MechanismFields, values: StudyValues) -> dict[str, Any]:
    kind = mechanism.kind
    rate = Fraction(mechanism.epsilon) * EPSILON_SHRINK * (values.step if values.step is not None else 1)
    if kind != "truncated-geometric":
        step = mechanism.epsilon if kind == "geometric" else float(rate)
        _check_steps(mechanism, step, step, MIN_NOISE_RATE if kind == "geometric" else MIN_STEP_NATS)
    return {"noise": line_noise(rate, rounded=kind == "laplace")}


_NUMBERS: dict[str, Callable[[MechanismFields, StudyValues], dict[str, Any]]] = {
    "cloaking": _region_numbers,
    **dict.fromkeys(SURVEY_DESIGNS, _design_numbers),
    "randomized-response": _response_numbers,
    "local-hashing": _hashing_numbers,
    "rappor": _symmetric_bit_numbers,
    "optimized-unary": _optimized_bit_numbers,
    "longitudinal-rappor": _longitudinal_numbers,
    "longitudinal-response": _two_response_numbers,
    "longitudinal-unary": _two_unary_numbers,
    "longitudinal-hashing": _two_hashing_numbers,
    "d-bit-flip": _asked_numbers,
    "bloom-rappor": _bloom_numbers,
    "subset-selection": _subset_numbers,
    **dict.fromkeys(("square-wave", "piecewise"), _window_numbers),
    "duchi": _end_numbers,
    "staircase": _stair_numbers,
    "unary": _chance_bit_numbers,
    "hadamard-response": _block_numbers,
    "projective-response": _point_numbers,
    "count-mean-sketch": _sketch_numbers,
    "hadamard-count-mean-sketch": _sign_numbers,
    "planar-geometric": _planar_numbers,
    **dict.fromkeys(("geometric", "truncated-geometric", "laplace"), _line_numbers),
}


def _make_draw(mechanism: MechanismFields, values: StudyValues) -> Draw:
    """Return the function that draws outputs of a mechanism."""
    if mechanism.needs_tables(values):
        raise ClientError(
            "this mechanism needs a file of tables",
            where=mechanism.where,
            got=f"{mechanism.kind} on {values.kind}, and no tables",
            expected="a file written by: hubbub privatize STUDY --export-tables FILE",
            remedy="pass it as Client(study, tables)",
        )
    return _DRAWS[mechanism.kind](mechanism, values, drawn_numbers(mechanism, values))


def _region_draw(_mechanism: MechanismFields, _values: StudyValues, law: Mapping[str, Any]) -> Draw:
    return lambda position: str(law["regions"][position])


def _design_draw(_mechanism: MechanismFields, _values: StudyValues, law: Mapping[str, Any]) -> Draw:
    return lambda position: str(law["answers"][0 if draw_chance(law["chances"][position]) else 1])


def _response_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    count, labels = len(values.labels), values.labels
    if "kept" in law:
        return lambda position: str(labels[(random_below(count), position)[draw_chance(law["kept"])]])
    return lambda position: str(labels[draw_response(position, count, law["width"], law["keep"])])


def _hashed_draw(_mechanism: MechanismFields, _values: StudyValues, law: Mapping[str, Any]) -> Draw:
    buckets, width, keep = law["buckets"], law["width"], law["keep"]

    def draw(position: int) -> str:
        seed = random_bits(64)
        return f"{seed}:{draw_response(bucket_of(seed, position, buckets), buckets, width, keep)}"

    return draw


def _window_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    reach, width, keep = law["reach"], law["width"], law["keep"]
    first, outputs = values.labels[0] - reach, len(values.labels) + 2 * reach

    def draw(position: int) -> str:
        near = position + random_below(2 * reach + 1)
        return str(first + draw_response(near, outputs, width, keep))

    return draw


def _end_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    steps, width, keep = len(values.labels) - 1, law["width"], law["keep"]
    return lambda position: ("-1", "1")[draw_response(int(random_below(steps) < position), 2, width, keep)]


def _stair_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    noise, reach, stair = law["noise"], law["reach"], len(values.labels) - 1
    return lambda position: str(values.labels[position] + draw_stairs(noise, reach, stair))


def _chance_bit_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    count, (own, other) = len(values.labels), law["chances"]
    return lambda position: packed_hex([draw_chance(own if bit == position else other) for bit in range(count)])


def _block_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    blocks, size = law["blocks"], block_size(len(values.labels), law["blocks"])

    def draw(position: int) -> str:
        member = block_member(position, random_below(size // 2), blocks, size)
        return str(draw_response(member, blocks * size, law["width"], law["keep"]))

    return draw


def _point_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    prime, dimensions = law["prime"], space_dimensions(len(values.labels), law["prime"])
    outputs, size = (points(prime, dimensions - part) for part in (0, 1))

    def draw(position: int) -> str:
        member = point_member(position, random_below(size), prime, dimensions)
        return str(draw_response(member, outputs, law["width"], law["keep"]))

    return draw


def _sketch_draw(_mechanism: MechanismFields, _values: StudyValues, law: Mapping[str, Any]) -> Draw:
    buckets = law["buckets"]

    def draw(position: int) -> str:
        number = random_below(law["hashes"])
        own = bucket_of(number, position, buckets)
        return f"{number}:{packed_hex(draw_bits(buckets, own, law['width'], law['own'], law['other']))}"

    return draw


def _sign_draw(_mechanism: MechanismFields, _values: StudyValues, law: Mapping[str, Any]) -> Draw:
    buckets = law["buckets"]

    def draw(position: int) -> str:
        number, row = random_below(law["hashes"]), random_below(buckets)
        sign = bin(row & bucket_of(number, position, buckets)).count("1") % 2
        return str(2 * (number * buckets + row) + draw_response(sign, 2, law["width"], law["keep"]))

    return draw


def _bit_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    count = len(values.labels)
    return lambda position: packed_hex(draw_bits(count, position, law["width"], law["own"], law["other"]))


def _subset_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    count = len(values.labels)
    return lambda position: packed_hex(draw_subset(count, position, law["size"], law["width"], law["out"]))


def _planar_draw(mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    def draw(position: int) -> str:
        column, row = values.cell_at(position, draw_planar_noise(mechanism.epsilon, values.sides))
        return str(values.labels[values.nearest(column, row)]) if law["truncated"] else f"{column}:{row}"

    return draw


def _endless_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    return lambda position: str(values.labels[position] + law["noise"].draw())


def _clamped_draw(_mechanism: MechanismFields, values: StudyValues, law: Mapping[str, Any]) -> Draw:
    count, labels = len(values.labels), values.labels
    return lambda position: str(labels[min(max(position + law["noise"].draw(count), 0), count - 1)])


@dataclass(frozen=True)
class TwoStages:
    """A mechanism with memory: a permanent response, the text that a device keeps of it, and reports made from it."""

    permanent: Callable[
        [Any, Sequence[Any]], Any
    ]  # from a position (or a text), and earlier responses of the same person
    report: Callable[[Any], str]  # from a permanent response
    write: Callable[[Any], str]
    read: Callable[[str], Any]  # None if the text was not written here
    form: str  # of such a text


def _two_stages(mechanism: MechanismFields, values: StudyValues) -> TwoStages:
    """Return how a mechanism with memory is drawn."""
    return _STAGES[mechanism.kind](values, drawn_numbers(mechanism, values))


def _remembered_draw(mechanism: MechanismFields, values: StudyValues, _law: Mapping[str, Any]) -> Draw:
    """Return reports of people who have no permanent response yet, and keep none."""
    stages = _two_stages(mechanism, values)
    return lambda position: stages.report(stages.permanent(position, ()))


def _bit_stages(values: StudyValues, law: Mapping[str, Any]) -> TwoStages:
    count, width = len(values.labels), law["width"]
    names = ("one", "turned", "turned") if "one" in law else ("other", "lost", "raised")  # RAPPOR is symmetric
    other, lost, raised = (law[name] for name in names)
    own = law.get("own", (1 << width) - other)
    return TwoStages(
        permanent=lambda position, _: draw_bits(count, position, width, own, other),
        report=lambda row: packed_hex(flip_bits(row, width, lost, raised)),
        write=packed_hex,
        read=lambda text: _packed_bits(text, count),
        form=f"0x and {2 * -(-count // 8)} hexadecimal digits: {count} bits, then zeros",
    )


def _packed_bits(text: str, count: int) -> list[bool] | None:
    """Return what `packed_hex` wrote of `count` bits; None for other texts."""
    digits = text.removeprefix("0x")
    fits = len(digits) == 2 * -(-count // 8) and set(digits) <= set(string.hexdigits)
    row = f"{int(digits, 16):0{4 * len(digits)}b}" if fits else "1" * (count + 1)
    return None if "1" in row[count:] else [bit == "1" for bit in row[:count]]


def _response_stages(values: StudyValues, law: Mapping[str, Any]) -> TwoStages:
    count, labels, width = len(values.labels), values.labels, law["width"]
    return TwoStages(
        permanent=lambda position, _: draw_response(position, count, width, law["permanent"]),
        report=lambda kept: str(labels[draw_response(kept, count, width, law["instantaneous"])]),
        write=str,
        read=lambda text: _whole_below(text, count),
        form=f"a whole number below {count}",
    )


def _whole_below(text: str, limit: int) -> int | None:
    number = int(text) if re.fullmatch("[0-9]{1,20}", text) else limit
    return number if number < limit else None


def _hashing_stages(_values: StudyValues, law: Mapping[str, Any]) -> TwoStages:
    """Return the stages of hashed responses: the seed stays, and each bucket has one permanent response."""
    buckets, width = law["buckets"], law["width"]

    def permanent(position: int, earlier: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        seed = earlier[0][0] if earlier else random_bits(64)
        own = bucket_of(seed, position, buckets)
        kept = [each for each in earlier if each[0] == seed and each[2] == own]
        return kept[0] if kept else (seed, draw_response(own, buckets, width, law["permanent"]), own)

    def read(text: str) -> tuple[int, ...] | None:
        parts, limits = text.split(":"), (1 << 64, buckets, buckets)
        numbers = [_whole_below(part, limit) for part, limit in zip(parts, limits, strict=False)]
        known = tuple(number for number in numbers if number is not None)
        return known if len(parts) == len(known) == len(limits) else None

    return TwoStages(
        permanent=permanent,
        report=lambda kept: f"{kept[0]}:{draw_response(kept[1], buckets, width, law['instantaneous'])}",
        write=lambda kept: ":".join(map(str, kept)),
        read=read,
        form=f"a seed and two buckets below {buckets}, with colons between",
    )


def _asked_stages(values: StudyValues, law: Mapping[str, Any]) -> TwoStages:
    """Return the stages of answers about some buckets: which they are stays, and there is nothing more to draw.

    A response is the row of buckets that are asked, that of the answers, and which of those asked is the value's own;
    all other values have one response together.
    """
    count, buckets = len(values.labels), law["buckets"]

    def permanent(position: int, earlier: Sequence[tuple[list[bool], list[bool], int]]) -> Any:
        own = position * buckets // count
        if earlier:
            asked = earlier[0][0]
        else:
            chosen = set(draw_places(buckets, law["bits"]))
            asked = [place in chosen for place in range(buckets)]
        own = own if asked[own] else -1
        kept = [each for each in earlier if each[0] == asked and each[2] == own]
        if kept:
            return kept[0]
        return asked, draw_answers(asked, own, law["width"], law["own"], law["other"]), own

    def report(kept: tuple[list[bool], list[bool], int]) -> str:
        return packed_hex(kept[0]) + packed_hex(kept[1])[2:]

    def read(text: str) -> tuple[list[bool], list[bool], int] | None:
        written, _, last = text.removeprefix("0x").partition(":")
        half = 2 * -(-buckets // 8)
        asked, answers = (_packed_bits(part, buckets) for part in (written[:half], written[half:]))
        own = -1 if last == "-1" else _whole_below(last, buckets)
        if len(written) != 2 * half or asked is None or answers is None or own is None or (own >= 0 and not asked[own]):
            return None
        odd = sum(asked) != law["bits"] or any(map(int.__gt__, answers, asked))
        return None if odd else (asked, answers, own)

    return TwoStages(
        permanent=permanent,
        report=report,
        write=lambda kept: f"{report(kept)}:{kept[2]}",
        read=read,
        form=f"0x and {4 * -(-buckets // 8)} hexadecimal digits, a colon, and a bucket or -1",
    )


def _bloom_stages(values: StudyValues, law: Mapping[str, Any]) -> TwoStages:
    """Return the stages of Bloom-filter RAPPOR: the cohort stays, and each filter has one permanent response.

    A response is the cohort, the permanent bits, and the filter that they were drawn for.
    """
    cohorts, bits, hashes, half = law["cohorts"], law["bits"], law["hashes"], law["half"]

    def permanent(value: int | str, earlier: Sequence[tuple[int, list[bool], list[bool]]]) -> Any:
        cohort = earlier[0][0] if earlier else random_below(cohorts)
        if value == law.get("rest"):  # the label itself, which stands for any text
            places = [random_below(bits) for _ in range(hashes)]
        else:
            text = value if isinstance(value, str) else str(values.labels[value])
            places = bloom_bits(text, cohort, bits, hashes)
        own = [place in places for place in range(bits)]
        kept = [each for each in earlier if each[0] == cohort and each[2] == own]
        return kept[0] if kept else (cohort, draw_filter(places, bits, half), own)

    def report(kept: tuple[int, list[bool], list[bool]]) -> str:
        return f"{kept[0]}:{packed_hex([draw_chance(law['q'] if bit else law['p']) for bit in kept[1]])}"

    def read(text: str) -> tuple[int, list[bool], list[bool]] | None:
        parts = text.split(":")
        if len(parts) != 3:
            return None
        cohort = _whole_below(parts[0], cohorts)
        row, own = (_packed_bits(part, bits) for part in parts[1:])
        if cohort is None or row is None or own is None or not 1 <= sum(own) <= hashes:
            return None
        return cohort, row, own

    return TwoStages(
        permanent=permanent,
        report=report,
        write=lambda kept: f"{kept[0]}:{packed_hex(kept[1])}:{packed_hex(kept[2])}",
        read=read,
        form=f"a cohort below {cohorts} and two rows of {bits} bits in hexadecimal digits, with colons between",
    )


_STAGES: dict[str, Callable[[StudyValues, Mapping[str, Any]], TwoStages]] = {
    "bloom-rappor": _bloom_stages,
    "d-bit-flip": _asked_stages,
    "longitudinal-hashing": _hashing_stages,
    "longitudinal-rappor": _bit_stages,
    "longitudinal-response": _response_stages,
    "longitudinal-unary": _bit_stages,
}

_DRAWS: dict[str, Callable[[MechanismFields, StudyValues, Mapping[str, Any]], Draw]] = {
    "cloaking": _region_draw,
    **dict.fromkeys(SURVEY_DESIGNS, _design_draw),
    "randomized-response": _response_draw,
    "local-hashing": _hashed_draw,
    **dict.fromkeys(("rappor", "optimized-unary"), _bit_draw),
    **dict.fromkeys(MEMORY_MECHANISMS, _remembered_draw),
    "subset-selection": _subset_draw,
    **dict.fromkeys(("square-wave", "piecewise"), _window_draw),
    "duchi": _end_draw,
    "staircase": _stair_draw,
    "unary": _chance_bit_draw,
    "hadamard-response": _block_draw,
    "projective-response": _point_draw,
    "count-mean-sketch": _sketch_draw,
    "hadamard-count-mean-sketch": _sign_draw,
    "planar-geometric": _planar_draw,
    "geometric": _endless_draw,
    **dict.fromkeys(("truncated-geometric", "laplace"), _clamped_draw),
}


def _combination_draw(mechanism: MechanismFields, draws: Mapping[str, Draw], values: StudyValues) -> CombinationDraw:
    """Return the function that draws an output of several attributes, from the draws of each."""
    if mechanism.kind == "split":
        return lambda places: _written({name: draws[name](at) for name, at in zip(draws, places, strict=True)})
    chances, fakes = mechanism.extra
    names, counts = list(draws), [len(own.labels) for own in values.attributes.values()]
    choose = _chance_table(chances)
    fake = {
        name: _chance_table(fakes[name]) if name in fakes else partial(random_below, count)
        for name, count in zip(names, counts, strict=True)
    }

    def draw(places: tuple[int, ...]) -> str:
        chosen = choose()
        if mechanism.kind == "sample-one":
            return _written({names[chosen]: draws[names[chosen]](places[chosen])})
        drawn = [
            (fake[name](), at)[place == chosen] for place, (name, at) in enumerate(zip(names, places, strict=True))
        ]
        return _written({name: draws[name](at) for name, at in zip(names, drawn, strict=True)})

    return draw


def _chance_table(chances: Sequence[Fraction]) -> Callable[[], int]:
    """Return the function that draws a place in a list with these probabilities."""
    sums = list(accumulate(chance_weights(chances)))
    return lambda: bisect_right(sums, random_below(sums[-1]))


def chance_weights(chances: Sequence[Fraction]) -> list[int]:
    """Return the smallest whole numbers in the proportions of fractions that add up to 1."""
    whole = math.lcm(*(chance.denominator for chance in chances))
    return [int(chance * whole) for chance in chances]


def _written(entries: Mapping[str, str]) -> str:
    """Return the outputs of several attributes as one column of reports holds them."""
    return json.dumps(entries, ensure_ascii=False)


def _check_steps(mechanism: MechanismFields, nearest: float, farthest: float, least: float) -> None:
    """Refuse noise that takes too long to draw, or too many bits: epsilon times the shortest and the longest step."""
    if nearest < least or farthest > MAX_NATS:
        raise _unusable_study(
            f"{mechanism.where}, epsilon",
            f"{mechanism.epsilon!r}, which makes {nearest if nearest < least else farthest:g} for one step",
            f"from {least:g} to {MAX_NATS:g} for one step",
            "no noise can be drawn with this epsilon",
        )


def packed_hex(ones: Sequence[bool]) -> str:
    """Return bits as reports write them: eight to a byte, the first one highest, in hexadecimal digits.

    The 0x keeps programs from reading some of them as numbers.
    """
    number = int("".join("1" if one else "0" for one in ones), 2) << (-len(ones) % 8)
    return "0x" + number.to_bytes(-(-len(ones) // 8), "big").hex()


# --- draws from tables -----------------------------------------------------------------------------------------------


def digest_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document, in hexadecimal, without the digest that it contains itself."""
    content = {name: part for name, part in document.items() if name != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _read_tables(path: str | Path, study: str, digest: str | None) -> dict[str, Any]:
    """Return the tables of a complete file that was written for the study file with this SHA-256."""
    content = read_file(path, MAX_TABLES_BYTES, "file of tables", "JSON", TABLES_REMEDY)
    where = str(path)
    try:
        document = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object_without_duplicates)
        computed = digest_of(document) if isinstance(document, dict) else ""
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, too many digits; nested too deeply
        raise _unusable_tables(where, f"{type(error).__name__}: {error}"[:200], "a complete JSON file") from None
    if not computed:
        raise _unusable_tables(where, shorten(document), "a JSON object")
    stated = {name: document.get(name) for name in ("digest", "study")}
    if stated != {"digest": computed, "study": study} or digest not in (None, computed):
        raise ClientError(
            "the file of tables is damaged, or belongs to another study",
            where=where,
            got=f"digest {computed}, for the study file {shorten(stated['study'], 80)}",
            expected=f"digest {shorten(digest or stated['digest'], 80)}, for the study file {study}",
            remedy=TABLES_REMEDY,
        )
    tables, version = document.get("tables"), document.get("version")
    if set(document) != {"version", "study", "fingerprint", "tables", "digest"} or not isinstance(tables, dict):
        raise _unusable_tables(
            where, f"entries {shorten(sorted(document))}", "version, study, fingerprint, tables and digest"
        )
    if type(version) is not int or version != FORMAT_VERSION:
        raise _unusable_tables(f"{where}, version", shorten(version), f"version {FORMAT_VERSION}")
    return tables


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, unless it has a name twice: one of the two would be ignored."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name appears twice in one object")
    return entries


def _unusable_tables(where: str, got: str, expected: str) -> ClientError:
    return ClientError(
        "the file of tables cannot be used", where=where, got=got, expected=expected, remedy=TABLES_REMEDY
    )


def _parse_weights(entries: object, count: int, width: int, where: str) -> list[int]:
    """Return whole numbers from a list of their hexadecimal digits."""
    max_digits = width // 4 + 1
    digits = re.compile(f"[0-9a-f]{{1,{max_digits}}}").fullmatch
    if not isinstance(entries, list) or len(entries) != count:
        raise _unusable_tables(where, shorten(entries), f"a list of {count} probabilities")
    if not all(isinstance(entry, str) and digits(entry) for entry in entries):
        raise _unusable_tables(where, shorten(entries), f"texts of up to {max_digits} hexadecimal digits")
    return [int(entry, 16) for entry in entries]


def _running_sums(weights: Sequence[int], width: int, where: str) -> list[int]:
    """Return the running sums of probabilities, which must add up to 1."""
    sums = list(accumulate(weights))
    if not sums or sums[-1] != 1 << width:
        raise _unusable_tables(
            where, "probabilities that do not add up to 1", f"whole numbers that add up to 2^{width}"
        )
    return sums


def _draw_from_table(table: object, mechanism: MechanismFields, values: StudyValues, where: str) -> Draw:
    """Return the function that draws from a table, after checking all of it."""
    kind = "clipped" if mechanism.kind == "planar-laplace" else "rows"
    names = {"kind", "width", *({"quarter", "window"} if kind == "clipped" else {"rows", "outputs"})}
    if not isinstance(table, dict) or set(table) != names or table["kind"] != kind:
        raise _unusable_tables(where, shorten(table), f"an object of kind {kind} with {', '.join(sorted(names))}")
    width = table["width"]
    if type(width) is not int or not 64 <= width <= MAX_WIDTH or width % 64:
        raise _unusable_tables(f"{where}, width", shorten(width), f"a multiple of 64 up to {MAX_WIDTH}")
    return (
        _draw_from_quarter(table, width, values, where)
        if kind == "clipped"
        else _draw_from_rows(table, width, mechanism, values, where)
    )


def _draw_from_rows(
    table: Mapping[str, Any], width: int, mechanism: MechanismFields, values: StudyValues, where: str
) -> Draw:
    outputs, rows = table["outputs"], table["rows"]
    labels = mechanism.extra if mechanism.kind == "matrix" else outputs if mechanism.is_foreign else values.labels
    if not isinstance(outputs, list) or not all(is_label(output, (str,)) for output in outputs):
        raise _unusable_tables(f"{where}, outputs", shorten(outputs), "a list of texts")
    same = all(output == str(label) for output, label in zip(outputs, labels, strict=False))
    if mechanism.kind == "matrix" and all(isinstance(label, int | float) for label in labels):
        # If one output has a fraction, the library treats all as floats and writes 1 as 1.0.
        same = same or outputs == [str(as_real(label)) for label in labels]
    if not same or len(outputs) != len(labels) or len(set(outputs)) < len(labels):
        raise _unusable_tables(f"{where}, outputs", shorten(outputs), f"the study's: {shorten(labels)}")
    if not isinstance(rows, list) or len(rows) != len(values.labels):
        raise _unusable_tables(f"{where}, rows", shorten(rows), f"a list of {len(values.labels)} rows")
    sums = []
    for position, row in enumerate(rows):
        row_where = f"{where}, row {position}"
        sums.append(_running_sums(_parse_weights(row, len(outputs), width, row_where), width, row_where))
    return lambda position: str(outputs[bisect_right(sums[position], random_bits(width))])


def _draw_from_quarter(table: Mapping[str, Any], width: int, values: StudyValues, where: str) -> Draw:
    quarter, sizes = table["quarter"], f"{values.columns} x {values.rows} cells"
    if not isinstance(quarter, list) or not quarter or not isinstance(quarter[0], list):
        raise _unusable_tables(f"{where}, quarter", shorten(quarter), "a list of columns")
    columns, rows = len(quarter) - 1, len(quarter[0]) - 1  # displacements this long leave the window
    beyond = columns - values.columns, rows - values.rows  # more than 0 only if cells are missing
    if min(beyond) < 0 or (values.whole and max(beyond) > 0):
        raise _unusable_tables(f"{where}, quarter", f"{columns + 1} x {rows + 1} displacements", f"those of {sizes}")
    (left, bottom), (right, top) = window = [[-beyond[0], -beyond[1]], [columns - 1, rows - 1]]
    if repr(table["window"]) != repr(window):  # repr, because 1.0 and true equal 1
        raise _unusable_tables(f"{where}, window", shorten(table["window"]), f"{window}, around {sizes}")
    masses = [
        _parse_weights(column, rows + 1, width, f"{where}, column {index}") for index, column in enumerate(quarter)
    ]
    displacements = [(column, row) for column in range(-columns, columns + 1) for row in range(-rows, rows + 1)]
    sums = _running_sums([masses[abs(column)][abs(row)] for column, row in displacements], width, where)

    def draw(position: int) -> str:
        column, row = values.cell_at(position, displacements[bisect_right(sums, random_bits(width))])
        return str(values.labels[values.nearest(min(max(column, left), right), min(max(row, bottom), top))])

    return draw


# --- the client ------------------------------------------------------------------------------------------------------


class Client:
    """Privatizes values by the mechanisms of a study.

    Study and tables are checked completely before any draw.

    Parameters
    ----------
    study
        The study file.
    tables
        The file that `hubbub privatize STUDY --export-tables FILE` writes; only some mechanisms need it.
    digest
        The SHA-256 that the file of tables must have, in hexadecimal.

    Raises
    ------
    ClientError
        If the study or the tables cannot be used, or do not belong together.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hubbub.client import Client
    >>> text = '''
    ... version = 1
    ... [domain]
    ... kind = "categories"
    ... labels = ["yes", "no"]
    ... [mechanisms.coin]
    ... kind = "randomized-response"
    ... epsilon = 1.0
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(text)
    ...     client = Client(path)
    >>> client.privatize("yes") in ("yes", "no")
    True
    """

    def __init__(self, study: str | Path, tables: str | Path | None = None, *, digest: str | None = None) -> None:
        content = study_bytes(study)
        self._values, self._mechanisms = parse_laws(content, str(study))
        if tables is None:
            self._refuse_foreign()
        self._draws: dict[str, Draw] = {}
        self._combination_draws: dict[str, CombinationDraw] = {}
        self._memories: dict[str, TwoStages] = {}
        if tables is not None:
            try:
                self._load_tables(tables, hashlib.sha256(content).hexdigest(), digest)
            except MemoryError:
                got = "tables that do not fit into this device's memory"
                raise _unusable_tables(str(tables), got, "tables that fit: those of a smaller study") from None

    def _refuse_foreign(self) -> None:
        """Refuse kinds that are not hubbub's own: misspelt, or drawn from tables that are not there."""
        for mechanism, _ in self._drawn().values():
            if mechanism.is_foreign:
                raise ClientError(
                    "no such kind",
                    where=f"{mechanism.where}, kind",
                    got=shorten(mechanism.kind),
                    expected=", ".join(MECHANISMS),
                    remedy="correct the study file; for a mechanism that is not hubbub's own, pass the file of tables: "
                    "hubbub privatize STUDY --export-tables FILE, and Client(study, tables)",
                )

    def _load_tables(self, path: str | Path, study: str, digest: str | None) -> None:
        tables = _read_tables(path, study, digest)
        tabled = [name for name, (mechanism, values) in self._drawn().items() if mechanism.needs_tables(values)]
        if set(tables) != set(tabled):
            got = f"tables of {shorten(sorted(tables))}"
            raise _unusable_tables(
                str(path), got, f"tables of {shorten(sorted(tabled))}: the mechanisms that need them"
            )
        for name in tabled:
            where = f"{path}, table of {name}"
            self._draws[name] = _draw_from_table(tables[name], *self._drawn()[name], where)

    def _drawn(self) -> dict[str, tuple[MechanismFields, StudyValues]]:
        """Return all mechanisms over one domain: the study's, or their parts as NAME.ATTRIBUTE."""
        drawn = {}
        for name, mechanism in self._mechanisms.items():
            if not mechanism.parts:
                drawn[name] = mechanism, self._values
            for attribute, part in mechanism.parts.items():
                drawn[f"{name}.{attribute}"] = part, self._values.attributes[attribute]
        return drawn

    def _draw(self, name: str) -> Draw:
        if name not in self._draws:
            self._draws[name] = _make_draw(*self._drawn()[name])
        return self._draws[name]

    def privatize(self, value: Any, mechanism: str | None = None) -> str:
        """Return one output for a value, as reports write it.

        Every call is a new report that spends epsilon again; with a longitudinal mechanism it spends `first`. For
        several reports about one value, keep what `permanent` returns, and send what `instantaneous` makes of it.

        Parameters
        ----------
        value
            A value of the study's domain; for bins the number itself, for a map a pair of latitude and longitude. Texts
            are read as in the rows of a file. For several attributes, a tuple in their order, or a dictionary.
        mechanism
            The name of one in the study; it may be left out if there is only one.

        Returns
        -------
        str
            The output; for several attributes a JSON object with the output of each that is reported.

        Raises
        ------
        ClientError
            If the value is not in the domain, the study has no such mechanism, or the mechanism needs tables.
        """
        name = self._named(mechanism)
        fields = self._mechanisms[name]
        if not fields.parts:
            return self._draw(name)(self._position(fields, value))
        if name not in self._combination_draws:
            draws = {attribute: self._draw(f"{name}.{attribute}") for attribute in fields.parts}
            self._combination_draws[name] = _combination_draw(fields, draws, self._values)
        return self._combination_draws[name](self._values.coordinates(value))

    def permanent(self, value: Any, mechanism: str | None = None, *, earlier: Sequence[str] = ()) -> str:
        """Return the permanent response of a mechanism with memory, to be kept on the device.

        Keep one for each value that the person reports. What is kept for a value is used again when it comes back.

        Parameters
        ----------
        value
            As in `privatize`.
        mechanism
            As in `privatize`; one of a kind with memory, such as ``longitudinal-rappor``.
        earlier
            What this method returned for other values of the same person, the first one first. With
            ``longitudinal-hashing`` and ``d-bit-flip`` the seed, or what is asked, stays the same for all values, and
            so does the response of values that look alike. Other mechanisms draw a response for each value.

        Returns
        -------
        str
            The response. It is as private as the value, and never sent.

        Raises
        ------
        ClientError
            If the value is not in the domain, the mechanism is another one, or `earlier` holds something else.
        """
        stages = self._memory(mechanism)
        position = self._position(self._mechanisms[self._named(mechanism)], value)
        texts = [earlier] if isinstance(earlier, str) else list(earlier)
        return stages.write(stages.permanent(position, [_kept(stages, each, "permanent(earlier=)") for each in texts]))

    def instantaneous(self, permanent: str, mechanism: str | None = None) -> str:
        """Return one report from a permanent response, to be sent.

        Parameters
        ----------
        permanent
            What `permanent` returned for this study.
        mechanism
            As in `privatize`; one of a kind with memory.

        Returns
        -------
        str
            The output.

        Raises
        ------
        ClientError
            If it is not a permanent response of this study, or the mechanism is another one.
        """
        stages = self._memory(mechanism)
        return stages.report(_kept(stages, permanent, "instantaneous(permanent)"))

    def _position(self, fields: MechanismFields, value: Any) -> Any:
        """Return the position of a value; a text itself, where the study takes texts that it does not list."""
        takes_texts = fields.kind == "bloom-rappor" and fields.extra["rest"] is not None
        if takes_texts and isinstance(value, str) and value and self._values.find(value) is None:
            return value
        return self._values.position(value)

    def _memory(self, mechanism: str | None) -> TwoStages:
        name = self._named(mechanism)
        fields = self._mechanisms[name]
        if fields.kind not in MEMORY_MECHANISMS:
            raise ClientError(
                "this mechanism has no permanent response",
                where=fields.where,
                got=fields.kind,
                expected=f"one of {', '.join(MEMORY_MECHANISMS)}",
                remedy="use privatize",
            )
        if name not in self._memories:
            self._memories[name] = _two_stages(fields, self._values)
        return self._memories[name]

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


def _kept(stages: TwoStages, text: object, where: str) -> Any:
    """Return what a device kept of a permanent response, or refuse it."""
    kept = stages.read(text) if isinstance(text, str) else None
    if kept is None:
        raise ClientError(
            "not a permanent response",
            where=where,
            got=f"something of type {type(text).__name__}",  # the response is as private as the value
            expected=stages.form,
            remedy="pass what permanent(value) returned for this study",
        )
    return kept


def parse_laws(content: bytes, where: str) -> tuple[StudyValues, dict[str, MechanismFields]]:
    """Return the values and the mechanisms that a study file describes, after checking all of it."""
    table = _StudyTable(study_document(study_text(content, where), where), where)
    _check_study(table)
    values = _parse_domain(_StudyTable(table.take("domain"), f"{where}, [domain]"))
    tables = table.take("mechanisms")
    if table.has("question"):
        check_question(table.take("question"), tables, f"{where}, [question]")
    if table.has("collector"):
        check_collector(table.take("collector"), f"{where}, [collector]")
    table.close()
    if not isinstance(tables, dict) or not tables:
        expected = "a table [mechanisms.NAME] for each mechanism"
        raise _unusable_study(f"{where}, [mechanisms]", shorten(tables), expected)
    mechanisms: dict[str, MechanismFields] = {}
    for name, fields in tables.items():
        place = f"{where}, [mechanisms.{name[:64]}]"
        if not MECHANISM_NAME.fullmatch(name):
            expected = "a name of up to 64 letters, digits, - and _ that begins with a letter or digit"
            raise _unusable_study(place, shorten(name), expected)
        mechanisms[name] = _parse_mechanism(_StudyTable(spelt_out(fields, place), place), values)
    return values, mechanisms


def _check_study(table: _StudyTable) -> None:
    """Check the entries of the study that draws do not need."""
    version = table.take("version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise ClientError(
            "unsupported version of the study",
            where=f"{table.where}, version",
            got=shorten(version),
            expected=f"version = {FORMAT_VERSION}",
            remedy="use the client of the same version as the study",
        )
    if table.has("name"):
        table.typed("name", str)
    if table.has("max_reports_per_user") and (limit := table.typed("max_reports_per_user", int)) < 1:
        raise table.unusable("max_reports_per_user", limit, "a whole number from 1")
    for name in EPSILON_LIMITS:
        if table.has(name) and not 0 < as_real(limit := table.take(name)) < math.inf:
            raise table.unusable(name, limit, "a positive number")
    if table.has("columns"):
        columns = _StudyTable(table.take("columns"), f"{table.where}, [columns]")
        for name in STUDY_COLUMNS:
            if columns.has(name) and not columns.typed(name, str):
                raise columns.unusable(name, "", "the name of a column")
        columns.close()


def check_question(entries: object, mechanisms: object, where: str) -> dict[str, str]:
    """Return the entries of a study's table [question]; refuse those that a page could not show.

    `mechanisms` are those of the study, of which the page uses one.
    """
    table = _StudyTable(entries, where)
    question: dict[str, str] = {}
    if not table.has("text"):
        table.take("text")
    for name in QUESTION_ENTRIES:
        if table.has(name):
            text = table.typed(name, str)
            if not text.strip() or len(text) > MAX_QUESTION_LETTERS:
                raise table.unusable(name, text, f"a text of 1 to {MAX_QUESTION_LETTERS} letters")
            question[name] = text
    table.close()
    names = list(mechanisms) if isinstance(mechanisms, dict) else []
    if "mechanism" in question and question["mechanism"] not in names:
        raise table.unusable("mechanism", question["mechanism"], f"one of {', '.join(names)}")
    if "mechanism" not in question and len(names) > 1:
        got = f"{len(names)} mechanisms, and nothing says which one the page uses"
        raise _unusable_study(where, got, f"mechanism = one of {', '.join(names)}")
    return question


def check_collector(entries: object, where: str) -> dict[str, Any]:
    """Return the entries of a study's table [collector], with the defaults of those that are left out."""
    table = _StudyTable(entries, where)
    collector: dict[str, Any] = {}
    for name, choices in COLLECTOR_CHOICES.items():
        collector[name] = choices[0]
        if table.has(name):
            collector[name] = table.typed(name, str)
            if collector[name] not in choices:
                raise table.unusable(name, collector[name], f"one of {', '.join(choices)}")
    for name, (least, default, most) in COLLECTOR_LIMITS.items():
        collector[name] = table.whole(name, least, most) if table.has(name) else default
    origins = table.take("origins") if table.has("origins") else ()
    is_list = isinstance(origins, list | tuple)
    if not is_list or not all(isinstance(each, str) and ORIGIN.fullmatch(each) for each in origins):
        raise table.unusable("origins", origins, "a list of sites as browsers name them, such as https://example.org")
    collector["origins"] = tuple(origins)
    table.close()
    return collector


# --- words that nobody can list --------------------------------------------------------------------------------------

WORD_END = "\0"  # follows a word that is shorter than the prefix that is asked for


def text_key(text: str) -> int:
    """Return the key of a text, 64 bits: version 1, which never changes.

    With all arithmetic modulo 2^64, mix and G of the hash of positions, and key 0 for the empty text::

        key(text + letter) = mix(key(text) + (code point of the letter + 1) G)

    The bucket of a text under a seed is that of its key, taken as a position.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    int
        From 0 to 2^64 - 1.

    Examples
    --------
    >>> from hubbub.client import text_key
    >>> text_key("tea")
    4355119883970456598
    """
    key = 0
    for letter in text:
        key = _mix(key + (ord(letter) + 1) * 0x9E3779B97F4A7C15)
    return key


@dataclass(frozen=True)
class WordClient:
    """Privatize a word on a person's device, for a search over words that nobody can list.

    The person is dealt to one of the rounds at random. Her report is about the prefix of the length that the round asks
    for: a random seed, and randomized response on the prefix's bucket under that seed. She reports once, and spends
    epsilon.

    Parameters
    ----------
    alphabet
        All letters that a word may have.
    length
        The letters of the longest word.
    epsilon
        Plain epsilon, for the whole word.
    prefix_lengths
        What each round asks for: increasing numbers of letters, the last one `length`.
    buckets
        The number of buckets of the hash; None for round(e^epsilon) + 1.
    other
        The letter of the alphabet that replaces letters outside it; None to refuse them.
    cut
        Whether a longer word is cut after `length` letters; False to refuse it.

    Raises
    ------
    ClientError
        If a setting has a wrong value.

    Examples
    --------
    >>> from hubbub.client import WordClient
    >>> client = WordClient(alphabet="abcdefghijklmnopqrstuvwxyz", length=6, epsilon=4.0, prefix_lengths=[3, 4, 5, 6])
    >>> report = client.privatize("tea")
    >>> 1 <= report["round"] <= 4, int(report["output"].split(":")[1]) < client.buckets
    (True, True)
    """

    alphabet: str
    length: int
    epsilon: float
    prefix_lengths: Sequence[int]
    buckets: int | None = None
    other: str | None = None
    cut: bool = False

    def __post_init__(self) -> None:
        letters = self.alphabet
        if not isinstance(letters, str) or len(letters) < 2:
            raise self._wrong("alphabet", letters, "a text with at least 2 letters")
        if WORD_END in letters or len(set(letters)) < len(letters):
            twice = next((letter for letter in letters if letters.count(letter) > 1), WORD_END)
            got = f"{shorten(twice)}{' more than once' if twice != WORD_END else ''}"
            raise self._wrong("alphabet", got, "different letters, and not the character 0, which ends words")
        length = as_whole(self.length)
        if length is None or not 1 <= length <= MAX_WORD_LETTERS:
            raise self._wrong("length", shorten(self.length), f"a whole number from 1 to {MAX_WORD_LETTERS}")
        if not MIN_EPSILON <= as_real(self.epsilon) <= MAX_EPSILON:
            raise self._wrong("epsilon", shorten(self.epsilon), f"a number from {MIN_EPSILON:g} to {MAX_EPSILON:g}")
        given = self.prefix_lengths
        is_list = isinstance(given, Sequence) and not isinstance(given, str)
        lengths = [as_whole(each) for each in given] if is_list else []
        whole = [each for each in lengths if each is not None]
        increases = all(low < high for low, high in pairwise([0, *whole]))
        if len(whole) < len(lengths) or not increases or not whole or whole[-1] != length:
            expected = f"increasing whole numbers from 1, the last one {length} (the length of words)"
            raise self._wrong("prefix_lengths", shorten(given), expected)
        buckets = default_buckets(float(self.epsilon)) if self.buckets is None else as_whole(self.buckets)
        if buckets is None or not 2 <= buckets <= MAX_BUCKETS:
            raise self._wrong("buckets", shorten(self.buckets), f"a whole number from 2 to {MAX_BUCKETS}")
        if self.other is not None and (
            not isinstance(self.other, str) or len(self.other) != 1 or self.other not in letters
        ):
            raise self._wrong("other", shorten(self.other), "one letter of the alphabet, or None")
        if not isinstance(self.cut, bool):
            raise self._wrong("cut", shorten(self.cut), "True or False")
        kept = {"length": length, "epsilon": float(self.epsilon), "prefix_lengths": tuple(whole), "buckets": buckets}
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    def _wrong(self, name: str, got: object, expected: str) -> ClientError:
        what, remedy = f"{name} has a wrong value", f"pass {expected}"
        return ClientError(what, where=f"WordClient({name}=)", got=got, expected=expected, remedy=remedy)

    def letters(self, word: Any) -> str:
        """Return a word as it is reported: letters outside the alphabet replaced, and cut, where the search says so.

        Parameters
        ----------
        word
            A text of at least one letter.

        Returns
        -------
        str
            The word, in letters of the alphabet.

        Raises
        ------
        ClientError
            If it is not such a word.
        """
        # Errors end up in logs, so the word is not shown, nor how long it is.
        if not isinstance(word, str) or not word:
            got = "an empty text" if isinstance(word, str) else f"a value of type {type(word).__name__}"
            raise _no_word("not a word", got, "a text of at least one letter", "leave out people without a word")
        if len(word) > self.length and not self.cut:
            remedy = "search for longer words, or pass cut=True to cut them"
            raise _no_word("a word is too long", "a longer text", f"at most {self.length} letters", remedy)
        word = word[: self.length]
        if self.other is None and not set(word) <= set(self.alphabet):
            remedy = "add the letter to the alphabet, write the word in other letters, or name a letter with other="
            expected = f"letters of {shorten(self.alphabet)}"
            raise _no_word("a letter is not in the alphabet", "a text with another letter", expected, remedy)
        return "".join(letter if letter in self.alphabet else str(self.other) for letter in word)

    def privatize(self, word: str) -> dict[str, Any]:
        """Return one report about a word.

        Parameters
        ----------
        word
            A text of at least one letter.

        Returns
        -------
        dict
            ``round``, from 1, and ``output``, which is ``seed:bucket``.

        Raises
        ------
        ClientError
            If the word has a letter that is not in the alphabet, or is too long, and the search does not say what then.
        """
        word = self.letters(word)
        turn, seed, buckets = random_below(len(self.prefix_lengths)), random_bits(64), int(self.buckets or 2)
        asked = self.prefix_lengths[turn]
        bucket = bucket_of(seed, text_key((word + WORD_END)[:asked]), buckets)
        width, keep = response_parameters(buckets, Fraction(self.epsilon))
        return {"round": turn + 1, "output": f"{seed}:{draw_response(bucket, buckets, width, keep)}"}


def _no_word(what: str, got: str, expected: str, remedy: str) -> ClientError:
    return ClientError(what, where="privatize(word)", got=got, expected=expected, remedy=remedy)


# --- the command line ------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one report as a line of JSON, for a study file, a mechanism and a value."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m hubbub.client", description="Privatize one value on this device.")
    parser.add_argument("study", help="the study file")
    parser.add_argument("mechanism", help="a mechanism of the study")
    parser.add_argument(
        "value", nargs="+", help="the value; for a map, also latitude and longitude; of several attributes one each"
    )
    parser.add_argument("--tables", help="the file that hubbub privatize STUDY --export-tables FILE writes")
    options, unknown = parser.parse_known_args(arguments)
    if unknown:  # it may be the value, so the message does not repeat it
        parser.error("unknown option; write -- before a value that begins with -")
    try:
        client = Client(options.study, options.tables)
        output = client.privatize(options.value[0] if len(options.value) == 1 else options.value, options.mechanism)
    except (ClientError, OSError) as error:
        sys.stderr.write(f"hubbub.client: {error}\n")
        return 1
    sys.stdout.write(json.dumps({"mechanism": options.mechanism, "output": output}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
