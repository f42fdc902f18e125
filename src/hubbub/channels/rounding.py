"""Bounds on the rounding errors of a channel's sums, for every order in which terms are added.

With u = 2^-53, a product or a sum of two floats is exact up to a factor 1 + d, |d| <= u. A sum of terms that are not
negative, each of which passes through at most k such operations, is exact up to 1 + d with

    |d| <= gamma(k) = k u / (1 - k u),

whatever the order. Terms that are 0 cost nothing. Fused multiplication and addition only improves it. Results below
the smallest normal float do not occur: likelihoods are scaled (`likelihood/underflow.py`).

An FFT adds terms of both signs, so that its error is relative to the length of whole vectors: |error| <= eta |x| for
each transform, with eta = FFT log2(N) u. Classical bounds for radix 2 have 6.7 for FFT; radices up to 11 need no more.
"""

from __future__ import annotations

import math
from typing import NamedTuple, SupportsFloat

from hubbub.core.arrays import Floats

UNIT_ROUNDOFF = 2.0**-53
FFT_ROUNDINGS = 8.0  # for each factor 2 in the length of a transform
PAIRWISE_BLOCK = 128  # terms that NumPy adds one after the other, in eight sums, before it adds in pairs
UNDERFLOW_NATS = 745.0  # e^-745 is below all floats


class RoundingBound(NamedTuple):
    """How far computed sums may be from the exact ones: |error| <= relative * |sum| + absolute, entry by entry."""

    relative: float
    absolute: Floats | float = 0.0


def gamma(operations: SupportsFloat) -> float:
    """Return the relative error of a sum whose terms pass through that many roundings; infinite if too many."""
    lost = float(operations) * UNIT_ROUNDOFF
    return lost / (1.0 - lost) if lost < 0.5 else math.inf


def pairwise_additions(terms: int) -> float:
    """Return how many additions a term passes through in NumPy's sum: eight sums in each block, then pairs."""
    return PAIRWISE_BLOCK / 8 + 10 + math.log2(max(1.0, terms / PAIRWISE_BLOCK) + 1.0)


def transform_error(length: int) -> float:
    """Return the error of an FFT of this length, relative to the length of the vector."""
    return gamma(FFT_ROUNDINGS * math.log2(max(2, length)))


def entry_error(magnitude: float, terms: float = 1.0) -> float:
    """Return how far stored likelihoods may be from the probabilities that their mechanism shows, relative to them.

    They are exponentials of logarithms up to `magnitude`, each the sum of `terms` logarithms (at most `UNDERFLOW_NATS`
    counts beside the largest). Factors that all entries of a pattern share cancel.
    """
    return gamma((terms + 3.0) * magnitude + 16.0)
