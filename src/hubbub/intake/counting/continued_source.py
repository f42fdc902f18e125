"""A growing source, of which only the rows are read that were not counted before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.core.errors import IntakeError, SettingError
from hubbub.core.text import plural
from hubbub.intake.counting.dated_source import AsOf
from hubbub.intake.counting.partial_source import PartialSource
from hubbub.intake.counting.recent_marks import RecentMarks
from hubbub.intake.counting.row_digests import MAX_REMEMBERED_ROWS, RowDigest, RowDigester, keys_of
from hubbub.intake.counting.watermark import Watermark, WatermarkSettings, columns_read, late_notes
from hubbub.intake.reject_causes import Fault, refusal, row_fault
from hubbub.intake.sources.base import Rows, Snapshot, Source, check_counted
from hubbub.intake.sources.mark_types import MarkBounds, MarkType, is_before, other_type


class ContinuedSource(PartialSource):
    """The rows of a source that are new since the last run, by its watermark.

    Read it once; then `mark` is the new watermark, and `mark_notes` say which rows came late or are gone.
    """

    def __init__(
        self,
        inner: Source,
        settings: WatermarkSettings,
        old: Watermark | None,
        digester: RowDigester,
        rows_before: int = 0,
    ) -> None:
        super().__init__(inner)
        self._settings, self._old, self._digester = settings, old, digester
        self.rows_before = rows_before  # that were read of it in earlier runs
        self.mark: Watermark | None = None
        self.mark_notes: list[str] = []
        self._marks = RecentMarks()

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows that were not counted before."""
        column, old = self._settings.column, self._old
        columns = columns_read(wanted, column)
        if old is not None and columns != old.columns:
            raise refusal(
                "other-mark",
                "other columns are read than before",
                where=self.name,
                got=", ".join(columns),
                expected=", ".join(old.columns) + ", as when the tally was last collected",
                remedy="name the same columns and groups as before, or collect everything again into a new tally",
            )
        with self.inner.snapshot() as snapshot:
            state = _RunState(snapshot, self._settings, old, self._digester, columns, self._marks)
            read = list(dict.fromkeys([*wanted, column]))
            for rows in snapshot.rows(read, state.bounds):
                self.done = self.inner.done
                check_counted(self.inner, rows)
                new = state.take(rows, keep=wanted)
                if new.counted:
                    yield new
            self.mark, self.mark_notes = state.finish()
            self.left_out = snapshot.beyond + state.left
        if self.mark is None and self.left_out:
            self.mark_notes = [f"{self.name}: {plural(self.left_out, 'row')}, all left for a later run"]

    def mark_at(self, place: int) -> str | None:
        """Return what the row at a place has in the column of the watermark, if that is still known."""
        return self._marks.text(place)

    def where(self, place: int) -> str:
        """Return a place as the source shows it, with the row's mark."""
        mark = self.mark_at(place)
        return super().where(place) + ("" if mark is None else f" ({self._settings.column} = {mark})")


