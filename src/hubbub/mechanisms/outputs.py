"""What outputs look like: how they are checked, encoded for merging, and written as text.

Inside hubbub an output is a code: a row of a numeric array. Codes of one mechanism can be sorted, compared
and counted without knowing what they mean; its output space turns them back.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Array, Codes, Positions, as_array, as_integers
from hubbub.domains import Domain
from hubbub.errors import DomainError, OutputError, shorten

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


class OutputSpace(ABC):
    """The outputs a mechanism may send."""

    @abstractmethod
    def encode(self, outputs: object) -> Codes:
        """Return one code for each output; refuse what the mechanism can never send."""

    @abstractmethod
    def decode(self, codes: Codes) -> Array:
        """Return the outputs that `codes` stand for."""

    @abstractmethod
    def parse(self, text: str) -> object:
        """Return the output written as `text`, in a form that `encode` takes in a list."""

    def write(self, output: object) -> str:
        """Return the text of one output, as files hold it."""
        return str(output)


class Labels(OutputSpace):
    """A finite list of labels; a code is a place in the list."""

    def __init__(self, labels: Sequence[Hashable] | Array, what: str) -> None:
        self.labels = as_array(labels)
        self._what = what
        self._lookup = {label: place for place, label in enumerate(self.labels.tolist())}
        self._texts = {str(label): label for label in self.labels.tolist()}

    def encode(self, outputs: object) -> Codes:
        """Look each output up."""
        array = as_array(outputs)
        codes = np.array([self._find(label) for label in array.ravel().tolist()], dtype=np.int64)
        if (codes < 0).any():
            place = int(np.argmax(codes < 0))
            raise OutputError(
                "not an output of this mechanism",
                where=f"{self._what}, output {place}",
                got=shorten(array.ravel().tolist()[place]),
                expected=f"one of {shorten(self.labels.tolist(), 100)}",
                remedy="check which mechanism this report names, and the study's list of outputs",
            )
        return codes

    def _find(self, label: object) -> int:
        return self._lookup.get(label, -1) if isinstance(label, Hashable) and not isinstance(label, bool) else -1

    def decode(self, codes: Codes) -> Array:
        """Return the labels."""
        return self.labels[codes]

    def parse(self, text: str) -> object:
        """Return the label whose text this is (the text itself where there is none: `encode` then refuses it)."""
        return self._texts.get(text, text)


class Values(OutputSpace):
    """Answers in the domain; a code is a position."""

    def __init__(self, domain: Domain, what: str) -> None:
        self._domain = domain
        self._what = what
        self._labels: Labels | None = None if domain.labels.dtype.kind == "i" else Labels(domain.labels, what)

    def encode(self, outputs: object) -> Codes:
        """Look each output up in the domain."""
        try:
            return np.atleast_1d(self._domain.index(outputs))
        except DomainError as error:
            raise OutputError(
                "an output is not a value of the domain",
                where=f"{self._what}, {error.where}",
                got=error.got,
                expected=error.expected,
                remedy="check which mechanism this report names; outputs are labels, not positions",
            ) from None

    def decode(self, codes: Codes) -> Array:
        """Return the labels."""
        return self._domain.labels[codes]

    def parse(self, text: str) -> object:
        """Return a label of the domain."""
        return self._labels.parse(text) if self._labels else _number(text, self._what, self._domain.describe())


class AllIntegers(OutputSpace):
    """Any whole number."""

    def __init__(self, what: str) -> None:
        self._what = what

    def encode(self, outputs: object) -> Codes:
        """Check that they are whole numbers."""
        return np.atleast_1d(as_integers(outputs, OutputError, where=self._what, expected="whole numbers"))

    def decode(self, codes: Codes) -> Array:
        """Return the numbers."""
        return codes

    def parse(self, text: str) -> object:
        """Return a whole number."""
        return _number(text, self._what, "a whole number")


class Pairs(OutputSpace):
    """Any cell of the infinite lattice: column and row."""

    def __init__(self, what: str) -> None:
        self._what = what

    def encode(self, outputs: object) -> Codes:
        """Check the shape."""
        pairs = as_integers(outputs, OutputError, where=self._what, expected="pairs of whole numbers")
        if pairs.ndim == 1 and pairs.size == 2:
            pairs = pairs[None, :]
        if pairs.size == 0:
            pairs = pairs.reshape(0, 2)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise OutputError(
                "outputs are not pairs",
                where=self._what,
                got=f"an array of shape {pairs.shape}",
                expected="shape (n, 2): column and row",
                remedy="stack columns and rows side by side",
            )
        return pairs

    def decode(self, codes: Codes) -> Array:
        """Return the pairs."""
        return codes

    def parse(self, text: str) -> object:
        """Return column and row from ``column:row``."""
        return _two_numbers(text, self._what, "column:row")

    def write(self, output: object) -> str:
        """Return ``column:row``."""
        column, row = np.asarray(output).tolist()
        return f"{column}:{row}"


class BitRows(OutputSpace):
    """One bit for each value, packed eight to a byte in np.packbits order; rows of 0 and 1 are accepted too."""

    def __init__(self, length: int, what: str, ones: int | None = None) -> None:
        self.length, self.width = length, (length + 7) // 8
        self._what = what
        self._ones = ones

    def encode(self, outputs: object) -> NDArray[np.uint8]:
        """Pack, and check lengths and the unused bits of the last byte."""
        rows = as_array(outputs)
        if rows.dtype.kind in "SUO":
            rows = np.array([self._row(row) for row in rows.ravel().tolist()], dtype=np.uint8).reshape(-1, self.width)
        if rows.ndim == 1:
            rows = rows[None, :] if rows.size else rows.reshape(0, self.width).astype(np.uint8)
        if rows.ndim != 2 or rows.shape[1] not in (self.length, self.width) or rows.dtype.kind not in "biu":
            raise OutputError(
                "bits of the wrong length",
                where=self._what,
                got=f"{rows.dtype} rows of shape {rows.shape}",
                expected=f"rows of {self.length} bits (0 or 1), or {self.width} packed bytes (uint8)",
                remedy="one bit for each value of the domain; numpy.packbits(bits, axis=1) packs them",
            )
        if rows.shape[1] == self.length and (self.length != self.width or self._looks_unpacked(rows)):
            if rows.dtype.kind != "b" and rows.size and (rows.min() < 0 or rows.max() > 1):
                raise OutputError(
                    "a bit is neither 0 nor 1",
                    where=self._what,
                    got=int(rows.max() if rows.max() > 1 else rows.min()),
                    expected="0 or 1",
                    remedy="pass bits, or packed uint8 rows",
                )
            rows = np.packbits(rows.astype(bool), axis=1)
        packed = np.ascontiguousarray(rows, dtype=np.uint8)
        self._check(packed)
        return packed

    def _looks_unpacked(self, rows: Array) -> bool:
        # A single value has length and width 1; packed rows then use the top bit, which 0/1 rows never do.
        return not rows.size or int(rows.max()) <= 1

    def _check(self, packed: NDArray[np.uint8]) -> None:
        spare = 8 * self.width - self.length
        if packed.size and (packed[:, -1] & np.uint8((1 << spare) - 1)).any():
            raise OutputError(
                "bits beyond the last value are set",
                where=self._what,
                got=f"ones in the last {spare} unused bits",
                expected=f"{self.length} bits, then zeros",
                remedy="pack with numpy.packbits(bits, axis=1)",
            )
        if self._ones is not None and packed.size:
            ones = np.bitwise_count(packed).sum(axis=1)
            if (ones != self._ones).any():
                place = int(np.argmax(ones != self._ones))
                raise OutputError(
                    "a subset of the wrong size",
                    where=f"{self._what}, output {place}",
                    got=f"{int(ones[place])} values",
                    expected=f"{self._ones} values",
                    remedy="every report of this mechanism selects the same number of values",
                )

    def _row(self, row: object) -> NDArray[np.uint8]:
        if isinstance(row, str):
            return np.asarray(self.parse(row), dtype=np.uint8)
        if isinstance(row, bytes) and len(row) == self.width:
            return np.frombuffer(row, dtype=np.uint8)
        raise OutputError(
            "not a row of bits",
            where=self._what,
            got=shorten(row),
            expected=f"{self.length} bits or {self.width} bytes",
            remedy="pass texts of 0 and 1, hexadecimal texts, or packed bytes",
        )

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
        raise OutputError(
            "not a row of bits",
            where=self._what,
            got=shorten(text),
            expected=f"{self.length} characters 0 or 1, or {2 * self.width} hexadecimal digits",
            remedy="one bit for each value of the domain, in its order",
        )

    def write(self, output: object) -> str:
        """Return a text of 0 and 1."""
        bits = np.unpackbits(np.asarray(output, dtype=np.uint8), count=self.length)
        return (bits + ord("0")).tobytes().decode()


HASHED = np.dtype([("seed", np.uint64), ("bucket", np.uint32)])


class SeedBuckets(OutputSpace):
    """The seed a user drew, and the bucket reported under it."""

    def __init__(self, buckets: int, what: str) -> None:
        self._buckets = buckets
        self._what = what

    def encode(self, outputs: object) -> NDArray[np.uint64]:
        """Check the buckets."""
        expected = f"(seed, bucket) with a seed from 0 to 2^64 - 1 and a bucket from 0 to {self._buckets - 1}"
        array = outputs if isinstance(outputs, np.ndarray) else None
        try:
            if array is not None and array.dtype.names is not None:
                array = np.atleast_1d(array)
                pairs = np.stack([array["seed"].astype(np.uint64), array["bucket"].astype(np.uint64)], axis=1)
            elif array is not None:
                pairs = np.atleast_2d(array).astype(np.uint64)
            else:
                listed = list(outputs)  # type: ignore[call-overload]
                listed = [tuple(listed)] if len(listed) == 2 and isinstance(listed[0], int | np.integer) else listed
                pairs = np.array([[int(part) for part in pair] for pair in listed], dtype=np.uint64).reshape(-1, 2)
        except (TypeError, ValueError, OverflowError):
            raise OutputError(
                "not a hashed output",
                where=self._what,
                got=shorten(outputs),
                expected=expected,
                remedy="keep the seed with its bucket",
            ) from None
        if pairs.shape[1] != 2 or (pairs[:, 1] >= self._buckets).any():
            largest = "a wrong shape" if pairs.shape[1] != 2 else f"bucket {int(pairs[:, 1].max())}"
            raise OutputError(
                "no such bucket",
                where=self._what,
                got=largest,
                expected=expected,
                remedy="check epsilon and buckets of the study: they fix the number of buckets",
            )
        return pairs

    def decode(self, codes: Codes) -> Array:
        """Return a structured array with fields seed and bucket."""
        outputs = np.empty(codes.shape[0], dtype=HASHED)
        outputs["seed"], outputs["bucket"] = codes[:, 0], codes[:, 1]
        return outputs

    def parse(self, text: str) -> object:
        """Return seed and bucket from ``seed:bucket``."""
        return _two_numbers(text, self._what, "seed:bucket", digits=20)

    def write(self, output: object) -> str:
        """Return ``seed:bucket``."""
        seed, bucket = np.asarray(output).tolist()
        return f"{seed}:{bucket}"


def _number(text: str, what: str, expected: str) -> int:
    if not WHOLE_NUMBER.fullmatch(text):
        raise OutputError(
            "not a whole number",
            where=what,
            got=shorten(text),
            expected=expected,
            remedy="write digits only, with an optional sign",
        )
    return int(text)


def _two_numbers(text: str, what: str, form: str, digits: int = 19) -> tuple[int, int]:
    match = re.fullmatch(rf"([+-]?[0-9]{{1,{digits}}}):([+-]?[0-9]{{1,{digits}}})", text)
    if not match:
        raise OutputError(
            f"not written as {form}",
            where=what,
            got=shorten(text),
            expected=f"two whole numbers as {form}",
            remedy="separate the two numbers by a colon",
        )
    return int(match[1]), int(match[2])


def unique_codes(codes: Codes, counts: NDArray[np.int64]) -> tuple[Codes, NDArray[np.int64]]:
    """Return the distinct codes in a fixed order, and the sum of `counts` over equal ones."""
    distinct, back = index_codes(codes)
    totals = np.zeros(distinct.shape[0], dtype=np.int64)
    np.add.at(totals, back, counts)
    return distinct, totals


def index_codes(codes: Codes) -> tuple[Codes, Positions]:
    """Return the distinct codes in a fixed order, and the place of each code among them."""
    if codes.ndim == 1:
        distinct, back = np.unique(codes, return_inverse=True)
        return distinct, back.ravel()
    # Rows compare as bytes: faster than by columns, and any fixed order serves.
    rows = np.ascontiguousarray(codes)
    raw = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, back = np.unique(raw, return_index=True, return_inverse=True)
    return rows[first], back.ravel()
