"""Exact laws taken apart: P(output | value) as fractions, and bounds on their ratios that are certain.

Nothing here asks the library what it promises to have done. Probabilities are rebuilt from the whole numbers of a
law, by enumeration where the outputs are few, and are compared with exp(epsilon d) by balls of Arb, which hold the true
number for certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations, islice, pairwise, product
from operator import mul
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

import hubbub as hb
from hubbub.client import Noise, acceptance_probability, axis_noise, bucket_of
from hubbub.domains import LineDomain
from hubbub.mechanisms.local_hashing import HashedResponseLaw
from hubbub.mechanisms.longitudinal_response import TwoStageHashedLaw
from hubbub.mechanisms.sketches import SignSketchLaw, SketchLaw
from hubbub.sampling import (
    AskedBitsLaw,
    BitFlipLaw,
    BloomLaw,
    EndResponseLaw,
    FixedLaw,
    FractionFlipLaw,
    FractionResponseLaw,
    Law,
    LineNoiseLaw,
    NoisyFilterLaw,
    PlanarGeometricLaw,
    PlanarTableLaw,
    ResponseLaw,
    SetResponseLaw,
    StaircaseLaw,
    SubsetLaw,
    TableLaw,
    TwoAnswerLaw,
    TwoStageFlipLaw,
    TwoStageLaw,
    TwoStageResponseLaw,
)

PRECISION = 500  # bits of a ball: enough for what the shrink of epsilon leaves, 2^-50 of epsilon d
Table = list[list[Fraction]]


# -- certain comparisons ----------------------------------------------------------------------------------


def ball(number: Fraction | int) -> arb:
    """Return a ball around a fraction."""
    if isinstance(number, int):
        with ctx.workprec(max(PRECISION, ctx.prec)):
            return +arb(number)  # rounded: long numbers are slow to multiply
    fraction = number
    with ctx.workprec(max(PRECISION, ctx.prec)):
        return arb(fmpq(fraction.numerator, fraction.denominator))


@cache
def limit(epsilon: Fraction, squared: Fraction) -> arb:
    """Return exp(epsilon d), given the square of d."""
    with ctx.workprec(PRECISION):
        return (ball(epsilon) * ball(squared).sqrt()).exp()


def keeps(high: Fraction | int, low: Fraction | int, bound: arb) -> bool:
    """Return whether high <= bound * low, and be certain of it either way."""
    if low == 0:
        return high == 0
    with ctx.workprec(PRECISION):
        left, right = ball(high), bound * ball(low)
        if left <= right:
            return True
        if left > right:
            return False
    raise ArithmeticError("the balls are too wide to tell")


def whole_below(bound: arb) -> int:
    """Return a whole number below 2^300 times a bound: comparing with it is quick, and certain where it holds."""
    with ctx.workprec(PRECISION):
        mantissa, exponent = ((bound * arb(2) ** 300).floor().lower() - 1).man_exp()
    return int(mantissa) << int(exponent) if exponent >= 0 else int(mantissa) >> -int(exponent)


def is_near(number: Fraction, ideal: arb, bits: int) -> bool:
    """Return whether a number is certainly within 2^-bits of the ideal, relative to it."""
    with ctx.workprec(PRECISION):
        return bool(abs(ball(number) / ideal - 1) < arb(2) ** -bits)


# -- P(output | value) from whole numbers -----------------------------------------------------------------


def steps_of(noise: Noise, most: int) -> list[Fraction]:
    """Return the probabilities of 0 .. most steps to one side: blocks of the table, one after the other."""
    one = Fraction(1 << noise.width)
    rest = 1 - sum(noise.steps) / one
    chances = [1 - 2 * noise.side / one]
    scale = noise.side / one
    while len(chances) <= most:
        chances += [scale * step / one for step in noise.steps]
        scale *= rest
    return chances[: most + 1]


def clamped(noise: Noise, values: int) -> Table:
    """Return the rows of noise that is clamped to the ends: what goes further than the last is what is left of 1."""
    chances = steps_of(noise, values)
    tails = tails_of(noise, chances, values)
    return [
        [tails[own], *(chances[abs(own - place)] for place in range(1, values - 1)), tails[values - 1 - own]]
        for own in range(values)
    ]


def tails_of(noise: Noise, chances: list[Fraction], values: int) -> list[Fraction]:
    """Return the probabilities of going at least so many steps to one side, and for 0 of not going to the other."""
    side = Fraction(noise.side, 1 << noise.width)
    sums = accumulate(chances[1:values], initial=Fraction(0))
    return [1 - side, *(side - gone for gone in islice(sums, values - 1))]


def response_rows(law: ResponseLaw) -> Table:
    """Return the rows of randomized response."""
    one = Fraction(1 << law.width)
    other = (1 - law.keep / one) / law.values
    return [[other + law.keep / one * (own == place) for place in range(law.values)] for own in range(law.values)]


def stair_chance(law: StaircaseLaw, steps: int) -> Fraction:
    """Return the probability of so much noise: that of its stair, over the places of the stair."""
    reached, stair, places = law.reach, 0, 2 * law.reach + 1
    while abs(steps) > reached:
        reached, stair, places = reached + law.stair, stair + 1, law.stair
    return law.stairs.probability(stair) / places


def broken_stairs(mechanism: hb.Mechanism, law: StaircaseLaw) -> list[tuple[int, ...]]:
    """Return where staircase noise tells any two values more apart than it promises.

    Of few values, all pairs and all outputs up to five stairs away. Beyond, and of many, neighbouring stairs: a block
    of them and a bit, since each block is the one before times the same number, and no two values are further apart.
    """
    bound, values = limit(Fraction(mechanism.epsilon), Fraction(1)), law.values
    chances = [law.stairs.probability(0) / (2 * law.reach + 1)]
    chances += [law.stairs.probability(stair) / law.stair for stair in range(1, len(law.stairs.steps) + 3)]
    broken: list[tuple[int, ...]] = [
        (stair,)
        for stair, pair in enumerate(pairwise(chances))
        if not (keeps(*pair, bound) and keeps(*pair[::-1], bound))
    ]
    if values <= 6:
        outputs = range(-5 * law.stair, 6 * law.stair + 1)
        rows = [[stair_chance(law, output - own) for output in outputs] for own in range(values)]
        broken += broken_pairs(mechanism, rows)
    return broken


def set_response_rows(law: SetResponseLaw, values: int) -> Table:
    """Return the rows of responses with a set of outputs for each value."""
    one = Fraction(1 << law.width)
    other = (1 - law.keep / one) / law.outputs
    rows = []
    for own in range(values):
        row = [other] * law.outputs
        for member in law.member(np.full(law.size, own), np.arange(law.size)).tolist():
            row[member] += law.keep / one / law.size
        rows.append(row)
    return rows


def flip_rows(law: BitFlipLaw | FractionFlipLaw) -> Table:
    """Return the probabilities of all rows of bits, in the order of whole numbers."""
    one = Fraction(1 << law.width if isinstance(law, BitFlipLaw) else 1)
    ones = [
        [(law.own if own == value else law.other) / one for value in range(law.values)] for own in range(law.values)
    ]
    bits = list(product((0, 1), repeat=law.values))
    return [
        [math.prod(((p if bit else 1 - p) for p, bit in zip(row, z, strict=True)), start=Fraction(1)) for z in bits]
        for row in ones
    ]


def two_response_rows(law: TwoStageResponseLaw) -> Table:
    """Return the rows of one report: over all permanent responses."""
    kept, again = response_rows(law.permanent), response_rows(replace(law.permanent, keep=law.kept))
    return [[sum(map(mul, row, column), Fraction(0)) for column in zip(*again, strict=True)] for row in kept]


def asked_rows(law: AskedBitsLaw) -> Table:
    """Return the probabilities of answers, in the order of choices of buckets and of whole numbers, last bit first."""
    one = Fraction(1 << law.bits.width)
    choices = list(combinations(range(law.buckets), law.asked))
    rows = []
    for own in range(law.values):
        bucket = own * law.buckets // law.values
        rows.append(
            [
                math.prod(
                    (
                        chance if number >> place & 1 else 1 - chance
                        for place, chance in enumerate(
                            (law.bits.own if each == bucket else law.bits.other) / one for each in asked
                        )
                    ),
                    start=Fraction(1, len(choices)),
                )
                for asked in choices
                for number in range(1 << law.asked)
            ]
        )
    return rows


def filter_rows(law: NoisyFilterLaw) -> Table:
    """Return the probabilities of cohorts with rows of bits, in the order of whole numbers, last bit first."""
    cohorts, values, bits = len(law.filters.packed), law.filters.packed.shape[1], law.filters.bits
    rows: Table = [[] for _ in range(values)]
    for cohort, own in product(range(cohorts), range(values)):
        places = np.flatnonzero(np.unpackbits(law.filters.packed[cohort, own], count=bits)).tolist()
        several = [set(places)]
        if own == law.filters.rest:
            several = [set(drawn) for drawn in product(range(bits), repeat=law.filters.hashes)]
        rows[own] += [
            sum(
                (
                    math.prod(
                        (
                            chance if number >> bit & 1 else 1 - chance
                            for bit, chance in enumerate(law.one if bit in held else law.zero for bit in range(bits))
                        ),
                        start=Fraction(1),
                    )
                    for held in several
                ),
                Fraction(0),
            )
            / (cohorts * len(several))
            for number in range(1 << bits)
        ]
    return rows


def filter_ratios(law: BloomLaw) -> Callable[[int], tuple[Fraction, Fraction]]:
    """Return the probabilities of what tells most, bit by bit, over all cohorts and pairs of listed values.

    Where one value stands for any text, two texts may differ in all bits that they set.
    """
    filters, wrong = law.permanent.filters, law.permanent.zero
    assert law.permanent.one == 1 - wrong
    pairs = set()
    for packed in filters.packed:
        sets = [frozenset(np.flatnonzero(np.unpackbits(row, count=filters.bits)).tolist()) for row in packed]
        listed = {own for place, own in enumerate(sets) if place != filters.rest}
        pairs |= {(len(one - other), len(other - one)) for one, other in product(listed, listed)}
    if filters.rest >= 0:
        sizes = range(1, filters.hashes + 1)
        pairs = {(one, other) for one, other in product(sizes, sizes) if one + other <= filters.bits}

    def ratio(reports: int) -> tuple[Fraction, Fraction]:
        ones, zeros = (
            ((1 - wrong) * own + wrong * other) / (wrong * own + (1 - wrong) * other)
            for own, other in ((law.q**reports, law.p**reports), ((1 - law.p) ** reports, (1 - law.q) ** reports))
        )
        largest = max(ones**first * zeros**second for first, second in pairs)
        return largest, Fraction(1)

    return ratio


def subset_rows(law: SubsetLaw) -> Table:
    """Return the probabilities of all subsets, in the order of `combinations`."""
    out = Fraction(law.out, 1 << law.width)
    inside = (1 - out) / math.comb(law.values - 1, law.size - 1)
    outside = out / math.comb(law.values - 1, law.size)
    subsets = list(combinations(range(law.values), law.size))
    return [[inside if own in chosen else outside for chosen in subsets] for own in range(law.values)]


def hashed_rows(law: HashedResponseLaw, values: int, seed: int) -> Table:
    """Return the probabilities of the buckets, given a seed."""
    rows = response_rows(law.response)
    return [rows[bucket_of(seed, own, law.response.values)] for own in range(values)]


def sketch_rows(law: SketchLaw, values: int) -> Table:
    """Return the probabilities of the bits of each hash, in the order of hashes and of numbers; the last bit is first.

    The hash is computed as the client does.
    """
    width, one = law.bits.values, Fraction(1 << law.bits.width)
    return [
        [
            math.prod(
                (
                    chance if number >> place & 1 else 1 - chance
                    for place, chance in enumerate(
                        (law.bits.own if each == bucket_of(hash_, own, width) else law.bits.other) / one
                        for each in range(width)
                    )
                ),
                start=Fraction(1, law.hashes),
            )
            for hash_ in range(law.hashes)
            for number in range(1 << width)
        ]
        for own in range(values)
    ]


def sign_rows(law: SignSketchLaw, values: int) -> Table:
    """Return the probabilities of each hash, row and sign; the matrix is made by Sylvester's construction."""
    matrix = np.array([[1]])
    while len(matrix) < law.width:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    right, wrong = response_rows(law.response)[0]
    return [
        [
            (right if matrix[row, bucket_of(hash_, own, law.width)] == sign else wrong) / law.hashes / law.width
            for hash_ in range(law.hashes)
            for row in range(law.width)
            for sign in (1, -1)
        ]
        for own in range(values)
    ]


