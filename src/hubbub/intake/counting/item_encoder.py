"""Entries of columns turned into items: distinct (mechanism, output) pairs, numbered as they are met.

Each distinct entry is checked once, however many rows hold it. Outputs that rarely repeat (rows of bits, hashed values)
are checked by the column instead and stay packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Array, Codes, Positions
from hubbub.core.errors import HubbubError, IntakeError, OutputError, restated, shorten
from hubbub.intake.reject_causes import Fault, missing_entry, refusal, unknown_mechanism
from hubbub.intake.sources.distinct_entries import Entries, check_column, entries_of
from hubbub.intake.sources.packed_bytes import is_packed
from hubbub.intake.sources.packed_columns import pack
from hubbub.intake.study import Study
from hubbub.mechanisms import Mechanism

if TYPE_CHECKING:
    import pyarrow as pa

MAX_FAULTS = 10_000  # counted separately in one batch, and remembered until the next
KINDS_PER_ROW, SPARE_KINDS = 4, 1 << 20  # more possible kinds of rows than 4 per row plus 2^20 are sorted first


class Coded(NamedTuple):
    """Outputs of one mechanism: the items or rows that they are, and their codes."""

    mechanism: int
    places: Positions
    codes: Codes


@dataclass(frozen=True)
class EncodedRows:
    """What a batch of rows says.

    `keys` numbers the kinds of rows in the batch; kind k is item ``items[k]``, or rejected by fault ``-1 - items[k]``,
    and `counts[k]` rows are of it. Rows with packed outputs are of no kind (key -1) and stand in `packed`.
    """

    keys: Positions
    items: Positions
    counts: Positions
    packed: Sequence[Coded] = field(default=())  # by row
    refused: Sequence[tuple[int, Fault]] = field(default=())  # packed outputs at fault, by row

    def by_row(self) -> Positions:
        """Return the item of each row, negative where the row is rejected; 0 where its output is packed."""
        if not self.packed and not self.refused:
            return self.items[self.keys]
        return np.append(self.items, 0)[self.keys]


class Encoder:
    """Numbers items in the order in which they are met, and remembers every entry it has seen."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self.labels = sorted(study.mechanisms)  # two spellings of a study number them alike
        self.mechanisms: list[Mechanism] = [study.mechanisms[label] for label in self.labels]
        self.packed = np.array([is_packed(mechanism) for mechanism in self.mechanisms])
        self.faults: list[Fault] = []
        self._fault_numbers: dict[tuple[str, ...], int] = {}
        self.items: list[tuple[int, tuple[int, ...]]] = []  # mechanism and code
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._kinds: dict[int, Any] = {}  # the type of each mechanism's codes
        self._known: dict[tuple[str, object], dict[object, int]] = {}
        # Two names of one mechanism are one mechanism.
        self.numbers: dict[object, int] = {
            label: self.mechanisms.index(mechanism) for label, mechanism in study.mechanisms.items()
        }

    def encode(self, outputs: pa.ChunkedArray, mechanisms: pa.ChunkedArray | None) -> EncodedRows:
        """Return what the rows of two columns say (no column of mechanisms: all are the study's only one)."""
        return self.encode_named(outputs, *self.begin(mechanisms, len(outputs)))

    def encode_named(
        self, outputs: pa.ChunkedArray, which: Positions, names: Sequence[Any], numbers: Positions
    ) -> EncodedRows:
        """Return what rows of a batch that was begun say, given their mechanisms as `begin` returns them."""
        rare = self.packed[numbers] & (numbers >= 0)
        if not rare.any():
            return self._common(outputs, which, names, numbers)
        check_column(outputs, "output")
        packed: list[Coded] = []
        refused: list[tuple[int, Fault]] = []
        for number in np.unique(numbers[rare]).tolist():
            rows = np.flatnonzero((numbers == number)[which])
            if rows.size:
                codes, good, bad = pack(self.labels[number], self.mechanisms[number], outputs, rows)
                packed.append(Coded(number, rows[good], codes))
                refused += bad
        others = np.flatnonzero(~rare[which])
        keys = np.full(which.size, -1)
        if not others.size:
            return EncodedRows(keys, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), packed, refused)
        common = self._common(outputs.take(others), which[others], names, numbers)
        keys[others] = common.keys
        return EncodedRows(keys, common.items, common.counts, packed, refused)

    def begin(self, mechanisms: pa.ChunkedArray | None, rows: int) -> tuple[Positions, Sequence[Any], Positions]:
        """Begin a batch: return the place of each row's mechanism among the names that occur, these, and their numbers.

        The number of a name that the study does not have is -1.
        """
        if len(self.faults) >= MAX_FAULTS:
            self._forget_faults()
        names: Sequence[Any] = [self.labels[0]]
        which = np.zeros(rows, dtype=np.int64)
        if mechanisms is not None:
            named = entries_of(mechanisms, "mechanism")
            which, names = named.indices, named.values
        texts = [name.decode(errors="replace") if isinstance(name, bytes) else name for name in names]
        return which, names, np.array([self.numbers.get(name, -1) for name in texts], dtype=np.int64)

    def unknown(self, name: object) -> int:
        """Return the (negative) number of the fault of rows with a mechanism that the study does not have."""
        return self.fault(unknown_mechanism(name, self._study.mechanisms))

    def _common(
        self, outputs: pa.ChunkedArray, which: Positions, names: Sequence[Any], numbers: Positions
    ) -> EncodedRows:
        """Encode rows whose outputs repeat; `which` is the place in `names` of each row's mechanism."""
        what = entries_of(outputs, "output")
        size = len(what.values)
        keys = which * size + what.indices
        if len(names) * size <= KINDS_PER_ROW * keys.size + SPARE_KINDS:
            counts = np.bincount(keys, minlength=len(names) * size)
            items = np.zeros(counts.size, dtype=np.int64)
            kinds = np.flatnonzero(counts)
            items[kinds] = self._of_kinds(kinds, names, numbers, what)
            return EncodedRows(keys, items, counts)
        # Far more kinds are possible than there are rows, as where columns were swapped.
        kinds, back, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return EncodedRows(back.ravel(), self._of_kinds(kinds, names, numbers, what), counts)

    def _of_kinds(self, kinds: Positions, names: Sequence[Any], numbers: Positions, what: Entries) -> Positions:
        """Return the item of each kind of rows, kinds being numbered by name and then by entry."""
        size = len(what.values)
        items = np.empty(kinds.size, dtype=np.int64)
        of_each_name = np.split(np.arange(kinds.size), np.flatnonzero(np.diff(kinds // size)) + 1)
        for own in of_each_name if kinds.size else ():
            place = int(kinds[own[0]] // size)
            number = int(numbers[place])
            if number < 0:
                items[own] = self.unknown(names[place])
                continue
            known = self._known.setdefault((what.kind, number), {})
            entries = what.take(kinds[own] % size)
            new = [entry for entry in entries if entry not in known]
            if new:
                known.update(zip(new, self._items(number, new), strict=True))
            items[own] = [known[entry] for entry in entries]
        return items

    def fault(self, fault: Fault) -> int:
        """Return the (negative) number of a fault in a list of items."""
        key = fault.column, fault.code, fault.error.where, fault.error.got
        if key not in self._fault_numbers and len(self.faults) >= MAX_FAULTS:
            key, fault = (fault.column, fault.code, fault.error.where, ""), _one_of_many(fault)
        number = self._fault_numbers.setdefault(key, -1 - len(self.faults))
        if number < -len(self.faults):
            self.faults.append(fault)
        return number

    def _forget_faults(self) -> None:
        """Forget bad entries, as there may be any number of them; a batch's faults are reported before the next one."""
        self.faults.clear()
        self._fault_numbers.clear()
        for known in self._known.values():
            for entry in [entry for entry, item in known.items() if item < 0]:
                del known[entry]

    def _items(self, number: int, entries: list[object]) -> list[int]:
        """Return an item for each new entry of a mechanism, all at once where all are good."""
        mechanism = self.mechanisms[number]
        space = mechanism.output_space
        items = {entry: self.fault(missing_entry("output")) for entry in entries if is_empty(entry)}
        filled = [entry for entry in entries if not is_empty(entry)]
        codes: dict[object, Array] = {}
        try:
            encoded = space.encode([space.read(entry) for entry in filled]) if filled else ()
            codes = dict(zip(filled, encoded, strict=True)) if len(encoded) == len(filled) else {}
        except OutputError:
            pass  # they are read one by one, to see which are at fault
        if not codes:
            for entry in filled:
                try:
                    codes[entry] = space.encode([space.read(entry)])[0]
                except OutputError as error:
                    items[entry] = self.refuse(number, error)
        if codes and not mechanism.full_support:
            for entry, can_be in zip(codes, are_possible(mechanism, list(codes.values())), strict=True):
                if not can_be:
                    items[entry] = self.refuse(number, impossible_output(entry))
        for entry, code in codes.items():
            if entry not in items:
                self._kinds[number] = np.asarray(code).dtype
                items[entry] = self.number(number, tuple(np.atleast_1d(code).tolist()))
        return [items[entry] for entry in entries]

    def refuse(self, number: int, error: HubbubError, column: str = "output") -> int:
        """Return the (negative) number of the fault of an output that a mechanism does not send."""
        where = f"mechanism {self.labels[number]}"
        return self.fault(Fault(column, restated(error, IntakeError, where=where, code=error.code or "bad-output")))

    def number(self, mechanism: int, code: tuple[int, ...]) -> int:
        """Return the item of a code that is known to be good."""
        key = mechanism, code
        item = self._numbers.setdefault(key, len(self.items))
        if item == len(self.items):
            self.items.append(key)
        return item

    def add(self, number: int, codes: Codes) -> Positions:
        """Return the items of codes that are known to be good."""
        self._kinds[number] = codes.dtype
        rows = np.atleast_2d(codes.T).T.tolist()
        return np.array([self.number(number, tuple(code)) for code in rows], dtype=np.int64)

    def codes_of(self, items: Positions) -> list[Coded]:
        """Return some items with their codes, mechanism by mechanism."""
        owners = np.array([self.items[item][0] for item in items.tolist()], dtype=np.int64)
        parts = []
        for number in np.unique(owners):
            own = items[owners == number]
            codes = np.array([self.items[item][1] for item in own.tolist()], dtype=self._kinds.get(number))
            parts.append(Coded(int(number), own, codes[:, 0] if codes.shape[1] == 1 else codes))
        return parts


def _one_of_many(fault: Fault) -> Fault:
    """Return a fault without what was found: there may be any number of different ones."""
    got = f"not shown, after {MAX_FAULTS:,} different ones"
    return Fault(fault.column, restated(fault.error, IntakeError, got=got))


def is_empty(entry: object) -> bool:
    """Whether a row has nothing in a column."""
    return entry is None or entry == "" or (isinstance(entry, float) and entry != entry)


def are_possible(mechanism: Mechanism, codes: list[Any] | Codes) -> NDArray[np.bool_]:
    """Return which outputs some value of the domain can have produced."""
    channel = mechanism.encoded_channel(np.array(codes))
    return np.asarray(channel.forward(np.full(channel.values, 1.0 / channel.values)) > 0)


def impossible_output(entry: object) -> HubbubError:
    """Return the error for an output that no value can have produced."""
    return refusal(
        "impossible-output",
        "no value can have produced an output",
        where="",
        got=shorten(entry),
        expected="an output with a positive probability for at least one value",
        remedy="check the mechanism that these reports name",
    )
