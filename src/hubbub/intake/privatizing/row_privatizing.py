"""Rows on their way from values to outputs.

    source ──rows──► positions ──blocks──► draws ──► columns ──► a hidden file, moved into place when all is done

Blocks have one size, whatever batches the source comes in: a seed gives the same reports from a CSV as from Parquet.
Values are held in memory a few blocks at a time, and written nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from operator import itemgetter

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.core.arrow import pa
from hubbub.core.errors import IntakeError, ReportsError, restated
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.user_ids import rounded_user, too_many, user_ids
from hubbub.intake.privatizing.reports_writing import OutputColumns, Write
from hubbub.intake.privatizing.value_positions import BadRowError, ValueReader, read_all
from hubbub.intake.read_plan import ReadPlan
from hubbub.intake.reject_causes import Fault, missing_entry, unknown_mechanism
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.distinct_entries import entries_of, one_array
from hubbub.intake.tallies.tally_writing import RowBlocks
from hubbub.sampling import RandomSource

BLOCK_ROWS = 1 << 18
BLOCK_TEXT_BYTES = 1 << 26  # of a block's outputs as texts: long ones make smaller blocks


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
        self._mechanisms = list(plan.study.mechanisms.values())
        self._values = ValueReader(plan.study.domain)
        used = self._mechanisms if only is None else [plan.study.mechanisms[only]]
        self._outputs = OutputColumns(used, typed=typed)
        self._block_rows = int(min(BLOCK_ROWS, max(1, BLOCK_TEXT_BYTES // self._outputs.width)))
        self._blocks = RowBlocks(self._block_rows)
        self.written = 0  # rows

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the reports; the mechanism's is there only if the study has several."""
        named = [("mechanism", pa.string())] if len(self._labels) > 1 else []
        users = [("user", pa.string())] if self._plan.users else []
        return pa.schema([*users, *named, *self._outputs.types])

    def take(self, source: Source, rows: Rows) -> None:
        """Read some rows, and write the blocks that are full."""
        check_counted(source, rows)
        broken = list(rows.faults)  # rows that could not even be parsed
        for first in range(0, rows.parsed, self._block_rows):
            try:  # a piece of a text may hold ten million rows
                read = self._read(
                    {name: column.slice(first, self._block_rows) for name, column in rows.columns.items()}
                )
            except BadRowError as bad:
                place = int(rows.place(np.array([first + bad.row]))[0])
                raise _refused(source, *min([(place, bad.fault), *broken], key=itemgetter(0))) from None
            for block in self._blocks.add(read):
                self._write(block)
        if broken:
            raise _refused(source, *min(broken, key=itemgetter(0)))

    def finish(self) -> None:
        """Write the last rows; refuse the whole run if a user would send more than the study allows."""
        for block in self._blocks.rest():
            self._write(block)
        limit, most = self._plan.study.max_reports_per_user, self._scratch.commonest("users", "user")
        if limit is not None and most is not None and most[1] > limit:
            error = too_many(*most, limit).error
            what, got = "a user would send more than the study allows", f"{most[1]} values"
            raise restated(error, IntakeError, what=what, got=got, remedy=f"{error.remedy}; nothing was written")

    def _read(self, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
        """Return for each row the position of its value, the number of its mechanism, and its user."""
        readers = {"position": partial(self._values.read, columns), "mechanism": partial(self._numbers, columns)}
        if self._plan.users:
            readers["user"] = partial(_users, columns["user"])
        return pa.table(dict(zip(readers, read_all(readers.values()), strict=True)))

    def _numbers(self, columns: Mapping[str, pa.ChunkedArray]) -> Positions:
        """Return the mechanism of each row, by its place in the study."""
        if "mechanism" not in columns:
            assert self._only is not None  # noqa: S101  # or there would be a column
            return np.full(len(next(iter(columns.values()))), self._labels.index(self._only))
        entries = entries_of(columns["mechanism"], "mechanism")
        places = {label: place for place, label in enumerate(self._labels)}
        numbers = np.array([places.get(name, -1) for name in entries.values], dtype=np.int64)[entries.indices]
        if (numbers < 0).any():
            row = int(np.argmax(numbers < 0))
            raise BadRowError(row, unknown_mechanism(entries.values[int(entries.indices[row])], self._labels))
        return numbers

    def _write(self, rows: pa.Table) -> None:
        """Draw one output for each row of a block, and write it: the only place where randomness is used."""
        positions, numbers = (np.asarray(one_array(rows[name])) for name in ("position", "mechanism"))
        drawn = []
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            mechanism, own = self._mechanisms[number], np.flatnonzero(numbers == number)
            if self._plan.users and mechanism.remembers:
                raise _no_memory(type(mechanism).__name__)
            drawn.append((mechanism, own, mechanism.report(positions[own], self._randomness)))
        columns = self._outputs.arrays(drawn, rows.num_rows)
        if "mechanism" in self.schema.names:
            columns["mechanism"] = pa.array(self._labels, pa.string()).take(pa.array(numbers))
        if self._plan.users:
            columns["user"] = one_array(rows["user"])
            if self._plan.study.max_reports_per_user is not None:
                self._scratch.insert("users", pa.table({"user": columns["user"]}))
        self.write(pa.table([columns[name] for name in self.schema.names], schema=self.schema))
        self.written += rows.num_rows


def _users(column: pa.ChunkedArray) -> pa.Array:
    """Return the users of rows as texts: 7 and 7.0 are user "7", in all forms of files."""
    users = user_ids(column)
    if users.missing.any():
        raise BadRowError(int(np.argmax(users.missing)), missing_entry("user"))
    if users.rounded.any():
        row = int(np.argmax(users.rounded))
        raise BadRowError(row, rounded_user(column[row].as_py()))
    return (pa.array(users.numbers) if users.names is None else users.names).cast(pa.string())


def _no_memory(mechanism: str) -> ReportsError:
    """Return the error for users whose reports would look as if they came from one permanent response."""
    return ReportsError(
        "a file cannot keep a user's permanent response from row to row",
        where=f"privatize(values), {mechanism}",
        got="a column user",
        expected="no column user: here each row gets its own permanent response, but estimates and budgets "
        "assume that all reports of a user share one",
        remedy="draw on the device, where the permanent response is kept (Client.permanent and instantaneous); for one "
        "report of each person leave the column out",
    )


def _refused(source: Source, place: int, fault: Fault) -> IntakeError:
    """Return the error for a row that cannot be read."""
    where = source.where(place) + (f", column {source.columns.name_of(fault.column)}" if fault.column else "")
    return restated(fault.error, IntakeError, where=where, remedy=f"{fault.error.remedy}; nothing was written")