def table_row(law: TableLaw, own: int) -> list[Fraction]:
    """Return one row of a table."""
    return [Fraction(weight, 1 << law.width) for weight in law.row(own)]


def clipped_rows(law: PlanarTableLaw, grid: hb.Grid) -> Table:
    """Return the rows of noise from a table of displacements: each moved, clamped and sent to the nearest cell."""
    steps = grid.steps.tolist()
    most = law.shape
    low, high = (corner.tolist() for corner in law.window)
    places = [(column, row) for column in range(low[0], high[0] + 1) for row in range(low[1], high[1] + 1)]
    nearest = {}
    for place in places:
        away = [squared_length((place[0] - x, place[1] - y), grid.sides) for x, y in steps]
        nearest[place] = away.index(min(away))
    rows = []
    for x, y in steps:
        row = [0] * len(steps)
        for column in range(-most[0], most[0] + 1):
            for up in range(-most[1], most[1] + 1):
                moved = min(max(x + column, low[0]), high[0]), min(max(y + up, low[1]), high[1])
                row[nearest[moved]] += law.quarter[abs(column)][abs(up)]
        rows.append([Fraction(weight, 1 << law.width) for weight in row])
    return rows


def rows_of(law: Law, values: int, seed: int = 5) -> Table:
    """Return all of P(output | value), for few values and outputs that can be listed."""
    if isinstance(law, ResponseLaw):
        return response_rows(law)
    if isinstance(law, FractionResponseLaw):
        other = (1 - law.keep) / law.values
        return [[other + law.keep * (own == place) for place in range(values)] for own in range(values)]
    if isinstance(law, TwoAnswerLaw):
        return [[chance, 1 - chance] for chance in law.chances]
    if isinstance(law, BitFlipLaw | FractionFlipLaw):
        return flip_rows(law)
    if isinstance(law, EndResponseLaw):
        to_far = [Fraction(own, values - 1) for own in range(values)]
        near, far = response_rows(law.response)
        return [[(1 - share) * one + share * other for one, other in zip(near, far, strict=True)] for share in to_far]
    if isinstance(law, TwoStageFlipLaw):
        width = law.permanent.width
        ones = (
            one * ((1 << width) - law.lost) + ((1 << width) - one) * law.raised
            for one in (law.permanent.own, law.permanent.other)
        )
        return flip_rows(BitFlipLaw(law.permanent.values, 2 * width, *ones))
    if isinstance(law, TwoStageResponseLaw):
        return two_response_rows(law)
    if isinstance(law, TwoStageHashedLaw):
        rows = two_response_rows(law.response)
        return [rows[bucket_of(seed, own, law.response.permanent.values)] for own in range(values)]
    if isinstance(law, BloomLaw):
        return filter_rows(law.once)
    if isinstance(law, AskedBitsLaw):
        return asked_rows(law)
    if isinstance(law, SketchLaw):
        return sketch_rows(law, values)
    if isinstance(law, SignSketchLaw):
        return sign_rows(law, values)
    if isinstance(law, SubsetLaw):
        return subset_rows(law)
    if isinstance(law, SetResponseLaw):
        return set_response_rows(law, values)
    if isinstance(law, HashedResponseLaw):
        return hashed_rows(law, values, seed)
    if isinstance(law, LineNoiseLaw) and law.clamped:
        return clamped(law.noise, values)
    if isinstance(law, TableLaw):
        return [table_row(law, own) for own in range(values)]
    if isinstance(law, FixedLaw):
        return [[Fraction(int(law.codes[own] == code)) for code in range(max(law.codes) + 1)] for own in range(values)]
    raise TypeError(type(law))


