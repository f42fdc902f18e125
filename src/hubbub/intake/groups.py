"""Rows of several groups, told apart by a column and gathered each for itself."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from hubbub.core.progress import Progress
from hubbub.intake.counting.content import Content, spent_by
from hubbub.intake.counting.rejects import Allowance, Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.scratch import MEMORY, Scratch
from hubbub.intake.read_plan import ReadPlan, check_rejects, reading, rejects_to
from hubbub.intake.reject_causes import Fault, missing_entry, refusal
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.column_names import OWN_NAMES, ColumnNames
from hubbub.intake.sources.distinct_entries import entries_of
from hubbub.intake.sources.source_lookup import sources_of
from hubbub.intake.study import Study
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.reports import Reports
from hubbub.reports.validation import no_reports

MOST = 1000  # groups


class Groups:
    """One gathering for each value of a column."""

    def __init__(self, study: Study, scratch: Scratch, rejects: Rejects, by: str, *, users: bool) -> None:
        self._study, self._scratch, self._rejects, self._by, self._users = study, scratch, rejects, by, users
        self._rest = RowCounter(study, scratch, rejects, users=users, prefix="rest_")  # rows of no group
        self.groups: dict[str, RowCounter] = {}

    @property
    def rows(self) -> int:
        """How many rows there were, in groups or not."""
        return self._rest.rows + sum(gathering.rows for gathering in self.groups.values())

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
            self._group(group, source).take(source, Rows(own.size, columns, rows.first, places[own]))
        if len(faults) > 0 or rows.counted != rows.parsed + len(rows.faults):
            lost = rows.counted - rows.parsed - len(rows.faults)
            self._rest.take(source, Rows(len(faults) + lost, {}, rows.first, None, sorted(faults, key=_place)))

    def _group(self, group: str, source: Source) -> RowCounter:
        if group not in self.groups:
            if len(self.groups) == MOST:
                raise refusal(
                    "too-many-groups",
                    "there are too many groups",
                    where=f"{source.name}, column {self._by}",
                    got=f"more than {MOST:,}",
                    expected="a column with few values: a region, a week, a version",
                    remedy="group by another column, or by a coarser one",
                )
            prefix = f"group{len(self.groups)}_"
            own = _Own(self._rejects)
            self.groups[group] = RowCounter(self._study, self._scratch, own, users=self._users, prefix=prefix)
        return self.groups[group]


class _Own(Rejects):
    """The rejected rows of one group, which are also those of the run."""

    def __init__(self, everyone: Rejects) -> None:
        super().__init__()
        self._everyone = everyone

    def add(self, source: Source, faults: Iterable[tuple[int, Fault]]) -> None:
        """Count the rows here and there."""
        listed = list(faults)
        super().add(source, listed)
        self._everyone.add(source, listed)


def _name(group: object) -> str | None:
    """Return a group as text, the same from files of all kinds; None where there is none."""
    if group is None or group == "" or group != group:  # nothing, or not a number
        return None
    if isinstance(group, bytes):
        return "0x" + group.hex()
    return str(int(group)) if isinstance(group, float) and group.is_integer() else str(group)


def _in_order(group: str) -> tuple[int, int, str]:
    """Numbers by their size, then names."""
    return (0, int(group), "") if group.isascii() and group.removeprefix("-").isdigit() else (1, 0, group)


def _place(fault: tuple[int, object]) -> int:
    return fault[0]


def reading_groups(
    source: object,
    study: Study,
    by: str,
    *,
    allow_rejects: object = 0,
    rejects: str | Path | None = None,
    memory: str = MEMORY,
    columns: ColumnNames = OWN_NAMES,
    equal_files: str | None = None,
) -> Generator[Progress, None, Mapping[str, tuple[Reports, Summary]]]:
    """Read reports, each group of the column `by` apart.

    A user with rows in two groups is one user in each, and may send as much in each as the study allows.
    """
    allowed = Allowance.of(allow_rejects)
    plan = ReadPlan.of(study, sources_of(source, study, columns), by, equal_files=equal_files)
    where = None if rejects is None else Path(rejects)
    check_rejects(where, plan.sources)
    with Scratch(memory) as scratch:
        with rejects_to(where, always=True) as rejected:
            groups = Groups(study, scratch, rejected, by, users=plan.users)
            counted = tuple((yield from reading(plan, groups.take, digests=False)))
            yield Progress(0, 0, "merging")
            contents = {group: Content(gathering) for group, gathering in groups.groups.items()}
        names = [one.name for one in plan.sources]
        rejected.check(groups.rows, allowed, names, None if rejects is None else str(rejects))
        found = {}
        for group in sorted(contents, key=_in_order):
            reports, gathering = contents[group].reports_or_none(), groups.groups[group]
            contents[group].check_conserved()
            if reports is None:
                continue  # all of its rows were rejected, and told of
            spent = spent_by(study, reports.blocks, {})
            codes = dict(gathering.rejects.codes)
            summary = Summary(study, reports.users, gathering.rows, codes, counted, spent, plan.users)
            found[group] = reports, replace(summary, notes=plan.notes)
    if not found:
        raise no_reports(names[0], "no row that could be taken")
    return found
