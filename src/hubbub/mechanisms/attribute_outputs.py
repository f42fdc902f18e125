"""Outputs with one entry for each attribute, some of which may be missing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Array, Codes, Positions, as_array, plain
from hubbub.core.errors import DomainError, OutputError, restated, shorten
from hubbub.domains import Product
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.output_spaces import OutputSpace, encode_each, index_codes

NOTHING = np.iinfo(np.int64).min  # the code of a missing entry, where codes may be any number


class AttributeOutputs(OutputSpace):
    """The outputs of one mechanism for each attribute, side by side; a code is a row of all their codes."""

    def __init__(self, domain: Product, parts: Sequence[tuple[str, Mechanism]], mechanism: str) -> None:
        self._domain, self._parts, self._mechanism = domain, tuple(parts), mechanism
        self._spaces = [part.output_space for _, part in self._parts]
        self._widths = [space.code_width or 1 for space in self._spaces]
        self._ends = np.cumsum(self._widths)

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

    def distinct(self, codes: Codes, place: int) -> tuple[Codes, Positions]:
        """Return the distinct outputs of one attribute, and the place of each row's among them, -1 where missing."""
        own, has = self.entries(codes, place)
        distinct, back = index_codes(own)
        places = np.full(len(codes), -1, dtype=np.int64)
        places[has] = back
        return distinct, places

    def encode(self, outputs: object) -> Codes:
        """Encode each attribute by its own mechanism; None and NaN are missing entries."""
        try:
            columns = self._domain.columns(outputs, "outputs")
        except DomainError as error:
            raise restated(error, OutputError, where=f"{self._mechanism}, {error.where}") from None
        encoded, present = [], []
        for name, part in self._parts:
            entries = columns[name]
            whole = _encoded_numbers(part.output_space, entries)
            if whole is not None:
                present.append(np.ones(len(whole), dtype=bool))
                encoded.append(whole)
                continue
            listed = list(entries)  # type: ignore[call-overload]
            has = np.array([not _is_missing(entry) for entry in listed], dtype=bool)
            chosen = [entry for entry, kept in zip(listed, has, strict=True) if kept]
            present.append(has)
            encoded.append(self._encoded(name, part, chosen, np.flatnonzero(has)))
        sent = np.stack(present, axis=1)
        if not sent.any(axis=1).all():
            place = int(np.argmin(sent.any(axis=1)))
            raise OutputError(
                "a report says nothing about any attribute",
                where=f"{self._mechanism}, outputs, position {place}",
                got="no entry",
                expected=f"an output for at least one of {', '.join(name for name, _ in self._parts)}",
                remedy="leave out users who sent nothing",
            )
        return self.joined(encoded, sent)

    def _encoded(self, name: str, part: Mechanism, chosen: list[Any], places: Positions) -> Codes:
        def at_row(position: int, error: OutputError) -> OutputError:
            where = f"{self._mechanism}, outputs, attribute {name}, position {places[position]}"
            return restated(error, OutputError, where=where)

        if not chosen:
            return np.empty((0, part.output_space.code_width or 1), dtype=np.int64)
        return encode_each(part.output_space, chosen, at_row, part.output_space.read)

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
                spread[has] = [plain(entry) for entry in decoded] if decoded.ndim == 1 else list(decoded)
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
                remedy="name the attributes of the study",
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


def _encoded_numbers(space: OutputSpace, entries: object) -> Codes | None:
    """Return the codes of an array of numbers, where none can be missing; None where entries are looked at singly."""
    rows = space.code_width is not None
    kinds = "biu" if rows else "iu"
    if not isinstance(entries, np.ndarray) or entries.dtype.kind not in kinds or entries.ndim != 1 + rows:
        return None
    with contextlib.suppress(OutputError):  # what is wrong with which of them is told by those who look at each
        codes = space.encode(entries)
        return codes if len(codes) == len(entries) else None
    return None


def _is_missing(entry: object) -> bool:
    if isinstance(entry, str):
        return not entry
    return entry is None or (isinstance(entry, float | np.floating) and bool(np.isnan(entry)))
