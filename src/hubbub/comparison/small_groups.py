"""Groups with few users: joined to one group, or at least told."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub.core.errors import SettingError
from hubbub.core.text import listed, plural
from hubbub.reports import Reports

OTHERS = "others"
FEW_USERS = 30
MAX_NAMED_GROUPS = 5


def fold_small(groups: Mapping[str, Reports], min_users: int) -> tuple[dict[str, Reports], list[str]]:
    """Join all groups with fewer users to one group, and say so; say which groups have few users, too."""
    small = [name for name, reports in groups.items() if reports.users < min_users]
    kept = {name: reports for name, reports in groups.items() if name not in small}
    notes = []
    if small:
        name = OTHERS if OTHERS not in kept else f"{OTHERS} ({plural(len(small), 'group')})"
        kept[name] = sum((groups[each] for each in small[1:]), start=groups[small[0]])
        which = listed(small, most=MAX_NAMED_GROUPS)
        notes.append(f"{plural(len(small), 'group')} with fewer than {min_users:,} users joined as {name!r}: {which}")
    if len(kept) < 2:
        raise SettingError(
            "one group is left",
            where="compare(min_group=)",
            got=f"{plural(len(groups), 'group')}, of which {len(small):,} have fewer than {min_users:,} users",
            expected="two groups or more to compare",
            remedy="choose a smaller minimum group size"
            if small
            else "name a column with several values, or another file",
        )
    few = [name for name, reports in kept.items() if reports.users < FEW_USERS]
    if few:
        notes.append(
            f"fewer than {FEW_USERS} users, so that little can be told of them: {listed(few, most=MAX_NAMED_GROUPS)}"
        )
    return kept, notes
