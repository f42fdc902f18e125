"""The question a plan was asked and its answers: errors to expect, what a target takes, or the power of a test.

`Candidate` keys, and with them the seeds of simulated studies, depend on the name and the fields of `Privacy`:
renaming them changes numbers. The fields of all other classes are the keys of the JSON document, in this order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hubbub.core.arrays import Array, Floats
from hubbub.core.serialization import Portable
from hubbub.core.text import whole_percent

ERROR, USERS, EPSILON, GROUP_USERS, POWER = "error", "users", "epsilon", "users_per_group", "power"
DISTANCE_NAMES = {"tv": "total variation", "emd": "earth mover's distance"}
SAME_EPSILON = 1e-6  # relative difference below which two epsilons are the same budget
MEDIAN = 0.5  # confidence at which half of the studies reach the target

Interval = tuple[float, float, float]  # a number and its 95% interval, given the number of simulated studies


@dataclass(frozen=True)
class Spread(Portable):
    """The error over simulated studies, and how precisely the simulation knows it."""

    median: float
    low: float  # 95% interval of the median, given the number of simulated studies
    high: float
    mean: float
    ninth: float  # the ninth decile: 9 of 10 studies have a smaller error


@dataclass(frozen=True)
class Privacy(Portable):
    """What one user spends with all reports together. The two kinds of epsilon are never added."""

    ldp: float | None = None  # plain epsilon; None: none is spent, or it is unbounded
    per_unit: float | None = None  # epsilon per unit of distance
    unit: str | None = None
    equivalent: float | None = None  # everything as plain epsilon, over a distance of `radius`; None: unbounded
    radius: float | None = None  # the caller's radius or the domain's diameter; None where no distance matters

    @property
    def plain(self) -> float | None:
        """What is spent as plain epsilon; None where it is unbounded."""
        if self.equivalent is not None:
            return self.equivalent
        return self.ldp if self.per_unit is None else None


@dataclass(frozen=True, eq=False)
class Widths(Portable):
    """Widths of the intervals to expect, for some values."""

    values: Array
    widths: Floats
    level: float


@dataclass(frozen=True, eq=False)
class CandidateAnswer(Portable):
    """The candidate that an answer is about, and what its users spend."""

    candidate: str
    epsilon: float | None  # of the mechanism, or the budget of a user; None for mixtures, and where it is searched for
    privacy: Privacy | None  # None: no epsilon reaches the target
    reports_per_user: int
    realised_share: float | None = field(default=None, kw_only=True)  # of the claimed epsilon; None: not known

    @property
    def key(self) -> tuple[str, float | None, int]:
        """Which candidate this is about: its name, epsilon and number of reports per user."""
        return self.candidate, self.epsilon, self.reports_per_user

    @property
    def label(self) -> str:
        """The candidate's name, with its number of reports where that is not one."""
        reports = f"{self.reports_per_user} reports"
        if self.reports_per_user == 1 or reports in self.candidate:
            return self.candidate
        return f"{self.candidate}, {reports} each"

    @property
    def spent(self) -> Privacy:
        """What a user spends; nothing is known where no epsilon reaches the target."""
        return self.privacy or Privacy()


@dataclass(frozen=True, eq=False)
class SettingResult(CandidateAnswer):
    """The errors to expect for one candidate, number of users and truth."""

    users: int
    truth: str
    tv: Spread
    emd: Spread | None  # None: the domain has no distances
    widths: Widths | None  # None: too large a problem
    closed: float | None  # standard deviation of matrix inversion, simulated over closed form: ideally 1; None: unknown
    runs: int
    extrapolated: bool  # from fewer users, because this many cannot be simulated
    from_sums: bool = False  # estimated from how many reports support each value, because reports were too many
    screened: bool = False  # left after a few studies: the best candidate's errors were all smaller
    others: tuple[SettingResult, ...] = ()  # results for the other truths, where this is the worst of several


@dataclass(frozen=True)
class Needed(CandidateAnswer):
    """What was looked for: the users or epsilon that a candidate needs, or its power to detect a difference."""

    truth: str
    what: str  # "users", "epsilon", "users_per_group" or "power"
    value: float | None  # None: the target is out of reach, even with `most`
    low: float | None  # 95% interval of `value`, given the number of simulated studies
    high: float | None
    most: float  # the largest number of users, or epsilon, that was tried; 1 of a power
    users: int | None = None  # where epsilon is searched for; per group where the power is
    extrapolated: bool = False
    reason: str = ""  # why the target is out of reach, or why less than `value` may be enough
    others: tuple[Needed, ...] = ()  # results for the other truths, where this is the worst of several
    hardest: Any = None  # the value whose difference between groups takes most users, and has the least power

    @property
    def is_upper_bound(self) -> bool:
        """Whether the smallest number tried already reaches the target, so that less may be enough."""
        return self.value is not None and self.reason != "" and self.low == self.value == self.high

    @property
    def interval(self) -> Interval:
        """The value, its low and its high end; a missing end is the value itself."""
        value = self.value or 0.0
        return value, value if self.low is None else self.low, value if self.high is None else self.high


