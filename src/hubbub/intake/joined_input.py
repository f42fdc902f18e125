"""Groups of an input with few users: joined to one group, or at least told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hubbub.comparison.small_groups import SmallGroups
from hubbub.intake.counting.counted_reports import spent_by
from hubbub.intake.study_input import StudyInput
from hubbub.intake.tallies.double_counting import added
from hubbub.reports import Reports


def join_small(groups: Mapping[str, StudyInput], min_users: int | None) -> dict[str, StudyInput]:
    """Join all groups with fewer users to one group; notes say which these are, and which groups have few users."""
    if min_users is None:
        return dict(groups)
    small = SmallGroups.among({name: own.summary.users for name, own in groups.items()}, min_users)
    kept = {name: own for name, own in groups.items() if name not in small.joined}
    if small.joined:
        kept[small.name] = _joined([groups[name] for name in small.joined])
    return {
        name: StudyInput(reports, replace(summary, notes=(*summary.notes, *small.notes)))
        for name, (reports, summary) in kept.items()
    }


def _joined(groups: list[StudyInput]) -> StudyInput:
    reports = [own.reports for own in groups if isinstance(own.reports, Reports)]
    together = sum(reports[1:], start=reports[0])
    summaries = [own.summary for own in groups]
    spent = spent_by(summaries[0].study, together.blocks, {})
    return StudyInput(together, replace(added(summaries), users=together.users, spent=spent))
