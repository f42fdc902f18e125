"""Output spaces: how outputs are checked, encoded for merging, and written as text.

Inside hubbub an output is a code: a row of a numeric array. Codes of one mechanism can be sorted, compared
and counted without knowing what they mean; the mechanism's output space decodes them.
"""

from __future__ import annotations

import contextlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.client import WHOLE_FLOAT, WHOLE_NUMBER
from hubbub.core.arrays import (
    Array,
    Codes,
    Positions,
    as_array,
    as_integers,
    may_be_rounded,
    plain,
    position_of_label,
    refuse_rounded,
    rounded_error,
)
from hubbub.core.errors import DomainError, HubbubError, OutputError, shorten
from hubbub.core.number_advice import number_advice
from hubbub.domains import Domain, Product


class OutputSpace(ABC):
    """The outputs a mechanism may send."""

    @abstractmethod
    def encode(self, outputs: object) -> Codes:
        """Return one code for each output; refuse what the mechanism can never send."""

    @abstractmethod
    def decode(self, codes: Codes) -> Array:
        """Return the outputs of `codes`."""

    @abstractmethod
    def parse(self, text: str) -> object:
        """Return the output written as `text`, in a form that `encode` takes in a list."""

    def read(self, entry: object) -> object:
        """Return the output of a file's entry: a text, or a number in a typed column."""
        return self.parse(entry) if isinstance(entry, str) else plain(entry)

    def write(self, output: object) -> str:
        """Return the text of one output, as files hold it."""
        return str(output)

    def title(self, codes: Codes) -> str:
        """Return one encoded output as sentences name it; `codes` has one line."""
        return self.write(self.decode(codes)[0])

    def present(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which attributes each output has, a column for each; no column where outputs are not of attributes."""
        return np.ones((len(codes), 0), dtype=bool)

    @property
    def size(self) -> int | None:
        """The number of outputs, where codes are positions in a list; None otherwise."""
        return None

    @property
    def code_type(self) -> np.dtype[Any]:
        """The type of the numbers that a code consists of."""
        return np.dtype(np.int64)

    @property
    def code_width(self) -> int | None:
        """How many numbers a code is a row of; None where it is one number."""
        return None


class LabelOutputs(OutputSpace):
    """A finite list of labels; a code is a position in the list."""

    def __init__(self, labels: Sequence[Hashable] | Array, mechanism: str) -> None:
        self.labels = as_array(labels)
        self._mechanism = mechanism
        self._lookup = {label: place for place, label in enumerate(self.labels.tolist())}
        self._texts = {str(label): label for label in self.labels.tolist()}

    def encode(self, outputs: object) -> Codes:
        """Look each output up."""
        array = _check_flat(as_array(outputs), self._mechanism)
        refuse_rounded(array, OutputError, where=f"{self._mechanism}, outputs", expected="one of the labels")
        labels = array.tolist()
        codes = np.array([self._find(label) for label in labels], dtype=np.int64)
        if (codes < 0).any():
            place = int(np.argmax(codes < 0))
            where, got = f"{self._mechanism}, outputs, position {place}", shorten(labels[place])
            what, expected = "not an output of this mechanism", f"one of {shorten(self.labels.tolist(), 100)}"
            remedy, code = "check which mechanism this report names, and the study's list of outputs", "not-an-output"
            raise OutputError(what, where=where, got=got, expected=expected, remedy=remedy, code=code)
        return codes

    def read(self, entry: object) -> object:
        """Return the label of an entry; the entry itself where there is none, which `encode` then refuses.

        A text is matched with the labels' texts first; 34.0, as a text or a float, is the label 34.
        """
        if isinstance(entry, str) and entry in self._texts:
            return self._texts[entry]
        number = _as_float(entry)
        if number is None or not float(number).is_integer() or int(number) not in self._lookup:
            return plain(entry)
        if may_be_rounded(number):
            raise rounded_error(OutputError, number, where=self._mechanism, expected="one of the labels")
        return int(number)

    def _find(self, label: object) -> int:
        return position_of_label(self._lookup, label)

    def decode(self, codes: Codes) -> Array:
        """Return the labels."""
        return self.labels[codes]

    @property
    def size(self) -> int:
        """The length of the list."""
        return len(self.labels)

    def parse(self, text: str) -> object:
        """Return the label whose text this is (the text itself where there is none)."""
        return self.read(text)


class ValueOutputs(OutputSpace):
    """Answers in the domain; a code is a position."""

    def __init__(self, domain: Domain, mechanism: str) -> None:
        self._domain = domain
        self._mechanism = mechanism
        listed = domain.labels.dtype.kind not in "iV"
        self._labels = LabelOutputs(domain.labels, mechanism) if listed else None

    def encode(self, outputs: object) -> Codes:
        """Look each output up in the domain."""
        try:
            return np.atleast_1d(self._domain.index(self._flat(outputs)))
        except DomainError as error:
            rounded = error.code == "rounded-number"
            raise OutputError(
                error.what if rounded else "an output is not a value of the domain",
                where=f"{self._mechanism}, {error.where.replace('values', 'outputs')}",
                got=error.got,
                expected=error.expected,
                remedy=error.remedy
                if rounded
                else "check which mechanism this report names; outputs are labels, not positions",
                code=error.code or "out-of-domain",
            ) from None

    def _flat(self, outputs: object) -> object:
        return _check_flat(as_array(outputs), self._mechanism)

    def decode(self, codes: Codes) -> Array:
        """Return the labels."""
        return self._domain.labels[codes]

    def title(self, codes: Codes) -> str:
        """Return what the domain calls the value: of a map, its place."""
        return self._domain.title(int(codes[0]))

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self._domain)

    def parse(self, text: str) -> object:
        """Return a label of the domain."""
        return (
            self._labels.parse(text)
            if self._labels
            else parse_whole_number(text, self._mechanism, self._domain.describe())
        )

    def read(self, entry: object) -> object:
        """Return the label of a text or of a number."""
        if self._labels:
            return self._labels.read(entry)
        return parse_whole_number(entry, self._mechanism, self._domain.describe())


class CombinationOutputs(ValueOutputs):
    """Answers in a product; files hold a JSON object with an entry for each attribute."""

    def __init__(self, domain: Product, mechanism: str) -> None:
        super().__init__(domain, mechanism)
        self._parts = {name: value_outputs(own, mechanism) for name, own in domain.attributes.items()}

    def parse(self, text: str) -> object:
        """Return the combination that a JSON object describes."""
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError):
            entry = None
        return self.read(entry if isinstance(entry, Mapping) else (text,))

    def read(self, entry: object) -> object:
        """Return the combination of a JSON object, or of what Parquet holds as a struct."""
        if isinstance(entry, str):
            return self.parse(entry)
        if not isinstance(entry, Mapping) or set(entry) != set(self._parts):
            raise OutputError(
                "not one entry for each attribute",
                where=self._mechanism,
                got=shorten(entry),
                expected=f"{{{', '.join(f'{json.dumps(name)}: ...' for name in self._parts)}}}",
                remedy="write a JSON object with the value of each attribute",
                code="not-attributes",
            )
        return tuple(space.read(entry[name]) for name, space in self._parts.items())

    def write(self, output: object) -> str:
        """Return a JSON object with the texts of the entries."""
        entries = output.item() if isinstance(output, np.void) else output
        texts = {name: space.write(entry) for (name, space), entry in zip(self._parts.items(), entries, strict=True)}  # type: ignore[call-overload]
        return json.dumps(texts, ensure_ascii=False)

    def _flat(self, outputs: object) -> object:
        return outputs


def value_outputs(domain: Domain, mechanism: str) -> ValueOutputs:
    """Return the outputs of a mechanism that answers in the domain."""
    product = domain.product
    return ValueOutputs(domain, mechanism) if product is None else CombinationOutputs(product, mechanism)


class IntegerOutputs(OutputSpace):
    """Any whole number."""

    def __init__(self, mechanism: str) -> None:
        self._mechanism = mechanism

    def encode(self, outputs: object) -> Codes:
        """Check that they are whole numbers."""
        array = _check_flat(as_array(outputs), self._mechanism)
        return as_integers(array, OutputError, where=f"{self._mechanism}, outputs", expected="whole numbers")

    def decode(self, codes: Codes) -> Array:
        """Return the numbers."""
        return codes

    def parse(self, text: str) -> object:
        """Return a whole number."""
        return parse_whole_number(text, self._mechanism, "a whole number")

    def read(self, entry: object) -> object:
        """Return the number of a text or of a float."""
        return parse_whole_number(entry, self._mechanism, "a whole number")


class RangeOutputs(OutputSpace):
    """The whole numbers between two limits; a code counts from the first."""

    def __init__(self, first: int, last: int, mechanism: str) -> None:
        self._first, self._last = first, last
        self._mechanism = mechanism

    def encode(self, outputs: object) -> Codes:
        """Check that they are whole numbers between the limits."""
        array, expected = _check_flat(as_array(outputs), self._mechanism), f"from {self._first} to {self._last}"
        numbers = as_integers(array, OutputError, where=f"{self._mechanism}, outputs", expected=expected)
        beyond = (numbers < self._first) | (numbers > self._last)
        if beyond.any():
            place = int(np.argmax(beyond))
            where, got = f"{self._mechanism}, outputs, position {place}", int(numbers[place])
            what, remedy = (
                "not an output of this mechanism",
                "check which mechanism and which epsilon this report names",
            )
            code = "not-an-output"
            raise OutputError(what, where=where, got=got, expected=expected, remedy=remedy, code=code)
        return numbers - self._first

    def decode(self, codes: Codes) -> Array:
        """Return the numbers."""
        return codes + self._first

    @property
    def size(self) -> int:
        """The number of outputs."""
        return self._last - self._first + 1

    def parse(self, text: str) -> object:
        """Return a whole number."""
        return parse_whole_number(text, self._mechanism, f"from {self._first} to {self._last}")

    def read(self, entry: object) -> object:
        """Return the number of a text or of a float."""
        return parse_whole_number(entry, self._mechanism, f"from {self._first} to {self._last}")


class PairOutputs(OutputSpace):
    """Any cell of the infinite lattice: column and row."""

    def __init__(self, mechanism: str) -> None:
        self._mechanism = mechanism

    def encode(self, outputs: object) -> Codes:
        """Check the shape."""
        where = f"{self._mechanism}, outputs"
        pairs = as_integers(outputs, OutputError, where=where, expected="pairs of whole numbers: column and row")
        if pairs.ndim == 1 and pairs.size == 2:
            pairs = pairs[None, :]
        if pairs.size == 0:
            pairs = pairs.reshape(0, 2)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            what, got = "outputs are not pairs", f"an array of shape {pairs.shape}"
            expected, remedy = "shape (n, 2): column and row", "stack columns and rows side by side"
            raise OutputError(what, where=where, got=got, expected=expected, remedy=remedy, code="not-a-pair")
        return pairs

    @property
    def code_width(self) -> int:
        """Column and row."""
        return 2

    def decode(self, codes: Codes) -> Array:
        """Return the pairs."""
        return codes

    def parse(self, text: str) -> object:
        """Return column and row from ``column:row``."""
        return parse_pair(text, self._mechanism, "column:row")

    def write(self, output: object) -> str:
        """Return ``column:row``."""
        column, row = np.asarray(output).tolist()
        return f"{column}:{row}"


def _check_flat(outputs: Array, mechanism: str) -> Array:
    """Return `outputs` if there is one for each user; refuse tables of them."""
    if outputs.ndim > 1:
        what, where, got = "outputs must be a flat list", f"{mechanism}, outputs", f"shape {outputs.shape}"
        remedy = "flatten the array; Reports.from_users takes one (mechanism, output) pair for each output"
        raise OutputError(what, where=where, got=got, expected="one output for each user", remedy=remedy)
    return np.atleast_1d(outputs)


def parse_whole_number(entry: object, where: str, expected: str) -> object:
    """Return the whole number of a text or a float; other entries as they are.

    34.0 is 34, as a text and as a float. A float so large that it may have been rounded is refused, also as a text.
    """
    if isinstance(entry, str) and WHOLE_NUMBER.fullmatch(entry):
        return int(entry)
    number = _as_float(entry)
    if number is None and not isinstance(entry, str):
        return entry
    if number is None or not float(number).is_integer():
        what, got = "not a whole number", shorten(plain(entry))
        remedy = number_advice(entry, "write digits only, with an optional sign", whole=True)
        raise OutputError(what, where=where, got=got, expected=expected, remedy=remedy, code="not-a-number")
    if may_be_rounded(number):
        raise rounded_error(OutputError, number, where=where, expected=expected)
    return int(number)


def _as_float(entry: object) -> float | np.floating[Any] | None:
    """Return the float that an entry is, or is written as; None where it is none."""
    if isinstance(entry, str):
        return float(entry) if WHOLE_FLOAT.fullmatch(entry) else None
    return entry if isinstance(entry, float | np.floating) else None


def parse_pair(text: str, where: str, form: str, digits: int = 19) -> tuple[int, int]:
    """Return two whole numbers that a colon separates."""
    match = re.fullmatch(rf"([+-]?[0-9]{{1,{digits}}}):([+-]?[0-9]{{1,{digits}}})", text)
    if not match:
        what, expected, got = f"not written as {form}", f"two whole numbers as {form}", shorten(text)
        remedy, code = "separate the two numbers with a colon", "not-hashed" if "seed" in form else "not-a-pair"
        raise OutputError(what, where=where, got=got, expected=expected, remedy=remedy, code=code)
    return int(match[1]), int(match[2])


def encode_each(
    space: OutputSpace,
    outputs: Sequence[object],
    error_at: Callable[[int, OutputError], HubbubError],
    read: Callable[[object], object] = lambda output: output,
) -> Codes:
    """Encode all outputs at once; if that fails, one by one: `error_at` makes the error of the first that fails."""
    with contextlib.suppress(OutputError):
        plain = [read(output) for output in outputs]
        rows = [output for output in plain if isinstance(output, np.ndarray)]
        alike = len(rows) == len(plain) and len({row.shape for row in rows}) == 1
        codes = space.encode(np.stack(rows) if alike else plain)
        if len(codes) == len(outputs):
            return codes
    single = []
    for place, output in enumerate(outputs):
        try:
            entry = read(output)
            single.append(space.encode(entry[None] if isinstance(entry, np.ndarray) else [entry]))
        except OutputError as error:
            raise error_at(place, error) from None
    return np.concatenate(single)


def unique_codes(codes: Codes, counts: NDArray[np.int64], size: int | None) -> tuple[Codes, NDArray[np.int64]]:
    """Return the distinct codes in a fixed order, and the sum of `counts` over equal ones.

    Where codes are positions in a list of `size` outputs, they are counted without sorting, and all are returned.
    """
    if size is not None and size <= 10 * max(1, codes.size):
        return np.arange(size), np.bincount(codes, weights=counts, minlength=size).astype(np.int64)
    if codes.shape[0] == 0:
        return codes, counts
    order, new = _in_order(codes)
    if new.all():
        return np.take(codes, order, axis=0), counts[order]
    return np.take(codes, order[new], axis=0), np.add.reduceat(counts[order], np.flatnonzero(new))


def index_codes(codes: Codes) -> tuple[Codes, Positions]:
    """Return the distinct codes in a fixed order, and the position of each code among them."""
    order, new = _in_order(codes)
    back = np.empty(order.size, dtype=np.int64)
    back[order] = np.cumsum(new) - 1
    return np.take(codes, order[new], axis=0), back


def _in_order(codes: Codes) -> tuple[Positions, NDArray[np.bool_]]:
    """Return the order of codes, and where in that order one differs from the one before."""
    rows = np.ascontiguousarray(codes)
    keys = rows if rows.ndim == 1 else _row_keys(rows)
    if keys is None:
        return _sorted_rows(rows.view(np.uint8).reshape(rows.shape[0], rows.shape[1] * rows.itemsize))
    order = np.argsort(keys)
    sorted_ = keys[order]
    return order, np.append(True, sorted_[1:] != sorted_[:-1])[: order.size]


def _row_keys(rows: Codes) -> NDArray[np.int64] | None:
    """Return a whole number for each row, equal for equal rows and in their order; None where none is large enough."""
    if rows.dtype != np.int64 or rows.size == 0 or rows.min() < 0:
        return None
    keys, size = np.zeros(rows.shape[0], dtype=np.int64), 1
    for column in rows.T:
        base = int(column.max()) + 1
        size *= base
        if size >= 2**63:
            return None
        keys *= base
        keys += column
    return keys


def _sorted_rows(rows: NDArray[np.uint8]) -> tuple[Positions, NDArray[np.bool_]]:
    """Return the order of rows of bytes, and where in that order a row differs from the one before.

    A few bytes are compared at a time, and more of them only between rows that agree so far: long rows differ early,
    and a million of 125 bytes are never copied. What rows are alike in so far, the next bytes, and the place of a row
    follow each other in one number, because numbers are sorted faster than places by numbers.
    """
    count, width = rows.shape
    order, new = np.arange(count), np.zeros(count, dtype=bool)
    new[:1] = True
    tied, first = order.copy(), 0
    while first + 1 < width and count and (rows[:, first] == rows[0, first]).all():  # says nothing
        first += 1
    while tied.size and first < width:
        which = order[tied]
        group = (np.cumsum(new[tied]) - 1).astype(np.uint64)
        group_bits, place_bits = int(group[-1]).bit_length(), (tied.size - 1).bit_length()
        wide = min(8, (64 - group_bits - place_bits) // 8)
        if wide:
            numbers = _words(rows, which, first, wide) >> np.uint64(group_bits)
            if group_bits:
                numbers |= group << np.uint64(64 - group_bits)
            numbers |= np.arange(tied.size, dtype=np.uint64)
            numbers.sort()
            mask = np.uint64((1 << place_bits) - 1)
            places, differs = (numbers & mask).astype(np.int64), numbers[1:] ^ numbers[:-1] > mask
        else:  # hundreds of millions of rows
            wide, key = 8, _words(rows, which, first, 8)
            places = np.lexsort((key, group))
            differs = np.diff(key[places]) != 0
        order[tied] = which[places]
        new[tied[1:]] |= differs  # within a group; where groups meet it is new already
        tied = np.flatnonzero(~new | np.append(~new[1:], False))
        first += wide
    return order, new


def _words(rows: NDArray[np.uint8], which: Positions, first: int, wide: int) -> NDArray[np.uint64]:
    """Return whole numbers that begin with some bytes of some rows, and end with zeros."""
    if first + 8 <= rows.shape[1]:
        words = np.ndarray(len(rows), ">u8", rows, first, (rows.shape[1],))[which].astype(np.uint64)
        spare = np.uint64(64 - 8 * wide)
        return words >> spare << spare
    piece = rows[which, first : first + wide]
    padded = np.zeros((piece.shape[0], 8), dtype=np.uint8)
    padded[:, : piece.shape[1]] = piece
    return padded.view(">u8").ravel().astype(np.uint64)
