"""The array types used everywhere, and two checks that belong to no layer in particular."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import HubbubError, shorten

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Array = NDArray[Any]
Codes = NDArray[Any]  # encoded outputs: what a row means belongs to the mechanism's output space


def frozen(array: Array) -> Array:
    """Return `array` marked read-only: descriptions that are shared must not change under their owners."""
    array.setflags(write=False)
    return array


def as_array(values: object) -> Array:
    """Return an array of `values` that keeps labels as they are (mixed labels are not turned into text)."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        values = list(values) if hasattr(values, "__iter__") and not isinstance(values, (str, bytes)) else values
    if isinstance(values, list | tuple) and len({type(v) for v in values}) > 1:
        if all(isinstance(v, numbers.Real) and not isinstance(v, (bool, np.bool_)) for v in values):
            return np.asarray(values)
        mixed = np.empty(len(values), dtype=object)
        mixed[:] = values
        return mixed
    return np.asarray(values)


def as_integers(values: object, error: type[HubbubError], *, where: str, expected: str) -> NDArray[np.int64]:
    """Return `values` as int64, or raise `error` naming the first one that is not a whole number.

    Floats with whole values are taken (tables with missing entries turn integers into floats);
    truth values are not numbers here.
    """
    array = as_array(values)
    remedy = "pass whole numbers"
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise error("a number is too large", where=where, got=int(array.max()), expected=expected, remedy=remedy)
        return array.astype(np.int64)
    if array.dtype.kind == "O":
        for position, value in enumerate(array.ravel().tolist()):
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise error(
                    "not a whole number",
                    where=f"{where}, position {position}",
                    got=value,
                    expected=expected,
                    remedy=remedy,
                )
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        if array.size == 0:
            return array.astype(np.int64)
        raise error(
            "not a whole number",
            where=where,
            got=shorten(array.ravel()[0].item()),
            expected=expected,
            remedy=remedy,
        )
    whole = np.isfinite(array) & (np.floor(array) == array) & (np.abs(array) < 2.0**63)
    if not whole.all():
        position = int(np.argmin(whole.ravel()))
        raise error(
            "not a whole number",
            where=f"{where}, position {position}",
            got=float(array.ravel()[position]),
            expected=expected,
            remedy=remedy,
        )
    return array.astype(np.int64)


def as_distribution(values: object, length: int | None, error: type[HubbubError], *, where: str) -> Floats:
    """Return `values` as a distribution, normalised exactly; refuse what is not one within 1e-6."""
    expected = "probabilities: finite, at least 0, with sum 1"
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise error(
            "not a list of numbers",
            where=where,
            got=shorten(values),
            expected=expected,
            remedy="pass one probability for each value of the domain",
        ) from None
    if array.ndim != 1 or (length is not None and array.size != length):
        raise error(
            "wrong number of probabilities",
            where=where,
            got=f"shape {array.shape}",
            expected="a flat list" if length is None else f"{length} probabilities, in the order of domain.labels",
            remedy="give one probability for each value",
        )
    if array.size == 0 or not np.isfinite(array).all() or (array < 0).any():
        bad = array[~np.isfinite(array) | (array < 0)]
        raise error(
            "not a distribution",
            where=where,
            got="nothing" if array.size == 0 else float(bad[0]),
            expected=expected,
            remedy="replace the entries that are negative or not finite",
        )
    total = float(array.sum())
    if abs(total - 1.0) > 1e-6:
        raise error(
            "not a distribution",
            where=where,
            got=f"sum {total:.6g}",
            expected=expected,
            remedy="divide by the sum if these are counts",
        )
    return array / total
