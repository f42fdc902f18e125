"""The largest probability ratio of laws that treat all pairs of values alike."""

from __future__ import annotations

import itertools
from fractions import Fraction

from hubbub.auditing.exact_ratios import OutputRatio
from hubbub.client import bucket_of
from hubbub.mechanisms.local_hashing import HashedResponseLaw
from hubbub.sampling import BitFlipLaw, FixedLaw, ResponseLaw, SubsetLaw


def response_ratio(law: ResponseLaw, output: str) -> OutputRatio:
    """Return the largest ratio of randomized response: the true value as output, against any other value.

    An output has one of two probabilities, that of the true value and that of any other, so every ratio is one of
    these to the other, or 1.
    """
    own, other = _response_weights(law)
    return OutputRatio.at_least_one(0, 1, output, own, other)


def hashed_response_ratio(law: HashedResponseLaw) -> OutputRatio:
    """Return the largest ratio of hashed response: every seed is equally likely, and the bucket is a k-RR response.

    Any two values that a seed sends to different buckets have the same ratios; values 0 and 1 have such a seed.
    """
    own, other = _response_weights(law.response)
    buckets = law.response.values
    seed = next(seed for seed in itertools.count() if bucket_of(seed, 0, buckets) != bucket_of(seed, 1, buckets))
    output = f"seed {seed}, bucket {bucket_of(seed, 0, buckets)}"
    return OutputRatio.at_least_one(0, 1, output, own, other)


def _response_weights(law: ResponseLaw) -> tuple[int, int]:
    """Return the probabilities of the true and of any other output, over values 2^width."""
    other = (1 << law.width) - law.keep
    return law.values * law.keep + other, other


def flips_ratio(law: BitFlipLaw) -> OutputRatio:
    """Return the largest ratio of noisy bits: two values differ only in their own two, independent bits.

    The ratio is a factor of the first value's bit, own over other, times one of the second's, other over own. Each
    factor is largest for one of the two states of its bit.
    """
    scale = 1 << law.width
    own, other = (scale - law.own, law.own), (scale - law.other, law.other)  # weights of the states 0 and 1
    first_factor, first_bit = _largest_bit_ratio(own, other)
    second_factor, second_bit = _largest_bit_ratio(other, own)
    output = f"any with the first value's bit {first_bit} and the second's {second_bit}"
    if first_factor is None or second_factor is None:
        return OutputRatio(0, 1, output, 1, 0)
    return OutputRatio(0, 1, output, *(first_factor * second_factor).as_integer_ratio())


def _largest_bit_ratio(numerators: tuple[int, int], denominators: tuple[int, int]) -> tuple[Fraction | None, int]:
    """Return the larger ratio of the two states of a bit, None if infinite, and the state; 0 over 0 never happens."""
    for bit in (0, 1):
        if numerators[bit] and not denominators[bit]:
            return None, bit
    return max((Fraction(numerators[bit], denominators[bit]), bit) for bit in (0, 1) if denominators[bit])


def subsets_ratio(law: SubsetLaw) -> OutputRatio:
    """Return the largest ratio of subset selection: a subset that holds one of the two values.

    All subsets with the true value are equally likely, and so are all without it. Their numbers, C(k-1, s-1) and
    C(k-1, s), are in the ratio s to k - s.
    """
    included, excluded = ((1 << law.width) - law.out) * (law.values - law.size), law.out * law.size
    if included >= excluded:
        return OutputRatio(0, 1, "any subset with the first value and without the second", included, excluded)
    return OutputRatio(0, 1, "any subset without the first value and with the second", excluded, included)


def deterministic_ratio(law: FixedLaw, outputs: list[str]) -> OutputRatio:
    """Return two values with different outputs, whose ratio is infinite; 1 if all values have the same output."""
    first = int(law.codes[0])
    for position, code in enumerate(law.codes.tolist()):
        if code != first:
            return OutputRatio(0, position, outputs[first], 1, 0)
    return OutputRatio(0, 1, outputs[first], 1, 1)
