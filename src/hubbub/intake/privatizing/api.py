"""Values privatized: one output for each row of a source, written as reports that `hubbub estimate` reads.

    source ──rows──► positions ──blocks──► draws ──► columns ──► a file beside, moved into place when all is done

Blocks have one size, whatever batches the source comes in: a seed gives the same reports from a CSV as from Parquet.
Values are held in memory a few blocks at a time, and written nowhere.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Codes, Positions
from hubbub.core.errors import IntakeError, ReportsError, SettingError, shorten, warn_of
from hubbub.core.progress import Progress, finish
from hubbub.intake.counting.scratch import Scratch
from hubbub.intake.counting.user_faults import too_many
from hubbub.intake.counting.user_ids import people_of, refuse_rounded_user
from hubbub.intake.privatizing.output_columns import OutputColumn
from hubbub.intake.privatizing.reports_files import Write, check_reports_path, is_typed, writing
from hubbub.intake.privatizing.value_columns import no_values, value_columns
from hubbub.intake.privatizing.value_positions import Bad, ValueReader
from hubbub.intake.read_plan import ReadPlan, reading, with_users
from hubbub.intake.reading_notes import copies_notes, limit_notes
from hubbub.intake.reject_causes import Fault, empty, refusal, unnamed
from hubbub.intake.sources.base import Rows, Source, check_counted
from hubbub.intake.sources.column_names import OWN_NAMES, ColumnNames
from hubbub.intake.sources.distinct_entries import entries_of
from hubbub.intake.sources.source_lookup import sources_of, without_copies
from hubbub.intake.stamps import Stamp
from hubbub.intake.study import Study, check_study
from hubbub.intake.tallies.tally_summary import check_writable
from hubbub.mechanisms import Mechanism
from hubbub.sampling import Randomness, RandomSource, source_of

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 18  # of a block
BYTES = 1 << 26  # of its outputs as texts: long ones make smaller blocks


@dataclass(frozen=True)
class Privatized:
    """Reports that were written, and how."""

    path: Path
    study: Study
    mechanism: str | None  # of all rows; None where each row names its own
    rows: int
    randomness: str  # "secure" or "seeded"
    columns_left_out: tuple[str, ...]  # of the source: they are not in the reports
    notes: tuple[str, ...] = ()  # what could not be checked


def privatize_file(
    source: object,
    study: Study,
    mechanism: str | None,
    path: str | Path,
    *,
    rng: Randomness = None,
    value_column: str | None = None,
    user_column: str | None = None,
    mechanism_column: str | None = None,
    equal_files: str | None = None,
) -> Privatized:
    """Privatize the values of a source, and write the reports to a new file at `path`.

    Sources are those of `read_reports`, with a column ``value``: a label of the domain, or for `Bins` the number
    itself; for a grid on the map ``lat`` and ``lon`` will do instead. A column ``user`` is carried along. `mechanism`
    is the name of one in the study; None where the study has only one, or rows name theirs in a column ``mechanism``.
    All other columns are left out. `value_column`, `user_column` and `mechanism_column` say where columns have other
    names; `equal_files` is that of `read_reports`.

    The ending says what is written: .csv, .tsv, .jsonl (also .gz, .zst), .parquet or .arrow. Reports stand in the
    order of their rows. A row that cannot be taken stops the run, and nothing is written: to leave people out would
    bias every estimate; so does a user with more rows than the study's `max_reports_per_user`. With ``rng=None``
    randomness comes from the operating system; a seed is for simulations only, and the reports say which it was.
    """
    columns = ColumnNames(user=user_column, mechanism=mechanism_column, value=value_column)
    run = privatizing(source, study, mechanism, path, rng=rng, columns=columns, equal_files=equal_files)
    privatized = finish(run)
    warn_of(privatized.notes)
    return privatized


def privatizing(
    values: object,
    study: Study,
    mechanism: str | None,
    path: str | Path,
    *,
    rng: Randomness = None,
    columns: ColumnNames = OWN_NAMES,
    equal_files: str | None = None,
) -> Generator[Progress, None, Privatized]:
    """Do what `privatize_file` does, yielding progress."""
    check_study(study, "privatize(source, study, mechanism, path)")
    check_writable(study, "privatize(study)", "stamped on reports")
    _check_name(mechanism, study)
    words = source_of(rng)
    sources, copies = without_copies(sources_of(values, study, columns), equal_files)
    inputs = [file for one in sources for file in one.files]
    target = check_reports_path(path, inputs)
    read = [value_columns(one, study, mechanism) for one in sources]
    wanted = [names for names, _ in read]
    users = with_users(sources, wanted)
    notes = copies_notes(copies) + limit_notes(study, users=users)
    plan = ReadPlan(study, sources, wanted, users, tuple(notes))
    only = next(iter(study.mechanisms)) if len(study.mechanisms) == 1 else mechanism
    stamp = Stamp(study.fingerprint, "secure" if words.secure else "seeded", only)
    run = _Run(plan, only, words, typed=is_typed(target))
    with Scratch() as scratch, writing(target, inputs, run.schema(), stamp) as write:
        run.write, run.people = write, scratch
        yield from reading(plan, run.take, digests=False, nothing=no_values)
        yield Progress(0, 0, "writing")
        run.finish()
    left_out = tuple(dict.fromkeys(name for _, others in read for name in others))
    return Privatized(target, study, only, run.rows, stamp.randomness, left_out, plan.notes)


def _check_name(mechanism: object, study: Study) -> None:
    if mechanism is not None and (not isinstance(mechanism, str) or mechanism not in study.mechanisms):
        raise SettingError(
            "the study names no such mechanism",
            where="privatize(mechanism)",
            got=shorten(mechanism),
            expected=f"one of {', '.join(study.mechanisms)}",
            remedy="choose one of these, or add it to the study",
        )


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


class _Run:
    """Rows on their way: read, put together to blocks, drawn, written."""

    write: Write
    people: Scratch  # whose names are counted where the study limits how often each may come

    def __init__(self, plan: ReadPlan, only: str | None, words: RandomSource, *, typed: bool) -> None:
        self._plan, self._only, self._words = plan, only, words
        self._labels = list(plan.study.mechanisms)
        self._mechanisms: list[Mechanism] = [plan.study.mechanisms[label] for label in self._labels]
        used = self._mechanisms if only is None else [plan.study.mechanisms[only]]
        self._values = ValueReader(plan.study.domain)
        self._column = OutputColumn(used, typed=typed)
        self._block = int(min(ROWS, max(1, BYTES // self._column.width)))
        self._waiting: list[_Batch] = []
        self.rows = 0

    def schema(self) -> pa.Schema:
        """Return the columns of the reports: the mechanism's stands only where the study has several."""
        import pyarrow as pa

        named = [("mechanism", pa.string())] if len(self._labels) > 1 else []
        users = [("user", pa.string())] if self._plan.users else []
        return pa.schema([*users, *named, ("output", self._column.type)])

    def take(self, source: Source, rows: Rows) -> None:
        """Read some rows, and write the blocks that are full."""
        check_counted(source, rows)
        broken = list(rows.faults)  # rows that could not even be taken apart
        for first in range(0, rows.parsed, self._block):
            bad: list[tuple[int, Fault]] = []
            batch = self._read(_some(rows, first, self._block), bad)
            if batch is None:
                raise _stop(source, *min(bad + broken, key=lambda one: one[0]))
            self._waiting.append(batch)
            self._flush(self._block)
        if broken:
            raise _stop(source, *min(broken, key=lambda one: one[0]))

    def finish(self) -> None:
        """Write what is left; refuse all of it if somebody would send more than the study allows."""
        self._flush(1)
        limit, most = self._plan.study.max_reports_per_user, self.people.commonest("people", "user")
        if limit is not None and most is not None and most[1] > limit:
            error = too_many(most[0], most[1], limit).error
            raise refusal(
                "too-many-reports",
                "a user would send more than the study allows",
                where=error.where,
                got=f"{most[1]} values",
                expected=error.expected,
                remedy=f"{error.remedy}; nothing was written",
            )

    def _read(self, rows: Rows, bad: list[tuple[int, Fault]]) -> _Batch | None:
        """Return what rows say; the first row at fault in each column goes to `bad`."""
        found = {
            "value": self._values.read(rows.columns),
            "mechanism": self._numbers(rows.columns["mechanism"]) if "mechanism" in rows.columns else None,
            "user": _users(rows.columns["user"]) if "user" in rows.columns else None,
        }
        wrong = [one for one in found.values() if isinstance(one, Bad)]
        bad += [(int(rows.place(np.array([one.row]))[0]), one.fault) for one in wrong]
        positions, numbers, users = found.values()
        if isinstance(positions, Bad) or isinstance(numbers, Bad) or isinstance(users, Bad) or positions is None:
            return None
        return _Batch(positions, numbers if self._only is None else None, users)

    def _numbers(self, column: pa.ChunkedArray) -> Positions | Bad:
        """Return the mechanism that each row names, by its place in the study."""
        entries = entries_of(column, "mechanism")
        places = {label: place for place, label in enumerate(self._labels)}
        numbers = np.array([places.get(name, -1) for name in entries.values], dtype=np.int64)[entries.indices]
        if (numbers >= 0).all():
            return numbers
        row = int(np.argmax(numbers < 0))
        return Bad(row, unnamed(entries.values[int(entries.indices[row])], self._labels))

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
        schema = self.schema()
        if columns["user"] is not None and self._plan.study.max_reports_per_user is not None:
            self.people.insert("people", pa.table({"user": columns["user"]}))
        self.write(pa.table([columns[name] for name in schema.names], schema=schema))
        self.rows += positions.size

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
            raise _forgotten(type(mechanism).__name__)
        return mechanism.report(positions, self._words)


