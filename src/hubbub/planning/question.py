"""What was asked of a plan, and how its ways to report are told apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hubbub.core.portable import Portable
from hubbub.planning.result import Needed, Privacy, SettingResult, Spread

ERROR, USERS, EPSILON = "error", "users", "epsilon"
DISTANCES = {"tv": "total variation", "emd": "earth mover's distance"}
SAME = 1e-6  # relative difference below which two epsilons are the same budget

Found = TypeVar("Found", SettingResult, Needed)
Key = tuple[str, float | None, int]  # a way to report: its name, its epsilon, its reports per user


@dataclass(frozen=True)
class Question(Portable):
    """What a plan is about: everything besides the ways to report that decides its numbers."""

    users: tuple[int, ...]  # none: they are what is looked for
    target: float | None
    truths: tuple[str, ...]
    method: str
    distance: str
    confidence: float
    level: float
    runs: int | None  # None: as many as it takes
    radius: float | None  # None: distances count as the domain's diameter
    unit: str | None
    seed: int | str

    @property
    def looks_for(self) -> str:
        """ERROR, USERS or EPSILON."""
        if self.target is None:
            return ERROR
        return EPSILON if self.users else USERS

    @property
    def distance_name(self) -> str:
        """The distance in words."""
        return DISTANCES[self.distance]

    @property
    def distance_unit(self) -> str:
        """What its numbers are in, with a space in front; nothing for total variation, which has no unit."""
        return f" {self.unit}" if self.distance == "emd" and self.unit not in (None, "unit") else ""

    def spread(self, setting: SettingResult) -> Spread | None:
        """Return the error that the question is about; None where a setting does not have it."""
        return setting.tv if self.distance == "tv" else setting.emd


def key_of(found: SettingResult | Needed) -> Key:
    """Return which way to report something is about."""
    return found.candidate, found.epsilon, found.reports_per_user


def worst_settings(settings: Iterable[SettingResult], question: Question) -> list[SettingResult]:
    """Return one setting for each way to report and number of users: that of the truth with the largest error."""
    worst: dict[tuple[Key, int], SettingResult] = {}
    for setting in settings:
        place = key_of(setting), setting.users
        if place not in worst or _size(question.spread(setting)) > _size(question.spread(worst[place])):
            worst[place] = setting
    return list(worst.values())


def _size(spread: Spread | None) -> float:
    return -math.inf if spread is None else spread.median


def worst_needed(needed: Iterable[Needed]) -> list[Needed]:
    """Return one answer for each way to report and number of users: that of the truth that asks the most."""
    worst: dict[tuple[Key, int | None], Needed] = {}
    for one in needed:
        place = key_of(one), one.users
        if place not in worst or _demand(one) > _demand(worst[place]):
            worst[place] = one
    return list(worst.values())


def _demand(one: Needed) -> float:
    return math.inf if one.value is None else one.value


def equivalent(privacy: Privacy | None) -> float | None:
    """Return what is spent as plain epsilon; None where nothing bounds it."""
    if privacy is None:
        return None
    return privacy.equivalent if privacy.equivalent is not None else privacy.ldp if privacy.per_unit is None else None


def is_least(one: Needed) -> bool:
    """Whether the least that was tried reaches the target already: it may take even less."""
    return one.value is not None and one.reason != "" and one.low == one.value == one.high


def by_privacy(found: Sequence[Found]) -> list[list[Found]]:
    """Return groups that spend the same, from the strictest on; what has no bound comes last, each by itself."""
    bounded: list[list[Found]] = []
    unbounded: list[list[Found]] = []
    for one in sorted(found, key=lambda each: _or_infinite(equivalent(each.privacy))):
        spent = equivalent(one.privacy)
        if spent is None:
            unbounded.append([one])
        elif bounded and math.isclose(_or_infinite(equivalent(bounded[-1][0].privacy)), spent, rel_tol=SAME):
            bounded[-1].append(one)
        else:
            bounded.append([one])
    return bounded + unbounded


def _or_infinite(number: float | None) -> float:
    return math.inf if number is None else number


def label_of(found: SettingResult | Needed) -> str:
    """Return the name of a way to report, with its number of reports where that is not one."""
    told = f"{found.reports_per_user} reports"
    if found.reports_per_user == 1 or told in found.candidate:
        return found.candidate
    return f"{found.candidate}, {told} each"
