"""Bloom filters of texts: which bits they set in each cohort, how far two of them differ, and filters of any text.

**Texts that are not listed.** Their hashes are unknown, and random: h positions, each any of k with the same chance.
For factors w_1, ..., w_k of the bits, the mean over such filters F is

    E prod over j in F of w_j  =  sum over s = 1..h of  S(h, s) / k^h  e_s(w),

with S(h, s) the number of ways in which h positions are exactly s given ones, and e_s the elementary symmetric
polynomials.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.client import bloom_bits
from hubbub.core.arrays import Floats

CHUNK_ENTRIES = 4_000_000  # of a table of pairs of filters, worked on at a time

Bytes = NDArray[np.uint8]
Differences = frozenset[tuple[int, int]]  # how many bits one filter has alone, and how many another one


def text_filters(texts: list[str], cohorts: int, bits: int, hashes: int) -> Bytes:
    """Return the packed filters of texts: cohorts by texts by bytes."""
    rows = np.zeros((cohorts, len(texts), bits), dtype=bool)
    for cohort, place in product(range(cohorts), range(len(texts))):
        rows[cohort, place, bloom_bits(texts[place], cohort, bits, hashes)] = True
    return np.packbits(rows, axis=-1)


def unpacked(packed: Bytes, bits: int) -> Floats:
    """Return filters as zeros and ones."""
    return np.unpackbits(packed, axis=-1, count=bits).astype(np.float64)


def differences(packed: Bytes, bits: int, most: int) -> Differences:
    """Return in how many bits two filters of one cohort may differ, the largest pairs alone.

    A filter has at most `most` ones, so that no pair is larger than (most, most): the search ends where that is found.
    """
    seen = np.zeros((most + 1, most + 1), dtype=bool)
    for filters in packed:
        rows = unpacked(np.unique(filters, axis=0), bits)
        sizes = rows.sum(axis=1)
        step = max(1, CHUNK_ENTRIES // len(rows))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            shared = rows[part] @ rows.T
            only, lacking = (sizes[part, None] - shared).ravel(), (sizes[None, :] - shared).ravel()
            seen[only.astype(np.int64), lacking.astype(np.int64)] = True
            if seen[most, most]:
                return frozenset({(most, most)})
    return largest_pairs({(int(only), int(lacking)) for only, lacking in np.argwhere(seen)})


def any_differences(bits: int, hashes: int) -> Differences:
    """Return the same for the filters of any two texts."""
    counts = range(1, min(hashes, bits) + 1)
    return largest_pairs({(only, lacking) for only, lacking in product(counts, counts) if only + lacking <= bits})


def largest_pairs(pairs: set[tuple[int, int]]) -> Differences:
    """Return the pairs that no other one exceeds in both numbers; a difference counts in both directions."""
    both = pairs | {(lacking, only) for only, lacking in pairs}
    return frozenset((a, b) for a, b in both if not any((c, d) != (a, b) and c >= a and d >= b for c, d in both))


def filter_size_weights(hashes: int) -> list[int]:
    """Return in how many ways `hashes` positions are exactly s given ones, for s from 0 to `hashes`."""
    return [
        sum((-1) ** (size - used) * math.comb(size, used) * used**hashes for used in range(size + 1))
        for size in range(hashes + 1)
    ]


def log_mean_over_filters(gains: Floats, hashes: int) -> Floats:
    """Return the logarithm of E prod over j in F of e^gains_j over random filters F, for each row of gains."""
    rows, bits = gains.shape
    top = gains.max(axis=1)
    factors = np.exp(gains - top[:, None])
    symmetric = np.zeros((rows, hashes + 1))
    symmetric[:, 0] = 1.0
    for bit in range(bits):
        symmetric[:, 1:] += symmetric[:, :-1] * factors[:, bit, None]
    sizes = np.arange(1, hashes + 1)
    weights = np.array([math.log(number) for number in filter_size_weights(hashes)[1:]]) - hashes * math.log(bits)
    with np.errstate(divide="ignore"):
        terms = np.log(symmetric[:, 1:]) + weights + sizes * top[:, None]
    return np.asarray(np.logaddexp.reduce(terms, axis=1))
