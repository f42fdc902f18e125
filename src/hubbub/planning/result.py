"""What a plan found: how large the error will be, or how many users, or how much epsilon, it takes."""

from __future__ import annotations

from dataclasses import dataclass

from hubbub.core.arrays import Array, Floats
from hubbub.core.portable import Portable


@dataclass(frozen=True)
class Spread(Portable):
    """An error over simulated studies, and how well the simulation knows it."""

    median: float
    low: float  # the median lies between these two at 95%, as far as so many runs can tell
    high: float
    mean: float
    ninth: float  # nine studies of ten have less


@dataclass(frozen=True)
class Privacy(Portable):
    """What one user spends by all reports together. The two kinds of epsilon are never added."""

    ldp: float | None  # the plain epsilon that is spent; None: none is, or it has no bound
    per_unit: float | None  # the epsilon per unit of distance that is spent
    unit: str | None
    equivalent: float | None  # all of it as plain epsilon, distances counted as `radius`; None: it has no bound
    radius: float | None  # the domain's diameter, or what was stated; None where no distance matters


@dataclass(frozen=True, eq=False)
class Widths(Portable):
    """How wide the intervals will be, for the values that were tried."""

    values: Array
    widths: Floats
    level: float


@dataclass(frozen=True, eq=False)
class SettingResult(Portable):
    """One cell of the table: a way to report, a number of users, a truth; and what to expect of it."""

    candidate: str  # the name of the way to report
    epsilon: float | None  # as the mechanism, or the budget that was asked for, states it; None for mixtures
    privacy: Privacy
    reports_per_user: int
    users: int
    truth: str
    tv: Spread
    emd: Spread | None  # None: the domain has no distances
    widths: Widths | None  # None: not asked for, or too large a problem
    closed: float | None  # deviation of plain inversion, measured over predicted: 1 if all is well; None: unknown
    runs: int
    extrapolated: bool  # from fewer users, where so many are too many to simulate
    others: tuple[SettingResult, ...] = ()  # the same under the other truths, where this is the worst of several


@dataclass(frozen=True)
class Needed(Portable):
    """What it takes to reach a target: users for each way to report, or epsilon where users are given."""

    candidate: str
    epsilon: float | None  # None where it is what was looked for, or for mixtures
    privacy: Privacy | None
    reports_per_user: int
    truth: str
    what: str  # "users" or "epsilon"
    value: float | None  # None: the target is out of reach (more than `most` would not do either)
    low: float | None  # simulation error of `value`, at 95%
    high: float | None
    most: float  # the largest that was tried
    users: int | None = None  # given, where epsilon is looked for
    extrapolated: bool = False
    reason: str = ""  # why nothing was found, in a sentence
    others: tuple[Needed, ...] = ()  # the same under the other truths, where this is the worst of several
