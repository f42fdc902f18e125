"""Arrays as text for the page: floats to the last bit, covariances rounded so that no deviation is understated."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from hubbub.core.arrays import Array, Floats
from hubbub.reporting.page import Bounds, Covariance

CORRELATION_SCALE = 2**23 - 1  # a correlation of 1, in 24 bits


def packed_floats(values: Floats | None) -> str | None:
    """Return float64 numbers, little-endian, in base64; None if none of them is known."""
    if values is None or bool(np.isnan(values).all()):
        return None
    return _base64(np.asarray(values, dtype="<f8"))


def packed_bounds(values: Floats) -> str | dict[str, str | None] | None:
    """Return the bounds of single values; if fewer than half are known, only these and their positions."""
    known = np.flatnonzero(~np.isnan(values))
    if 0 < 2 * known.size < values.size:
        return {"at": _base64(known.astype("<i4")), "known": packed_floats(values[known])}
    return packed_floats(values)


def packed_sets(sets: Covariance | Bounds, low: Floats, high: Floats) -> dict[str, Any]:
    """Return what the intervals of sets are computed from; bounds equal to those of the values are not sent twice."""
    if isinstance(sets, Covariance):
        return {
            "kind": "covariance",
            "z": float(sets.z),
            "centre": packed_floats(sets.centre),
            **_triangle(sets.matrix),
        }
    return {
        "kind": "bounds",
        "low": _outward(sets.low, low, -np.inf),
        "high": _outward(sets.high, high, np.inf),
    }


def _triangle(matrix: Floats) -> dict[str, str | None]:
    """Return variances, deviations and the correlations below the diagonal, row by row, in 24 bits each.

    Let e be the rounding errors of the covariances. Then c' M c is at most what is sent plus the sum of |e| over pairs
    of the set, and that sum is at most the sum of whole rows of |e| over the values of the set. Adding these row sums
    to the variances means that no set's deviation is understated; where the values' deviations are similar, it is
    overstated by less than one part in 10,000.
    """
    symmetric = (matrix + matrix.T) / 2
    variances = np.maximum(np.diagonal(symmetric), 0.0)
    deviations = np.sqrt(variances)
    scale = np.outer(deviations, deviations)
    correlations = np.divide(symmetric, scale, out=np.zeros_like(symmetric), where=scale > 0)
    rounded = np.rint(np.clip(correlations, -1.0, 1.0) * CORRELATION_SCALE)
    rounding = np.abs(rounded / CORRELATION_SCALE * scale - symmetric)
    np.fill_diagonal(rounding, 0.0)
    lower = rounded[np.tril_indices(len(matrix), -1)].astype("<i4")
    three_bytes_each = np.ascontiguousarray(lower).view(np.uint8).reshape(-1, 4)[:, :3]
    return {
        "variances": packed_floats((variances + rounding.sum(axis=1)) * (1 + 1e-12)),
        "deviations": packed_floats(deviations),
        "correlations": _base64(three_bytes_each),
    }


def _outward(bound: Floats, own: Floats, towards: float) -> str | None:
    """Return bounds rounded outward to 32 bits; "own" if they equal those of the values."""
    if np.array_equal(bound, own, equal_nan=True):
        return "own"
    if np.isnan(bound).all():
        return None
    short = bound.astype("<f4")
    tighter = short > bound if towards < 0 else short < bound
    return _base64(np.where(tighter, np.nextafter(short, np.float32(towards)), short).astype("<f4"))


def packed_numbers(numbers: Array) -> dict[str, Any]:
    """Return labels that are whole numbers: only the first of them if they are consecutive."""
    first = int(numbers[0])
    if np.array_equal(numbers, np.arange(first, first + len(numbers))):
        return {"first": first}
    return {"listed": packed_floats(numbers.astype(np.float64))}


def _base64(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
