"""Columns of outputs that rarely repeat (rows of bits, seeds with buckets), checked and packed a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import OutputError
from hubbub.intake.reject_causes import Fault, missing_entry, row_fault
from hubbub.intake.sources.distinct_entries import one_array
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs, HashedOutputs

if TYPE_CHECKING:
    import pyarrow as pa

HEX_DIGITS = np.full(256, 255, dtype=np.uint8)  # the value of each hexadecimal digit, 255 for any other letter
HEX_DIGITS[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16)
HEX_DIGITS[np.frombuffer(b"ABCDEF", dtype=np.uint8)] = np.arange(10, 16)
SEED_BUCKET = r"^(?P<seed>[0-9]{1,20}):(?P<bucket>[0-9]{1,9})$"


def is_packed(mechanism: Mechanism) -> bool:
    """Whether a mechanism's outputs rarely repeat, so that they are packed rather than counted."""
    return isinstance(mechanism.output_space, BitRowOutputs | HashedOutputs)


def width(mechanism: Mechanism) -> int:
    """Return the number of bytes of a packed output."""
    space = mechanism.output_space
    return space.width if isinstance(space, BitRowOutputs) else 12


def to_bytes(mechanism: Mechanism, codes: Codes) -> NDArray[np.uint8]:
    """Return codes as rows of bytes, in the order of codes in reports: little-endian numbers."""
    if isinstance(mechanism.output_space, BitRowOutputs):
        return np.ascontiguousarray(codes, dtype=np.uint8)
    seeds = np.ascontiguousarray(codes[:, 0], dtype="<u8").view(np.uint8).reshape(-1, 8)
    buckets = np.ascontiguousarray(codes[:, 1], dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.concatenate([seeds, buckets], axis=1)


def from_bytes(mechanism: Mechanism, rows: NDArray[np.uint8]) -> Codes:
    """Return the codes of rows of bytes, checked."""
    space = mechanism.output_space
    if isinstance(space, BitRowOutputs):
        return space.encode(rows)
    seeds = np.ascontiguousarray(rows[:, :8]).view("<u8").ravel().astype(np.uint64)
    buckets = np.ascontiguousarray(rows[:, 8:]).view("<u4").ravel().astype(np.uint64)
    return space.encode(np.stack([seeds, buckets], axis=1))


def pack(
    label: str, mechanism: Mechanism, outputs: pa.ChunkedArray, rows: Positions
) -> tuple[Codes, Positions, list[tuple[int, Fault]]]:
    """Return the codes of some rows, their places in `rows`, and the faults of the remaining rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = outputs if rows.size == len(outputs) else outputs.take(pa.array(rows))
    if not pa.types.is_dictionary(column.type):
        return _pack(label, mechanism, one_array(column), rows)
    # Each entry of a dictionary is packed once.
    array = one_array(column.unify_dictionaries())
    entries, entry_of_row = np.unique(np.asarray(pc.fill_null(array.indices.cast(pa.int64()), -1)), return_inverse=True)
    values = array.dictionary.take(pa.array(entries, mask=entries < 0))
    codes, good, faults = _pack(label, mechanism, values, np.arange(entries.size))
    places = np.full(entries.size, -1, dtype=np.int64)
    places[good] = np.arange(good.size)
    good_rows = np.flatnonzero(places[entry_of_row] >= 0)
    fault_of_entry = dict(faults)
    row_faults = [
        (int(rows[place]), fault_of_entry[int(entry_of_row[place])])
        for place in np.flatnonzero(places[entry_of_row] < 0).tolist()
    ]
    return codes[places[entry_of_row[good_rows]]], good_rows, row_faults


def _pack(
    label: str, mechanism: Mechanism, array: pa.Array, rows: Positions
) -> tuple[Codes, Positions, list[tuple[int, Fault]]]:
    import pyarrow as pa

    space = mechanism.output_space
    packed = _pack_bits(space, array) if isinstance(space, BitRowOutputs) else _pack_seeds(array)
    codes, good = packed if packed is not None else (None, np.zeros(rows.size, dtype=bool))
    if codes is not None and good.any():
        valid = _are_valid(space, codes)
        good[np.flatnonzero(good)[~valid]] = False  # their faults are found below
        codes = space.encode(codes[valid])
    remaining = np.flatnonzero(~good)
    faults: list[tuple[int, Fault]] = []
    read_codes: list[Codes] = []
    read_places: list[int] = []
    for place, entry in zip(remaining.tolist(), array.take(pa.array(remaining)).to_pylist(), strict=True):
        if entry is None or entry == "" or entry == b"":
            faults.append((int(rows[place]), missing_entry("output")))
            continue
        try:
            read_codes.append(space.encode([space.read(entry)]))
            read_places.append(place)
        except OutputError as error:
            faults.append((int(rows[place]), _output_fault(label, error)))
    parts = [part for part in ([codes] if codes is not None else []) + read_codes if len(part)]
    places = np.concatenate([np.flatnonzero(good), np.array(read_places, dtype=np.int64)]).astype(np.int64)
    if not parts:
        return (
            space.encode([]) if isinstance(space, BitRowOutputs) else np.empty((0, 2), dtype=np.uint64),
            places,
            faults,
        )
    return np.concatenate(parts), places, faults


def _are_valid(space: OutputSpace, codes: Codes) -> NDArray[np.bool_]:
    """Return which codes can be encoded, by halving: few are wrong."""
    try:
        space.encode(codes)
    except OutputError:
        if len(codes) == 1:
            return np.zeros(1, dtype=bool)
        half = len(codes) // 2
        return np.append(_are_valid(space, codes[:half]), _are_valid(space, codes[half:]))
    return np.ones(len(codes), dtype=bool)


def _output_fault(label: str, error: OutputError) -> Fault:
    return row_fault(
        error.code or "bad-output",
        error.what,
        where=f"mechanism {label}",
        got=error.got,
        expected=error.expected,
        remedy=error.remedy,
        column="output",
    )


def _pack_bits(space: BitRowOutputs, array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.bool_]] | None:
    """Return packed rows, and which entries they are: texts of 0 and 1 or hexadecimal texts, or bytes."""
    import pyarrow as pa

    unpacked = _bytes(array)
    if unpacked is None:
        return None
    is_text, content, starts, lengths = unpacked
    filled = np.ones(lengths.size, dtype=bool) if not array.null_count else ~np.asarray(array.is_null())
    length = space.length if is_text else space.width
    good = filled & (lengths == length)
    is_hex = is_text and not good.any()
    if is_hex:  # as hubbub writes bits
        length = 2 + 2 * space.width
        good = filled & (lengths == length)
    if not good.any():
        return None
    if not good.all():  # without the others, all entries are contiguous
        again = _bytes(array.filter(pa.array(good)))
        assert again is not None  # noqa: S101  # of the same type
        _, content, starts, _ = again
    count, first = int(np.count_nonzero(good)), int(starts[0])
    matrix = content[first : first + length * count].reshape(count, length)
    if not is_text:
        return matrix, good
    if is_hex:
        return _pack_hex(matrix, good)
    ones = matrix == ord("1")
    clean = (ones | (matrix == ord("0"))).all(axis=1)
    if not clean.all():
        places = np.flatnonzero(good)
        good[places[~clean]] = False
        ones = ones[clean]
    return np.packbits(ones, axis=1), good


def _pack_hex(letters: NDArray[np.uint8], good: NDArray[np.bool_]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return packed rows of texts that are 0x and hexadecimal digits; any other text is marked as not good."""
    clean = (letters[:, 0] == ord("0")) & (letters[:, 1] == ord("x"))
    numbers = HEX_DIGITS[letters[:, 2:]]
    clean &= (numbers < 16).all(axis=1)
    good[np.flatnonzero(good)[~clean]] = False
    numbers = numbers[clean]
    return numbers[:, ::2] << 4 | numbers[:, 1::2], good


def _bytes(array: pa.Array) -> tuple[bool, NDArray[np.uint8], Positions, Positions] | None:
    """Return whether an array holds texts, its bytes, and the start and length of each entry."""
    import pyarrow as pa

    types = pa.types
    if types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if types.is_binary_view(array.type) or types.is_fixed_size_binary(array.type):
        array = array.cast(pa.large_binary())
    is_text = types.is_string(array.type) or types.is_large_string(array.type)
    if not is_text and not types.is_binary(array.type) and not types.is_large_binary(array.type):
        return None
    size = np.int32 if types.is_string(array.type) or types.is_binary(array.type) else np.int64
    _, offsets, content = array.buffers()
    skip = array.offset * np.dtype(size).itemsize
    bounds: Positions = np.frombuffer(offsets, dtype=size, count=len(array) + 1, offset=skip).astype(np.int64)
    held = np.frombuffer(content, dtype=np.uint8) if content is not None else np.empty(0, dtype=np.uint8)
    starts: Positions = bounds[:-1]
    return bool(is_text), held, starts, np.diff(bounds)


def _pack_seeds(array: pa.Array) -> tuple[Any, NDArray[np.bool_]] | None:
    """Return seeds and buckets of texts ``seed:bucket``, and which entries they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return None
    parts = pc.extract_regex(array, SEED_BUCKET)
    good = ~np.asarray(parts.is_null())
    if not good.any():
        return None
    kept = parts.filter(pa.array(good))
    try:
        columns = [np.asarray(kept.field(place).cast(pa.uint64())) for place in (0, 1)]
    except pa.ArrowInvalid:  # a seed is beyond 2^64: it is found one by one
        return None
    return np.stack(columns, axis=1), good
