"""Largest probability ratios of noisy Bloom filters, in exact fractions.

With A the ratio of the probabilities of a one in a bit that the filter has and one that it lacks, and B that of a zero
in a bit that it lacks and one that it has, two filters have a ratio of at most A^a B^b, where a bits are in the first
alone and b in the other alone: ones there, and zeros here.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.auditing.exact_ratios import OutputRatio
from hubbub.mechanisms.text_filters import Differences, any_differences, differences, unpacked
from hubbub.sampling import NoisyFilterLaw


def filters_ratio(law: NoisyFilterLaw) -> OutputRatio:
    """Return the largest ratio over all cohorts, values and rows of bits; with a rest, of any two texts, listed or not.

    The rest stands for many texts, and protects each of them: its likelihood, a mean over all filters, would hide two
    people behind each other who both have a text that is not listed.
    """
    filters = law.filters
    if filters.rest < 0:
        return _pair_ratio(law)
    only, lacking, weights = _largest(law, any_differences(filters.bits, filters.hashes))
    text = f"any with {only} bits that one text alone sets, and without {lacking} that another one sets"
    return OutputRatio(filters.rest, filters.rest, text, *weights)


def _pair_ratio(law: NoisyFilterLaw) -> OutputRatio:
    """Return the largest ratio of two listed values."""
    packed, bits = law.filters.packed, law.filters.bits
    only, lacking, weights = _largest(law, differences(packed, bits, min(law.filters.hashes, bits)))
    cohort, value, other = _found(packed, bits, only, lacking)
    here, there = (unpacked(packed[cohort, place], bits) > 0 for place in (value, other))
    return OutputRatio(value, other, f"{cohort}:0x{np.packbits(here & ~there).tobytes().hex()}", *weights)


def _largest(law: NoisyFilterLaw, pairs: Differences) -> tuple[int, int, tuple[int, int]]:
    """Return the pair of numbers of bits with the largest ratio, and that ratio."""
    infinite = law.zero == 0 or law.one == 1
    one, zero = (Fraction(2), Fraction(2)) if infinite else (law.one / law.zero, (1 - law.zero) / (1 - law.one))
    only, lacking = max(pairs, key=lambda pair: one ** pair[0] * zero ** pair[1])
    weights = (1, 0) if infinite and only + lacking else (one**only * zero**lacking).as_integer_ratio()
    return only, lacking, weights


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
