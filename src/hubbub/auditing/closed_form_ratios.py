"""Largest probability ratios in closed form: of laws that treat all values alike, and of noise on an even line.

Between two values on a line, log-ratios add up from neighbour to neighbour, and so do distances. The rate of any pair
is therefore a mean of the rates of the neighbours between them, and the largest rate belongs to two neighbours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, chain, islice, pairwise

import numpy as np

from hubbub.auditing.exact_ratios import OutputRatio, largest_ratio
from hubbub.auditing.filter_ratios import filters_ratio
from hubbub.client import Noise, bucket_of
from hubbub.core.arrays import plain
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.local_hashing import HashedResponseLaw
from hubbub.mechanisms.sketches import SignSketchLaw, SketchLaw, bucket_numbers
from hubbub.sampling import (
    AskedBitsLaw,
    BitFlipLaw,
    EndResponseLaw,
    FixedLaw,
    FractionFlipLaw,
    FractionResponseLaw,
    Law,
    LineNoiseLaw,
    NoisyFilterLaw,
    ResponseLaw,
    SetResponseLaw,
    StaircaseLaw,
    SubsetLaw,
    TwoAnswerLaw,
    TwoStageLaw,
)


def output_text_of(mechanism: Mechanism) -> Callable[[int], str]:
    """Return a function from an output's code to the text that files hold."""
    space = mechanism.output_space
    return lambda code: space.write(plain(space.decode(np.array([code]))[0]))


def closed_form_ratio(mechanism: Mechanism, output_text: Callable[[int], str]) -> tuple[OutputRatio, int | None] | None:
    """Return the largest ratio, and the number of outputs; None if there is no closed form.

    The number is None where outputs are infinitely many, or the texts that are compared.
    """
    law, domain, size = mechanism.law, mechanism.domain, len(mechanism.domain)
    if isinstance(law, FixedLaw):
        return _deterministic_ratio(law, output_text), int(law.codes.max()) + 1
    if mechanism.metric:
        if not isinstance(law, LineNoiseLaw) or domain.step is None:
            return None
        ratios = _neighbour_ratios(law, domain.squared_distance(0, 1), output_text)
        return largest_ratio(list(ratios)), law.values if law.clamped else None
    if isinstance(law, TwoAnswerLaw):
        return _two_answers_ratio(law, output_text), 2
    if isinstance(law, EndResponseLaw):
        own, others = response_weights(law.response)
        return OutputRatio.at_least_one(size - 1, 0, output_text(1), own, others), 2
    alike = alike_ratio(law, output_text, *different_values(law, size))
    if alike is None:
        return None
    if isinstance(law, TwoStageLaw) and law.permanent is not law:
        law = law.permanent  # its outputs are those of the whole law
    if isinstance(law, NoisyFilterLaw):
        return alike, None if law.filters.rest >= 0 else law.cohorts << law.filters.bits
    if isinstance(law, AskedBitsLaw):
        return alike, math.comb(law.buckets, law.asked) << law.asked
    if isinstance(law, HashedResponseLaw):
        return alike, law.response.values << 64
    if isinstance(law, SketchLaw):
        return alike, law.hashes << law.bits.values
    if isinstance(law, SignSketchLaw):
        return alike, 2 * law.hashes * law.width
    if isinstance(law, SubsetLaw):
        return alike, math.comb(size, law.size)
    if isinstance(law, SetResponseLaw):
        return alike, law.outputs
    if isinstance(law, StaircaseLaw):
        return alike, None
    return alike, size if isinstance(law, ResponseLaw | FractionResponseLaw) else 1 << size


def different_values(law: Law, size: int) -> tuple[int, int]:
    """Return two values that do not share a bucket; without need 0 and 1."""
    if isinstance(law, AskedBitsLaw):
        return 0, size - 1
    if isinstance(law, SketchLaw | SignSketchLaw):
        width = law.width if isinstance(law, SignSketchLaw) else law.bits.values
        for number in range(law.hashes):
            buckets = bucket_numbers(np.array(number), np.arange(size), width)
            different = np.flatnonzero(buckets != buckets[0])
            if different.size:
                return 0, int(different[0])
    return 0, 1


