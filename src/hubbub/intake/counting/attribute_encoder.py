"""Reports about several attributes turned into items: each distinct entry of each attribute is checked once.

Rows are then numbered by the places of their entries, so that only distinct combinations are looked at; where there
are too many of those, rows stay packed. Mechanisms that send a single output are left to the encoder of these.
"""

from __future__ import annotations

import math
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

MISSING = 0  # the place of an entry that a row does not have


class ReadEntries(NamedTuple):
    """The outputs of one attribute, and the place of each row's: MISSING, or one of `codes` from 1 on, then `faults`.

    Faults are the encoder's (negative) numbers of them.
    """

    places: Positions
    codes: Codes
    faults: Positions

    @property
    def base(self) -> int:
        """How many places there are."""
        return 1 + len(self.codes) + len(self.faults)


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
        causes = np.zeros(1, dtype=np.int64)  # why a row is rejected whatever its entries are; 0 for none
        cause_of_row: Positions | None = None
        if apart or outputs is None:
            columns = {role: _taken(column, rows) for role, column in apart.items()}
            twice = None if outputs is None else _filled(_taken(outputs, rows))
            if twice is not None and twice.any():
                causes = np.append(causes, self._encoder.fault(_two_outputs()))
                cause_of_row = twice.astype(np.int64)
        else:
            parts = divided(_taken(outputs, rows), [name for name, _ in space.parts])
            columns = dict(parts.columns)
            if parts.errors:
                causes = np.array([0, *(self._encoder.refuse(number, error) for error in parts.errors)])
                cause_of_row = parts.error_of_row + 1
        read = [self._read(number, name, part, columns, rows.size) for name, part in space.parts]
        if cause_of_row is not None:
            read.append(ReadEntries(cause_of_row, np.empty((0, 1)), causes[1:]))
        if is_packed(mechanism):
            return self._packed(number, read)
        return self._counted(number, read)

    def _counted(self, number: int, read: Sequence[ReadEntries]) -> EncodedRows:
        """Return rows by their distinct combinations: only these are looked at."""
        keys, kinds, places = _combinations(read)
        items, codes = self._judged(number, read, places)
        items[items == 0] = self._encoder.add(number, codes) if len(codes) else ()
        of_kinds = np.zeros(int(kinds[-1]) + 1 if kinds.size else 0, dtype=np.int64)
        of_kinds[kinds] = items
        return EncodedRows(keys, of_kinds, np.bincount(keys, minlength=of_kinds.size))

    def _packed(self, number: int, read: Sequence[ReadEntries]) -> EncodedRows:
        """Return rows one by one."""
        faults, codes = self._judged(number, read, np.stack([entries.places for entries in read], axis=1))
        bad = np.flatnonzero(faults)
        keys = np.full(faults.size, -1, dtype=np.int64)
        causes, back, times = np.unique(faults[bad], return_inverse=True, return_counts=True)
        keys[bad] = back.ravel()
        return EncodedRows(keys, causes, times, [Coded(number, np.flatnonzero(faults == 0), codes)])

    def _judged(self, number: int, read: Sequence[ReadEntries], places: Positions) -> tuple[Positions, Codes]:
        """Return the fault of each row of places, 0 for none, and the codes of the rows without one."""
        space = self._space(number)
        faults = np.zeros(len(places), dtype=np.int64)
        for entries, own in reversed(list(zip(read, places.T, strict=True))):  # of several, the first counts
            bad = own > len(entries.codes)
            if bad.any():
                faults[bad] = entries.faults[own[bad] - len(entries.codes) - 1]
        places = places[:, : len(space.parts)]
        present = places != MISSING
        unfit = np.flatnonzero(space.unfit(present) & (faults == 0))
        if unfit.size:
            patterns, back = index_codes(present[unfit].astype(np.int64))
            errors = [space.unfit_error(pattern, "") for pattern in patterns.astype(bool)]
            faults[unfit] = np.array([self._encoder.refuse(number, error) for error in errors])[back]
        good = np.flatnonzero(faults == 0)
        taken = slice(None) if good.size == len(places) else good
        columns = [
            entries.codes[own[has] - 1]
            for entries, own, has in zip(read, places[taken].T, present[taken].T, strict=False)
        ]
        codes = space.joined(columns, present[taken])
        impossible = self._impossible(number, codes)
        if not impossible.any():
            return faults, codes
        faults[good[impossible]] = [self._refuse_impossible(number, code) for code in codes[impossible]]
        return faults, codes[~impossible]

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
            return ReadEntries(np.full(count, MISSING), _no_codes(part), NO_FAULTS)
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
        good: list[Any] = [known[entry] for entry in values if entry in known]
        faults = {entry: self._encoder.refuse(number, error, role) for entry, error in errors.items()}
        places = {entry: place for place, entry in enumerate([*(v for v in values if v in known), *faults], 1)}
        table = np.full(len(entries.values), MISSING, dtype=np.int64)
        table[met] = [places.get(entry, MISSING) for entry in values]
        codes_met = np.array(good) if good else _no_codes(part)
        return ReadEntries(table[entries.indices], codes_met, np.array(list(faults.values()), dtype=np.int64))

    def _read_packed(self, number: int, part: Mechanism, column: pa.ChunkedArray, role: str) -> ReadEntries:
        """Read entries that rarely repeat, by the column."""
        places = np.full(len(column), MISSING, dtype=np.int64)
        rows = np.flatnonzero(_filled(column))
        if not rows.size:
            return ReadEntries(places, _no_codes(part), NO_FAULTS)
        codes, good, bad = pack(self._encoder.labels[number], part, column, rows)
        places[rows[good]] = 1 + np.arange(len(codes))
        faults = np.array([self._encoder.fault(Fault(role, fault.error)) for _, fault in bad], dtype=np.int64)
        places[[row for row, _ in bad]] = 1 + len(codes) + np.arange(len(bad))
        return ReadEntries(places, codes, faults)

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
        empty = ~_filled(columns[0]) & ~_filled(columns[1])
        fault_of_row = np.zeros(empty.size, dtype=np.int64)
        for column, role, axis, (values, wrong) in zip(columns, roles, axes, read, strict=True):
            bad = ~is_coordinate(axis, values) | (False if wrong is None else wrong)
            for row in np.flatnonzero(bad & ~empty & (fault_of_row == 0)).tolist():
                fault = coordinate_fault(axis, column[row].as_py())
                fault_of_row[row] = self._encoder.fault(Fault(role, fault.error))
        rows = np.flatnonzero(~empty & (fault_of_row == 0))
        first, second = (values[rows] for values, _ in read)
        steps = np.stack(grid.lattice(first, second, on_map=axes[0] == "lat")[:2], axis=1)
        low = steps.min(axis=0, initial=0)
        cells, back = index_codes(steps - low)  # which is quicker without signs
        cells += low
        codes = part.codes_at(cells[:, 0], cells[:, 1])
        sent = codes >= 0 if codes.ndim == 1 else np.ones(len(codes), dtype=bool)
        fault_of_cell = np.zeros(sent.size, dtype=np.int64)
        for cell in np.flatnonzero(~sent).tolist():
            error = outside_grid(int(cells[cell, 0]), int(cells[cell, 1]), grid)
            fault_of_cell[cell] = self._encoder.refuse(number, error, roles[0])
        fault_of_row[rows] = fault_of_cell[back]
        faults, which = np.unique(fault_of_row, return_inverse=True)  # ends with 0, unless all rows have one
        places = np.where(fault_of_row < 0, 1 + int(sent.sum()) + which.ravel(), MISSING)
        places[rows] = np.where(sent[back], np.cumsum(sent)[back], places[rows])
        return ReadEntries(places, codes[sent], faults)


NO_FAULTS = np.empty(0, dtype=np.int64)


def _no_codes(part: Mechanism) -> Codes:
    space = part.output_space
    return np.empty((0, space.code_width) if space.code_width is not None else 0, dtype=space.code_type)


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


def _combinations(read: Sequence[ReadEntries]) -> tuple[Positions, Positions, Positions]:
    """Return a number for each row, the distinct numbers in order, and the places of the entries of each of these."""
    bases = [entries.base for entries in read]
    count, size = read[0].places.size, math.prod(bases)
    if size <= KINDS_PER_ROW * count + SPARE_KINDS:
        keys = read[0].places.copy()
        for entries in read[1:]:
            keys *= entries.base
            keys += entries.places
        kinds = np.flatnonzero(np.bincount(keys, minlength=size))
        return keys, kinds, np.stack(np.unravel_index(kinds, bases), axis=1)
    distinct, back = index_codes(np.stack([entries.places for entries in read], axis=1))
    return back, np.arange(len(distinct)), distinct


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
