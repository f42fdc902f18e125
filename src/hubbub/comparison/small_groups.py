"""Groups with few users: joined to one group, or at least told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hubbub.core.errors import SettingError
from hubbub.core.text import listed, plural
from hubbub.reports import Reports

OTHERS = "others"
FEW_USERS = 30
MAX_NAMED_GROUPS = 5


class SmallGroups(NamedTuple):
    """Which groups are joined, what they are called together, and what is said of them and of other small ones."""

    joined: list[str]
    name: str
    notes: list[str]

    @classmethod
    def among(cls, users: Mapping[str, int], min_users: int) -> SmallGroups:
        """Find the groups with fewer than `min_users` users, and say which groups have few."""
        joined = [name for name, own in users.items() if own < min_users]
        kept = {name: own for name, own in users.items() if own >= min_users}
        name = OTHERS if OTHERS not in kept else f"{OTHERS} ({plural(len(joined), 'group')})"
        notes = []
        if joined:
            which = listed(joined, most=MAX_NAMED_GROUPS)
            groups = f"{plural(len(joined), 'group')} with fewer than {min_users:,} users"
            notes.append(f"{groups} joined as {name!r}: {which}")
            kept[name] = sum(users[each] for each in joined)
        few = [name for name, own in kept.items() if own < FEW_USERS]
        if few:
            which = listed(few, most=MAX_NAMED_GROUPS)
            notes.append(f"fewer than {FEW_USERS} users, so that little can be told of them: {which}")
        return cls(joined, name, notes)


def fold_small(
    groups: Mapping[str, Reports], min_users: int, where: str = "compare"
) -> tuple[dict[str, Reports], list[str]]:
    """Join all groups with fewer users to one group, and say so; say which groups have few users, too."""
    small = SmallGroups.among({name: reports.users for name, reports in groups.items()}, min_users)
    kept = {name: reports for name, reports in groups.items() if name not in small.joined}
    if small.joined:
        first, *others = (groups[name] for name in small.joined)
        kept[small.name] = sum(others, start=first)
    check_several(kept, f"{where}(min_group=)")
    return kept, small.notes


def check_several(groups: Mapping[str, object], where: str) -> None:
    """Refuse a single group."""
    if len(groups) < 2:
        raise SettingError(
            "one group is left",
            where=where,
            got=", ".join(groups),
            expected="two groups or more to compare",
            remedy="name a column with several values, or choose a smaller minimum group size",
        )
