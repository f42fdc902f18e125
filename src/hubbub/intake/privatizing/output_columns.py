"""Outputs as columns of a file: whole numbers, packed bytes, or the texts that every reader of reports understands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import IntegerOutputs, OutputSpace, PairOutputs, ValueOutputs
from hubbub.mechanisms.packed_outputs import BitRowOutputs, HashedOutputs

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


class OutputColumn:
    """The column of outputs of one or several mechanisms: all rows of a file have one type.

    Whole numbers stay numbers and, in files with types, rows of bits stay packed. All else is written as text.
    """

    def __init__(self, mechanisms: Sequence[Mechanism], *, typed: bool) -> None:
        import pyarrow as pa

        spaces = [mechanism.output_space for mechanism in mechanisms]
        widths = {space.width for space in spaces if isinstance(space, BitRowOutputs)}
        self._texts: dict[Mechanism, pa.Array] = {}
        self.type = pa.string()
        if all(_is_whole(space) for space in spaces):
            self.type = pa.int64()
        elif typed and len(widths) == 1 and all(isinstance(space, BitRowOutputs) for space in spaces):
            self.type = pa.binary(widths.pop())
        self.width = max(
            2 * space.width if isinstance(space, BitRowOutputs) else 32 for space in spaces
        )  # bytes of a row

    def array(self, mechanism: Mechanism, codes: Codes) -> pa.Array:
        """Return the outputs of one mechanism."""
        import pyarrow as pa

        if pa.types.is_integer(self.type):
            return pa.array(mechanism.output_space.decode(codes), self.type)
        if pa.types.is_fixed_size_binary(self.type):
            content = pa.py_buffer(np.ascontiguousarray(codes, dtype=np.uint8))
            return pa.FixedSizeBinaryArray.from_buffers(self.type, len(codes), [None, content])
        return self._text(mechanism, codes)

    def _text(self, mechanism: Mechanism, codes: Codes) -> pa.Array:
        import pyarrow as pa

        space = mechanism.output_space
        if isinstance(space, BitRowOutputs):
            return _hexadecimal(codes)
        if isinstance(space, PairOutputs | HashedOutputs):
            return _joined(codes)
        if _is_whole(space):
            return pa.array(space.decode(codes)).cast(pa.string())
        if space.size is None:  # of somebody's own mechanism
            return pa.array([space.write(output) for output in space.decode(codes)], pa.string())
        if mechanism not in self._texts:
            listed = space.decode(np.arange(space.size))
            self._texts[mechanism] = pa.array([space.write(output) for output in listed], pa.string())
        return self._texts[mechanism].take(pa.array(codes))

    def mixed(self, mechanisms: Sequence[tuple[Mechanism, Positions, Codes]], rows: int) -> pa.Array:
        """Return the outputs of several mechanisms, each with the rows that they belong to."""
        import pyarrow as pa

        if len(mechanisms) == 1:
            return self.array(mechanisms[0][0], mechanisms[0][2])
        parts = pa.concat_arrays([self.array(mechanism, codes) for mechanism, _, codes in mechanisms])
        order = np.empty(rows, dtype=np.int64)
        order[np.concatenate([places for _, places, _ in mechanisms])] = np.arange(rows)
        return parts.take(pa.array(order))


def _is_whole(space: OutputSpace) -> bool:
    """Whether outputs are whole numbers, and so in every mechanism of this kind."""
    return (
        isinstance(space, ValueOutputs | IntegerOutputs) and space.decode(np.zeros(0, dtype=np.int64)).dtype.kind == "i"
    )


def _joined(codes: Codes) -> pa.Array:
    """Return pairs of numbers as texts with a colon between them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first, second = (pa.array(np.ascontiguousarray(codes[:, place])).cast(pa.string()) for place in (0, 1))
    return pc.binary_join_element_wise(first, second, ":")


def _hexadecimal(codes: NDArray[np.uint8]) -> pa.Array:
    """Return packed rows as 0x and their digits: without the 0x, programs take some of them for numbers."""
    import pyarrow as pa

    count, width = codes.shape
    letters = np.empty((count, 2 + 2 * width), dtype=np.uint8)
    letters[:, :2] = ord("0"), ord("x")
    letters[:, 2::2] = DIGITS[codes >> 4]
    letters[:, 3::2] = DIGITS[codes & 15]
    starts = np.arange(count + 1, dtype=np.int64) * letters.shape[1]
    long = pa.LargeStringArray.from_buffers(count, pa.py_buffer(starts), pa.py_buffer(letters))
    return long.cast(pa.string())
