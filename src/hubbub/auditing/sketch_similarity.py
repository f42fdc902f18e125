"""How similar the outputs of two values are under a sketch: they differ under hashes that part them alone."""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import MechanismError
from hubbub.mechanisms import CountMeanSketch
from hubbub.mechanisms.sketches import Sketch

MAX_COMPARED_PAIRS = 4_000_000  # of values, each under all hashes


def sketch_similarity(mechanism: Sketch, position: int | None) -> tuple[Floats, Floats]:
    """Return log M of values (rows) and all others, and how many values share all buckets with each, itself included.

    M is the mean over hashes: 1 where two values share the bucket, and otherwise the product of two bits' coefficients,
    or the mean of a sign's over the rows of the matrix, half of which have another sign. Exchanging the two buckets
    changes nothing, so that the coefficients are least at s = 1/2. Values that share all buckets are -inf: not confused
    but the same.
    """
    size = len(mechanism.domain)
    rows = np.arange(size) if position is None else np.array([position])
    if rows.size * size > MAX_COMPARED_PAIRS:
        raise MechanismError(
            "there are too many pairs of values to compare",
            where="error_probability(mechanism)",
            got=f"{type(mechanism).__name__} over {size:,} values",
            expected=f"at most {MAX_COMPARED_PAIRS:,} pairs",
            remedy="pass value=, for the bound of one value",
        )
    shared = np.zeros((rows.size, size))
    for number in range(mechanism.hashes):
        (buckets,) = mechanism.buckets(np.array([number]))
        shared += buckets[rows][:, None] == buckets[None, :]
    wrong = 1.0 - mechanism.support.true
    of_one = 2.0 * math.sqrt(wrong * (1.0 - wrong))  # bit, or sign
    apart = of_one**2 if isinstance(mechanism, CountMeanSketch) else 0.5 + 0.5 * of_one
    same = shared == mechanism.hashes
    logs = np.log(apart + (1.0 - apart) * shared / mechanism.hashes)
    return np.where(same, -np.inf, logs), same.sum(axis=1).astype(np.float64)
