"""A tally as the input of a command, group by group: all of it, or its days up to a date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hubbub.core.errors import SettingError, shorten
from hubbub.intake.counting.counted_reports import spent_by
from hubbub.intake.counting.dated_source import AsOf
from hubbub.intake.group_names import Group
from hubbub.intake.reading_notes import limit_notes
from hubbub.intake.report_dates import ReportDates, changes_of
from hubbub.intake.tallies.double_counting import rejected_in_groups
from hubbub.intake.tallies.tally import Tally
from hubbub.intake.tallies.tally_reading import grouped_reports, sections_by, sections_of
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.reports import Reports
from hubbub.reports.validation import no_reports


def tally_groups(tally: Tally, by: Sequence[str], as_of: str | None) -> dict[Group, tuple[Reports, Summary]]:
    """Return the reports of each group of a tally, with a summary of its own; without `by`, of everybody."""
    last_day = None if as_of is None else _last_day(tally, as_of)
    summary = tally.summary
    rejected = summary.rejected_by_group()
    reports, notes = grouped_reports(tally, by, last_day=last_day), limit_notes(tally.study, users=summary.named)
    if not reports:
        raise no_reports(str(tally.path), f"days after {last_day} alone")
    dates = _dates(tally, as_of, last_day)
    groups = {}
    for group, sections in sections_by(tally, by, last_day).items():
        own = rejected_in_groups([{group: rejected[section.group]} for section in sections])[group]
        rows = sum(section.outputs for section in sections) + sum(own.values())
        spent = spent_by(tally.study, reports[group].blocks, {})
        own_summary = replace(summary, users=reports[group].users, rows=rows, rejected=own, spent=spent)
        groups[group] = reports[group], replace(own_summary, notes=tuple(notes), dates=dates)
    return groups


def _last_day(tally: Tally, as_of: str) -> str:
    """Return the last day that was known; refuse a time, which days do not tell, and a tally without days."""
    moment = AsOf.of(as_of)
    assert moment is not None  # noqa: S101  # it is a text
    if not tally.has_days:
        raise SettingError(
            "a tally does not keep the times of its rows",
            where=f"{tally.path}, --as-of",
            got=shorten(as_of),
            expected="a tally that was collected by day",
            remedy="collect with --by day, or keep a copy of each night's tally; or read the sources themselves",
        )
    if not moment.is_date:
        raise SettingError(
            "a tally by day does not know times of the day",
            where=f"{tally.path}, --as-of",
            got=shorten(as_of),
            expected="a date, up to whose end rows are counted: 2026-11-17",
            remedy="name the date alone",
        )
    return moment.text


def _dates(tally: Tally, as_of: str | None, last_day: str | None) -> ReportDates:
    """Return the dates of a tally, and how many rows its later days have."""
    changed = changes_of([tally.path])
    if last_day is None:
        return ReportDates(changed=changed)
    place, rejected = tally.summary.by.index("day"), tally.summary.rejected_by_group()
    days = sorted(section.group[place] for section in sections_of(tally) if section.group[place] <= last_day)
    later = [section for section in sections_of(tally) if section.group[place] > last_day]
    rows = sum(section.outputs + sum(rejected[section.group].values()) for section in later)
    return ReportDates(days[0], days[-1], as_of, changed, rows)
