"""Outputs with one entry for each attribute, some of which may be missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Number
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Array, Codes, Positions, as_array, plain
from hubbub.core.errors import DomainError, OutputError, restated, shorten
from hubbub.core.text import listed, nearest_name
from hubbub.domains import Product
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.output_spaces import OutputSpace, encode_each, index_codes

NOTHING = np.iinfo(np.int64).min  # the code of a missing entry, where codes may be any number
Sent = Literal["some", "one", "all"]  # how many attributes a report is about


class AttributeOutputs(OutputSpace):
    """The outputs of one mechanism for each attribute, side by side; a code is a row of all their codes.

    `sent` says which reports there are: about some attributes (at least one), exactly one, or all of them.
    """

    def __init__(
        self, domain: Product, parts: Sequence[tuple[str, Mechanism]], mechanism: str, sent: Sent = "some"
    ) -> None:
        self._domain, self._parts, self._mechanism, self.sent = domain, tuple(parts), mechanism, sent
        self._spaces = [part.output_space for _, part in self._parts]
        self._widths = [space.code_width or 1 for space in self._spaces]
        self._ends = np.cumsum(self._widths)

    @property
    def parts(self) -> tuple[tuple[str, Mechanism], ...]:
        """The attributes, and the mechanism of each."""
        return self._parts

    @property
    def code_width(self) -> int:
        """The sum over the attributes."""
        return int(self._ends[-1])

    @property
    def nothing(self) -> list[int]:
        """The code of a missing entry of each attribute."""
        return [NOTHING if space.size is None else space.size for space in self._spaces]

    def joined(self, columns: Sequence[Codes], present: NDArray[np.bool_]) -> Codes:
        """Return rows of codes; `columns` has the codes of an attribute for the rows that have it, one by one."""
        rows = np.empty((len(present), int(self._ends[-1])), dtype=np.int64)
        for end, width, own, has, nothing in zip(
            self._ends, self._widths, columns, present.T, self.nothing, strict=True
        ):
            rows[:, end - width : end] = nothing
            rows[has, end - width : end] = own.astype(np.int64).reshape(-1, width)
        return rows

    def entries(self, codes: Codes, place: int) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the codes of one attribute, for the rows that have it, and which these are."""
        own = codes[:, self._ends[place] - self._widths[place] : self._ends[place]]
        has = (own != self.nothing[place]).any(axis=1)
        chosen = own[has].astype(self._spaces[place].code_type)
        return (chosen[:, 0] if self._spaces[place].code_width is None else chosen), has

    def present(self, codes: Codes) -> NDArray[np.bool_]:
        """Return which attributes each output has, a column for each."""
        return np.stack([self.entries(codes, place)[1] for place in range(len(self._parts))], axis=1)

    def some(self, codes: Codes, names: Sequence[str]) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the codes of some attributes, in the order of `names`, for rows that have one, and which these are."""
        places = [[name for name, _ in self._parts].index(name) for name in names]
        columns = [np.arange(self._ends[place] - self._widths[place], self._ends[place]) for place in places]
        has = np.any([self.entries(codes, place)[1] for place in places], axis=0)
        return codes[has][:, np.concatenate(columns)], has

    def distinct(self, codes: Codes, place: int) -> tuple[Codes, Positions]:
        """Return the distinct outputs of one attribute, and the place of each row's among them, -1 where missing."""
        own, has = self.entries(codes, place)
        distinct, back = index_codes(own)
        places = np.full(len(codes), -1, dtype=np.int64)
        places[has] = back
        return distinct, places

    def without(self, codes: Codes, places: Sequence[int]) -> Codes:
        """Return codes in which some attributes are missing."""
        left = codes.copy()
        for place in places:
            left[:, self._ends[place] - self._widths[place] : self._ends[place]] = self.nothing[place]
        return left

    def encode(self, outputs: object) -> Codes:
        """Encode each attribute by its own mechanism; None, NaN and empty texts are missing entries."""
        try:
            columns = self._domain.columns(outputs, "outputs")
        except DomainError as error:
            raise restated(error, OutputError, where=f"{self._mechanism}, {error.where}") from None
        encoded, present = [], []
        for name, part in self._parts:
            codes, has = self._encoded(name, part, columns[name])
            encoded.append(codes)
            present.append(has)
        if len({has.size for has in present}) > 1:
            sizes = [f"{name} {has.size:,}" for (name, _), has in zip(self._parts, present, strict=True)]
            raise OutputError(
                "the columns of the attributes have different lengths",
                where=f"{self._mechanism}, outputs",
                got=listed(sizes),
                expected="an entry for each user in every column, None where an attribute was not sent",
                remedy="fill the columns up with None",
            )
        sent = np.stack(present, axis=1)
        wrong = self.unfit(sent)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise self.unfit_error(sent[place], f"{self._mechanism}, outputs, position {place}")
        return self.joined(encoded, sent)

    def unfit(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which reports are about too few or too many attributes, given which attributes each has."""
        if self.sent == "all":
            return np.asarray(~present.all(axis=1))
        if self.sent == "one":
            return np.asarray(present.sum(axis=1) != 1)
        return np.asarray(~present.any(axis=1))

    def unfit_error(self, present: NDArray[np.bool_], where: str) -> OutputError:
        """Return the error for a report about too few or too many attributes."""
        names = [name for name, _ in self._parts]
        has = [name for name, own in zip(names, present.tolist(), strict=True) if own]
        if not has:
            return OutputError(
                "a report says nothing about any attribute",
                where=where,
                got="no entry",
                expected=f"an output for {'each' if self.sent == 'all' else 'at least one'} of {', '.join(names)}",
                remedy="leave out users who sent nothing",
                code="no-output",
            )
        if self.sent == "one":
            return OutputError(
                "a report is about several attributes",
                where=where,
                got=f"outputs for {listed(has)}",
                expected=f"an output for one of {', '.join(names)}: {self._mechanism} sends one attribute",
                remedy="use Split where every attribute is sent; check which mechanism this report names",
                code="several-attributes",
            )
        return OutputError(
            "a report lacks an attribute",
            where=where,
            got=f"outputs for {listed(has)}",
            expected=f"an output for each of {', '.join(names)}, fake or not",
            remedy="use SampleOne where the other attributes are not sent",
            code="attribute-missing",
        )

    def _encoded(self, name: str, part: Mechanism, column: object) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the codes of an attribute for the users who sent it, and who did; each distinct entry is read once."""
        space = part.output_space
        entries = _distinct(column)

        def at_row(position: int, error: OutputError) -> OutputError:
            first = position if entries.places is None else int(np.argmax(entries.places == position))
            where = f"{self._mechanism}, outputs, attribute {name}, position {np.flatnonzero(entries.present)[first]}"
            return restated(error, OutputError, where=where)

        if not len(entries.values):
            return np.empty((0, space.code_width or 1), dtype=space.code_type), entries.present
        codes: Codes | None = None
        if isinstance(entries.values, np.ndarray):
            with suppress(OutputError):  # they are then encoded one by one, to see which are at fault
                codes = space.encode(entries.values)
        if codes is None:
            codes = encode_each(space, list(entries.values), at_row, space.read)
        return codes if entries.places is None else codes[entries.places], entries.present

    def decode(self, codes: Codes) -> Array:
        """Return a structured array with a field for each attribute; missing entries are None."""
        columns, kinds = [], []
        for place, (name, part) in enumerate(self._parts):
            own, has = self.entries(codes, place)
            decoded = as_array(part.output_space.decode(own))
            if has.all():
                kinds.append((name, decoded.dtype, decoded.shape[1:]))
            else:
                kinds.append((name, np.dtype(object), ()))
                spread = np.full(len(codes), None, dtype=object)
                if decoded.ndim == 1 and decoded.dtype.kind != "V":
                    spread[has] = decoded.astype(object)
                else:  # rows of bits, pairs, seeds with buckets: an array or a tuple each
                    for row, entry in zip(np.flatnonzero(has).tolist(), decoded, strict=True):
                        spread[row] = plain(entry)
                decoded = spread
            columns.append(decoded)
        outputs = np.empty(len(codes), dtype=kinds)
        for (name, _), column in zip(self._parts, columns, strict=True):
            outputs[name] = column
        return outputs

    def parse(self, text: str) -> object:
        """Return the entries of an output written as a JSON object."""
        try:
            entries = json.loads(text)
        except ValueError:
            entries = None
        if not isinstance(entries, dict):
            names = ", ".join(f'"{name}": ...' for name, _ in self._parts)
            raise OutputError(
                "not one entry for each attribute",
                where=self._mechanism,
                got=shorten(text),
                expected=f"columns output.NAME, or one column with {{{names}}}",
                remedy="write a column for each attribute",
                code="not-attributes",
            )
        return self._tuple(entries)

    def read(self, entry: object) -> object:
        """Return the entries of a file: a JSON object, or what Parquet holds as a struct."""
        if isinstance(entry, Mapping):
            return self._tuple(entry)
        return super().read(entry)

    def _tuple(self, entries: Mapping[str, Any]) -> tuple[Any, ...]:
        names = [name for name, _ in self._parts]
        spare = [name for name in entries if name not in names]
        if spare:
            raise OutputError(
                f"{spare[0]} is no attribute",
                where=self._mechanism,
                got=shorten(dict(entries)),
                expected=", ".join(names),
                remedy=nearest_name(str(spare[0]), names, "name the attributes of the study"),
                code="not-attributes",
            )
        return tuple(
            None if entries.get(name) is None else part.output_space.read(entries[name]) for name, part in self._parts
        )

    def write(self, output: object) -> str:
        """Return a JSON object with the texts of the entries; missing ones are left out."""
        pairs = zip(self._parts, np.asarray(output).item() if isinstance(output, np.void) else output, strict=True)  # type: ignore[call-overload]
        return json.dumps(
            {name: part.output_space.write(entry) for (name, part), entry in pairs if not _is_missing(entry)},
            ensure_ascii=False,
        )


class _Entries(NamedTuple):
    """The entries of a column: those that are not missing, and the place of each present row's among them."""

    values: Sequence[Any] | Array
    places: Positions | None  # None: one value for each present row
    present: NDArray[np.bool_]


def _distinct(column: object) -> _Entries:
    """Return the distinct entries of a column, in the order in which they first occur; rows of arrays one by one."""
    if not isinstance(column, np.ndarray) and not hasattr(column, "__array__") and isinstance(column, Iterable):
        return _distinct_objects(list(column))
    array = np.asarray(column)
    if array.ndim > 1 or array.dtype.kind == "V":  # rows of bits, pairs, seeds with buckets: none is missing
        return _Entries(array, None, np.ones(len(array), dtype=bool))
    array = np.atleast_1d(array)
    if array.dtype.kind == "O":
        return _distinct_objects(array.tolist())
    present = ~np.isnan(array) if array.dtype.kind == "f" else np.ones(array.size, dtype=bool)
    if array.dtype.kind in "US":
        present = array != array.dtype.type()
    values, first, places = np.unique(array[present], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    values = values[order]
    # Short floats stay NumPy scalars: their type says which may have been rounded.
    return _Entries(
        list(values) if values.dtype in (np.float16, np.float32) else values.tolist(), rank[places], present
    )


def _distinct_objects(entries: list[Any]) -> _Entries:
    numeric = [kind for kind in set(map(type, entries)) if issubclass(kind, Number | np.generic)]
    numbers: dict[Any, int] = {}
    try:  # 1, 1.0 and True are equal, but not the same entry
        keys = entries if len(numeric) < 2 else [(type(entry), entry) for entry in entries]
        places = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(entries))
    except TypeError:  # arrays and other entries that cannot be hashed
        present = np.array([not _is_missing(entry) for entry in entries], dtype=bool)
        return _Entries([entry for entry, has in zip(entries, present.tolist(), strict=True) if has], None, present)
    values = list(numbers) if len(numeric) < 2 else [entry for _, entry in numbers]
    kept = np.array([not _is_missing(value) for value in values], dtype=bool)
    present = kept[places]
    return _Entries(
        [value for value, has in zip(values, kept.tolist(), strict=True) if has],
        (np.cumsum(kept) - 1)[places[present]],
        present,
    )


def _is_missing(entry: object) -> bool:
    if isinstance(entry, str | bytes):
        return not entry
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):  # of pandas
        return True
    return isinstance(entry, float | np.floating) and bool(np.isnan(entry))