class _RunState:
    """What one run over a growing source finds."""

    def __init__(
        self,
        snapshot: Snapshot,
        settings: WatermarkSettings,
        old: Watermark | None,
        digester: RowDigester,
        columns: tuple[str, ...],
        marks: RecentMarks,
    ) -> None:
        self._snapshot, self._source, self._columns = snapshot, snapshot.source, columns
        self._marks, self._given = marks, 0  # rows that were given to be counted or rejected
        self._settings, self._old, self._digester = settings, old, digester
        self._where = f"{snapshot.source.name}, column {settings.column}"
        self._type: MarkType | None = None if old is None else old.type
        self._known = Counter[RowDigest]() if old is None else old.digests.copy()  # that were not met again
        self._remembered = Counter[RowDigest]() if old is None else old.digests.copy()
        self._unmarked = self._unparsed = 0
        self._before = 0  # rows before the old window
        self._up_to_mark = 0
        self.left = 0  # rows beyond the bounds that were read nevertheless
        self._late: list[int] = []  # keys of late rows that are not counted
        self._counted = Counter[int]()  # keys of rows at or before the old mark that are counted now
        self._largest: int | None = None  # of all rows, counted or not
        self._key: int | None = None if old is None else old.key
        self._first: int | None = None if old is None else old.first
        self._high: int | None = None
        self.bounds = self._find_bounds()

    def _find_bounds(self) -> MarkBounds | None:
        """Return which rows must be read; None: all of them."""
        old, settings = self._old, self._settings
        if self._snapshot.is_indexed or settings.lag is not None or settings.as_of is not None:
            for part in self._snapshot.largest(settings.column):
                keys, missing = self._keys(part)
                self._see(keys[~missing])
            self._check_not_back()
            if settings.lag is not None and self._largest is not None and self._type is not None:
                self._high = max(self._largest - self._type.span(settings.lag, "--lag"), self._type.lowest)
        if self._type is None:
            return None
        self._type.span(settings.late_window or 0, "--late-window")
        if settings.as_of is not None:
            last = self._type.key_of_time(settings.as_of.last, "--as-of")
            self._check_not_later(settings.as_of, last)
            self._high = last if self._high is None else min(last, self._high)
        if self._high is not None and old is not None:
            self._high = max(self._high, old.key)
        if old is None or old.unparsed:  # rows that could not be read are recognised by their number alone
            low, is_open = None, False
        else:
            low, is_open = old.since, old.is_open
        return MarkBounds(settings.column, self._type, low, is_open, self._high, settings.late != "ignore")

    def _keys(self, column: object) -> tuple[Positions, NDArray[np.bool_]]:
        """Return the keys of a column, whose first entry says what type it has."""
        typed = self._source.is_typed
        if self._type is None:
            self._type = MarkType.of(column, self._where, typed=typed)
        if self._type is None:
            size = len(column)  # type: ignore[arg-type]
            return np.zeros(size, dtype=np.int64), np.ones(size, dtype=bool)
        found = MarkType.of(column, self._where) if typed else None
        if found is not None and found.kind != self._type.kind:
            raise other_type(self._where, self._type, found)
        return self._type.keys(column, self._where)

    def _see(self, keys: Positions) -> None:
        if keys.size:
            largest = int(keys.max())
            self._largest = largest if self._largest is None else max(self._largest, largest)

    def _check_not_back(self) -> None:
        old = self._old
        if old is None or (self._largest is not None and self._largest >= old.key):
            return
        raise self._refused(
            "mark-moved-back",
            "the source ends before its watermark",
            got="no rows" if self._largest is None else f"{old.type.text(self._largest)} as the largest entry",
            expected=f"{old.value}, which was counted before, or more",
            remedy="if the source was emptied, rebuilt or restored, collect it into a new tally; if only its last rows "
            "were deleted, collect again when there are newer ones",
        )

    def _check_not_later(self, as_of: AsOf, last: int) -> None:
        """Refuse a time before the mark: the tally already holds later rows, which cannot be taken out."""
        if self._old is not None and last < self._old.key:
            raise SettingError(
                "the tally holds later rows already",
                where="--as-of",
                got=as_of.text,
                expected=f"{self._old.value}, up to which {self._source.name} was counted, or later",
                remedy="collect into a new tally, or take a copy of this one from that time",
            )

    def take(self, rows: Rows, keep: Sequence[str]) -> Rows:
        """Return those of some rows that are to be counted or rejected now."""
        import pyarrow as pa

        faults = list(self._new_faults(rows.faults))
        if not rows.parsed:
            return self._numbered(Rows(len(faults), {}, rows.first, None, faults))
        keys, missing = self._keys(rows.columns[self._settings.column])
        self._see(keys[~missing])
        nowhere = np.flatnonzero(missing)
        known = 0 if self._old is None else self._old.unmarked
        surplus = nowhere[max(0, known - self._unmarked) :]
        self._unmarked += nowhere.size
        fault = _no_mark(self._settings.column)
        faults += [(place, fault) for place in rows.place(surplus).tolist()]
        chosen = np.flatnonzero(self._is_new(keys, missing, rows))
        columns = {name: rows.columns[name].take(pa.array(chosen)) for name in keep}
        faults.sort(key=lambda entry: entry[0])
        new = self._numbered(Rows(chosen.size + len(faults), columns, rows.first, rows.place(chosen), faults))
        if chosen.size and self._type is not None:
            self._marks.put(new.place(np.arange(chosen.size)), keys[chosen], self._type)
        return new

    def _numbered(self, rows: Rows) -> Rows:
        """Return the rows of a database numbered from 1 on, without those that it sent only to be recognised."""
        if not self._snapshot.is_indexed:  # the place in a file or a table is what people look for
            return rows
        first = self._given + 1
        self._given += rows.counted
        if not rows.faults:
            return Rows(rows.counted, rows.columns, first)
        parsed = np.zeros(0, dtype=np.int64) if rows.places is None else rows.places
        places = np.sort(np.concatenate([parsed, np.array([place for place, _ in rows.faults], dtype=np.int64)]))
        faults = [(first + int(np.searchsorted(places, place)), fault) for place, fault in rows.faults]
        return Rows(rows.counted, rows.columns, first, first + np.searchsorted(places, parsed), faults)

    def _new_faults(self, faults: Sequence[tuple[int, Fault]]) -> Sequence[tuple[int, Fault]]:
        """Return rows that could not be read and were not rejected before: all of them are met again in each run."""
        known = 0 if self._old is None else self._old.unparsed
        surplus = faults[max(0, known - self._unparsed) :]
        self._unparsed += len(faults)
        return surplus

    def _is_new(self, keys: Positions, missing: NDArray[np.bool_], rows: Rows) -> NDArray[np.bool_]:
        """Return which rows are counted now, and remember them."""
        old = self._old
        wanted = ~missing if self._high is None else ~missing & (keys <= self._high)
        self.left += int(np.count_nonzero(~missing & ~wanted))
        new = wanted.copy()
        if old is not None:
            before = wanted & is_before(keys, old.since, old.is_open)
            inside = np.flatnonzero(wanted & ~before & (keys <= old.key))
            self._before += int(np.count_nonzero(before))
            new &= keys > old.key
            unknown = inside[self._is_unknown(keys, rows, inside)]
            is_counted = (keys[unknown] == old.key) | (self._settings.late == "count")
            new[unknown[is_counted]] = True
            self._counted.update(keys[unknown[is_counted]].tolist())
            self._late += keys[unknown[~is_counted]].tolist()
        self._up_to_mark += int(np.count_nonzero(wanted))
        counted = keys[new]
        if counted.size:
            largest, smallest = int(counted.max()), int(counted.min())
            self._key = largest if self._key is None else max(self._key, largest)
            self._first = smallest if self._first is None else min(self._first, smallest)
            self._remember(keys, new, rows)
        return new

    def _is_unknown(self, keys: Positions, rows: Rows, which: Positions) -> NDArray[np.bool_]:
        """Return which rows of the old window were not counted; of equal rows, as many are known as were counted."""
        if not which.size:
            return np.zeros(0, dtype=bool)
        digests, group = self._digests(keys, rows, which)
        sizes = np.bincount(group)
        known = np.array([min(self._known[digest], size) for digest, size in zip(digests, sizes.tolist(), strict=True)])
        self._known.subtract(dict(zip(digests, known.tolist(), strict=True)))
        order = np.argsort(group, kind="stable")
        rank = np.empty_like(group)
        rank[order] = np.arange(group.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.asarray(rank >= known[group])

    def _digests(self, keys: Positions, rows: Rows, which: Positions) -> tuple[list[RowDigest], Positions]:
        columns = {name: rows.columns[name] for name in self._columns}
        return self._digester.digests(keys, columns, which)

    def _remember(self, keys: Positions, new: NDArray[np.bool_], rows: Rows) -> None:
        """Remember the rows that are in the window now, and forget those that it has left."""
        if not self._settings.keeps_digests:
            self._remembered.clear()
            return
        since, is_open = self._window(self._reached())
        inside = np.flatnonzero(new & ~is_before(keys, since, is_open))
        if inside.size:
            digests, group = self._digests(keys, rows, inside)
            self._remembered.update(dict(zip(digests, np.bincount(group).tolist(), strict=True)))
        self._forget(since, is_open)
        if len(self._remembered) > MAX_REMEMBERED_ROWS:
            raise self._too_many(len(self._remembered))

    def _forget(self, since: int, is_open: bool) -> None:
        last = since if is_open else since - 1
        for entry in [entry for entry in self._remembered if entry[0] <= last]:
            del self._remembered[entry]

    def _reached(self) -> int | None:
        """Return the mark as far as it is known while rows are read: a database says at once where they end."""
        return self._largest if self._snapshot.is_indexed and self._high is None else self._key

    def _window(self, key: int | None) -> tuple[int, bool]:
        """Return from where on rows are remembered, and whether that is left out: all counted rows there are known."""
        assert self._type is not None and key is not None  # noqa: S101, PT018  # a row was counted, now or before
        if not self._settings.keeps_digests:
            return key, True
        window = self._type.span(self._settings.late_window or 0, "--late-window")
        since = max(key - window, self._type.lowest)
        if self._old is None or since > self._old.since:
            return since, False
        return self._old.since, self._old.is_open

    def _too_many(self, rows: int) -> IntakeError:
        return self._refused(
            "too-many-at-mark",
            "too many rows at the watermark to be remembered",
            got=f"{rows:,} rows",
            expected=f"at most {MAX_REMEMBERED_ROWS:,} rows from the start of the window on",
            remedy="name a column with finer values, or a smaller --late-window; or pass --lag, so that rows are "
            "counted only when all with the same value have arrived",
        )

    def _refused(self, code: str, what: str, *, got: str, expected: str, remedy: str) -> IntakeError:
        return refusal(code, what, where=self._where, got=got, expected=expected, remedy=remedy)

    def finish(self) -> tuple[Watermark | None, list[str]]:
        """Return the new watermark, and what is to be said; nothing is remembered if no row was ever counted."""
        self._check_not_back()
        if self._type is None or self._key is None or self._first is None:
            self._refuse_unmarked()
            return None, []
        old, skipped = self._old, self._snapshot.skipped
        gone = Counter(keys_of(+self._known))  # rows of the old window, by their keys
        replaced = (gone & self._counted).total()
        if old is not None and gone[old.key] and self._counted[old.key] and self._settings.late != "count":
            raise self._changed(old, gone[old.key], self._counted[old.key])
        since, is_open = self._window(self._key)
        if not self._settings.keeps_digests:
            self._remembered.clear()
        self._forget(since, is_open)
        outside = _count_before(self._late, since, is_open)
        gone_here = gone.total() - _count_before(gone.elements(), since, is_open)
        waiting = len(self._late) - outside
        here = self._remembered.total() - gone_here + waiting
        before = None if skipped is None else skipped + self._up_to_mark - here
        missed, lost = outside, gone.total()
        if old is not None:
            missed += old.missed
            if skipped is not None and old.before is not None:
                change = skipped + self._before - old.before
                missed, lost = missed + max(0, change), lost + max(0, -change)
        mark = Watermark(
            self._settings.column,
            self._type,
            self._key,
            self._first,
            self._columns,
            since,
            is_open,
            before,
            self._remembered,
            self._unmarked,
            self._unparsed,
            missed,
            waiting,
            self._source.size_in_bytes,
        )
        if old is None or self._settings.late == "ignore":
            return mark, []
        late = self._counted.total() - self._counted[old.key]
        return mark, late_notes(self._source.name, mark, old, counted=late, gone=lost, replaced=replaced)

    def _refuse_unmarked(self) -> None:
        """Refuse rejected rows of a source without a single mark: nothing would say next time that they were read."""
        rejected = self._unmarked + self._unparsed
        if rejected:
            raise self._refused(
                "not-a-mark",
                "no row that can be counted has an entry in the column of the watermark",
                got=f"{plural(rejected, 'row')} without an entry, or that cannot be read",
                expected="at least one row to begin with",
                remedy="complete the column, name another one, or collect when there are such rows",
            )

    def _changed(self, old: Watermark, gone: int, came: int) -> IntakeError:
        """Return the error for rows at the mark that are gone while others came: they may be the same, changed."""
        return self._refused(
            "rows-changed",
            "rows at the watermark changed since they were counted",
            got=f"{plural(gone, 'row')} at {old.value} gone, and {plural(came, 'other row')} in their place",
            expected="a source to which rows are only added",
            remedy="if rows were deleted and others added, pass --late count; if rows were changed, collect "
            "everything again into a new tally",
        )


def _count_before(keys: Iterable[int], low: int, is_open: bool) -> int:
    """Return how many keys lie before a bound."""
    return int(np.count_nonzero(is_before(np.fromiter(keys, dtype=np.int64), low, is_open)))


def _no_mark(column: str) -> Fault:
    return row_fault(
        "no-mark",
        "the row has no entry in the column of the watermark",
        got="nothing",
        expected=f"an entry in the column {column} in every row",
        remedy="complete the row, or declare the column NOT NULL",
        column=column,
    )
