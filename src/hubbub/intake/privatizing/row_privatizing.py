"""Rows on their way from values to outputs.

    source ──rows──► positions ──blocks──► draws ──► columns ──► a hidden file, moved into place when all is done

Blocks have one size, whatever batches the source comes in: a seed gives the same reports from a CSV as from Parquet.
Values are held in memory a few blocks at a time, and written nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import IntakeError, ReportsError, restated
from hubbub.intake.counting.scratch import Scratch
from hubbub.intake.counting.user_ids import rounded_user, too_many, user_ids
from hubbub.intake.privatizing.output_columns import OutputColumn
from hubbub.intake.privatizing.reports_files import Write
from hubbub.intake.privatizing.value_positions import BadRow, ValueReader
from hubbub.intake.read_plan import ReadPlan
from hubbub.intake.reject_causes import Fault, missing_entry, unknown_mechanism
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.distinct_entries import entries_of
from hubbub.mechanisms import Mechanism
from hubbub.sampling import RandomSource

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_ROWS = 1 << 18
BLOCK_TEXT_BYTES = 1 << 26  # of a block's outputs as texts: long ones make smaller blocks


@dataclass(frozen=True)
class _Batch:
    """Rows that were read and are still to be privatized."""

    positions: Positions
    numbers: Positions | None  # of their mechanisms; None where there is only one
    users: pa.Array | None

    def __len__(self) -> int:
        return self.positions.size

    def slice(self, first: int, last: int) -> _Batch:
        """Return some of the rows."""
        numbers = None if self.numbers is None else self.numbers[first:last]
        users = None if self.users is None else self.users.slice(first, last - first)
        return _Batch(self.positions[first:last], numbers, users)


class RowPrivatizer:
    """Reads rows, puts them together to blocks, draws outputs and writes them.

    `only` is the mechanism of all rows, None where each row names its own; `scratch` counts users where the study
    limits how often each may send.
    """

    write: Write

    def __init__(
        self, plan: ReadPlan, only: str | None, randomness: RandomSource, scratch: Scratch, *, typed: bool
    ) -> None:
        self._plan, self._only, self._randomness, self._scratch = plan, only, randomness, scratch
        self._labels = list(plan.study.mechanisms)
        self._mechanisms: list[Mechanism] = [plan.study.mechanisms[label] for label in self._labels]
        used = self._mechanisms if only is None else [plan.study.mechanisms[only]]
        self._values = ValueReader(plan.study.domain)
        self._column = OutputColumn(used, typed=typed)
        self._block = int(min(BLOCK_ROWS, max(1, BLOCK_TEXT_BYTES // self._column.width)))
        self._waiting: list[_Batch] = []
        self.written = 0  # rows

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the reports; the mechanism's is there only if the study has several."""
        import pyarrow as pa

        named = [("mechanism", pa.string())] if len(self._labels) > 1 else []
        users = [("user", pa.string())] if self._plan.users else []
        return pa.schema([*users, *named, ("output", self._column.type)])

    def take(self, source: Source, rows: Rows) -> None:
        """Read some rows, and write the blocks that are full."""
        check_counted(source, rows)
        broken = list(rows.faults)  # rows that could not even be parsed
        for first in range(0, rows.parsed, self._block):
            bad: list[tuple[int, Fault]] = []
            batch = self._read(_slice(rows, first, self._block), bad)
            if batch is None:
                raise _refused(source, *min(bad + broken, key=itemgetter(0)))
            self._waiting.append(batch)
            self._flush(self._block)
        if broken:
            raise _refused(source, *min(broken, key=itemgetter(0)))

    def finish(self) -> None:
        """Write the last rows; refuse the whole run if a user would send more than the study allows."""
        self._flush(1)
        limit, most = self._plan.study.max_reports_per_user, self._scratch.commonest("users", "user")
        if limit is not None and most is not None and most[1] > limit:
            error = too_many(*most, limit).error
            what, got = "a user would send more than the study allows", f"{most[1]} values"
            raise restated(error, IntakeError, what=what, got=got, remedy=f"{error.remedy}; nothing was written")

    def _read(self, rows: Rows, bad: list[tuple[int, Fault]]) -> _Batch | None:
        """Return the parsed rows, or None; the first bad row of each column is added to `bad`."""
        positions = self._values.read(rows.columns)
        numbers = self._numbers(rows.columns["mechanism"]) if "mechanism" in rows.columns else None
        users = _users(rows.columns["user"]) if "user" in rows.columns else None
        wrong = [column for column in (positions, numbers, users) if isinstance(column, BadRow)]
        bad += [(int(rows.place(np.array([row]))[0]), fault) for row, fault in wrong]
        if isinstance(positions, BadRow) or isinstance(numbers, BadRow) or isinstance(users, BadRow):
            return None
        return _Batch(positions, numbers if self._only is None else None, users)

    def _numbers(self, column: pa.ChunkedArray) -> Positions | BadRow:
        """Return the mechanism that each row names, by its place in the study."""
        entries = entries_of(column, "mechanism")
        places = {label: place for place, label in enumerate(self._labels)}
        numbers = np.array([places.get(name, -1) for name in entries.values], dtype=np.int64)[entries.indices]
        if (numbers >= 0).all():
            return numbers
        row = int(np.argmax(numbers < 0))
        return BadRow(row, unknown_mechanism(entries.values[int(entries.indices[row])], self._labels))

    def _flush(self, least: int) -> None:
        """Write blocks as long as `least` rows are waiting."""
        while (size := sum(map(len, self._waiting))) >= least:
            taken, missing = [], min(size, self._block)
            while missing:
                first = self._waiting.pop(0)
                taken.append(first.slice(0, missing))
                if len(first) > missing:
                    self._waiting.insert(0, first.slice(missing, len(first)))
                missing -= len(taken[-1])
            self._write(taken)

    def _write(self, parts: Sequence[_Batch]) -> None:
        import pyarrow as pa

        positions = np.concatenate([part.positions for part in parts])
        drawn, names = self._draw(positions, [part.numbers for part in parts if part.numbers is not None])
        columns = {
            "user": pa.concat_arrays([part.users for part in parts]) if self._plan.users else None,
            "mechanism": names,
            "output": self._column.mixed(drawn, positions.size),
        }
        if columns["user"] is not None and self._plan.study.max_reports_per_user is not None:
            self._scratch.insert("users", pa.table({"user": columns["user"]}))
        self.write(pa.table([columns[name] for name in self.schema.names], schema=self.schema))
        self.written += positions.size

    def _draw(
        self, positions: Positions, numbers: Sequence[Positions]
    ) -> tuple[list[tuple[Mechanism, Positions, Codes]], pa.Array]:
        """Return for each mechanism its rows and their outputs, and the mechanism's name for each row."""
        import pyarrow as pa

        labels = pa.array(self._labels, pa.string())
        if self._only is not None:
            mechanism, number = self._plan.study.mechanisms[self._only], self._labels.index(self._only)
            everything = np.arange(positions.size)
            names = labels.take(pa.array(np.full(positions.size, number)))
            return [(mechanism, everything, self._outputs(mechanism, positions))], names
        which = np.concatenate(numbers)
        drawn = []
        for number in np.unique(which).tolist():
            own = np.flatnonzero(which == number)
            drawn.append((self._mechanisms[number], own, self._outputs(self._mechanisms[number], positions[own])))
        return drawn, labels.take(pa.array(which))

    def _outputs(self, mechanism: Mechanism, positions: Positions) -> Codes:
        """Draw one output for each value: the only place where randomness is used."""
        if self._plan.users and mechanism.remembers:
            raise _no_memory(type(mechanism).__name__)
        return mechanism.report(positions, self._randomness)


