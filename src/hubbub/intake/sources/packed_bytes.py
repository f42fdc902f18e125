"""Outputs that rarely repeat as rows of bytes: rows of bits, seeds with buckets, and those of several attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes
from hubbub.core.errors import OutputError
from hubbub.intake.attribute_roles import PREFIX
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.attribute_outputs import AttributeOutputs
from hubbub.mechanisms.numbered_row_outputs import NumberedRowOutputs
from hubbub.mechanisms.packed_outputs import HASHED, BitRowOutputs, HashedOutputs

HASHED_BYTES = HASHED.newbyteorder("<")  # as files hold a seed and its bucket
MAX_COUNTED_OUTPUTS = 1 << 17  # combinations of outputs that are counted; where there may be more, they are packed
UNBOUNDED_OUTPUTS = 3  # outputs for each value, where there is no end of them


def is_packed(mechanism: Mechanism) -> bool:
    """Whether a mechanism's outputs rarely repeat, so that they are packed rather than counted.

    Of several attributes: if those of one rarely do, or there are too many combinations.
    """
    space = mechanism.output_space
    if not isinstance(space, AttributeOutputs):
        return isinstance(space, BitRowOutputs | HashedOutputs | NumberedRowOutputs)
    if any(is_packed(part) for _, part in space.parts):
        return True
    # Where outputs are any numbers, noise hardly carries them further than a domain's width beyond it.
    sizes = [part.output_space.size or UNBOUNDED_OUTPUTS * len(part.domain) for _, part in space.parts]
    return math.prod(size + 1 for size in sizes) > MAX_COUNTED_OUTPUTS


def packed_roles(mechanisms: Mapping[str, Mechanism]) -> frozenset[str]:
    """Return the roles of columns whose entries rarely repeat."""
    roles = set()
    for mechanism in mechanisms.values():
        space = mechanism.output_space
        if isinstance(space, AttributeOutputs):
            roles |= {PREFIX + name for name, part in space.parts if is_packed(part)}
        if is_packed(mechanism):
            roles.add("output")
    return frozenset(roles)


def width(mechanism: Mechanism) -> int:
    """Return the number of bytes of a packed output."""
    space = mechanism.output_space
    if isinstance(space, AttributeOutputs):
        return attribute_width(space)
    if isinstance(space, HashedOutputs) or space.code_width is None:
        return HASHED_BYTES.itemsize
    return space.code_width


def to_bytes(mechanism: Mechanism, codes: Codes) -> NDArray[np.uint8]:
    """Return codes as rows of bytes, in the order of codes in reports: little-endian numbers."""
    space = mechanism.output_space
    if isinstance(space, AttributeOutputs):
        return attributes_to_bytes(space, codes)
    if isinstance(space, BitRowOutputs | NumberedRowOutputs):
        return np.ascontiguousarray(codes, dtype=np.uint8)
    return space.decode(codes).astype(HASHED_BYTES).view(np.uint8).reshape(-1, HASHED_BYTES.itemsize)


def from_bytes(mechanism: Mechanism, rows: NDArray[np.uint8]) -> Codes:
    """Return the codes of rows of bytes, checked."""
    space = mechanism.output_space
    if isinstance(space, AttributeOutputs):
        return attributes_from_bytes(space, rows)
    if isinstance(space, BitRowOutputs | NumberedRowOutputs):
        return space.encode(rows)
    return space.encode(np.ascontiguousarray(rows).view(HASHED_BYTES).ravel())


def _number_type(part: Mechanism) -> np.dtype[Any]:
    """Return the type in which codes of one attribute are packed that are numbers: as short as they allow."""
    size = part.output_space.size
    return np.dtype("<i8") if size is None else np.min_scalar_type(size - 1).newbyteorder("<")


def _part_width(part: Mechanism) -> int:
    return width(part) if is_packed(part) else _number_type(part).itemsize * (part.output_space.code_width or 1)


def attribute_width(space: AttributeOutputs) -> int:
    """Return the number of bytes of packed outputs of several attributes: which there are, then each of them."""
    return (len(space.parts) + 7) // 8 + sum(_part_width(part) for _, part in space.parts)


def attributes_to_bytes(space: AttributeOutputs, codes: Codes) -> NDArray[np.uint8]:
    """Return codes of several attributes as rows of bytes, with zeros for those that are missing."""
    rows = np.zeros((len(codes), attribute_width(space)), dtype=np.uint8)
    present, end = [], (len(space.parts) + 7) // 8
    for place, (_, part) in enumerate(space.parts):
        own, has = space.entries(codes, place)
        start, end = end, end + _part_width(part)
        numbers = own.astype(_number_type(part)) if not is_packed(part) else None
        content = to_bytes(part, own) if numbers is None else numbers.view(np.uint8)
        rows[has, start:end] = content.reshape(int(has.sum()), end - start)
        present.append(has)
    bits = np.packbits(np.stack(present, axis=1), axis=1)
    rows[:, : bits.shape[1]] = bits
    return rows


def attributes_from_bytes(space: AttributeOutputs, rows: NDArray[np.uint8]) -> Codes:
    """Return the codes of several attributes of rows of bytes, checked."""
    end = (len(space.parts) + 7) // 8
    bits = np.unpackbits(np.ascontiguousarray(rows[:, :end]), axis=1).astype(bool)
    present = bits[:, : len(space.parts)]
    unfit = space.unfit(present) | bits[:, len(space.parts) :].any(axis=1)
    if unfit.any():
        raise space.unfit_error(present[int(np.argmax(unfit))], "packed outputs")
    columns = []
    for (name, part), has in zip(space.parts, present.T, strict=True):
        start, end = end, end + _part_width(part)
        own = np.ascontiguousarray(rows[has, start:end])
        if is_packed(part):
            codes = from_bytes(part, own)
        else:
            codes = own.view(_number_type(part)).astype(np.int64).reshape(len(own), part.output_space.code_width or 1)
        size = part.output_space.size
        if rows[~has, start:end].any() or (size is not None and codes.size and codes.max() >= size):
            raise OutputError(
                f"a packed output of {name} is damaged",
                where="packed outputs",
                got="a number that is no output, or one where none was sent",
                expected="outputs as hubbub packs them",
                remedy="write the outputs again",
            )
        columns.append(codes)
    return space.joined(columns, present)
