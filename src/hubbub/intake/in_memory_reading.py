"""Reports read into memory, each group of a column by itself, or all together."""

from __future__ import annotations

from collections.abc import Generator

from hubbub.core.progress import Progress
from hubbub.intake.counting.counted_reports import spent_by
from hubbub.intake.counting.external_sort import Scratch
from hubbub.intake.counting.group_counters import GroupCounters
from hubbub.intake.group_names import EVERYBODY, Group
from hubbub.intake.read_plan import ReadPlan, read_rows
from hubbub.intake.reading_notes import shared_notes
from hubbub.intake.tallies.tally_summary import Summary
from hubbub.reports import Reports
from hubbub.reports.validation import no_reports


def read(plan: ReadPlan) -> Generator[Progress, None, tuple[Reports, Summary]]:
    """Read all reports of a plan without groups; return them with a summary of what was counted."""
    return (yield from read_groups(plan))[EVERYBODY]


def read_groups(plan: ReadPlan) -> Generator[Progress, None, dict[Group, tuple[Reports, Summary]]]:
    """Read the reports of a plan, each group by itself."""
    with Scratch(plan.memory) as scratch:
        with plan.rejecting() as rejects:
            groups = GroupCounters(plan.study, scratch, rejects, plan.by, users=plan.users, survey=plan.survey)
            counted = yield from read_rows(plan, groups.take, digests=False)
            yield Progress(0, 0, "merging users" if plan.users else "merging rows")
            notes = (*plan.notes, *shared_notes(groups.shared_users() if plan.users else 0))
            contents = groups.contents()
        plan.check_rejected(rejects, groups.rows)
        found = {group: content.reports_or_none() for group, content in contents.items()}
    rejected, dates = groups.rejected(), plan.dates()
    answers = {
        group: (
            reports,
            Summary(
                plan.study,
                reports.users,
                groups.rows_of(group),
                rejected[group],
                counted,
                spent_by(plan.study, reports.blocks, {}),
                plan.users,
                notes=notes,
                dates=dates,
            ),
        )
        for group, reports in found.items()
        if reports is not None  # None: all rows of the group were rejected, and are listed
    }
    if not answers:
        raise no_reports(plan.names[0], "no row that could be counted")
    return answers
