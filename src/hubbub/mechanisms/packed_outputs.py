"""Outputs that cannot be listed: rows of bits, also with the number of a hash, and hashed values with their seeds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Array, Codes, as_array
from hubbub.core.errors import OutputError, shorten
from hubbub.core.packed_bits import ones_in_rows
from hubbub.mechanisms.output_spaces import OutputSpace, parse_pair

PACK_REMEDY = "pack with numpy.packbits(bits, axis=1)"


class BitRowOutputs(OutputSpace):
    """One bit for each value, packed eight to a byte in np.packbits order; rows of 0 and 1 are accepted too."""

    def __init__(self, length: int, mechanism: str, ones: int | None = None) -> None:
        self.length, self.width = length, (length + 7) // 8
        self._mechanism = mechanism
        self._ones = ones

    def encode(self, outputs: object) -> NDArray[np.uint8]:
        """Pack, and check lengths and the unused bits of the last byte."""
        rows = as_array(outputs)
        if rows.dtype.kind in "SUO":
            rows = np.array([self._row(row) for row in rows.ravel().tolist()], dtype=np.uint8).reshape(-1, self.width)
        if rows.ndim == 1:
            rows = rows[None, :] if rows.size else rows.reshape(0, self.width).astype(np.uint8)
        kinds = {self.width: "iu", self.length: "biu"}  # kinds of entries, by the length of rows
        kind = kinds.get(rows.shape[1], "") if rows.ndim == 2 else ""
        if rows.dtype.kind not in kind:
            what = "outputs are neither bits nor packed bytes" if kind else "rows of bits have the wrong length"
            got = f"{rows.dtype} rows of shape {rows.shape}"
            expected = f"rows of {self.length} bits (0 or 1), or {self.width} packed bytes (uint8)"
            convert = "convert bits with .astype(bool), packed bytes with .astype(numpy.uint8)"
            remedy = convert if kind else "send one bit for each value; numpy.packbits(bits, axis=1) packs them"
            raise self._wrong(what, got, expected, remedy)
        if rows.shape[1] == self.length:  # which is not the width: a domain has at least two values
            if rows.dtype.kind != "b" and rows.size and (rows.min() < 0 or rows.max() > 1):
                bit = int(rows.max() if rows.max() > 1 else rows.min())
                raise self._wrong("a bit is neither 0 nor 1", bit, "0 or 1", "pass bits, or packed uint8 rows", code="")
            rows = np.packbits(rows.astype(bool), axis=1)
        if rows.size and rows.dtype != np.uint8 and (rows.min() < 0 or rows.max() > 255):
            byte = int(rows.max() if rows.max() > 255 else rows.min())
            raise self._wrong("a packed byte is not a byte", byte, "0 to 255", PACK_REMEDY, code="")
        packed = np.ascontiguousarray(rows, dtype=np.uint8)
        self._check(packed)
        return packed

    def _check(self, packed: NDArray[np.uint8]) -> None:
        spare = 8 * self.width - self.length
        if packed.size and (packed[:, -1] & np.uint8((1 << spare) - 1)).any():
            got, expected = f"ones in the last {spare} unused bits", f"{self.length} bits, then zeros"
            raise self._wrong("bits beyond the last value are set", got, expected, PACK_REMEDY, code="spare-bits")
        if self._ones is not None and packed.size:
            ones = ones_in_rows(packed)
            if (ones != self._ones).any():
                position = int(np.argmax(ones != self._ones))
                what, where = "a subset has the wrong size", f"{self._mechanism}, outputs, position {position}"
                got, expected = f"{int(ones[position])} of the bits set", f"{self._ones} of the {self.length} bits set"
                remedy = "select the same number of values in every report of this mechanism"
                raise OutputError(what, where=where, got=got, expected=expected, remedy=remedy, code="subset-size")

    def _row(self, row: object) -> NDArray[np.uint8]:
        if isinstance(row, str):
            return np.asarray(self.parse(row), dtype=np.uint8)
        if isinstance(row, bytes) and len(row) == self.width:
            return np.frombuffer(row, dtype=np.uint8)
        expected = f"{self.length} bits or {self.width} bytes"
        remedy = "pass texts of 0 and 1, texts of hexadecimal digits, or packed bytes"
        raise self._wrong("not a row of bits", shorten(row), expected, remedy)

    def _wrong(self, what: str, got: object, expected: str, remedy: str, code: str = "wrong-bits") -> OutputError:
        return OutputError(what, where=self._mechanism, got=got, expected=expected, remedy=remedy, code=code)

    @property
    def code_type(self) -> np.dtype[Any]:
        """Bytes."""
        return np.dtype(np.uint8)

    @property
    def code_width(self) -> int:
        """The number of bytes."""
        return self.width

    def decode(self, codes: Codes) -> Array:
        """Return the packed rows."""
        return codes

    def parse(self, text: str) -> object:
        """Return a packed row from a text of 0 and 1, or from hexadecimal digits (0x may come first)."""
        if len(text) == self.length and set(text) <= {"0", "1"}:
            return np.packbits(np.frombuffer(text.encode(), dtype=np.uint8) - ord("0"))
        digits = text.removeprefix("0x")
        if len(digits) == 2 * self.width and re.fullmatch("[0-9a-fA-F]+", digits):
            return np.frombuffer(bytes.fromhex(digits), dtype=np.uint8)
        expected = f"{self.length} characters 0 or 1, or {2 * self.width} hexadecimal digits"
        remedy = "write one bit for each value of the domain, in its order"
        raise self._wrong("not a row of bits", shorten(text), expected, remedy)

    def read(self, entry: object) -> object:
        """Return a packed row from a text or bytes."""
        _no_numbers(entry, self._mechanism, f"{self.length} characters 0 or 1, hexadecimal digits, or packed bytes")
        return super().read(entry)

    def write(self, output: object) -> str:
        """Return a text of 0 and 1."""
        bits = np.unpackbits(np.asarray(output, dtype=np.uint8), count=self.length)
        return (bits + ord("0")).tobytes().decode()


def _no_numbers(entry: object, where: str, form: str) -> None:
    """Refuse numbers where a text or bytes are expected: 11 may have been 00001011, or 11."""
    if isinstance(entry, int | float | np.number):
        what, code = "a number instead of a text or bytes", "number-for-text"
        remedy = "write outputs as texts; a reader may have turned them into numbers"
        raise OutputError(what, where=where, got=entry, expected=form, remedy=remedy, code=code)


HASHED = np.dtype([("seed", np.uint64), ("bucket", np.uint32)])


class HashedOutputs(OutputSpace):
    """The seed a user drew, and the bucket reported under it."""

    def __init__(self, buckets: int, mechanism: str) -> None:
        self._buckets = buckets
        self._mechanism = mechanism

    def encode(self, outputs: object) -> NDArray[np.uint64]:
        """Check the buckets."""
        expected = f"(seed, bucket) with a seed from 0 to 2^64 - 1 and a bucket from 0 to {self._buckets - 1}"
        columns = [_words(column) for column in _seeds_and_buckets(outputs)]
        words = [column for column in columns if column is not None]
        if len(words) != 2:
            what, got, remedy = (
                "not a hashed output",
                shorten(outputs),
                "keep the seed with its bucket, both as integers",
            )
            raise OutputError(what, where=self._mechanism, got=got, expected=expected, remedy=remedy, code="not-hashed")
        beyond = words[1] >= self._buckets
        if beyond.any():
            position = int(np.argmax(beyond))
            where, got = f"{self._mechanism}, outputs, position {position}", f"bucket {words[1][position]}"
            what, remedy = "no such bucket", "check epsilon and buckets of the study: they fix the number of buckets"
            raise OutputError(what, where=where, got=got, expected=expected, remedy=remedy, code="no-such-bucket")
        return np.stack(words, axis=1)

    @property
    def code_type(self) -> np.dtype[Any]:
        """Words, because seeds are."""
        return np.dtype(np.uint64)

    @property
    def code_width(self) -> int:
        """Seed and bucket."""
        return 2

    def decode(self, codes: Codes) -> Array:
        """Return a structured array with fields seed and bucket."""
        outputs = np.empty(codes.shape[0], dtype=HASHED)
        outputs["seed"], outputs["bucket"] = codes[:, 0], codes[:, 1]
        return outputs

    def parse(self, text: str) -> object:
        """Return seed and bucket from ``seed:bucket``."""
        return parse_pair(text, self._mechanism, "seed:bucket", digits=20)

    def write(self, output: object) -> str:
        """Return ``seed:bucket``."""
        pair: Any = output.item() if isinstance(output, np.void) else output
        seed, bucket = pair
        return f"{seed}:{bucket}"


def _seeds_and_buckets(outputs: object) -> list[Array]:
    """Return the two columns of hashed outputs, or nothing where there are not two."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.names is not None:
        return [np.atleast_1d(outputs[name]) for name in HASHED.names or () if name in outputs.dtype.names]
    if isinstance(outputs, np.ndarray):
        table = np.atleast_2d(outputs)
        return list(table.T) if table.ndim == 2 else []
    if not isinstance(outputs, Iterable):
        return []
    pairs = list(outputs)
    if len(pairs) == 2 and isinstance(pairs[0], int | np.integer):
        pairs = [pairs]
    try:
        columns = list(zip(*pairs, strict=True)) if pairs else [(), ()]
    except (TypeError, ValueError):  # no pairs, or of different lengths
        return []
    return [np.fromiter(column, dtype=object, count=len(column)) for column in columns]


def _words(column: Array) -> NDArray[np.uint64] | None:
    """Return whole numbers from 0 to 2^64 - 1, None where there are others."""
    if column.dtype.kind == "O":
        whole = all(isinstance(word, int | np.integer) and not isinstance(word, bool) for word in column)
        fits = whole and all(0 <= word < 2**64 for word in column)
    else:
        fits = column.dtype.kind in "iu" and not (column < 0).any()
    return column.astype(np.uint64) if fits else None