def _some(rows: Rows, first: int, count: int) -> Rows:
    """Return `count` rows of a batch: a piece of a text may hold ten million."""
    columns = {name: column.slice(first, count) for name, column in rows.columns.items()}
    places = None if rows.places is None else rows.places[first : first + count]
    size = min(count, rows.parsed - first)
    return Rows(size, columns, rows.first + first, places)


def _users(column: pa.ChunkedArray) -> pa.Array | Bad:
    """Return the users of rows as texts: 7 and 7.0 are user "7", in all forms of files."""
    import pyarrow as pa

    people = people_of(column)
    if people.missing.any():
        return Bad(int(np.argmax(people.missing)), empty("user"))
    if people.rounded.any():
        row = int(np.argmax(people.rounded))
        return Bad(row, refuse_rounded_user(column[row].as_py()))
    return (pa.array(people.numbers) if people.names is None else people.names).cast(pa.string())


def _forgotten(mechanism: str) -> ReportsError:
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


def _stop(source: Source, place: int, fault: Fault) -> IntakeError:
    """Return the error for a row that cannot be taken."""
    error = fault.error
    return refusal(
        fault.code,
        error.what,
        where=source.where(place) + (f", column {source.columns.name_of(fault.column)}" if fault.column else ""),
        got=error.got,
        expected=error.expected,
        remedy=f"{error.remedy}; nothing was written",
    )
