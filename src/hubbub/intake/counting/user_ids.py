"""Who sent a row, and why a user's rows are rejected.

A user is a whole number, or a text that is not one: 7, 7.0 and "7" are the same person in files of different kinds;
"007" is another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import exact_limit
from hubbub.core.errors import shorten
from hubbub.intake.reject_causes import Fault, refusal, row_fault
from hubbub.intake.sources.distinct_entries import check_column, one_array

if TYPE_CHECKING:
    import pyarrow as pa

MAX_NAMES_BYTES = 1 << 30  # of the users' names of one batch
INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"  # as Python writes it; of 19 digits not all fit
WHOLE_FLOAT = r"^(0|-?[1-9][0-9]{0,15})\.0$"  # as tables write integers once a row lacks its user
LARGE_FLOAT = r"^-?[1-9](?:[0-9]{15,}\.0|(?:\.[0-9]+)?e\+[0-9]{2,3})$"  # the same, so large that it may be rounded


class UserIds(NamedTuple):
    """The users of some rows."""

    numbers: NDArray[np.int64]  # where `numbered`
    numbered: NDArray[np.bool_]
    names: pa.Array | None  # of all rows, unless all are numbers
    missing: NDArray[np.bool_]
    rounded: NDArray[np.bool_]  # whole floats so large that they may have been another user


def user_ids(column: pa.ChunkedArray) -> UserIds:
    """Return who the rows of a column are from."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    check_column(column, "user")
    if pa.types.is_dictionary(kind):
        _check_size(column)
        column = column.cast(kind.value_type)
    array = one_array(column)
    if pa.types.is_null(array.type):
        return _numbers(np.zeros(len(array), dtype=np.int64), np.ones(len(array), dtype=bool))
    if pa.types.is_integer(array.type) and array.type != pa.uint64():
        missing = np.asarray(pc.is_null(array))
        return _numbers(np.asarray(pc.fill_null(array, 0)).astype(np.int64), missing)
    if pa.types.is_floating(array.type):
        missing = np.asarray(pc.is_null(array, nan_is_null=True))
        values = np.where(missing, 0.0, np.asarray(pc.fill_null(array, 0)).astype(np.float64))
        integral = np.isfinite(values) & (np.floor(values) == values)
        rounded = integral & (np.abs(values) >= exact_limit(array.type.to_pandas_dtype()))
        if integral.all():
            return _numbers(np.where(rounded, 0.0, values).astype(np.int64), missing)._replace(rounded=rounded)
        names = [str(int(value)) if good else str(value) for value, good in zip(values.tolist(), integral, strict=True)]
        return user_ids(pa.chunked_array([pa.array(names, pa.string(), mask=missing)]))._replace(rounded=rounded)
    byte_types = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    is_bytes = any(is_type(array.type) for is_type in byte_types)
    texts = _hexadecimal(array) if is_bytes else array.cast(pa.string())
    missing = np.asarray(pc.fill_null(pc.equal(texts, ""), True))
    if not missing.any():
        numbers = _all_numbers(texts)
        if numbers is not None:
            return _numbers(numbers, missing)
    rounded = _rounded(texts)
    texts = pc.replace_substring_regex(texts, WHOLE_FLOAT, r"\1")
    numbered = np.asarray(pc.fill_null(pc.match_substring_regex(texts, INTEGER), False)) & ~missing
    values = np.zeros(len(texts), dtype=np.int64)
    if numbered.any():
        integers = texts.filter(pa.array(numbered))
        try:
            values[numbered] = np.asarray(integers.cast(pa.int64()))
        except pa.ArrowInvalid:
            fits = np.array([-(2**63) <= int(text) < 2**63 for text in integers.to_pylist()])
            numbered[np.flatnonzero(numbered)[~fits]] = False
            values[numbered] = np.asarray(integers.filter(pa.array(fits)).cast(pa.int64()))
    return UserIds(values, numbered | missing, texts, missing, rounded)