Answer = SettingResult | Needed
AnswerType = TypeVar("AnswerType", SettingResult, Needed)


@dataclass(frozen=True)
class Question(Portable):
    """What a plan was asked: everything besides the candidates that decides its numbers."""

    users: tuple[int, ...]  # per group, of a difference; empty: the number of users is searched for
    target: float | None
    distance: str
    unit: str | None
    method: str
    truths: tuple[str, ...]
    confidence: float
    level: float
    radius: float | None  # None: the domain's diameter
    runs: int | None  # None: as many as it takes
    seed: int | str
    difference: float | None = None  # between the shares of two groups
    power: float | None = None  # the probability of detecting it; None: it is searched for
    central_epsilon: float | None = None  # of shuffled reports, which decides the epsilon of each candidate
    delta: float | None = None  # of the central epsilon
    refused_kinds: tuple[str, ...] | None = None  # of a search among all kinds: those the domain does not allow

    @property
    def looks_for(self) -> str:
        """ERROR, USERS, EPSILON, GROUP_USERS or POWER."""
        if self.difference is not None:
            return POWER if self.users else GROUP_USERS
        if self.target is None:
            return ERROR
        return EPSILON if self.users else USERS

    @property
    def distance_name(self) -> str:
        """The name of the distance."""
        return DISTANCE_NAMES[self.distance]

    @property
    def distance_unit(self) -> str:
        """The unit of the distance with a space before it; empty for total variation, which has none."""
        return f" {self.unit}" if self.distance == "emd" and self.unit not in (None, "unit") else ""

    @property
    def distance_article(self) -> str:
        """The distance with its article: "a total variation"."""
        return f"{'a' if self.distance == 'tv' else 'an'} {self.distance_name}"

    @property
    def target_text(self) -> str:
        """The target with its distance and unit, "a total variation of 0.05", or the difference, with its power."""
        if self.difference is not None:
            points = f"{100 * self.difference:.3g} percentage point{'' if self.difference == 0.01 else 's'}"
            power = "" if self.power is None else f" with power {whole_percent(self.power)}"
            return f"a difference of {points} in one share{power}"
        studies = "" if self.confidence == MEDIAN else f" in {100 * self.confidence:g}% of studies"
        return f"{self.distance_article} of {self.target:.3g}{self.distance_unit}{studies}"

    @property
    def purpose(self) -> str:
        """What users or epsilon are needed for."""
        return f"{'for' if self.difference is None else 'to detect'} {self.target_text}"

    def error(self, setting: SettingResult) -> Spread:
        """Return the error of a setting in the distance of the question."""
        if self.distance == "tv":
            return setting.tv
        assert setting.emd is not None  # noqa: S101  # the distance was checked against the domain
        return setting.emd

    def compared(self, answer: Answer) -> Interval:
        """Return the number by which answers are compared: an error, users, or what a user spends as plain epsilon."""
        if isinstance(answer, SettingResult):
            error = self.error(answer)
            return error.median, error.low, error.high
        value, low, high = answer.interval
        plain = answer.spent.plain if answer.what == EPSILON else None
        if plain is None or value <= 0:
            return value, low, high
        return plain, plain * low / value, plain * high / value


def by_privacy(answers: Sequence[AnswerType], question: Question | None = None) -> list[list[AnswerType]]:
    """Return groups of equal plain epsilon, smallest first; unbounded ones come last, each in a group of its own.

    Candidates for a central epsilon are equally private, and one group.
    """
    if question is not None and question.central_epsilon is not None:
        return [list(answers)] if answers else []

    def plain_or_infinite(answer: Answer) -> float:
        return math.inf if answer.spent.plain is None else answer.spent.plain

    groups: list[list[AnswerType]] = []
    previous = -math.inf
    for answer in sorted(answers, key=plain_or_infinite):
        spent = plain_or_infinite(answer)
        if math.isfinite(spent) and math.isclose(previous, spent, rel_tol=SAME_EPSILON):
            groups[-1].append(answer)
        else:
            groups.append([answer])
            previous = spent
    return groups