def _slice(rows: Rows, first: int, count: int) -> Rows:
    """Return `count` rows of a batch: a piece of a text may hold ten million."""
    columns = {name: column.slice(first, count) for name, column in rows.columns.items()}
    places = None if rows.places is None else rows.places[first : first + count]
    size = min(count, rows.parsed - first)
    return Rows(size, columns, rows.first + first, places)


def _users(column: pa.ChunkedArray) -> pa.Array | BadRow:
    """Return the users of rows as texts: 7 and 7.0 are user "7", in all forms of files."""
    import pyarrow as pa

    users = user_ids(column)
    if users.missing.any():
        return BadRow(int(np.argmax(users.missing)), missing_entry("user"))
    if users.rounded.any():
        row = int(np.argmax(users.rounded))
        return BadRow(row, rounded_user(column[row].as_py()))
    return (pa.array(users.numbers) if users.names is None else users.names).cast(pa.string())


def _no_memory(mechanism: str) -> ReportsError:
    """Return the error for users whose reports would look as if they came from one permanent response."""
    return ReportsError(
        "nothing is remembered from one row of a user to the next",
        where=f"privatize(values), {mechanism}",
        got="a column user",
        expected="no users: each row has a permanent response of its own here, while estimates and budgets "
        "take all reports of a user for those of one permanent response",
        remedy="draw on the device, where the permanent response is kept (Client.permanent and instantaneous); for one "
        "report of each person leave the column out",
    )


def _refused(source: Source, place: int, fault: Fault) -> IntakeError:
    """Return the error for a row that cannot be read."""
    where = source.where(place) + (f", column {source.columns.name_of(fault.column)}" if fault.column else "")
    return restated(fault.error, IntakeError, where=where, remedy=f"{fault.error.remedy}; nothing was written")
