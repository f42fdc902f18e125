"""Reports read into memory: all together, or each group of a column by itself."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from operator import itemgetter

import numpy as np

from hubbub.core.progress import Progress
from hubbub.intake.counting.counted_reports import Content, spent_by
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.read_plan import ReadPlan, read_rows
from hubbub.intake.reject_causes import Fault, missing_entry, refusal
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.distinct_entries import entries_of
from hubbub.intake.tallies.tally_summary import CountedSource, Summary
from hubbub.reports import Reports
from hubbub.reports.validation import no_reports

MAX_GROUPS = 1000


def read(plan: ReadPlan) -> Generator[Progress, None, tuple[Reports, Summary]]:
    """Read all reports of a plan; return them with a summary of what was counted."""
    with Scratch(plan.memory) as scratch:
        with plan.rejecting() as rejects:
            counter = RowCounter(plan.study, scratch, rejects, users=plan.users)
            counted = yield from read_rows(plan, counter.take, digests=False)
            yield Progress(0, 0, "merging users" if plan.users else "merging rows")
            content = Content(counter)
        plan.check_rejected(rejects, counter.rows)
        reports = content.reports(plan.names[0])
    return reports, _summary(plan, counter, reports, counted)


def read_groups(plan: ReadPlan, by: str) -> Generator[Progress, None, dict[str, tuple[Reports, Summary]]]:
    """Read the reports of a plan, each group of the column `by` by itself.

    A user with rows in two groups is one user in each, and may send as much in each as the study allows.
    """
    with Scratch(plan.memory) as scratch:
        with plan.rejecting() as rejects:
            groups = _Groups(plan, scratch, rejects, by)
            counted = yield from read_rows(plan, groups.take, digests=False)
            yield Progress(0, 0, "merging")
            contents = {group: Content(counter) for group, counter in groups.counters.items()}
        plan.check_rejected(rejects, groups.rows)
        read = {}
        for group in sorted(contents, key=_numbers_first):
            reports = contents[group].reports_or_none()
            if reports is not None:  # None: all rows of the group were rejected, and are listed
                read[group] = reports, _summary(plan, groups.counters[group], reports, counted)
    if not read:
        raise no_reports(plan.names[0], "no row that could be counted")
    return read


def _summary(plan: ReadPlan, counter: RowCounter, reports: Reports, counted: tuple[CountedSource, ...]) -> Summary:
    return Summary(
        plan.study,
        reports.users,
        counter.rows,
        dict(counter.rejects.codes),
        counted,
        spent_by(plan.study, reports.blocks, {}),
        plan.users,
        notes=plan.notes,
    )


class _Groups:
    """One counter for each value of a column."""

    def __init__(self, plan: ReadPlan, scratch: Scratch, rejects: Rejects, by: str) -> None:
        self._plan, self._scratch, self._rejects, self._by = plan, scratch, rejects, by
        self._rest = RowCounter(plan.study, scratch, rejects, users=plan.users, prefix="rest_")  # rows of no group
        self.counters: dict[str, RowCounter] = {}

    @property
    def rows(self) -> int:
        """How many rows there were, in groups or not."""
        return self._rest.rows + sum(counter.rows for counter in self.counters.values())

    def take(self, source: Source, rows: Rows) -> None:
        """Hand each row to its group."""
        import pyarrow as pa

        if rows.parsed == 0:
            self._rest.take(source, rows)
            return
        entries = entries_of(rows.columns[self._by], self._by)
        places = rows.place(np.arange(rows.parsed))
        faults = list(rows.faults)
        for index in np.unique(entries.indices).tolist():
            own = np.flatnonzero(entries.indices == index)
            group = _name(entries.values[index])
            if group is None:
                faults += [(place, missing_entry(self._by)) for place in places[own].tolist()]
                continue
            columns = {name: column.take(pa.array(own)) for name, column in rows.columns.items()}
            self._counter(group, source).take(source, Rows(own.size, columns, rows.first, places[own]))
        if faults or rows.counted != rows.parsed + len(rows.faults):
            lost = rows.counted - rows.parsed - len(rows.faults)
            self._rest.take(source, Rows(len(faults) + lost, {}, rows.first, None, sorted(faults, key=itemgetter(0))))

    def _counter(self, group: str, source: Source) -> RowCounter:
        if group not in self.counters:
            if len(self.counters) == MAX_GROUPS:
                raise refusal(
                    "too-many-groups",
                    "there are too many groups",
                    where=f"{source.name}, column {self._by}",
                    got=f"more than {MAX_GROUPS:,}",
                    expected="a column with few values: a region, a week, a version",
                    remedy="group by another column, or by a coarser one",
                )
            self.counters[group] = RowCounter(
                self._plan.study,
                self._scratch,
                _GroupRejects(self._rejects),
                users=self._plan.users,
                prefix=f"group{len(self.counters)}_",
            )
        return self.counters[group]


class _GroupRejects(Rejects):
    """The rejected rows of one group, which count for the whole run as well."""

    def __init__(self, run: Rejects) -> None:
        super().__init__()
        self._run = run

    def add(self, source: Source, faults: Iterable[tuple[int, Fault]]) -> None:
        """Count the rows for the group and for the run."""
        listed = list(faults)
        super().add(source, listed)
        self._run.add(source, listed)


def _name(group: object) -> str | None:
    """Return a group as text, the same from files of all kinds; None for an empty entry."""
    if group is None or group == "" or group != group:  # nothing, or not a number
        return None
    if isinstance(group, bytes):
        return "0x" + group.hex()
    return str(int(group)) if isinstance(group, float) and group.is_integer() else str(group)


def _numbers_first(group: str) -> tuple[int, int, str]:
    """Sort numbers by their size, then names."""
    return (0, int(group), "") if group.isascii() and group.removeprefix("-").isdigit() else (1, 0, group)
