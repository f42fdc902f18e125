"""One counter for each group: rows of a group have the same entries in the columns to group by.

Without such columns there is one group, of everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.intake.counting.counted_reports import Content
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.rejects import Rejects
from hubbub.intake.counting.row_counting import RowCounter
from hubbub.intake.counting.user_digests import DigestsByGroup
from hubbub.intake.group_names import EVERYBODY, Group, entry_name, group_order
from hubbub.intake.periods import period_entries
from hubbub.intake.reject_causes import Fault, missing_entry, refusal
from hubbub.intake.sources.base import Rows, Source
from hubbub.intake.sources.distinct_entries import entries_of
from hubbub.intake.study import Study

MAX_GROUPS = 1000


class GroupCounters:
    """Counters of groups, made as their first row comes.

    A user with rows in two groups is one user in each, and may send as much in each as the study allows.
    """

    def __init__(
        self,
        study: Study,
        scratch: Scratch,
        rejects: Rejects,
        by: Sequence[str],
        *,
        users: bool,
        known_users: DigestsByGroup | None = None,
        survey: Sequence[str] = (),
    ) -> None:
        self._survey = survey
        self._study, self._scratch, self._rejects, self._by = study, scratch, rejects, tuple(by)
        self._users, self._known_users = users, known_users
        self._nowhere = RowCounter(study, scratch, rejects, users=users, prefix="nowhere_")  # rows of no group
        self._counters: dict[Group, RowCounter] = {}
        if not by:
            self._counters[EVERYBODY] = self._new_counter(EVERYBODY, rejects)

    @property
    def rows(self) -> int:
        """How many rows there were, in groups or not."""
        return self._nowhere.rows + sum(counter.rows for counter in self._counters.values())

    def take(self, source: Source, rows: Rows) -> None:
        """Hand each row to its group."""
        import pyarrow as pa

        if not self._by:
            self._counters[EVERYBODY].take(source, rows)
            return
        if rows.parsed == 0:
            self._nowhere.take(source, rows)
            return
        places, faults = rows.place(np.arange(rows.parsed)), list(rows.faults)
        for group, own in self._groups(rows):
            fault = next((entry for entry in group if isinstance(entry, Fault)), None)
            if fault is not None:
                faults += [(place, fault) for place in places[own].tolist()]
                continue
            columns = {name: column.take(pa.array(own)) for name, column in rows.columns.items()}
            counter = self.counter(tuple(map(str, group)), source.name)
            counter.take(source, Rows(own.size, columns, rows.first, places[own]))
        if faults or rows.counted != rows.parsed + len(rows.faults):
            lost = rows.counted - rows.parsed - len(rows.faults)
            self._nowhere.take(
                source, Rows(len(faults) + lost, {}, rows.first, None, sorted(faults, key=itemgetter(0)))
            )

    def _groups(self, rows: Rows) -> Iterator[tuple[tuple[str | Fault, ...], Positions]]:
        """Yield the entries of each group, or why there is none, and which rows are its own."""
        columns = [_entries(rows, name) for name in self._by]
        met, which = np.unique(np.column_stack([indices for _, indices in columns]), axis=0, return_inverse=True)
        for number, indices in enumerate(met.tolist()):
            entries = tuple(names[index] for (names, _), index in zip(columns, indices, strict=True))
            yield entries, np.flatnonzero(which.ravel() == number)

    def counter(self, group: Group, where: str) -> RowCounter:
        """Return the counter of a group."""
        if group not in self._counters:
            if len(self._counters) == MAX_GROUPS:
                raise refusal(
                    "too-many-groups",
                    "there are too many groups",
                    where=f"{where}, column {', '.join(self._by)}",
                    got=f"more than {MAX_GROUPS:,}",
                    expected="a column with few values: a region, a week, a version",
                    remedy="group by another column, or by a coarser one; if clients made names up, read only rows "
                    "whose name you know, by a query or from a mended file, into a new tally",
                )
            self._counters[group] = self._new_counter(group, _GroupRejects(self._rejects))
        return self._counters[group]

    def _new_counter(self, group: Group, rejects: Rejects) -> RowCounter:
        known = None if self._known_users is None else self._known_users.of(group)
        prefix = f"group{len(self._counters)}_" if group else ""
        return RowCounter(
            self._study,
            self._scratch,
            rejects,
            users=self._users,
            known_users=known,
            prefix=prefix,
            survey=self._survey,
        )

    def shared_users(self) -> int:
        """Return how many users have rows in several groups: before `contents`, which merges the rows of each."""
        waiting = [counter.users.tables() for counter in self._counters.values() if counter.users is not None]
        return sum(self._scratch.in_several(tables, "user") for tables in zip(*waiting, strict=True))

    def contents(self) -> dict[Group, Content]:
        """Return what was counted in each group, numbers before names."""
        return {group: Content(self._counters[group]) for group in sorted(self._counters, key=group_order)}

    def rejected(self) -> dict[Group, dict[str, int]]:
        """Return how many rows of each group were rejected, by cause."""
        return {group: dict(counter.rejects.codes) for group, counter in self._counters.items()}

    def rows_of(self, group: Group) -> int:
        """Return how many rows a group has, rejected ones included."""
        return self._counters[group].rows


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


def _entries(rows: Rows, by: str) -> tuple[Sequence[str | Fault], Positions]:
    """Return the distinct entries of a column to group by, and the index of each row's."""
    if by not in rows.columns:
        return period_entries(rows.columns["time"], by)
    entries = entries_of(rows.columns[by], by)
    met = np.unique(entries.indices)
    names = dict.fromkeys(met.tolist(), missing_entry(by)) | {
        index: name for index in met.tolist() if (name := entry_name(entries.values[index])) is not None
    }
    return [names[index] for index in met.tolist()], np.searchsorted(met, entries.indices)