# -- distances --------------------------------------------------------------------------------------------


def squared_distance(mechanism: hb.Mechanism, first: int, second: int) -> Fraction:
    """Return the square of the distance that epsilon is for: 1 between any two values where it is plain."""
    domain = mechanism.domain
    if not mechanism.metric or isinstance(domain, hb.Categories):
        return Fraction(int(first != second))
    if isinstance(domain, LineDomain):
        places = domain.places
        return (Fraction(float(places[first])) - Fraction(float(places[second]))) ** 2
    assert isinstance(domain, hb.Grid)
    away = (domain.steps[first] - domain.steps[second]).tolist()
    return squared_length(away, domain.sides)


def squared_length(away: Iterable[int], sides: tuple[float, float]) -> Fraction:
    """Return the square of a displacement in columns and rows."""
    return sum(((step * Fraction(side)) ** 2 for step, side in zip(away, sides, strict=True)), Fraction(0))


# -- the promise ------------------------------------------------------------------------------------------


def broken_pairs(mechanism: hb.Mechanism, table: Table, epsilon: float | None = None) -> list[tuple[int, int, int]]:
    """Return all (value, other value, output) whose ratio exceeds exp(epsilon d): every pair, every output."""
    claim = Fraction(mechanism.epsilon if epsilon is None else epsilon)
    return [
        (first, second, place)
        for first in range(len(table))
        for second in range(len(table))
        if first != second
        for place, (high, low) in enumerate(zip(table[first], table[second], strict=True))
        if not keeps(high, low, limit(claim, squared_distance(mechanism, first, second)))
    ]


