"""Array types, and conversions of labels and numbers that never round."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.client import MAX_INTEGER, as_whole
from hubbub.client import as_real as as_real  # its callers know it from here
from hubbub.core.errors import HubbubError, shorten

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Array = NDArray[Any]
Codes = NDArray[Any]  # encoded outputs: what a row means belongs to the mechanism's output space

EQUAL_DIGITS = 9  # of numbers that are told apart where they are put in order


def frozen(array: Array) -> Array:
    """Return `array` marked read-only, so that nobody changes what others share."""
    array.setflags(write=False)
    return array


def as_array(values: object) -> Array:
    """Return an array of `values` that keeps labels as they are (mixed labels are not turned into text)."""
    if isinstance(values, np.ma.MaskedArray):  # what is masked is missing: None, which is refused wherever it matters
        return as_array(values.tolist()) if np.ma.is_masked(values) else values.data
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    if isinstance(values, Iterable) and not isinstance(values, Sequence):
        values = list(values)
    if isinstance(values, list | tuple):
        kinds = {type(value) for value in values}
        alike = len(kinds) == 1 and not _numpy_would_cut(values, kinds)
        if alike or all(issubclass(kind, numbers.Real) and not issubclass(kind, bool) for kind in kinds):
            with contextlib.suppress(ValueError, OverflowError):  # rows of different lengths, too large for a float
                array = np.asarray(values)
                whole = bool(kinds) and all(issubclass(kind, numbers.Integral) for kind in kinds)
                if array.dtype.kind != "f" or not whole:  # 2^63 beside 1 would come out as floats, and rounded
                    return array
        return np.fromiter(values, dtype=object, count=len(values))
    return np.asarray(values)


def position_of_label(positions: Mapping[Any, int], label: object) -> int:
    """Return the position of a label, -1 for none: True is not 1, and what cannot be hashed is no label."""
    if isinstance(label, bool):
        return -1
    try:
        return positions.get(label, -1)
    except TypeError:  # a list, or a tuple with one
        return -1


def _numpy_would_cut(values: Sequence[Any], kinds: set[type]) -> bool:
    """Whether NumPy would cut NUL characters off the end of texts or bytes."""
    if any(issubclass(kind, bytes) for kind in kinds):
        return True
    return any(issubclass(kind, str) for kind in kinds) and any(value.endswith("\0") for value in values)


def as_integer(value: object, error: type[HubbubError], *, where: str, expected: str) -> int:
    """Return one whole number below 2^62, so that sums of two fit into int64, or raise `error`."""
    number = as_whole(value)
    if number is None:
        what, remedy = "not a whole number", "pass a whole number"
    elif abs(number) >= MAX_INTEGER:
        what, remedy = "a number is too large", "pass a smaller number"
        expected = f"{expected}, less than 2^62 from 0"
    else:
        return number
    raise error(what, where=where, got=shorten(value), expected=expected, remedy=remedy)


def exact_limit(kind: Any) -> float:
    """Return the limit below which a type of floats can hold every whole number.

    Above it some are missing: 2049 becomes 2048 in 16 bits, so that a 2048 may have been either.

    >>> exact_limit(np.float16), exact_limit(np.float64) == 2.0**53
    (2048.0, True)
    """
    return float(2.0 ** (np.finfo(kind).nmant + 1))


def may_be_rounded(value: object) -> bool:
    """Whether a number is a whole float so large that it may be the rounding of another whole number."""
    if not isinstance(value, float | np.floating) or not math.isfinite(value):
        return False
    return float(value).is_integer() and abs(float(value)) >= exact_limit(type(value))


def refuse_rounded(array: Array, error: type[HubbubError], *, where: str, expected: str) -> None:
    """Raise `error` for the first whole float of an array that may be the rounding of another whole number."""
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        rounded = finite & (np.abs(np.where(finite, array, 0)) >= exact_limit(array.dtype))
        rounded &= np.floor(np.where(finite, array, 0)) == np.where(finite, array, 0)
    elif array.dtype.kind == "O":
        values = array.ravel().tolist()
        if not any(issubclass(kind, float | np.floating) for kind in set(map(type, values))):
            return
        rounded = np.array([may_be_rounded(value) for value in values], dtype=bool)
    else:
        return
    if rounded.any():
        position = int(np.argmax(rounded.ravel()))
        raise rounded_error(error, array.ravel()[position], where=f"{where}, position {position}", expected=expected)


def rounded_error(error: type[HubbubError], value: Any, *, where: str, expected: str) -> HubbubError:
    """Return the error for a whole float that may be the rounding of another whole number."""
    bits = 8 * value.dtype.itemsize if isinstance(value, np.floating) else 64
    kind = value.dtype if isinstance(value, np.floating) else np.float64
    return error(
        "a whole number may have been rounded: it came as a float",
        where=where,
        got=shorten(plain(value)),
        expected=f"{expected}; as a float of {bits} bits, less than {exact_limit(kind):.0f} from 0",
        remedy="keep whole numbers as whole numbers, or as texts, from the start: rounding cannot be undone",
        code="rounded-number",
    )


def largest_first(numbers: Floats) -> Positions:
    """Return places by decreasing numbers, those that are none last; equal ones stay in their order.

    So do those that differ by less than a billionth of the largest: rounding, which no two machines do alike, is not to
    decide what people see first.
    """
    scale = float(np.fmax.reduce(np.abs(numbers), initial=0.0)) or 1.0
    return np.argsort(-np.round(numbers / scale, EQUAL_DIGITS), kind="stable")


def as_integers(
    values: object, error: type[HubbubError], *, where: str, expected: str, remedy: str = "pass whole numbers"
) -> NDArray[np.int64]:
    """Return `values` as int64, or raise `error` naming the first one that is not a whole number.

    Floats with whole values are accepted (tables with missing entries turn integers into floats), unless they are so
    large that they may have been rounded. Booleans are not.
    """
    array = as_array(values)
    kind = array.dtype.kind
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if kind == "i":
        return array.astype(np.int64)
    if kind == "f":
        whole = np.isfinite(array) & (np.floor(array) == array)
    elif kind == "O":
        whole = np.array([as_whole(value) is not None for value in array.ravel().tolist()]).reshape(array.shape)
    else:
        whole = np.full(array.shape, kind == "u")
    fits = np.ones(array.shape, dtype=bool)
    if kind in "ufO":
        numbers = array[whole].astype(np.float64) if array.dtype == np.float16 else array[whole]  # 2^63 is no float16
        fits[whole] = (numbers >= -(2**63)) & (numbers < 2**63)
    if not (whole & fits).all():
        position = int(np.argmin((whole & fits).ravel()))
        raise error(
            "a number is too large" if whole.ravel()[position] else "not a whole number",
            where=f"{where}, position {position}",
            got=shorten(plain(array.ravel()[position])),
            expected=expected,
            remedy=remedy,
        )
    refuse_rounded(array, error, where=where, expected=expected)
    return array.astype(np.int64)


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python value, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def read_alike(labels: Sequence[object]) -> tuple[int, int] | None:
    """Return the positions of two labels with the same text (1 and '1'), None where there are none."""
    first: dict[str, int] = {}
    for position, label in enumerate(labels):
        if first.setdefault(str(label), position) != position:
            return first[str(label)], position
    return None


def as_floats(values: object) -> Floats | None:
    """Return an array of floats; None where some are texts or complex, or rows have different lengths."""
    try:
        array = np.array(values)
        return None if array.dtype.kind in "cSUMm" else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
