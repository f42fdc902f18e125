"""Reports about several attributes turned into items: each distinct entry of each attribute is checked once.

Rows are then numbered by the places of their entries, so that only distinct combinations are looked at; where there
are too many of those, rows stay packed. Mechanisms that send a single output are left to the encoder of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import HubbubError, OutputError
from hubbub.intake.attribute_roles import PREFIX, is_attribute_role, place_pairs
from hubbub.intake.counting.item_encoder import (
    KINDS_PER_ROW,
    SPARE_KINDS,
    Coded,
    EncodedRows,
    Encoder,
    are_possible,
    impossible_output,
    is_empty,
)
from hubbub.intake.counting.place_encoder import coordinate_fault, is_coordinate, outside_grid
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.attribute_objects import divided
from hubbub.intake.sources.distinct_entries import Entries, check_column, entries_of, entry_type, is_bytes, is_text
from hubbub.intake.sources.number_columns import floats_of
from hubbub.intake.sources.packed_bytes import is_packed
from hubbub.intake.sources.packed_columns import pack
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.attribute_outputs import AttributeOutputs
from hubbub.mechanisms.output_spaces import OutputSpace, index_codes

if TYPE_CHECKING:
    import pyarrow as pa

MISSING, UNREAD = -1, -2  # in place of an entry: the row has none, or has not been looked at
MAX_KEY = 1 << 62


class ReadEntries(NamedTuple):
    """The outputs of one attribute: the place of each row's among `codes`, MISSING, or -3 and below for a fault.

    -3 - n stands for the encoder's fault number n, counted from 0.
    """

    places: Positions
    codes: Codes


class AttributeEncoder:
    """Turns columns with outputs of attributes into items of an encoder."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        spaces = [mechanism.output_space for mechanism in encoder.mechanisms]
        self._over_attributes = np.array([isinstance(space, AttributeOutputs) for space in spaces])
        self._known: dict[tuple[int, str, str], dict[object, Any]] = {}  # the codes of entries

    def encode(self, columns: Mapping[str, pa.ChunkedArray], mechanisms: pa.ChunkedArray | None) -> EncodedRows:
        """Return what rows say: `columns` hold outputs of attributes, or all of them (no column of mechanisms: one)."""
        count = len(next(iter(columns.values())))
        which, names, numbers = self._encoder.begin(mechanisms, count)
        over = self._over_attributes[numbers] & (numbers >= 0)
        apart = {role: column for role, column in columns.items() if is_attribute_role(role)}
        pieces = []
        rows = np.flatnonzero(~over[which])
        if rows.size:
            pieces.append((rows, self._single(columns.get("output"), apart, rows, which[rows], names, numbers)))
        for number in np.unique(numbers[over]).tolist():
            rows = np.flatnonzero((numbers == number)[which])
            if rows.size:
                pieces.append((rows, self._several(number, columns.get("output"), apart, rows)))
        return pieces[0][1] if len(pieces) == 1 else _joined(count, pieces)

    # -- rows of mechanisms that send one output -----------------------------------------------------

    def _single(
        self,
        outputs: pa.ChunkedArray | None,
        apart: Mapping[str, pa.ChunkedArray],
        rows: Positions,
        which: Positions,
        names: Sequence[Any],
        numbers: Positions,
    ) -> EncodedRows:
        import pyarrow as pa

        column = pa.chunked_array([pa.nulls(rows.size, pa.string())]) if outputs is None else _taken(outputs, rows)
        encoded = self._encoder.encode_named(column, which, names, numbers)
        filled = [_filled(_taken(column, rows)) for column in apart.values()]
        twice = np.any([*filled, np.zeros(rows.size, dtype=bool)], axis=0) & (numbers >= 0)[which]
        return self._with_faults(encoded, twice, _two_outputs()) if twice.any() else encoded

    def _with_faults(self, encoded: EncodedRows, rows: NDArray[np.bool_], fault: Fault) -> EncodedRows:
        """Return encoded rows, some of which are at fault after all."""
        kept = ~rows & (encoded.keys >= 0)
        counts = np.bincount(encoded.keys[kept], minlength=encoded.items.size)
        packed = []
        for number, places, codes in encoded.packed:
            own = ~rows[places]
            packed.append(Coded(number, places[own], codes[own]))
        keys = np.where(rows, encoded.items.size, encoded.keys)
        items = np.append(encoded.items, self._encoder.fault(fault))
        refused = [(row, cause) for row, cause in encoded.refused if not rows[row]]
        return EncodedRows(keys, items, np.append(counts, int(rows.sum())), packed, refused)

    # -- rows of mechanisms that send an output for each attribute ------------------------------------

    def _several(
        self, number: int, outputs: pa.ChunkedArray | None, apart: Mapping[str, pa.ChunkedArray], rows: Positions
    ) -> EncodedRows:
        mechanism = self._encoder.mechanisms[number]
        space = mechanism.output_space
        assert isinstance(space, AttributeOutputs)  # noqa: S101  # others are `_single`
        faults = np.zeros(rows.size, dtype=np.int64)  # the encoder's (negative) numbers of them; 0 for none
        if apart or outputs is None:
            columns = {role: _taken(column, rows) for role, column in apart.items()}
            if outputs is not None:
                faults[_filled(_taken(outputs, rows))] = self._encoder.fault(_two_outputs())
        else:
            parts = divided(_taken(outputs, rows), [name for name, _ in space.parts])
            columns = dict(parts.columns)
            numbers = [self._encoder.refuse(number, error) for error in parts.errors]
            faults = np.array([*numbers, 0], dtype=np.int64)[parts.error_of_row]
        read = [self._read(number, name, part, columns, rows.size) for name, part in space.parts]
        for entries in read:
            bad = (entries.places < UNREAD) & (faults == 0)
            faults[bad] = entries.places[bad] + 2  # -3 - n is fault -1 - n
        present = np.stack([entries.places >= 0 for entries in read], axis=1)
        unfit = np.flatnonzero(space.unfit(present) & (faults == 0))
        if unfit.size:
            patterns, back = index_codes(present[unfit].astype(np.int64))
            errors = [space.unfit_error(pattern, "") for pattern in patterns.astype(bool)]
            faults[unfit] = np.array([self._encoder.refuse(number, error) for error in errors])[back]
        if is_packed(mechanism):
            return self._packed(number, read, faults)
        return self._counted(number, read, faults)

    def _counted(self, number: int, read: Sequence[ReadEntries], faults: Positions) -> EncodedRows:
        """Return rows by their distinct combinations."""
        good = np.flatnonzero(faults == 0)
        kinds, keys, counts = _combinations([entries.places[good] for entries in read], [len(own) for _, own in read])
        codes = _codes_of(self._space(number), read, kinds)
        items = self._encoder.add(number, codes) if len(codes) else np.empty(0, dtype=np.int64)
        impossible = self._impossible(number, codes)
        items[impossible] = [self._refuse_impossible(number, code) for code in codes[impossible]]
        every_key = np.empty(faults.size, dtype=np.int64)
        every_key[good] = keys
        bad = np.flatnonzero(faults)
        causes, back, times = np.unique(faults[bad], return_inverse=True, return_counts=True)
        every_key[bad] = items.size + back.ravel()
        return EncodedRows(every_key, np.append(items, causes), np.append(counts, times))

    def _packed(self, number: int, read: Sequence[ReadEntries], faults: Positions) -> EncodedRows:
        """Return rows one by one."""
        good = np.flatnonzero(faults == 0)
        codes = _codes_of(self._space(number), read, np.stack([entries.places[good] for entries in read], axis=1))
        impossible = np.flatnonzero(self._impossible(number, codes))
        if impossible.size:
            faults[good[impossible]] = [self._refuse_impossible(number, code) for code in codes[impossible]]
            codes, good = np.delete(codes, impossible, axis=0), np.delete(good, impossible)
        bad = np.flatnonzero(faults)
        keys = np.full(faults.size, -1, dtype=np.int64)
        causes, back, times = np.unique(faults[bad], return_inverse=True, return_counts=True)
        keys[bad] = back.ravel()
        return EncodedRows(keys, causes, times, [Coded(number, good, codes)])

    def _space(self, number: int) -> AttributeOutputs:
        space = self._encoder.mechanisms[number].output_space
        assert isinstance(space, AttributeOutputs)  # noqa: S101  # see `_several`
        return space

    def _impossible(self, number: int, codes: Codes) -> NDArray[np.bool_]:
        """Return which combinations no value can have produced, though it can each entry."""
        mechanism, space = self._encoder.mechanisms[number], self._space(number)
        if not len(codes) or mechanism.full_support:
            return np.zeros(len(codes), dtype=bool)
        if space.sent == "some":  # attributes that can always be are left out: far fewer combinations are left
            codes = space.without(codes, [place for place, (_, part) in enumerate(space.parts) if part.full_support])
        distinct, back = index_codes(codes)
        return ~are_possible(mechanism, distinct)[back]

    def _refuse_impossible(self, number: int, code: Codes) -> int:
        space = self._space(number)
        return self._encoder.refuse(number, impossible_output(space.write(space.decode(code[None])[0])))

    # -- entries of one attribute --------------------------------------------------------------------

    def _read(
        self, number: int, name: str, part: Mechanism, columns: Mapping[str, pa.ChunkedArray], count: int
    ) -> ReadEntries:
        role = PREFIX + name
        pairs = ((f"{role}.{first}", f"{role}.{second}") for first, second in place_pairs(part.domain))
        pair = next((pair for pair in pairs if pair[0] in columns), None)
        if pair is not None:
            return self._read_places(number, part, pair, [columns[each] for each in pair])
        if role not in columns:
            return ReadEntries(np.full(count, MISSING), np.empty((0, part.output_space.code_width or 1)))
        check_column(columns[role], role)
        if is_packed(part):
            return self._read_packed(number, part, columns[role], role)
        return self._read_distinct(number, part, entries_of(columns[role], role), role)

    def _read_distinct(self, number: int, part: Mechanism, entries: Entries, role: str) -> ReadEntries:
        """Read each distinct entry once, and remember it."""
        met = np.flatnonzero(np.bincount(entries.indices, minlength=len(entries.values)))
        known = self._known.setdefault((number, role, entries.kind), {})
        values = entries.take(met)
        new = [entry for entry in values if not is_empty(entry) and entry not in known]
        codes, errors = _encoded(part, new)
        known.update(codes)
        table = np.full(len(entries.values), MISSING, dtype=np.int64)
        good: list[Any] = []
        for place, entry in zip(met.tolist(), values, strict=True):
            if is_empty(entry):
                continue
            if entry in errors:
                table[place] = -2 + self._encoder.refuse(number, errors[entry], role)
            else:
                table[place] = len(good)
                good.append(known[entry])
        empty = np.empty((0, part.output_space.code_width or 1), dtype=np.int64)
        return ReadEntries(table[entries.indices], np.array(good) if good else empty)

    def _read_packed(self, number: int, part: Mechanism, column: pa.ChunkedArray, role: str) -> ReadEntries:
        """Read entries that rarely repeat, by the column."""
        places = np.full(len(column), MISSING, dtype=np.int64)
        rows = np.flatnonzero(_filled(column))
        empty = np.empty((0, part.output_space.code_width or 1), dtype=part.output_space.code_type)
        if not rows.size:
            return ReadEntries(places, empty)
        codes, good, bad = pack(self._encoder.labels[number], part, column, rows)
        places[rows[good]] = np.arange(len(codes))
        for row, fault in bad:
            places[row] = -2 + self._encoder.fault(Fault(role, fault.error))
        return ReadEntries(places, codes)

    def _read_places(
        self, number: int, part: Mechanism, roles: tuple[str, str], columns: Sequence[pa.ChunkedArray]
    ) -> ReadEntries:
        """Read the cells in which coordinates lie."""
        grid = part.domain.grid
        assert grid is not None  # noqa: S101  # others have no coordinates
        axes = [role.rpartition(".")[2] for role in roles]
        for column, role in zip(columns, roles, strict=True):
            check_column(column, role)
        read = [floats_of(column, trim=True) for column in columns]
        places = np.full(len(columns[0]), UNREAD, dtype=np.int64)
        places[~_filled(columns[0]) & ~_filled(columns[1])] = MISSING
        for column, role, axis, (values, wrong) in zip(columns, roles, axes, read, strict=True):
            bad = ~is_coordinate(axis, values) | (False if wrong is None else wrong)
            for row in np.flatnonzero(bad & (places == UNREAD)).tolist():
                fault = coordinate_fault(axis, column[row].as_py())
                places[row] = -2 + self._encoder.fault(Fault(role, fault.error))
        rows = np.flatnonzero(places == UNREAD)
        first, second = (values[rows] for values, _ in read)
        steps = np.stack(grid.lattice(first, second, on_map=axes[0] == "lat")[:2], axis=1)
        low = steps.min(axis=0, initial=0)
        cells, back = index_codes(steps - low)  # which is quicker without signs
        cells += low
        codes = part.codes_at(cells[:, 0], cells[:, 1])
        sent = codes >= 0 if codes.ndim == 1 else np.ones(len(codes), dtype=bool)
        table = np.cumsum(sent) - 1
        for cell in np.flatnonzero(~sent).tolist():
            error = outside_grid(int(cells[cell, 0]), int(cells[cell, 1]), grid)
            table[cell] = -2 + self._encoder.refuse(number, error, roles[0])
        places[rows] = table[back]
        return ReadEntries(places, codes[sent])


