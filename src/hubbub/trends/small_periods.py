"""Periods with few users: joined to their neighbours."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub.core.text import listed, plural
from hubbub.reports import Reports
from hubbub.trends.change_search import join

JOINED = " to "  # between the names of the first and the last of the joined periods
MAX_NAMED_PERIODS = 5


def join_small_periods(periods: Mapping[str, Reports], min_users: int) -> tuple[dict[str, Reports], list[str]]:
    """Join each period with fewer users to the following ones, and the last to those before; say which."""
    parts: list[list[str]] = []
    users = min_users  # nothing is open at first
    for name, reports in periods.items():
        if users >= min_users:
            parts.append([])
            users = 0
        parts[-1].append(name)
        users += reports.users
    if users < min_users and len(parts) > 1:
        parts[-2:] = [parts[-2] + parts[-1]]
    joined = {
        part[0] if len(part) == 1 else f"{part[0]}{JOINED}{part[-1]}": join([periods[name] for name in part])
        for part in parts
    }
    longer = [name for name in joined if name not in periods]
    if not longer:
        return joined, []
    which = listed(longer, most=MAX_NAMED_PERIODS)
    return joined, [f"{plural(len(longer), 'period')} joined to have {min_users:,} users or more: {which}"]