def alike_ratio(law: Law, output_text: Callable[[int], str], value: int = 0, other: int = 1) -> OutputRatio | None:
    """Return the largest ratio of two different values where that of any two is the same; None for other laws.

    Of `AskedBitsLaw` it is the same for any two values in different buckets, and of sketches for any two that do not
    share their buckets under all hashes. Of `NoisyFilterLaw`, whose values are not alike, it is the largest of all.
    """
    if isinstance(law, ResponseLaw | FractionResponseLaw):
        own, others = response_weights(law)
        if own < others:
            return OutputRatio(value, other, output_text(other), others, own)
        return OutputRatio(value, other, output_text(value), own, others)
    if isinstance(law, SetResponseLaw):
        return _set_response_ratio(law, output_text, value, other)
    if isinstance(law, HashedResponseLaw):
        return _hashed_response_ratio(law, value, other)
    if isinstance(law, NoisyFilterLaw):
        return filters_ratio(law)
    if isinstance(law, AskedBitsLaw):
        return _asked_ratio(law, value, other)
    if isinstance(law, SketchLaw | SignSketchLaw):
        return _sketch_ratio(law, output_text, value, other)
    if isinstance(law, TwoStageLaw):
        # Every report about a value is made from one permanent response, without looking at the value again.
        return alike_ratio(law.permanent, output_text, value, other)
    if isinstance(law, BitFlipLaw | FractionFlipLaw):
        return flips_ratio(law, value, other)
    if isinstance(law, StaircaseLaw):
        return _stairs_ratio(law, output_text, value, other)
    return _subsets_ratio(law, value, other) if isinstance(law, SubsetLaw) else None


def _deterministic_ratio(law: FixedLaw, output_text: Callable[[int], str]) -> OutputRatio:
    """Return two values with different outputs, whose ratio is infinite; 1 if all values have the same output."""
    first = int(law.codes[0])
    for position, code in enumerate(law.codes.tolist()):
        if code != first:
            return OutputRatio(0, position, output_text(first), 1, 0)
    return OutputRatio(0, 1, output_text(first), 1, 1)


def _two_answers_ratio(law: TwoAnswerLaw, output_text: Callable[[int], str]) -> OutputRatio:
    """Return the largest ratio of either answer, between the values to which it is the most and the least likely."""
    ratios = []
    for output, column in enumerate((law.chances, [1 - chance for chance in law.chances])):
        places = [(chance, position) for position, chance in enumerate(column)]
        (low, other), (high, value) = min(places), max(places)
        weights = high.numerator * low.denominator, low.numerator * high.denominator
        ratios.append(OutputRatio(value, other, output_text(output), *weights))
    return largest_ratio(ratios)


def response_weights(law: ResponseLaw | FractionResponseLaw) -> tuple[int, int]:
    """Return weights proportional to the probabilities of the true and of any other output.

    An output has one of these two, so every ratio is one of them to the other, or 1.
    """
    keep, total = law.keep.as_integer_ratio() if isinstance(law, FractionResponseLaw) else (law.keep, 1 << law.width)
    other = total - keep
    return law.values * keep + other, other


def _set_response_ratio(law: SetResponseLaw, output_text: Callable[[int], str], value: int, other: int) -> OutputRatio:
    """Return the largest ratio of responses with sets: an output of one value's set that is not in the other's.

    There always is one, because sets are of one size and no two are the same.
    """
    places = np.arange(law.size)
    first, second = (law.member(np.full(law.size, each), places) for each in (value, other))
    output = output_text(int(np.setdiff1d(first, second)[0]))
    rest = (1 << law.width) - law.keep
    return OutputRatio.at_least_one(value, other, output, law.keep * law.outputs + law.size * rest, law.size * rest)


def _hashed_response_ratio(law: HashedResponseLaw, value: int, other: int) -> OutputRatio:
    """Return the largest ratio of hashed response: every seed is equally likely, and the bucket is a k-RR response.

    Any two values that a seed sends to different buckets have the same ratios, and there is such a seed.
    """
    buckets = law.response.values
    apart = (seed for seed in itertools.count() if bucket_of(seed, value, buckets) != bucket_of(seed, other, buckets))
    seed = next(apart)
    output = f"seed {seed}, bucket {bucket_of(seed, value, buckets)}"
    return OutputRatio.at_least_one(value, other, output, *response_weights(law.response))