def _encoded(part: Mechanism, entries: list[object]) -> tuple[dict[object, Any], dict[object, HubbubError]]:
    """Return the codes of entries, and the errors of those that have none; all at once where all are good."""
    space: OutputSpace = part.output_space
    codes: dict[object, Any] = {}
    errors: dict[object, HubbubError] = {}
    try:
        encoded = space.encode([space.read(entry) for entry in entries]) if entries else ()
        codes = dict(zip(entries, encoded, strict=True)) if len(encoded) == len(entries) else {}
    except OutputError:
        pass  # they are read one by one, to see which are at fault
    if not codes:
        for entry in entries:
            try:
                codes[entry] = space.encode([space.read(entry)])[0]
            except OutputError as error:
                errors[entry] = error
    if codes and not part.full_support:
        possible = are_possible(part, list(codes.values()))
        errors |= {entry: impossible_output(entry) for entry, can_be in zip(codes, possible, strict=True) if not can_be}
    return {entry: code for entry, code in codes.items() if entry not in errors}, errors


def _combinations(places: Sequence[Positions], sizes: Sequence[int]) -> tuple[Positions, Positions, Positions]:
    """Return the distinct rows of places (-1 and up), which of them each row is, and how often each occurs."""
    keys, size = np.zeros(places[0].size, dtype=np.int64), 1
    bases = [own + 1 for own in sizes]
    for own, base in zip(places, bases, strict=True):
        if size * base >= MAX_KEY:  # numbered again, so that numbers stay small
            distinct, back = np.unique(keys, return_inverse=True)
            keys, size = back.ravel(), distinct.size
        keys *= base
        keys += own + 1
        size *= base
    if size <= KINDS_PER_ROW * keys.size + SPARE_KINDS:
        counts = np.bincount(keys, minlength=size)
        kinds = np.flatnonzero(counts)
        number = np.empty(size, dtype=np.int64)
        number[kinds] = np.arange(kinds.size)
        first = np.empty(size, dtype=np.int64)
        first[keys] = np.arange(keys.size)  # the last row of each kind, in fact: any will do
        rows = first[kinds]
        return np.stack([own[rows] for own in places], axis=1), number[keys], counts[kinds]
    _, rows, back, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return np.stack([own[rows] for own in places], axis=1), back.ravel(), counts