def broken_neighbours(mechanism: hb.Mechanism, rows: Iterator[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the neighbours on a line, and outputs, whose ratio exceeds exp(epsilon d) either way.

    On a line distances add up, and so do the logarithms of ratios: what holds for neighbours holds for all pairs.
    """
    claim = Fraction(mechanism.epsilon)
    broken = []
    for first, (one, other) in enumerate(pairwise(rows)):
        bound = limit(claim, squared_distance(mechanism, first, first + 1))
        whole = whole_below(bound)
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            if left << 300 <= whole * right and right << 300 <= whole * left:
                continue
            if not (keeps(left, right, bound) and keeps(right, left, bound)):
                broken.append((first, place))
    return broken


def broken_noise(noise: Noise, step: float, epsilon: float, values: int | None = None) -> list[int]:
    """Return the steps at which noise on a line exceeds exp(epsilon d), for any two neighbours.

    Without an end (`values` None) one block and a bit are enough: beyond the first, each block is the one before
    times the same number. Clamped to `values`, what goes on to either end must keep the promise too.
    """
    bound = limit(Fraction(epsilon), Fraction(step) ** 2)
    chances = steps_of(noise, (len(noise.steps) + 2) if values is None else values)
    lists = [chances]
    if values is not None:
        lists.append(tails_of(noise, chances, values))
    return [
        place
        for listed in lists
        for place, (near, far) in enumerate(pairwise(listed))
        if not (keeps(near, far, bound) and keeps(far, near, bound))
    ]


def reaches_alike(table: Table) -> bool:
    """Return whether each output can be reached from all values, or from none."""
    return all(len({chance > 0 for chance in column}) == 1 for column in zip(*table, strict=True))


def sums_to_one(table: Table) -> bool:
    """Return whether each row sums to exactly 1."""
    return all(sum(row) == 1 for row in table)


def planar_chance(law: PlanarGeometricLaw, columns: int, rows: int) -> Fraction:
    """Return the probability of a displacement, up to a factor that all share: both axes' times that it is taken."""
    chance = acceptance_probability(law.epsilon, law.sides, abs(columns), abs(rows))
    for side, steps in zip(law.sides, (columns, rows), strict=True):
        chance *= axis_noise(law.epsilon, side).probability(abs(steps))
    return chance


def broken_window(law: PlanarGeometricLaw, epsilon: float, reach: int) -> list[tuple[int, int, int, int]]:
    """Return the pairs of displacements near 0 whose ratio exceeds exp(epsilon d): two values, one output."""
    window = [(column, row) for column in range(-reach, reach + 1) for row in range(-reach, reach + 1)]
    chances = {place: planar_chance(law, *place) for place in window}
    return [
        (*one, *other)
        for one in window
        for other in window
        if one != other
        and not keeps(
            chances[one],
            chances[other],
            limit(Fraction(epsilon), squared_length((one[0] - other[0], one[1] - other[1]), law.sides)),
        )
    ]


def far_from_planar(
    law: PlanarGeometricLaw, displacements: Iterable[tuple[int, int]], bits: int
) -> list[tuple[int, int]]:
    """Return the displacements whose chance is not within 2^-bits of exp(-epsilon' d), epsilon' the shrunk epsilon.

    By the triangle's inequality exp(-epsilon' d) has ratios up to exp(epsilon' d(x, x')), and 2^-50 epsilon d(x, x') is
    far more than what 2^-bits can add to the logarithm.
    """
    shrunk = Fraction(law.epsilon) * (1 - Fraction(1, 2**50))
    none = planar_chance(law, 0, 0)
    return [
        away
        for away in displacements
        if not is_near(none / planar_chance(law, *away), limit(shrunk, squared_length(away, law.sides)), bits)
    ]


def far_from_exponential(mechanism: hb.Mechanism, law: TableLaw, own: int, bits: int) -> list[int]:
    """Return the outputs of a value whose chance is not within 2^-bits of exp(-epsilon' d / 2) over their sum.

    The ideal has ratios up to exp(epsilon' d): half of it from the triangle's inequality, half from the two sums.
    """
    half = Fraction(mechanism.epsilon) * (1 - Fraction(1, 2**50)) / 2
    with ctx.workprec(PRECISION):
        ideals = [1 / limit(half, squared_distance(mechanism, own, other)) for other in range(law.outputs)]
        total = sum(ideals, arb(0))
        row = table_row(law, own)
        return [place for place, ideal in enumerate(ideals) if not is_near(row[place], ideal / total, bits)]


def broken_memory(mechanism: hb.Mechanism, law: TwoStageLaw) -> list[int]:
    """Return the numbers of reports about one value that tell more than the mechanism says they spend.

    Of bits, what tells most is that all reports have a one in one value's bit and a zero in the other's: a bit of m
    reports is the sum over both permanent bits. Of responses, it is that all reports are one of the two values.
    """
    if isinstance(law, BloomLaw):
        ratios = filter_ratios(law)
    else:
        ratios = flip_ratios(law) if isinstance(law, TwoStageFlipLaw) else response_ratios(law)
    return [
        reports
        for reports in (1, 2, 3, 10, 200)
        if not keeps(*ratios(reports), limit(Fraction(mechanism.spent(reports)), Fraction(1)))
    ]


def flip_ratios(law: TwoStageFlipLaw) -> Callable[[int], tuple[Fraction, Fraction]]:
    """Return the probabilities of what tells most, for a number of reports: under the one value, and the other."""
    one = Fraction(1 << law.permanent.width)
    own, other = law.permanent.own / one, law.permanent.other / one
    lost, raised = law.lost / one, law.raised / one

    def same(chance: Fraction, bit: int, reports: int) -> Fraction:
        of_one, of_zero = ((1 - lost, raised), (lost, 1 - raised))[1 - bit]
        return chance * of_one**reports + (1 - chance) * of_zero**reports

    return lambda reports: (
        same(own, 1, reports) * same(other, 0, reports),
        same(other, 1, reports) * same(own, 0, reports),
    )


def response_ratios(law: TwoStageLaw) -> Callable[[int], tuple[Fraction, Fraction]]:
    """Return the same for responses, hashed or not."""
    response = law.response if isinstance(law, TwoStageHashedLaw) else law
    assert isinstance(response, TwoStageResponseLaw)
    size, one = response.permanent.values, Fraction(1 << response.permanent.width)
    (kept, other), (again, changed) = (
        (keep / one + (1 - keep / one) / size, (1 - keep / one) / size)
        for keep in (response.permanent.keep, response.kept)
    )

    def ratio(reports: int) -> tuple[Fraction, Fraction]:
        right, wrong = again**reports, changed**reports
        return kept * right + (size - 1) * other * wrong, other * right + (kept + (size - 2) * other) * wrong

    return ratio


def violations(mechanism: hb.Mechanism, law: Law | None = None) -> list[Any]:
    """Return where a law (by default the mechanism's own) breaks the mechanism's promise: nothing, if it keeps it.

    Few values: all pairs and outputs. Many: by structure, as the functions above argue.
    """
    law, claim, values = law or mechanism.law, Fraction(mechanism.epsilon), len(mechanism.domain)
    if isinstance(law, PlanarGeometricLaw):
        wide_enough = min(law.sides) * law.epsilon > 2.0**-60
        far = far_from_planar(law, [(0, 1), (1, 0), (2, 3), (40, 3), (5, 60), (900, 800)], 120)
        return [*broken_window(law, mechanism.epsilon, 3), *far, *([] if wide_enough else ["too narrow"])]
    if isinstance(law, AskedBitsLaw):
        few_bits = hb.Rappor(hb.Categories([0, 1]), mechanism.epsilon * 2 / min(2, law.asked))  # of two values
        return violations(few_bits, replace(law.bits, values=2))
    if isinstance(law, BloomLaw):
        high, low = filter_ratios(replace(law, p=Fraction(0), q=Fraction(1)))(1)
        together = [] if keeps(high, low, limit(claim, Fraction(1))) else ["all reports"]
        small = law.permanent.cohorts << law.permanent.filters.bits <= 256 and values <= 4
        pairs = broken_pairs(mechanism, filter_rows(law.permanent)) if small else []
        return [*broken_memory(mechanism, law), *together, *pairs]
    if isinstance(law, SketchLaw):  # of one hash: values in different buckets, as with noisy bits
        return violations(hb.Rappor(hb.Categories([0, 1]), mechanism.epsilon), replace(law.bits, values=2))
    if isinstance(law, TwoStageLaw):
        return [*broken_memory(mechanism, law), *violations(mechanism, law.permanent)]
    if isinstance(law, PlanarTableLaw):
        assert isinstance(mechanism.domain, hb.Grid)
        return broken_pairs(mechanism, clipped_rows(law, mechanism.domain))
    if isinstance(law, LineNoiseLaw) and not law.clamped:
        return broken_noise(law.noise, 1.0, mechanism.epsilon)
    if isinstance(law, StaircaseLaw):
        return broken_stairs(mechanism, law)
    if isinstance(law, EndResponseLaw):
        # Of many values, both ends: every row of the others is between theirs.
        return broken_pairs(mechanism, rows_of(law, values)) if values <= 8 else violations(mechanism, law.response)
    if isinstance(law, HashedResponseLaw | SignSketchLaw):
        law = law.response
        values = law.values
    few = {BitFlipLaw: 5, FractionFlipLaw: 5, SubsetLaw: 10}.get(type(law), 8)
    if values <= few or isinstance(mechanism, hb.Matrix):
        return broken_pairs(mechanism, rows_of(law, values))
    bound = limit(claim, Fraction(1))
    if isinstance(law, ResponseLaw):
        other = Fraction((1 << law.width) - law.keep, law.values)
        return [] if keeps(other + law.keep, other, bound) and keeps(other, other + law.keep, bound) else ["response"]
    if isinstance(law, SetResponseLaw):
        other = Fraction((1 << law.width) - law.keep, law.outputs)
        near = other + Fraction(law.keep, law.size)
        return [] if keeps(near, other, bound) and keeps(other, near, bound) else ["sets"]
    if isinstance(law, SubsetLaw):
        inside = Fraction((1 << law.width) - law.out, math.comb(values - 1, law.size - 1))
        outside = Fraction(law.out, math.comb(values - 1, law.size))
        return [] if keeps(inside, outside, bound) and keeps(outside, inside, bound) else ["subsets"]
    if isinstance(law, BitFlipLaw | FractionFlipLaw):  # only the bits of the two values matter
        whole = 1 << law.width if isinstance(law, BitFlipLaw) else 1
        mine, others = ([whole - one, one] for one in (law.own, law.other))
        both = list(product((0, 1), repeat=2))
        return [(a, b) for a, b in both if not keeps(mine[a] * others[b], others[a] * mine[b], bound)]
    if isinstance(law, LineNoiseLaw):
        assert isinstance(mechanism.domain, LineDomain)
        step = float(mechanism.domain.places[1] - mechanism.domain.places[0])
        return broken_noise(law.noise, step, mechanism.epsilon, values)
    assert isinstance(law, TableLaw)
    if isinstance(mechanism.domain, LineDomain) and mechanism.metric:
        return broken_neighbours(mechanism, (law.row(own) for own in range(values)))
    some = sorted({0, 1, values // 3, values // 2, values - 1})
    return [(own, place) for own in some for place in far_from_exponential(mechanism, law, own, 150)]


def worst_excess(matrix: NDArray[np.float64], table: Table) -> float:
    """Return how far a matrix of floats is from the fractions, relative to each and to (1 + |log p|)."""
    worst = 0.0
    for floats, row in zip(matrix.tolist(), table, strict=True):
        for number, chance in zip(floats, row, strict=True):
            if chance < Fraction(1, 10**290):
                worst = max(worst, 0.0 if number < 1e-289 else 1.0)
                continue
            log = -math.log(chance.numerator) + math.log(chance.denominator)
            worst = max(worst, abs(float(Fraction(number) / chance - 1)) / (1 + abs(log)))
    return worst
