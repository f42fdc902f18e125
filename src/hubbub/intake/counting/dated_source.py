"""A source as it was known at some time: rows with a later time are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Positions
from hubbub.core.errors import SettingError, shorten
from hubbub.intake.counting.partial_source import PartialSource
from hubbub.intake.periods import written_times
from hubbub.intake.sources.base import Rows, Source, check_counted

AS_OF = re.compile(r"(\d{4}-\d\d-\d\d)([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?Z?")
DAY = np.timedelta64(1, "D").astype("timedelta64[us]").astype(np.int64)


@dataclass(frozen=True)
class AsOf:
    """A date, to its end, or a time: rows up to it, as their times are written, were known."""

    text: str
    last: int  # the last microsecond since 1970
    is_date: bool = False  # the end of a day is meant

    @classmethod
    def of(cls, text: object) -> AsOf | None:
        """Return the time that a text names."""
        if text is None:
            return None
        match = AS_OF.fullmatch(str(text).strip())
        try:
            written = "" if match is None else match[0].removesuffix("Z")
            moment = np.array(written or "NaT", dtype="datetime64[us]")
        except ValueError:
            moment = np.array("NaT", dtype="datetime64[us]")
        if match is None or np.isnat(moment):
            raise SettingError(
                "as_of must be a date or a time",
                where="--as-of",
                got=shorten(text),
                expected="an ISO date, whose last moment is meant, or an ISO time: 2026-11-17, 2026-11-17T08:30",
                remedy="write year, month and day; leave the offset out: times are compared as they are written",
            )
        key = int(moment.astype(np.int64))
        return cls(match[0], key) if match[2] else cls(match[1], key + int(DAY) - 1, is_date=True)


def time_text(microseconds: int) -> str:
    """Return a time as people write it; whole days without the time of day, whole seconds without their fractions.

    >>> time_text(0), time_text(1_000_000), time_text(1)
    ('1970-01-01', '1970-01-01T00:00:01', '1970-01-01T00:00:00.000001')
    """
    text = str(np.array(microseconds, dtype="datetime64[us]"))
    return text.removesuffix(".000000").removesuffix("T00:00:00")


class DatedSource(PartialSource):
    """The rows of a source whose time is not after a moment; after reading, `first` and `last` are their extremes."""

    def __init__(self, inner: Source, as_of: AsOf) -> None:
        super().__init__(inner)
        self._as_of = as_of
        self.first: int | None = None
        self.last: int | None = None

    def digest(self) -> str | None:
        """Return nothing: some of the content may be left out."""
        return None

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Yield the rows that were known; those without a time are rejected."""
        column = self.columns.name_of("time")
        for rows in self.inner.rows(wanted):
            self.done = self.inner.done
            check_counted(self.inner, rows)
            if not rows.parsed:
                yield rows
                continue
            yield self._known(rows, *written_times(rows.columns[column]))

    def _known(self, rows: Rows, times: Positions, faults: Sequence[tuple[int, object]]) -> Rows:
        import pyarrow as pa

        bad = np.array([row for row, _ in faults], dtype=np.int64)
        known = times <= self._as_of.last
        known[bad] = False
        self.left_out += int(np.count_nonzero(~known)) - bad.size
        if known.any():
            low, high = int(times[known].min()), int(times[known].max())
            self.first = low if self.first is None else min(self.first, low)
            self.last = high if self.last is None else max(self.last, high)
        kept = np.flatnonzero(known)
        rejected = [*rows.faults, *zip(rows.place(bad).tolist(), (fault for _, fault in faults), strict=True)]
        rejected.sort(key=lambda entry: entry[0])
        columns = {name: array.take(pa.array(kept)) for name, array in rows.columns.items()}
        return Rows(kept.size + len(rejected), columns, rows.first, rows.place(kept), rejected)  # type: ignore[arg-type]