def _rounded(texts: pa.Array) -> NDArray[np.bool_]:
    """Return which texts are floats so large that they may have been another whole number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    long = np.asarray(pc.fill_null(pc.match_substring_regex(texts, LARGE_FLOAT), False))
    if long.any():
        numbers = np.abs(np.array([float(text) for text in texts.filter(pa.array(long)).to_pylist()]))
        long[long] = numbers >= exact_limit(np.float64)
    return long


def numbered_users(first: int, count: int) -> UserIds:
    """Return a user of its own for each row, where rows do not say who sent them."""
    return _numbers(first + np.arange(count), np.zeros(count, dtype=bool))


def _check_size(column: pa.ChunkedArray) -> None:
    """Refuse a dictionary with long entries that occur again and again: written out, they would not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    inner = column.type.value_type
    if pa.types.is_primitive(inner) or pa.types.is_null(inner):
        return
    size = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary)
        size += pc.sum(lengths.take(chunk.indices), min_count=0).as_py()
    if size > MAX_NAMES_BYTES:
        raise refusal(
            "wrong-type",
            "the names of users are too long",
            where="column user",
            got=f"{size:,} bytes in {len(column):,} rows",
            expected=f"at most {MAX_NAMES_BYTES:,} bytes",
            remedy="give users shorter names, such as numbers",
        )


def _numbers(values: NDArray[np.int64], missing: NDArray[np.bool_]) -> UserIds:
    nothing = np.zeros(values.size, dtype=bool)
    return UserIds(values, np.ones(values.size, dtype=bool), None, missing, nothing)


def _all_numbers(texts: pa.Array) -> NDArray[np.int64] | None:
    """Return numbers where every text is one, as Python would write it; None otherwise."""
    import pyarrow as pa

    try:
        numbers = np.asarray(texts.cast(pa.int64()))
    except pa.ArrowInvalid:
        return None
    _, offsets, content = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32, count=len(texts) + 1, offset=4 * texts.offset)
    held = np.frombuffer(content, dtype=np.uint8)
    first, lengths = held[bounds[:-1]], np.diff(bounds)
    # Digits without a zero in front, or one digit. Others are left to the slower way: +7, -7, 007, a space.
    plain = ((first >= ord("1")) & (first <= ord("9"))) | ((lengths == 1) & (first == ord("0")))
    return numbers if plain.all() else None


def _hexadecimal(array: pa.Array) -> pa.Array:
    """Return bytes as texts: two users of different bytes never become one."""
    import pyarrow as pa

    texts = [None if entry is None else entry.hex() and "0x" + entry.hex() for entry in array.to_pylist()]
    return pa.array(texts, pa.string())


# -- faults ----------------------------------------------------------------------------------------------


def rounded_user(entry: object) -> Fault:
    """Return the fault of a row whose user may have been another one before it became a float."""
    return row_fault(
        "rounded-number",
        "a user's number may have been rounded: it came as a float",
        column="user",
        got=shorten(entry),
        expected="whole numbers or texts; as a float of 64 bits, less than 2^53 from 0 (32 bits: 2^24, 16: 2^11)",
        remedy="store user ids as whole numbers or text from the start: rounding may have merged two people",
    )


def too_many(user: object, sent: int, limit: int) -> Fault:
    """Return the fault of a user who sent more than the study allows."""
    return row_fault(
        "too-many-reports",
        "a user sent more than the study allows",
        column="user",
        where=f"user {user!r}",
        got=f"{sent} outputs",
        expected=f"at most {limit} (max_reports_per_user)",
        remedy="every output spends privacy: leave the extra rows out on purpose, or raise the limit",
    )


def impossible(user: object, sent: int) -> Fault:
    """Return the fault of a user whose outputs exclude each other."""
    return row_fault(
        "impossible-report",
        "no value can have produced all that a user sent",
        column="user",
        where=f"user {user!r}",
        got=f"{sent} outputs that exclude each other",
        expected="outputs with a positive probability for at least one value",
        remedy="check the mechanisms that these rows name, and whether several people share a name",
    )


def counted_before(user: object) -> Fault:
    """Return the fault of a user that a tally has counted."""
    return row_fault(
        "user-counted-before",
        "a user is in the tally already",
        column="user",
        where=f"user {user!r}",
        got="more rows of a user whose report was counted in an earlier run",
        expected="all rows of a user in one run",
        remedy="collect all of the user's rows at once, into a new tally",
    )
