"""A covariance as the page carries it: bands of whole numbers in a few bytes each, and what rounding may have taken.

Covariances travel as correlations, in multiples of a step of their own for each band. All steps are at most one
common step, the smallest power of two with which everything fits: a band of large correlations then takes three bytes a
number, one of small correlations a single byte, and a band below half the step none at all.

Rounding is left out of the covariance like everything else (see `CompactCovariance`): the rows of what was rounded down
are added to the variances, so that no set's deviation comes out too small. `covariance` is what the page's script
computes with, number by number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.intervals.compact_covariance import CompactCovariance
from hubbub.reporting.packed_arrays import base64_text, packed_floats

MAX_BAND_BYTES = 1_800_000  # 2.4 MB as text: a page of 10,000 values stays below 5 MB
WIDTHS = (0, 1, 2, 3)  # bytes of a number
FINEST_STEP = 2.0**-23  # of a correlation in three bytes
ROUNDED_UP = 1 + 1e-12  # more than adding up takes away


@dataclass(frozen=True, eq=False)
class PackedCovariance:
    """What is sent, and the covariance that it is."""

    data: dict[str, Any]
    covariance: CompactCovariance


def pack(exact: CompactCovariance, max_bytes: int = MAX_BAND_BYTES) -> PackedCovariance:
    """Round a covariance so that its bands take at most `max_bytes`, and no deviation is understated."""
    deviations = np.sqrt(np.maximum(exact.diagonal, 0.0)).astype("<f4")
    scale = deviations.astype(np.float64)
    pairs = [exact.partners(offset) for offset in exact.offsets.tolist()]
    correlations = [_correlations(band, scale, *pair) for band, pair in zip(exact.bands, pairs, strict=True)]
    peaks = np.array([np.abs(each).max(initial=0.0) for each in correlations])
    widths = _widths(peaks, np.array([each.size for each in correlations]), max_bytes)
    steps = np.divide(peaks, _largest(widths), out=np.zeros_like(peaks), where=widths > 0)
    left_out = exact.left_out.copy()
    bands, entries = np.zeros_like(exact.bands), []
    for row, (first, second) in enumerate(pairs):
        if widths[row]:
            whole = np.rint(correlations[row] / steps[row])
            bands[row, first] = whole * steps[row] * scale[first] * scale[second]
            entries.append(whole.astype("<i4").view(np.uint8).reshape(-1, 4)[:, : widths[row]].ravel())
        rounded = np.maximum(exact.bands[row, first] - bands[row, first], 0.0)
        left_out += np.bincount(first, rounded, left_out.size) + np.bincount(second, rounded, left_out.size)
    factors = exact.factors.astype("<f4")
    left_out += _rounding_of_factors(exact, factors.astype(np.float64))
    inexact = np.nextafter(exact.inexact.astype("<f4"), np.float32(np.inf)) if exact.inexact.any() else None
    sent = widths > 0
    rounded_covariance = replace(
        exact,
        diagonal=(np.maximum(exact.diagonal, 0.0) + left_out) * ROUNDED_UP,
        offsets=exact.offsets[sent],
        bands=bands[sent],
        factors=factors.astype(np.float64),
        left_out=np.zeros_like(left_out),
        inexact=np.zeros_like(left_out) if inexact is None else inexact.astype(np.float64),
    )
    data = {
        "kind": "covariance",
        "labelled": not np.array_equal(exact.numbers, np.arange(exact.size)),
        "variances": packed_floats(rounded_covariance.diagonal),
        "deviations": base64_text(deviations),
        "offsets": exact.offsets[sent].tolist(),
        "widths": widths[sent].tolist(),
        "steps": packed_floats(steps[sent]),
        "entries": base64_text(np.concatenate([np.zeros(0, dtype=np.uint8), *entries])),
        "factors": base64_text(factors),
        "core": exact.core.tolist(),
        "inexact": None if inexact is None else base64_text(inexact),
    }
    return PackedCovariance(data, rounded_covariance)


def _correlations(band: Floats, scale: Floats, first: Positions, second: Positions) -> Floats:
    product = scale[first] * scale[second]
    return np.divide(band[first], product, out=np.zeros_like(product), where=product > 0.0)


def _largest(widths: Positions) -> Floats:
    """Return the largest whole number in so many bytes, of either sign."""
    return np.asarray(2.0 ** (8 * widths - 1) - 1.0)


def _widths(peaks: Floats, pairs: Positions, max_bytes: int) -> Positions:
    """Return the bytes of a number in each band, with the finest common step that fits."""
    step = FINEST_STEP
    while True:
        widths = np.full(peaks.size, WIDTHS[-1])
        for width in WIDTHS[-2::-1]:
            enough = peaks <= step / 2 if width == 0 else peaks <= step * _largest(np.array(width))
            widths[enough] = width
        if int(widths @ pairs) <= max_bytes:
            return widths
        step *= 2.0


def _rounding_of_factors(exact: CompactCovariance, rounded: Floats) -> Floats:
    """Return the rows of |F' C F - R' C R|, at most, with R the rounded factors."""
    errors, core = np.abs(exact.factors - rounded), np.abs(exact.core)
    first, second = core @ np.abs(exact.factors).sum(axis=1), core @ errors.sum(axis=1)
    return np.asarray(errors.T @ first + np.abs(rounded).T @ second)