def _codes_of(space: AttributeOutputs, read: Sequence[ReadEntries], places: Positions) -> Codes:
    """Return rows of codes, given the place of each attribute's among its entries."""
    present = places >= 0
    columns = [entries.codes[own[has]] for entries, own, has in zip(read, places.T, present.T, strict=True)]
    return space.joined(columns, present)


def _taken(column: pa.ChunkedArray, rows: Positions) -> pa.ChunkedArray:
    import pyarrow as pa

    return column if rows.size == len(column) else column.take(pa.array(rows))


def _filled(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return which entries of a column are there: not null, empty or NaN."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = entry_type(column)
    if kind != column.type:
        column = column.cast(kind)
    if is_text(kind) or is_bytes(kind):
        return np.asarray(pc.fill_null(pc.greater(pc.binary_length(column), 0), False))
    if pa.types.is_floating(kind):
        return np.asarray(pc.fill_null(pc.invert(pc.is_nan(column)), False))
    return np.asarray(pc.is_valid(column))


def _two_outputs() -> Fault:
    return Fault(
        "output",
        refusal(
            "two-outputs",
            "the row gives its output twice",
            where="",
            got="entries in the column output and in columns of attributes",
            expected=f"columns {PREFIX}NAME where a mechanism sends each attribute, output elsewhere",
            remedy="leave the columns empty that do not belong to the row's mechanism",
        ),
    )


def _joined(count: int, pieces: Sequence[tuple[Positions, EncodedRows]]) -> EncodedRows:
    """Return the rows of several pieces, whose places are given, as one batch."""
    keys = np.full(count, -1, dtype=np.int64)
    items, counts, packed, refused, first = [], [], [], [], 0
    for rows, piece in pieces:
        keys[rows] = np.where(piece.keys >= 0, piece.keys + first, -1)
        first += piece.items.size
        items.append(piece.items)
        counts.append(piece.counts)
        packed += [Coded(number, rows[places], codes) for number, places, codes in piece.packed]
        refused += [(int(rows[row]), fault) for row, fault in piece.refused]
    return EncodedRows(keys, np.concatenate(items), np.concatenate(counts), packed, refused)
