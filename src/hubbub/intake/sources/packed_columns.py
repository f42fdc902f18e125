"""Columns of outputs that rarely repeat (rows of bits, seeds with buckets), checked and packed a batch at a time."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import IntakeError, OutputError, restated
from hubbub.intake.reject_causes import Fault, missing_entry
from hubbub.intake.sources.distinct_entries import is_bytes, is_text, one_array
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.numbered_row_outputs import NumberedRowOutputs
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.sampling import with_numbers

if TYPE_CHECKING:
    import pyarrow as pa

HEX_DIGITS = np.full(256, 255, dtype=np.uint8)  # the value of each hexadecimal digit, 255 for any other letter
HEX_DIGITS[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16)
HEX_DIGITS[np.frombuffer(b"ABCDEF", dtype=np.uint8)] = np.arange(10, 16)
NUMBER_ROW = r"^(?P<number>[0-9]{1,9}):(?P<row>0x[0-9a-fA-F]+)$"
SEED_BUCKET = r"^(?P<seed>[0-9]{1,20}):(?P<bucket>[0-9]{1,9})$"


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
    codes, good = _pack_texts(space, array)
    valid = _are_valid(space, codes)
    good[good] = valid
    all_codes, read_places = [codes[valid]], []
    faults: list[tuple[int, Fault]] = []
    remaining = np.flatnonzero(~good)  # read one by one: spelt in another way, or at fault
    for place, entry in zip(remaining.tolist(), array.take(pa.array(remaining)).to_pylist(), strict=True):
        if entry is None or entry == "" or entry == b"":
            faults.append((int(rows[place]), missing_entry("output")))
            continue
        try:
            all_codes.append(space.encode([space.read(entry)]))
            read_places.append(place)
        except OutputError as error:
            where, code = f"mechanism {label}", error.code or "bad-output"
            faults.append((int(rows[place]), Fault("output", restated(error, IntakeError, where=where, code=code))))
    places = np.concatenate([np.flatnonzero(good), np.array(read_places, dtype=np.int64)])
    return np.concatenate(all_codes), places, faults


def _pack_texts(space: OutputSpace, array: pa.Array) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the codes of entries in the usual form, not checked, and which entries these are."""
    if isinstance(space, BitRowOutputs):
        return _pack_bits(space, array)
    if isinstance(space, NumberedRowOutputs):
        return _pack_numbered(space, array)
    return _pack_seeds(array)


def _are_valid(space: OutputSpace, codes: Codes) -> NDArray[np.bool_]:
    """Return which codes can be encoded, by halving: few are wrong."""
    try:
        space.encode(codes)
    except OutputError:
        if len(codes) <= 1:
            return np.zeros(len(codes), dtype=bool)
        half = len(codes) // 2
        return np.append(_are_valid(space, codes[:half]), _are_valid(space, codes[half:]))
    return np.ones(len(codes), dtype=bool)


def _pack_bits(space: BitRowOutputs, array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return packed rows, and which entries they are: texts of 0 and 1 or hexadecimal texts, or bytes."""
    if not is_text(array.type):
        return _of_length(array, space.width)
    letters, good = _of_length(array, space.length)
    if good.any():
        ones = letters == ord("1")
        clean = (ones | (letters == ord("0"))).all(axis=1)
        packed = np.packbits(ones if clean.all() else ones[clean], axis=1)
    else:  # 0x and hexadecimal digits, as hubbub writes bits
        letters, good = _of_length(array, 2 + 2 * space.width)
        packed, clean = _from_digits(letters)
    good[good] = clean
    return packed, good


def _from_digits(letters: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the bytes that 0x and hexadecimal digits stand for, and which rows of letters are that."""
    numbers = HEX_DIGITS[letters[:, 2:]]
    clean = (letters[:, :2] == (ord("0"), ord("x"))).all(axis=1) & (numbers < 16).all(axis=1)
    return numbers[clean, ::2] << np.uint8(4) | numbers[clean, 1::2], clean


def _pack_numbered(space: NumberedRowOutputs, array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return packed rows after their numbers, and which entries are texts ``number:0x...``, as hubbub writes them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(array.type):
        return np.empty((0, space.code_width), dtype=np.uint8), np.zeros(len(array), dtype=bool)
    parts = pc.extract_regex(array.cast(pa.large_string()), NUMBER_ROW)
    good = np.array(parts.is_valid())
    kept = parts.filter(pa.array(good))
    letters, whole = _of_length(kept.field("row"), 2 + 2 * space.row_bytes)
    rows, clean = _from_digits(letters)
    whole[whole] = clean
    good[good] = whole
    numbers = kept.field("number").filter(pa.array(whole)).cast(pa.int64())
    return with_numbers(np.asarray(numbers), rows), good


def _of_length(array: pa.Array, length: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the bytes of all texts or bytes of one length, a row for each, and which entries they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(array.type) and not is_bytes(array.type):
        return np.empty((0, length), dtype=np.uint8), np.zeros(len(array), dtype=bool)
    array = array.cast(pa.large_binary())
    good = np.array(pc.fill_null(pc.equal(pc.binary_length(array), length), False))
    kept = array if good.all() else array.filter(pa.array(good))
    held = kept.cast(pa.binary(length)).buffers()[1]
    return np.frombuffer(held, dtype=np.uint8, count=length * len(kept)).reshape(-1, length), good


def _pack_seeds(array: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return seeds and buckets of texts ``seed:bucket``, and which entries they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(array.type):
        parts = pc.extract_regex(array.cast(pa.large_string()), SEED_BUCKET)
        good = np.array(parts.is_valid())
        kept = parts.filter(pa.array(good))
        with suppress(pa.ArrowInvalid):  # a seed is beyond 2^64: it is found one by one
            return np.stack([np.asarray(kept.field(place).cast(pa.uint64())) for place in (0, 1)], axis=1), good
    return np.empty((0, 2), dtype=np.uint64), np.zeros(len(array), dtype=bool)
