"""Largest probability ratios of noisy Bloom filters, in exact fractions.

With A the ratio of the probabilities of a one in a bit that the filter has and one that it lacks, and B that of a zero
in a bit that it lacks and one that it has, two filters have a ratio of at most A^a B^b, where a bits are in the first
alone and b in the other alone: ones there, and zeros here. For texts that are not listed the mean over all filters is
taken, which depends on how many ones there are among all bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.auditing.exact_ratios import OutputRatio
from hubbub.mechanisms.text_filters import differences, filter_size_weights, unpacked
from hubbub.sampling import NoisyFilterLaw


def filters_ratio(law: NoisyFilterLaw) -> OutputRatio:
    """Return the largest ratio over all cohorts, values and rows of bits."""
    found = _pair_ratio(law)
    if law.filters.rest < 0 or found.denominator == 0:
        return found
    candidates = [found, *_rest_ratios(law)]
    return max(candidates, key=lambda one: Fraction(one.numerator, one.denominator))


def _pair_ratio(law: NoisyFilterLaw) -> OutputRatio:
    """Return the largest ratio of two listed values."""
    filters = law.filters
    listed = np.delete(np.arange(filters.packed.shape[1]), filters.rest if filters.rest >= 0 else [])
    packed = filters.packed[:, listed]
    pairs = differences(packed, filters.bits, min(filters.hashes, filters.bits))
    infinite = law.zero == 0 or law.one == 1
    one, zero = (Fraction(2), Fraction(2)) if infinite else (law.one / law.zero, (1 - law.zero) / (1 - law.one))
    only, lacking = max(pairs, key=lambda pair: one ** pair[0] * zero ** pair[1])
    cohort, value, other = _found(packed, filters.bits, only, lacking)
    here, there = (unpacked(packed[cohort, place], filters.bits) > 0 for place in (value, other))
    text = f"{cohort}:0x{np.packbits(here & ~there).tobytes().hex()}"
    weights = (1, 0) if infinite and only + lacking else (one**only * zero**lacking).as_integer_ratio()
    return OutputRatio(int(listed[value]), int(listed[other]), text, *weights)


def _found(packed: NDArray[np.uint8], bits: int, only: int, lacking: int) -> tuple[int, int, int]:
    """Return a cohort and two values whose filters differ so."""
    for cohort, filters in enumerate(packed):
        distinct, first = np.unique(filters, axis=0, return_index=True)
        rows = unpacked(distinct, bits)
        sizes, shared = rows.sum(axis=1), rows @ rows.T
        hits = np.argwhere((sizes[:, None] - shared == only) & (sizes[None, :] - shared == lacking))
        if len(hits):
            value, other = (int(first[place]) for place in hits[0])
            return cohort, value, other if other != value else (value + 1) % len(filters)
    raise AssertionError("no such pair")  # `differences` found it


def _rest_ratios(law: NoisyFilterLaw) -> Iterator[OutputRatio]:
    """Yield the ratios of a listed value and the rest, for each size of a filter and each number of ones."""
    filters = law.filters
    bits, hashes = filters.bits, filters.hashes
    one, zero = law.one / law.zero, (1 - law.one) / (1 - law.zero)
    weights = filter_size_weights(hashes)
    means = [
        sum(weights[size] * _symmetric(ones, bits - ones, one, zero, size) for size in range(1, hashes + 1))
        / bits**hashes
        for ones in range(bits + 1)
    ]
    sizes = np.bitwise_count(filters.packed).sum(axis=2)
    for size in np.unique(sizes[sizes > 0]).tolist():
        cohort, value = (int(place) for place in np.argwhere(sizes == size)[0])
        own = np.flatnonzero(unpacked(filters.packed[cohort, value], bits))
        others = np.setdiff1d(np.arange(bits), own)
        for inside in range(size + 1):
            for outside in range(bits - size + 1):
                row = np.zeros(bits, dtype=bool)
                row[own[:inside]] = row[others[:outside]] = True
                ratio = one**inside * zero ** (size - inside) / means[inside + outside]
                text = f"{cohort}:0x{np.packbits(row).tobytes().hex()}"
                yield OutputRatio.at_least_one(value, filters.rest, text, *ratio.as_integer_ratio())


def _symmetric(ones: int, zeros: int, one: Fraction, zero: Fraction, size: int) -> Fraction:
    """Return the sum over all sets of `size` bits of the product of their factors."""
    return sum(
        (
            math.comb(ones, inside) * math.comb(zeros, size - inside) * one**inside * zero ** (size - inside)
            for inside in range(max(0, size - zeros), min(ones, size) + 1)
        ),
        Fraction(0),
    )