def flips_ratio(law: BitFlipLaw | FractionFlipLaw, value: int = 0, other: int = 1) -> OutputRatio:
    """Return the largest ratio of noisy bits: two values differ only in their own two, independent bits.

    The ratio is a factor of the first value's bit, own over other, times one of the second's, other over own. Each
    factor is largest for one of the two states of its bit.
    """
    owns, others = bit_weights(law)
    first_factor, first_bit = _largest_bit_ratio(owns, others)
    second_factor, second_bit = _largest_bit_ratio(others, owns)
    output = f"any with the first value's bit {first_bit} and the second's {second_bit}"
    if first_factor is None or second_factor is None:
        return OutputRatio(value, other, output, 1, 0)
    return OutputRatio(value, other, output, *(first_factor * second_factor).as_integer_ratio())


def bit_weights(law: BitFlipLaw | FractionFlipLaw) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return weights of the states 0 and 1, of the value's own bit and of another's, all over one number."""
    if isinstance(law, FractionFlipLaw):
        scale = math.lcm(law.own.denominator, law.other.denominator)
        own, other = int(law.own * scale), int(law.other * scale)
    else:
        scale, own, other = 1 << law.width, law.own, law.other
    return (scale - own, own), (scale - other, other)


def _stairs_ratio(law: StaircaseLaw, output_text: Callable[[int], str], value: int, other: int) -> OutputRatio:
    """Return the largest ratio of staircase noise: an output at the end of a stair, which is on the next for the other.

    A stair is as long as the line, so that any two values are at most one stair apart. Ratios of neighbouring stairs
    repeat a block of stairs further out.
    """
    away, ratios = 1 if value > other else -1, []
    for stair in range(len(law.stairs.steps) + 1):
        near, far = _step_weights(law.stairs, stair)
        if stair == 0:  # all places of a stair are equally likely
            near, far = near * law.stair, far * (2 * law.reach + 1)
        output = output_text(law.low + value + away * (law.reach + stair * law.stair))
        ratios.append(OutputRatio.at_least_one(value, other, output, near, far))
    return largest_ratio(ratios)


def _asked_ratio(law: AskedBitsLaw, value: int, other: int) -> OutputRatio:
    """Return the largest ratio of answers: both values' buckets are asked, or one of them, where there is but one bit.

    Which buckets are asked is as likely for all values. Values in one bucket have the same outputs.
    """
    if value * law.buckets // law.values == other * law.buckets // law.values:
        return OutputRatio(value, other, "any", 1, 1)
    if law.asked > 1:
        return flips_ratio(law.bits, value, other)
    scale = 1 << law.bits.width
    owns, others = (scale - law.bits.own, law.bits.own), (scale - law.bits.other, law.bits.other)
    ratio, bit = _largest_bit_ratio(owns, others)
    weights = (1, 0) if ratio is None else ratio.as_integer_ratio()
    return OutputRatio(value, other, f"any with the first value's bucket asked and its bit {bit}", *weights)


def _sketch_ratio(
    law: SketchLaw | SignSketchLaw, output_text: Callable[[int], str], value: int, other: int
) -> OutputRatio:
    """Return the largest ratio of sketches: of a hash under which the values have different buckets, if there is one.

    The hash, and the row of the matrix, are as likely for all values. Any two columns of the matrix differ somewhere.
    """
    width = law.width if isinstance(law, SignSketchLaw) else law.bits.values
    first, second = (bucket_numbers(np.arange(law.hashes), np.array(each), width) for each in (value, other))
    different = np.flatnonzero(first != second)
    if not different.size:
        return OutputRatio(value, other, "any", 1, 1)
    number = int(different[0])
    if isinstance(law, SketchLaw):
        ratio = flips_ratio(law.bits, value, other)
        bits = [int(law.bits.own >= law.bits.other), int(law.bits.own < law.bits.other)]
        return replace(
            ratio, output=f"any of hash {number} with bit {first[number]} {bits[0]} and bit {second[number]} {bits[1]}"
        )
    own, others = response_weights(law.response)
    apart = int(first[number] ^ second[number])
    row = apart & -apart  # where the two columns differ
    sign = (row & int(first[number])).bit_count() % 2
    weights = (own, others) if own >= others else (others, own)
    code = 2 * (number * law.width + row) + (sign if own >= others else 1 - sign)
    return OutputRatio(value, other, output_text(code), *weights)


def _largest_bit_ratio(numerators: tuple[int, int], denominators: tuple[int, int]) -> tuple[Fraction | None, int]:
    """Return the larger ratio of the two states of a bit, None if infinite, and the state; 0 over 0 never happens."""
    for bit in (0, 1):
        if numerators[bit] and not denominators[bit]:
            return None, bit
    return max((Fraction(numerators[bit], denominators[bit]), bit) for bit in (0, 1) if denominators[bit])


def _subsets_ratio(law: SubsetLaw, value: int, other: int) -> OutputRatio:
    """Return the largest ratio of subset selection: a subset that holds one of the two values.

    All subsets with the true value are equally likely, and so are all without it. Their numbers, C(k-1, s-1) and
    C(k-1, s), are in the ratio s to k - s.
    """
    included, excluded = ((1 << law.width) - law.out) * (law.values - law.size), law.out * law.size
    if included >= excluded:
        return OutputRatio(value, other, "any subset with the first value and without the second", included, excluded)
    return OutputRatio(value, other, "any subset without the first value and with the second", excluded, included)


def unclamped_ratio(law: LineNoiseLaw, output_text: Callable[[int], str], value: int, other: int) -> OutputRatio:
    """Return the largest ratio of two values on a line where noise is not clamped.

    The output is the first value, or beyond it; ratios repeat a block of steps further out.
    """
    noise, away = law.noise, 1 if value > other else -1
    ratios = []
    for beyond in range(len(noise.steps) + 1):
        ratio = noise.probability(beyond) / noise.probability(beyond + abs(value - other))
        output = output_text(law.low + value + away * beyond)
        ratios.append(OutputRatio(value, other, output, *ratio.as_integer_ratio()))
    return largest_ratio(ratios)


def _neighbour_ratios(
    law: LineNoiseLaw, squared_distance: Fraction, output_text: Callable[[int], str]
) -> Iterator[OutputRatio]:
    """Yield every ratio of two neighbours, which are at the same distance everywhere, each as a ratio of at least 1.

    For an output that is not an end of the line, the ratio is that of k steps of noise to k + 1 steps. If outputs are
    clamped, k is at most values - 3 (the output lies between the ends, and both neighbours are on one side of it), and
    each end collects all noise that goes at least as far: ratios of k steps or more to k + 1 steps or more, for k up
    to values - 2. If outputs are not clamped, k is any number. Both kinds of ratio repeat a block of steps further
    out, so one block and the step into the next cover them all.
    """
    noise = law.noise
    distinct = len(noise.steps) + 1
    for k in range(min(distinct, law.values - 2) if law.clamped else distinct):
        near, output = (k + 1, 1) if law.clamped else (0, law.low - k)
        weights = _step_weights(noise, k)
        yield OutputRatio.at_least_one(near, near + 1, output_text(output), *weights, squared_distance)
    if law.clamped:
        for k, tails in enumerate(islice(pairwise(_tail_weights(noise)), min(distinct, law.values - 1))):
            yield OutputRatio.at_least_one(k, k + 1, output_text(0), *tails, squared_distance)


def _step_weights(noise: Noise, k: int) -> tuple[int, int]:
    """Return weights proportional to the probabilities of k and of k + 1 steps to one side, for k up to a block."""
    scale, block = 1 << noise.width, len(noise.steps)
    if k == 0:
        return (scale - 2 * noise.side) * scale, noise.side * noise.steps[0]
    if k < block:
        return noise.steps[k - 1], noise.steps[k]
    return noise.steps[-1] * scale, noise.rest * noise.steps[0]


def _tail_weights(noise: Noise) -> Iterator[int]:
    """Yield weights proportional to the probabilities of at least 0, 1, 2, ... steps to one side.

    "At least 0 steps" is everything except noise to the other side.
    """
    scale = 1 << noise.width
    sums = chain([0], accumulate(noise.steps))
    return chain([(scale - noise.side) * scale], (noise.side * (scale - gone) for gone in sums))
