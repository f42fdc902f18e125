"""Outputs of a number and a row of bits: a cohort and a Bloom filter, a hash and the bits of its buckets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.client import as_whole
from hubbub.core.arrays import Array, Codes
from hubbub.core.errors import OutputError, shorten
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.sampling import NUMBER_BYTES, row_numbers, with_numbers

PAIR = re.compile("([0-9]{1,10}):((?:0x)?[0-9a-fA-F]+)")


class NumberedRowOutputs(OutputSpace):
    """A number below `count`, called `number` in messages, and a row of bits: four bytes, then eight bits to a byte."""

    def __init__(self, number: str, count: int, bits: int, mechanism: str) -> None:
        self.number = number
        self.row_bytes = (bits + 7) // 8
        self._count, self._bits, self._mechanism = count, bits, mechanism
        self._rows = BitRowOutputs(bits, mechanism)
        self.dtype = np.dtype([(number, np.uint32), ("bits", np.uint8, (self.row_bytes,))])

    @property
    def _form(self) -> str:
        return f"a {self.number} from 0 to {self._count - 1} and {self._bits} bits, as in 0:0x{'00' * self.row_bytes}"

    def encode(self, outputs: object) -> NDArray[np.uint8]:
        """Check numbers and bits of texts, pairs or structured arrays, or of rows of bytes that hold both."""
        if isinstance(outputs, np.ndarray) and outputs.dtype == np.uint8 and outputs.shape[1:] == (self.code_width,):
            numbers, rows = row_numbers(outputs), self._rows.encode(outputs[:, NUMBER_BYTES:])
        elif isinstance(outputs, np.ndarray) and outputs.dtype.names == (self.number, "bits"):
            table = np.atleast_1d(outputs)
            numbers, rows = table[self.number].astype(np.int64), self._rows.encode(table["bits"])
        else:
            pairs = self._pairs(outputs)
            numbers = np.array([number for number, _ in pairs], dtype=np.int64)
            rows = np.concatenate(
                [np.empty((0, self.row_bytes), dtype=np.uint8), *(self._rows.encode(row) for _, row in pairs)]
            )
        beyond = (numbers < 0) | (numbers >= self._count)
        if beyond.any():
            place = int(np.argmax(beyond))
            raise OutputError(
                f"no such {self.number}",
                where=f"{self._mechanism}, outputs, position {place}",
                got=f"{self.number} {int(numbers[place])}",
                expected=f"from 0 to {self._count - 1}",
                remedy=f"check how many there are in the study; the first {self.number} is 0",
                code=f"no-such-{self.number}",
            )
        return with_numbers(numbers, rows)

    def _pairs(self, outputs: object) -> list[tuple[int, object]]:
        """Return numbers and rows of bits from a list of texts or pairs; one of them alone is a list, too."""
        single = isinstance(outputs, str | np.void) or (isinstance(outputs, tuple) and len(outputs) == 2)
        listed = [outputs] if single else list(outputs) if isinstance(outputs, Iterable) else [outputs]
        return [self._pair(entry, place) for place, entry in enumerate(listed)]

    def _pair(self, entry: object, place: int) -> tuple[int, object]:
        pair: Any = (
            self.parse(entry) if isinstance(entry, str) else entry.item() if isinstance(entry, np.void) else entry
        )
        number = as_whole(pair[0]) if isinstance(pair, tuple | list) and len(pair) == 2 else None
        if number is None:
            accepted = f"pairs ({self.number}, bits) and texts {self.number}:bits are accepted"
            remedy = f"send the {self.number} with every report; {accepted}"
            raise self._wrong(f"{self._mechanism}, outputs, position {place}", entry, remedy)
        row = pair[1]
        return number, [row] if isinstance(row, str | bytes) else np.asarray(row)[None]

    def _wrong(self, where: str, got: object, remedy: str) -> OutputError:
        what, code = f"not a {self.number} with its bits", f"not-a-{self.number}"
        return OutputError(what, where=where, got=shorten(got), expected=self._form, remedy=remedy, code=code)

    @property
    def code_type(self) -> np.dtype[Any]:
        """Bytes."""
        return np.dtype(np.uint8)

    @property
    def code_width(self) -> int:
        """The number of bytes."""
        return NUMBER_BYTES + self.row_bytes

    def decode(self, codes: Codes) -> Array:
        """Return a structured array with a field for the number, and one for the bits."""
        outputs = np.empty(len(codes), dtype=self.dtype)
        outputs[self.number], outputs["bits"] = row_numbers(codes), codes[:, NUMBER_BYTES:]
        return outputs

    def parse(self, text: str) -> object:
        """Return number and packed row from ``number:bits``, the bits as 0s and 1s or in hexadecimal digits."""
        match = PAIR.fullmatch(text)
        if not match:
            raise self._wrong(self._mechanism, text, f"write the {self.number}, a colon, and the bits")
        return int(match[1]), self._rows.parse(match[2])

    def write(self, output: object) -> str:
        """Return ``number:0x...``."""
        pair: Any = output.item() if isinstance(output, np.void) else output
        number, row = pair
        return f"{int(number)}:0x{np.asarray(row, dtype=np.uint8).tobytes().hex()}"
