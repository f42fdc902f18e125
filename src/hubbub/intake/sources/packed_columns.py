"""Columns of outputs that rarely repeat, checked and packed all at once: rows of bits, and seeds with buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import OutputError
from hubbub.intake.reject_causes import Fault, empty, refusal
from hubbub.intake.sources.distinct_entries import whole
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs, HashedOutputs

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS = np.full(256, 255, dtype=np.uint8)  # what each letter is worth as a hexadecimal digit
NUMBERS[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16)
NUMBERS[np.frombuffer(b"ABCDEF", dtype=np.uint8)] = np.arange(10, 16)
HASHED = r"^(?P<seed>[0-9]{1,20}):(?P<bucket>[0-9]{1,9})$"


def is_packed(mechanism: Mechanism) -> bool:
    """Whether a mechanism's outputs rarely repeat, so that they are kept packed rather than counted."""
    return isinstance(mechanism.output_space, BitRowOutputs | HashedOutputs)


def width(mechanism: Mechanism) -> int:
    """Return how many bytes a packed output takes."""
    space = mechanism.output_space
    return space.width if isinstance(space, BitRowOutputs) else 12


def to_bytes(mechanism: Mechanism, codes: Codes) -> NDArray[np.uint8]:
    """Return codes as rows of bytes, in the order in which reports keep codes: numbers with their small end first."""
    if isinstance(mechanism.output_space, BitRowOutputs):
        return np.ascontiguousarray(codes, dtype=np.uint8)
    seeds = np.ascontiguousarray(codes[:, 0], dtype="<u8").view(np.uint8).reshape(-1, 8)
    buckets = np.ascontiguousarray(codes[:, 1], dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.concatenate([seeds, buckets], axis=1)


def from_bytes(mechanism: Mechanism, rows: NDArray[np.uint8]) -> Codes:
    """Return the codes that rows of bytes stand for, checked."""
    space = mechanism.output_space
    if isinstance(space, BitRowOutputs):
        return space.encode(rows)
    seeds = np.ascontiguousarray(rows[:, :8]).view("<u8").ravel().astype(np.uint64)
    buckets = np.ascontiguousarray(rows[:, 8:]).view("<u4").ravel().astype(np.uint64)
    return space.encode(np.stack([seeds, buckets], axis=1))


def pack(
    label: str, mechanism: Mechanism, outputs: pa.ChunkedArray, rows: Positions
) -> tuple[Codes, Positions, list[tuple[int, Fault]]]:
    """Return the codes of some rows, the places in `rows` that they are of, and the faults of the others by row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = outputs if rows.size == len(outputs) else outputs.take(pa.array(rows))
    if not pa.types.is_dictionary(column.type):
        return _pack(label, mechanism, whole(column), rows)
    # Each entry of a dictionary is looked at once, and is written out packed, if at all.
    array = whole(column.unify_dictionaries())
    entries, back = np.unique(np.asarray(pc.fill_null(array.indices.cast(pa.int64()), -1)), return_inverse=True)
    values = array.dictionary.take(pa.array(entries, mask=entries < 0))
    codes, good, faults = _pack(label, mechanism, values, np.arange(entries.size))
    places = np.full(entries.size, -1, dtype=np.int64)
    places[good] = np.arange(good.size)
    taken = np.flatnonzero(places[back] >= 0)
    told = dict(faults)
    bad = [(int(rows[place]), told[int(back[place])]) for place in np.flatnonzero(places[back] < 0).tolist()]
    return codes[places[back[taken]]], taken, bad


def _pack(
    label: str, mechanism: Mechanism, array: pa.Array, rows: Positions
) -> tuple[Codes, Positions, list[tuple[int, Fault]]]:
    import pyarrow as pa

    space = mechanism.output_space
    quick = _bits(space, array) if isinstance(space, BitRowOutputs) else _hashed(array)
    codes, good = quick if quick is not None else (None, np.zeros(rows.size, dtype=bool))
    if codes is not None and good.any():
        right = _right(space, codes)
        good[np.flatnonzero(good)[~right]] = False  # these are told of below
        codes = space.encode(codes[right])
    slow = np.flatnonzero(~good)
    faults: list[tuple[int, Fault]] = []
    more: list[Codes] = []
    taken: list[int] = []
    for place, entry in zip(slow.tolist(), array.take(pa.array(slow)).to_pylist(), strict=True):
        if entry is None or entry == "" or entry == b"":
            faults.append((int(rows[place]), empty("output")))
            continue
        try:
            more.append(space.encode([space.read(entry)]))
            taken.append(place)
        except OutputError as error:
            faults.append((int(rows[place]), _told(label, error)))
    parts = [part for part in ([codes] if codes is not None else []) + more if len(part)]
    places = np.concatenate([np.flatnonzero(good), np.array(taken, dtype=np.int64)]).astype(np.int64)
    if not parts:
        return (
            space.encode([]) if isinstance(space, BitRowOutputs) else np.empty((0, 2), dtype=np.uint64),
            places,
            faults,
        )
    return np.concatenate(parts), places, faults


def _right(space: OutputSpace, codes: Codes) -> NDArray[np.bool_]:
    """Return which of many codes can be encoded, by halving: few of them are wrong."""
    try:
        space.encode(codes)
    except OutputError:
        if len(codes) == 1:
            return np.zeros(1, dtype=bool)
        half = len(codes) // 2
        return np.append(_right(space, codes[:half]), _right(space, codes[half:]))
    return np.ones(len(codes), dtype=bool)


def _told(label: str, error: OutputError) -> Fault:
    return Fault(
        "output",
        refusal(
            error.code or "bad-output",
            error.what,
            where=f"mechanism {label}",
            got=error.got,
            expected=error.expected,
            remedy=error.remedy,
        ),
    )


def _bits(space: BitRowOutputs, array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.bool_]] | None:
    """Return packed rows where all is of the right length: texts of 0 and 1, or bytes."""
    import pyarrow as pa

    found = _bytes(array)
    if found is None:
        return None
    text, content, starts, lengths = found
    filled = np.ones(lengths.size, dtype=bool) if not array.null_count else ~np.asarray(array.is_null())
    long = space.length if text else space.width
    good = filled & (lengths == long)
    digits = text and not good.any()
    if digits:  # hexadecimal, as hubbub writes it
        long = 2 + 2 * space.width
        good = filled & (lengths == long)
    if not good.any():
        return None
    if not good.all():  # the others are left out first: then all lie one after the other
        again = _bytes(array.filter(pa.array(good)))
        assert again is not None  # noqa: S101  # of the same type
        _, content, starts, _ = again
    count, first = int(np.count_nonzero(good)), int(starts[0])
    matrix = content[first : first + long * count].reshape(count, long)
    if not text:
        return matrix, good
    if digits:
        return _digits(matrix, good)
    ones = matrix == ord("1")
    clean = (ones | (matrix == ord("0"))).all(axis=1)
    if not clean.all():
        places = np.flatnonzero(good)
        good[places[~clean]] = False
        ones = ones[clean]
    return np.packbits(ones, axis=1), good


def _digits(letters: NDArray[np.uint8], good: NDArray[np.bool_]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return packed rows of texts that are 0x and hexadecimal digits; others are not good after all."""
    clean = (letters[:, 0] == ord("0")) & (letters[:, 1] == ord("x"))
    numbers = NUMBERS[letters[:, 2:]]
    clean &= (numbers < 16).all(axis=1)
    good[np.flatnonzero(good)[~clean]] = False
    numbers = numbers[clean]
    return numbers[:, ::2] << 4 | numbers[:, 1::2], good


def _bytes(array: pa.Array) -> tuple[bool, NDArray[np.uint8], Positions, Positions] | None:
    """Return whether a column holds texts, its bytes, and where each entry starts and how long it is."""
    import pyarrow as pa

    types = pa.types
    if types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    if types.is_binary_view(array.type) or types.is_fixed_size_binary(array.type):
        array = array.cast(pa.large_binary())
    text = types.is_string(array.type) or types.is_large_string(array.type)
    if not text and not types.is_binary(array.type) and not types.is_large_binary(array.type):
        return None
    size = np.int32 if types.is_string(array.type) or types.is_binary(array.type) else np.int64
    _, offsets, content = array.buffers()
    skip = array.offset * np.dtype(size).itemsize
    bounds: Positions = np.frombuffer(offsets, dtype=size, count=len(array) + 1, offset=skip).astype(np.int64)
    held = np.frombuffer(content, dtype=np.uint8) if content is not None else np.empty(0, dtype=np.uint8)
    starts: Positions = bounds[:-1]
    return bool(text), held, starts, np.diff(bounds)


def _hashed(array: pa.Array) -> tuple[Any, NDArray[np.bool_]] | None:
    """Return seeds and buckets of texts ``seed:bucket``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return None
    parts = pc.extract_regex(array, HASHED)
    good = ~np.asarray(parts.is_null())
    if not good.any():
        return None
    kept = parts.filter(pa.array(good))
    try:
        columns = [np.asarray(kept.field(place).cast(pa.uint64())) for place in (0, 1)]
    except pa.ArrowInvalid:  # one of the seeds is beyond 2^64: it is found one by one
        return None
    return np.stack(columns, axis=1), good
