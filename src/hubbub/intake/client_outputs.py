"""Outputs of a client with the values that they were drawn for: files by which the client is audited.

Rows have a column `value` besides those of reports; several attributes have a column `value.NAME` each, and places on
a map may come as `value.lat` and `value.lon`. Values are written as those to privatize are. An output that the
mechanism can never send is no mistake of the file, but a finding: it is counted.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import IntakeError, ReportsError, restated, shorten
from hubbub.core.progress import Progress
from hubbub.core.text import listed
from hubbub.domains import Domain
from hubbub.intake.counting.attribute_encoder import AttributeEncoder
from hubbub.intake.counting.item_encoder import EncodedRows, Encoder
from hubbub.intake.counting.place_encoder import PlaceEncoder
from hubbub.intake.privatizing.value_positions import BadRowError, ValueReader, place_columns
from hubbub.intake.read_plan import ReadPlan, format_notes, read_rows
from hubbub.intake.reading_notes import copies_notes
from hubbub.intake.reject_causes import Fault, refusal
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.column_names import OWN_NAMES, ColumnNames, check_columns, wanted_columns, with_places
from hubbub.intake.sources.distinct_entries import entries_of
from hubbub.intake.sources.source_lookup import sources_of, without_copies
from hubbub.intake.study import Study

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = "value."
FINDINGS = frozenset(  # causes for which a report is rejected that are the client's fault, not the file's
    {
        "not-an-output",
        "out-of-domain",
        "not-a-number",
        "not-a-pair",
        "not-hashed",
        "no-such-bucket",
        "not-a-hash",
        "no-such-hash",
        "not-a-cohort",
        "no-such-cohort",
        "wrong-bits",
        "spare-bits",
        "subset-size",
        "bad-output",
        "impossible-output",
        "attribute-missing",
        "several-attributes",
        "not-attributes",
    }
)


@dataclass(frozen=True)
class ClientOutputs:
    """The outputs of one mechanism in the order of their rows; those that it can never send are counted only."""

    positions: Positions
    codes: Codes
    impossible: int
    first_impossible: str


def read_client_outputs(
    source: object, study: Study, *, mechanism: str | None = None, columns: ColumnNames = OWN_NAMES
) -> Generator[Progress, None, tuple[dict[str, ClientOutputs], tuple[str, ...]]]:
    """Read all rows of a source; return the outputs of each mechanism, and notes.

    `mechanism` is that of all rows, where no column names it; otherwise the only one whose rows are used.
    """
    if mechanism is not None:
        names = list(study.mechanisms)
        validation.one_of(mechanism, names, "mechanism", "audit", default="all mechanisms of the study")
    sources, copies = without_copies(sources_of(source, study, columns.with_study(study)))
    if not any(_names_mechanisms(each) for each in sources) and len(study.mechanisms) > 1:
        if mechanism is None:
            raise _no_mechanism(sources[0], study)
        study = replace(study, mechanisms={mechanism: study.mechanisms[mechanism]})
    wanted = []
    for each in sources:
        each.columns = with_places(each, study)
        wanted.append(_columns(each, study))
    notes = (*copies_notes(copies), *format_notes(sources, wanted))
    collected = _Collected(study)
    yield from read_rows(ReadPlan(study, sources, wanted, users=False), collected.take, digests=False)
    outputs = collected.outputs()
    if mechanism is not None:
        outputs = {name: own for name, own in outputs.items() if name == mechanism}
    if not outputs:
        raise ReportsError(
            f"there are no outputs of {mechanism}",
            where=sources[0].name,
            got="rows of other mechanisms",
            expected=f"rows with {mechanism} in column {sources[0].columns.name_of('mechanism')}",
            remedy="name another mechanism, or another file",
        )
    return outputs, notes


def _no_mechanism(source: Source, study: Study) -> IntakeError:
    return refusal(
        "no-mechanism-column",
        "nothing says which mechanism drew the outputs",
        where=source.name,
        got=f"columns {shorten(source.header())}",
        expected=f"one of {', '.join(study.mechanisms)}, for all rows or in a column mechanism",
        remedy="name it: --mechanism NAME",
    )


def _names_mechanisms(source: Source) -> bool:
    return source.columns.is_chosen("mechanism") or source.columns.name_of("mechanism") in source.header()


def _columns(source: Source, study: Study) -> list[str]:
    """Return the columns that are read, by their names in the source: of outputs and mechanisms, and of values."""
    names, user = source.header(), source.columns.name_of("user")
    remembering = [name for name, mechanism in study.mechanisms.items() if mechanism.remembers]
    if user in names and remembering:
        raise refusal(
            "wrong-type",
            "outputs of one person that share a memory cannot be audited",
            where=f"{source.name}, column {user}",
            got=f"a column {user}, and {listed(remembering)}, which draws all reports of a person from one response",
            expected="one output of each person",
            remedy="let the client forget after each output, and leave the column out",
        )
    reports = [name for name in wanted_columns(source, study) if source.columns.role_of(name) != "user"]
    values = _value_columns(source, names, study.domain)
    check_columns(source, names, values)
    return [*reports, *values]


def _value_columns(source: Source, names: list[str], domain: Domain) -> list[str]:
    """Return the columns of values, by their names in the source."""
    if domain.product is None:
        single = source.columns.name_of("value")
        places = [f"{PREFIX}{axis}" for axis in place_columns("value")]
        return places if domain.is_on_map and single not in names and set(places) & set(names) else [single]
    found = []
    for name, own in domain.product.attributes.items():
        places = [f"{PREFIX}{column}" for column in place_columns(name)]
        by_place = own.is_on_map and PREFIX + name not in names and set(places) & set(names)
        found += places if by_place else [PREFIX + name]
    return found


class _Collected:
    """Rows that were read so far."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._values = ValueReader(study.domain)
        self._encoder = Encoder(study)
        self._attributes = AttributeEncoder(self._encoder)
        self._places = PlaceEncoder(study, self._encoder) if study.domain.grid is not None else None
        self._parts: dict[int, list[tuple[Positions, Codes]]] = {}
        self._impossible: dict[int, int] = {}
        self._first: dict[int, str] = {}

    def take(self, source: Source, rows: Rows) -> None:
        """Read some rows; the first that is at fault in anything but its output stops the run."""
        check_counted(source, rows)
        if rows.faults:
            place, fault = min(rows.faults, key=lambda each: each[0])
            raise _refused(source, place, fault)
        if rows.parsed == 0:
            return
        try:
            positions = self._values.read(_value_entries(rows.columns))
        except BadRowError as bad:
            place = int(rows.place(np.array([bad.row]))[0])
            column = f"{PREFIX}{bad.fault.column}" if self._study.domain.product is not None else bad.fault.column
            raise _refused(source, place, Fault(column, bad.fault.error)) from None
        encoded = self._encode(source, rows)
        self._count_faults(source, rows, encoded)
        for number, places, codes in self._coded(encoded):
            self._parts.setdefault(number, []).append((positions[places], codes))

    def _encode(self, source: Source, rows: Rows) -> EncodedRows:
        mechanisms, place = rows.columns.get("mechanism"), source.columns.place
        if place is not None and self._places is not None:
            return self._places.encode({role: rows.columns[role] for role in place}, mechanisms)
        if source.columns.attribute_roles:
            outputs = {role: column for role, column in rows.columns.items() if role.partition(".")[0] == "output"}
            return self._attributes.encode(outputs, mechanisms)
        return self._encoder.encode(rows.columns["output"], mechanisms)

    def _count_faults(self, source: Source, rows: Rows, encoded: EncodedRows) -> None:
        """Count outputs that a mechanism can never send; refuse anything else that is wrong."""
        faults = list(encoded.refused)
        items = encoded.by_row()
        faults += [(row, self._encoder.faults[-1 - items[row]]) for row in np.flatnonzero(items < 0).tolist()]
        if not faults:
            return
        numbers = self._mechanism_numbers(rows)
        for row, fault in sorted(faults, key=lambda each: each[0]):
            place = int(rows.place(np.array([row]))[0])
            if fault.code not in FINDINGS:
                raise _refused(source, place, fault)
            number = int(numbers[row])
            self._impossible[number] = self._impossible.get(number, 0) + 1
            error = fault.error
            text = f"in {source.where(place)}: {error.what}, got {error.got}, expected {error.expected}"
            self._first.setdefault(number, text)

    def _mechanism_numbers(self, rows: Rows) -> Positions:
        if "mechanism" not in rows.columns:
            return np.zeros(rows.parsed, dtype=np.int64)
        entries = entries_of(rows.columns["mechanism"], "mechanism")
        return np.array([self._encoder.numbers.get(name, -1) for name in entries.values], dtype=np.int64)[
            entries.indices
        ]

    def _coded(self, encoded: EncodedRows) -> list[tuple[int, Positions, Codes]]:
        """Return the rows of each mechanism, in their order, and their codes."""
        found = [(part.mechanism, part.places, part.codes) for part in encoded.packed]
        items = encoded.by_row()
        packed = np.zeros(items.size, dtype=bool)
        for _, places, _ in found:
            packed[places] = True
        packed[[row for row, _ in encoded.refused]] = True
        counted = np.flatnonzero((items >= 0) & ~packed)
        for part in self._encoder.codes_of(np.unique(items[counted])):
            own = counted[np.isin(items[counted], part.places)]
            order = np.argsort(part.places)
            found.append(
                (part.mechanism, own, part.codes[order[np.searchsorted(part.places, items[own], sorter=order)]])
            )
        return found

    def outputs(self) -> dict[str, ClientOutputs]:
        """Return the outputs of each mechanism that occurs, in the order of the study."""
        answer = {}
        for name in self._study.mechanisms:
            number = self._encoder.numbers[name]
            label = self._encoder.labels[number]
            if label != name or (number not in self._parts and number not in self._impossible):
                continue
            parts = self._parts.get(number)
            if parts is None:
                raise self._all_impossible(name, number)
            answer[name] = ClientOutputs(
                np.concatenate([positions for positions, _ in parts]),
                np.concatenate([codes for _, codes in parts]),
                self._impossible.get(number, 0),
                self._first.get(number, ""),
            )
        return answer

    def _all_impossible(self, name: str, number: int) -> IntakeError:
        """Return the error for a file in which no output can be read: it is at fault more likely than the client."""
        return IntakeError(
            f"no output is one that {name} can send",
            where=name,
            got=f"{self._impossible[number]:,} outputs; the first is {self._first[number]}",
            expected="outputs as reports hold them",
            remedy="check the mechanism and the column of outputs",
        )


def _value_entries(columns: Mapping[str, pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
    """Return the columns of values under the names that values to privatize have."""
    return {
        name.removeprefix(PREFIX): column
        for name, column in columns.items()
        if name == "value" or name.startswith(PREFIX)
    }


def _refused(source: Source, place: int, fault: Fault) -> IntakeError:
    """Return the error for a row that cannot be read."""
    where = source.where(place) + (f", column {source.columns.name_of(fault.column)}" if fault.column else "")
    return restated(fault.error, IntakeError, where=where)
