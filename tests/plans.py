"""Plans made by hand: what an engine could have found, without waiting for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hubbub.planning import Plan
from hubbub.planning.answers import Needed, Privacy, Question, SettingResult, Spread, Widths

DIAMETER = 14.2  # km


def spread(median: float, relative: float = 0.03) -> Spread:
    return Spread(median, median * (1 - relative), median * (1 + relative), median * 1.01, median * 1.2)


def plain(epsilon: float) -> Privacy:
    return Privacy(epsilon, None, None, epsilon, None)


def per_km(epsilon: float, radius: float = DIAMETER) -> Privacy:
    return Privacy(None, epsilon, "km", epsilon * radius, radius)


UNBOUNDED = Privacy(None, None, None, None, None)


def question(**changes: Any) -> Question:
    usual: dict[str, Any] = {
        "users": (), "target": None, "truths": ("bells",), "method": "ibu", "distance": "tv", "confidence": 0.5,
        "level": 0.95, "runs": None, "radius": None, "unit": None, "seed": 0,
    }  # fmt: skip
    return Question(**(usual | changes))


def setting(candidate: str, epsilon: float | None, users: int, median: float, **changes: Any) -> SettingResult:
    usual: dict[str, Any] = {
        "privacy": UNBOUNDED if epsilon is None else plain(epsilon), "reports_per_user": 1, "truth": "bells",
        "tv": spread(median), "emd": None, "closed": 1.0, "runs": 200, "extrapolated": False,
        "widths": Widths(np.array([0, 1, 2]), np.array([0.1, 0.12, 0.2]), 0.95),
    }  # fmt: skip
    return SettingResult(candidate=candidate, epsilon=epsilon, users=users, **(usual | changes))


def needed(
    candidate: str, epsilon: float | None, value: float | None, relative: float = 0.05, **changes: Any
) -> Needed:
    usual: dict[str, Any] = {
        "privacy": UNBOUNDED if epsilon is None else plain(epsilon), "reports_per_user": 1, "truth": "bells",
        "what": "users", "low": None if value is None else value * (1 - relative),
        "high": None if value is None else value * (1 + relative), "most": 1e9,
    }  # fmt: skip
    return Needed(candidate=candidate, epsilon=epsilon, value=value, **(usual | changes))


def planned(settings: Any = (), needs: Any = (), **changes: Any) -> Plan:
    return Plan(question(**changes), tuple(settings), tuple(needs), ())
