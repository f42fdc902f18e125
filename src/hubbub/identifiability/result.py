"""The result of `identify`, and its sentences about values, shares and directions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, largest_first, plain
from hubbub.core.serialization import Portable
from hubbub.core.text import listed, percent, plural
from hubbub.domains import Domain
from hubbub.rendering import Fact, facts_html, facts_text

MAX_NAMED_VALUES = 3
MAX_NAMED_RANGES = 3  # values whose ranges are written out, the widest first
DIGITS_OF_ORDER = 6  # of a direction's entries, which decide the order of names
MIN_NAMED_ENTRY = 0.01  # of a direction, relative to its largest: smaller ones are not worth a name


@dataclass(frozen=True, eq=False)
class Identification(Portable):
    """What the reports determine, and what they leave open.

    Attributes
    ----------
    domain : Domain
        The values; the arrays are in the order of ``domain.labels``.
    users : int
        The number of users.
    identifiable : bool or None
        Whether any two distributions give the observed patterns different probabilities.
    unique : bool or None
        Whether the likelihood of these reports has one maximum.
    dimension : int or None
        The dimension of the set of all maxima: 0 if there is one.
    lower, upper : array
        The smallest and the largest probability of each value among all maxima; outer bounds of these unless `exact`.
    practical : bool or None
        False if a complete exchange along `direction` would go unnoticed with this many users.
    blind : float or None
        The smallest share that could move along `direction` and be noticed: infinite if no report depends on it.
    direction : array or None
        The exchange of one unit of mass (sum 0, sum of absolute values 2) that the reports determine worst, among
        values that may well have some.
    gap : float
        The gap of the maximum at which all this was computed, in nats per user; that of the uniform distribution where
        values and patterns are too many to search for a maximum.
    exact : bool
        Whether `lower` and `upper` are exact.
    reason : str
        Why something is not known: `identifiable`, `unique` and `dimension` are None if the problem is too large to
        decide. `practical`, `blind` and `direction` are None if they were not looked for; only `practical` is known if
        there is nothing to exchange.

    Examples
    --------
    >>> import hubbub as hb
    >>> travel = hb.RandomizedResponse(hb.Categories(["car", "train", "bike"]), epsilon=2.0)
    >>> answer = hb.identify(hb.Reports.from_counts(travel, {"car": 500, "train": 300, "bike": 200}))
    >>> answer
    Identification(identifiable=True, unique=True, dimension=0, practical=True)
    >>> round(answer.blind, 3)
    0.044
    """

    domain: Domain
    users: int
    identifiable: bool | None
    unique: bool | None
    dimension: int | None
    lower: Floats
    upper: Floats
    practical: bool | None
    blind: float | None
    direction: Floats | None
    gap: float
    exact: bool = True
    reason: str = ""

    def explain(self) -> str:
        """Return all of this in a few plain sentences.

        Returns
        -------
        str
            Whether there is one answer, and which moves between values would go unnoticed.
        """
        sentences = [self._about_maxima(), self._about_users(), self.reason]
        return " ".join(sentence for sentence in sentences if sentence)

    def _about_maxima(self) -> str:
        if self.unique is None:
            return "It is not known whether these reports determine one distribution."
        if not self.unique:
            return self._about_family()
        text = "The reports determine one distribution: no other fits as well."
        if self.identifiable is False:
            text += " With other counts of the same patterns, several distributions could fit equally well"
            if self.direction is not None:
                text += f": the patterns do not tell {describe_direction(self.domain, self.direction)}"
            text += "."
        return text

    def _about_family(self) -> str:
        text = "Many distributions fit equally well"
        text += "." if self.dimension is None else f": a family of dimension {self.dimension:,}."
        if self.direction is not None:
            text += f" The reports cannot tell {describe_direction(self.domain, self.direction)}: "
            text += "people could move between them, and every report would be as likely as before."
        width = self.upper - self.lower
        widest = largest_first(width)[:MAX_NAMED_RANGES]
        ranges = [
            f"{name_values(self.domain, [position])} from {percent(self.lower[position])} "
            f"to {percent(self.upper[position])}"
            for position in widest[width[widest] > 0].tolist()
            if self.exact
        ]
        return f"{text} Shares that fit equally well: {', '.join(ranges)}." if ranges else text

    def _about_users(self) -> str:
        if self.identifiable is False or self.blind is None or self.direction is None:
            return ""
        users = plural(self.users, "user")
        exchange = describe_direction(self.domain, self.direction, "to")
        neighbours = _neighbours(self.domain, self.direction)
        if self.practical:
            moves = f"Moves from {exchange}"
            if neighbours:
                first, second = (name_values(self.domain, side[:1]) for side in _sides(self.direction))
                moves = f"Moves between {neighbours}, such as {first} and {second},"
            return (
                f"{moves} are the hardest to notice: "
                f"with {users}, shares below {percent(self.blind)} could go unnoticed."
            )
        if neighbours:
            return (
                f"In practice, the reports of {users} cannot tell {neighbours} apart: "
                f"any share could move from {exchange} and go unnoticed."
            )
        return (
            f"In practice, the reports of {users} cannot tell {describe_direction(self.domain, self.direction)}: "
            "any share could move between them and go unnoticed."
        )

    def facts(self) -> list[Fact]:
        """Return what printing shows: labels with texts."""
        words = {True: "yes", False: "no", None: "not known"}
        dimension = "not known" if self.dimension is None else f"{self.dimension:,}"
        return [
            Fact("identifiable", words[self.identifiable]),
            Fact("one maximum", words[self.unique]),
            Fact("dimension", f"{dimension} (of the set of all maxima)"),
            Fact("in practice", words[self.practical]),
            Fact("users", f"{self.users:,}"),
            Fact("in words", self.explain()),
        ]

    def __str__(self) -> str:
        return facts_text(self.facts())

    def _repr_html_(self) -> str:
        return facts_html(self.facts())

    def __repr__(self) -> str:
        return (
            f"Identification(identifiable={self.identifiable}, unique={self.unique}, dimension={self.dimension}, "
            f"practical={self.practical})"
        )


def name_values(domain: Domain, positions: Iterable[int]) -> str:
    """Return the values at some positions as a list for a sentence: a few by name, then how many more."""
    if domain.is_on_map or domain.product is not None:
        return listed([f"({domain.title(position)})" for position in positions], most=MAX_NAMED_VALUES)
    return listed([repr(plain(domain.labels[position])) for position in positions], most=MAX_NAMED_VALUES)


def describe_direction(domain: Domain, direction: Floats, link: str = "from") -> str:
    """Return what a direction exchanges: "'a' from 'b' and 'c'", largest entries first."""
    fewer, more = _sides(direction)
    return f"{name_values(domain, fewer)} {link} {name_values(domain, more)}"


def _sides(direction: Floats) -> tuple[list[int], list[int]]:
    """Return the positions on either side of a direction, largest entries first.

    The side with fewer values comes first, or the one with the first value, because the sign of a direction is
    arbitrary.
    """
    relative = (direction / np.abs(direction).max()).round(DIGITS_OF_ORDER)  # rounding must not decide between equals
    order = np.argsort(-np.abs(relative), kind="stable")
    gaining = [int(position) for position in order if relative[position] > MIN_NAMED_ENTRY]
    losing = [int(position) for position in order if relative[position] < -MIN_NAMED_ENTRY]
    fewer, more = sorted((gaining, losing), key=lambda side: (len(side), min(side)))
    return fewer, more


def _neighbours(domain: Domain, direction: Floats) -> str:
    """Return "neighbouring cells" or "neighbouring values" if the main entries of a direction are; "" otherwise."""
    if domain.grid is None and domain.places is None:
        return ""
    first, second = (int(domain.labels[side[0]]) for side in _sides(direction))
    if domain.grid is None:
        return "neighbouring values" if abs(first - second) == 1 else ""
    (row, column), (other_row, other_column) = divmod(first, domain.grid.columns), divmod(second, domain.grid.columns)
    return "neighbouring cells" if max(abs(row - other_row), abs(column - other_column)) <= 1 else ""
