"""Dates of reports: the period that they cover, as of when they were known, and when their sources last changed.

A tally holds no time of day, so that the same reports give the same bytes: the period comes from the data themselves,
and the time of a change from the file system, when the file is read.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hubbub.core.errors import SettingError, shorten
from hubbub.core.text import plural
from hubbub.intake.counting.watermark import Watermark

MAX_SHOWN_SOURCES = 3
Changes = tuple[tuple[str, str], ...]  # names of sources, and when each last changed


@dataclass(frozen=True)
class ReportDates:
    """When reports were sent, and when their sources changed; None where nothing says it."""

    first: str | None = None
    last: str | None = None
    as_of: str | None = None
    changed: Changes = ()
    left_out: int = 0  # rows that were sent later than `as_of`
    made: str | None = None  # the date of a report that is to be filed

    @classmethod
    def made_on(cls, dates: ReportDates | None, day: str) -> ReportDates:
        """Return dates with that of the report."""
        return replace(dates or cls(), made=day)

    def page_lines(self) -> list[tuple[str, str]]:
        """Return what a page says: nothing that is not in the data, unless it says when it was made."""
        return self.lines() if self.made else replace(self, changed=()).lines()

    def lines(self) -> list[tuple[str, str]]:
        """Return what is known as labels and texts."""
        lines = []
        if self.first is not None and self.last is not None:
            lines.append(("period", self.first if self.first == self.last else f"{self.first} to {self.last}"))
        if self.as_of is not None:
            later = f"; {plural(self.left_out, 'later row')} left out" if self.left_out else ""
            lines.append(("as of", f"{self.as_of}: what was known then{later}"))
        if self.changed:
            shown = [f"{name}, last changed {when}" for name, when in self.changed[:MAX_SHOWN_SOURCES]]
            hidden = len(self.changed) - len(shown)
            more = [f"{plural(hidden, 'more file')}, the last changed {max(when for _, when in self.changed)}"]
            lines.append(("sources", "; ".join(shown + (more if hidden else []))))
        if self.made is not None:
            lines.append(("report made", self.made))
        return lines


def today(text: str | None = None) -> str:
    """Return the date of a report: the one that is named, that of SOURCE_DATE_EPOCH, or today's, in UTC."""
    if text is not None:
        try:
            return datetime.date.fromisoformat(text).isoformat()
        except ValueError:
            raise SettingError(
                "the date of a report must be a date",
                where="--date",
                got=shorten(text),
                expected="an ISO date: 2026-11-17",
                remedy="leave it out for today's",
            ) from None
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.datetime.now(datetime.UTC)
    return f"{datetime.datetime.fromtimestamp(int(seconds), datetime.UTC) if seconds.isdecimal() else now:%Y-%m-%d}"


def changes_of(files: Iterable[Path]) -> Changes:
    """Return when files last changed, to the minute; their names without their folders."""
    found = []
    for path in files:
        changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
        found.append((path.name, f"{changed:%Y-%m-%d %H:%M} UTC"))
    return tuple(found)


def period_of_marks(marks: Sequence[Watermark | None]) -> tuple[str | None, str | None]:
    """Return the first and the last time of sources with watermarks; nothing if some source has no times."""
    times = [mark for mark in marks if mark is not None and mark.type.is_time]
    if not times or len(times) != len(marks):
        return None, None
    firsts, lasts = [mark.type.text(mark.first) for mark in times], [mark.value for mark in times]
    return _short(min(map(_sortable, firsts))), _short(max(map(_sortable, lasts)))


def _sortable(text: str) -> str:
    return text.replace(" ", "T", 1)


def _short(text: str) -> str:
    """Return a time without zeros that nobody wrote: whole seconds without their fractions.

    >>> _short("2026-11-17T08:30:00.000000Z"), _short("2026-11-17T08:30:00.250000"), _short("2026-11-17")
    ('2026-11-17T08:30:00Z', '2026-11-17T08:30:00.250000', '2026-11-17')
    """
    return re.sub(r"\.0+(?=Z?$)", "", text)
