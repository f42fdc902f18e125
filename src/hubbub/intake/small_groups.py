"""Groups with few users: joined to one group, or at least told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hubbub.core.text import listed, plural
from hubbub.intake.counting.counted_reports import spent_by
from hubbub.intake.study_input import StudyInput
from hubbub.intake.tallies.double_counting import added
from hubbub.reports import Reports

OTHERS = "others"
FEW_USERS = 30
MAX_NAMED_GROUPS = 5


def join_small(groups: Mapping[str, StudyInput], min_users: int) -> dict[str, StudyInput]:
    """Join all groups with fewer users to one group; notes say which these are, and which groups have few users."""
    small = [name for name, own in groups.items() if own.summary.users < min_users]
    kept = {name: own for name, own in groups.items() if name not in small}
    notes = []
    if small:
        name = OTHERS if OTHERS not in kept else f"{OTHERS} ({plural(len(small), 'group')})"
        kept[name] = _joined([groups[each] for each in small])
        which = listed(small, most=MAX_NAMED_GROUPS)
        notes.append(f"{plural(len(small), 'group')} with fewer than {min_users:,} users joined as {name!r}: {which}")
    few = [name for name, own in kept.items() if own.summary.users < FEW_USERS]
    if few:
        notes.append(
            f"fewer than {FEW_USERS} users, so that little can be told of them: {listed(few, most=MAX_NAMED_GROUPS)}"
        )
    return {
        name: StudyInput(reports, replace(summary, notes=(*summary.notes, *notes)))
        for name, (reports, summary) in kept.items()
    }


def _joined(groups: list[StudyInput]) -> StudyInput:
    reports = [own.reports for own in groups if isinstance(own.reports, Reports)]
    together = sum(reports[1:], start=reports[0])
    summaries = [own.summary for own in groups]
    spent = spent_by(summaries[0].study, together.blocks, {})
    return StudyInput(together, replace(added(summaries), users=together.users, spent=spent))
