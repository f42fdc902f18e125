"""Loops over reports and Bloom filters that count common bits, compiled by Numba at the first call.

Import this module inside the functions that need it, as `compiled_loops` says.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.core.compiling import loop

Words = NDArray[np.uint64]


@njit(inline="always")
def _count(word: np.uint64) -> np.uint64:
    """Return the number of ones of a word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit(inline="always")
def _common(sent: Words, own: Words) -> int:
    """Return how many ones two rows have in common."""
    ones = np.uint64(0)
    for word in range(sent.size):
        ones += _count(sent[word] & own[word])
    return int(ones)


@loop()
def sums_over_filters(
    sent: Words, cohorts: Positions, filters: Words, sizes: Positions, table: Floats, theta: Floats
) -> Floats:
    """Return for each report the sum of likelihoods over values, weighted by theta."""
    sums = np.empty(len(sent))
    for report in prange(len(sent)):
        cohort, total = cohorts[report], 0.0
        for value in range(theta.size):
            ones = _common(sent[report], filters[cohort, value])
            total += theta[value] * table[sizes[cohort, value], ones]
        sums[report] = total
    return sums


@loop()
def sums_over_reports(
    sent: Words, cohorts: Positions, filters: Words, sizes: Positions, table: Floats, weights: Floats
) -> Floats:
    """Return for each value the sum of likelihoods over reports, weighted."""
    values = sizes.shape[1]
    sums = np.empty(values)
    for value in prange(values):
        total = 0.0
        for report in range(len(sent)):
            cohort = cohorts[report]
            ones = _common(sent[report], filters[cohort, value])
            total += weights[report] * table[sizes[cohort, value], ones]
        sums[value] = total
    return sums


@loop()
def filter_rows(sent: Words, cohorts: Positions, filters: Words, sizes: Positions, table: Floats) -> Floats:
    """Return the likelihoods, values by reports."""
    values = sizes.shape[1]
    rows = np.empty((values, len(sent)))
    for value in prange(values):
        for report in range(len(sent)):
            cohort = cohorts[report]
            rows[value, report] = table[sizes[cohort, value], _common(sent[report], filters[cohort, value])]
    return rows
