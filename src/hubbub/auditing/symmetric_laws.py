"""Laws that treat all pairs of values alike: the worst pair and output follow from their whole numbers."""

from __future__ import annotations

import itertools
from fractions import Fraction

from hubbub.auditing.exact_ratios import Pair
from hubbub.client import bucket_of
from hubbub.domains import Domain
from hubbub.mechanisms.local_hashing import HashedResponseLaw
from hubbub.sampling import BitFlipLaw, FixedLaw, ResponseLaw, SubsetLaw


def of_response(law: ResponseLaw, output: str) -> Pair:
    """Return the worst of randomized response: the true value as output, against any other.

    There are two probabilities, own and other, and a pair of values with the output `output` has the ratio own to
    other, other to own, or 1.
    """
    own, other = _own_and_other(law)
    return _larger(0, 1, output, own, other)


def of_hashed(law: HashedResponseLaw) -> Pair:
    """Return the worst of hashed response: the seed is as likely under all values, the bucket is randomized response.

    Any two values that a seed sends to different buckets have the same ratios; values 0 and 1 meet such a seed.
    """
    own, other = _own_and_other(law.response)
    buckets = law.response.values
    seed = next(seed for seed in itertools.count() if bucket_of(seed, 0, buckets) != bucket_of(seed, 1, buckets))
    return _larger(0, 1, f"seed {seed}, bucket {bucket_of(seed, 0, buckets)}", own, other)


def _own_and_other(law: ResponseLaw) -> tuple[int, int]:
    """Return both probabilities, over values 2^width."""
    other = (1 << law.width) - law.keep
    return law.values * law.keep + other, other


def of_flips(law: BitFlipLaw) -> Pair:
    """Return the worst of noisy bits: two values differ in their own two bits alone, and bits are independent.

    The ratio is a factor of the first value's bit, own over other, times one of the second's, other over own; each is
    largest for one of the two states of that bit.
    """
    one = 1 << law.width
    own, other = (one - law.own, law.own), (one - law.other, law.other)  # of a bit that is 0, or 1
    first, bit = _largest(own, other)
    second, against = _largest(other, own)
    output = f"any with the first value's bit {bit} and the second's {against}"
    if first is None or second is None:
        return Pair(0, 1, output, 1, 0)
    return Pair(0, 1, output, *(first * second).as_integer_ratio())


def _largest(above: tuple[int, int], below: tuple[int, int]) -> tuple[Fraction | None, int]:
    """Return the larger of two ratios, None where it is infinite, and which one it is; 0 over 0 never happens."""
    for bit in (0, 1):
        if above[bit] and not below[bit]:
            return None, bit
    return max((Fraction(above[bit], below[bit]), bit) for bit in (0, 1) if below[bit])


def of_subsets(law: SubsetLaw) -> Pair:
    """Return the worst of subset selection: a subset that holds one value and not the other.

    All subsets with the true value are equally likely, and all without it. Their numbers, C(k-1, s-1) and C(k-1, s),
    are as s to k - s.
    """
    held, out = ((1 << law.width) - law.out) * (law.values - law.size), law.out * law.size
    if held >= out:
        return Pair(0, 1, "any subset with the first value and without the second", held, out)
    return Pair(0, 1, "any subset without the first value and with the second", out, held)


def of_fixed(law: FixedLaw, outputs: list[str]) -> Pair:
    """Return two values with different outputs: one is impossible where the other is certain."""
    first = int(law.codes[0])
    for position, code in enumerate(law.codes.tolist()):
        if code != first:
            return Pair(0, position, outputs[first], 1, 0)
    return Pair(0, 1, outputs[first], 1, 1)


def _larger(value: int, other: int, output: str, first: int, second: int) -> Pair:
    """Return the pair in the order in which its ratio is at least 1."""
    if first < second:
        value, other, first, second = other, value, second, first
    return Pair(value, other, output, first, second)


def pairs_of(domain: Domain) -> int:
    """Return how many ordered pairs of values there are."""
    return len(domain) * (len(domain) - 1)
