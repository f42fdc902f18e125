"""Everything the page of groups shows, as computed values: `groups_content` fills it in, `groups_html` renders it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.comparison import Comparison, GroupComparison
from hubbub.core.arrays import Floats
from hubbub.core.errors import HubbubError
from hubbub.core.serialization import Portable
from hubbub.domains import Domain
from hubbub.rendering import Fact

REST = "the rest"


class GroupStatistic(NamedTuple):
    """One number of each group, with its interval: a mean, or the share of the first value."""

    name: str
    estimate: Floats
    low: Floats  # as shown: these hold the estimate; NaN: not computed
    high: Floats


class Contrast(NamedTuple):
    """One group minus another, or minus the rest: for each value the difference, its interval, and whether it holds."""

    group: str
    other: str
    difference: Floats
    low: Floats
    high: Floats
    adjusted: Floats
    changed: NDArray[np.bool_]

    @property
    def title(self) -> str:
        """Which group is compared with which."""
        return f"{self.group} minus {self.other}"


@dataclass(frozen=True, eq=False)
class GroupsPage(Portable):
    """The content of a page about groups. Arrays of shares are groups by values, in the order of `domain.labels`."""

    title: str
    summary: str  # what a reader should take away
    by: str  # the column that the groups come from; empty: they were given by name
    comparison: Comparison | GroupComparison
    low: Floats  # of the groups' shares, as shown: these hold the estimates; NaN: not computed
    high: Floats
    statistic: GroupStatistic | None  # None on a map: its first cell says nothing about a group
    facts: tuple[Fact, ...]  # how it was computed
    notes: tuple[str, ...] = ()  # groups that were joined, groups with few users, rejected rows, ...

    def __post_init__(self) -> None:
        """Refuse intervals that do not belong to the shares: numbers would stand beside the wrong names."""
        expected = self.shares.shape
        for name, array, shape in (
            ("low", self.low, expected),
            ("high", self.high, expected),
            *((f"statistic.{field}", each, expected[:1]) for field, each in _arrays(self.statistic).items()),
        ):
            if array.shape != shape:
                raise HubbubError(
                    f"{name} does not have one number for each group and value",
                    where=f"GroupsPage({name}=)",
                    got=f"shape {array.shape}",
                    expected=f"shape {shape}",
                    remedy="give the numbers in the order of the comparison's groups and of domain.labels",
                )

    @property
    def domain(self) -> Domain:
        """The values of all groups."""
        return self.comparison.domain

    @property
    def names(self) -> tuple[str, ...]:
        """What the groups are called, in their order."""
        return self.comparison.names

    @property
    def users(self) -> tuple[int, ...]:
        """How many users each group has."""
        return self.comparison.users

    @property
    def level(self) -> float:
        """The level of all intervals."""
        return self.comparison.level

    @property
    def shares(self) -> Floats:
        """The estimate of each group."""
        return group_shares(self.comparison)

    @property
    def contrasts(self) -> list[Contrast]:
        """What is compared with what: each group with the rest or the reference, or the second group with the first."""
        own = self.comparison
        if isinstance(own, Comparison):
            return [Contrast(own.names[1], own.names[0], own.difference, own.low, own.high, own.adjusted, own.changed)]
        columns = zip(own.names, own.difference, own.low, own.high, own.adjusted, own.changed, strict=True)
        other = REST if own.against is None else own.against
        return [Contrast(name, other, *numbers) for name, *numbers in columns if name != own.against]


def group_shares(comparison: Comparison | GroupComparison) -> Floats:
    """Return the estimate of each group (groups by values)."""
    if isinstance(comparison, GroupComparison):
        return comparison.shares
    return np.array([comparison.first, comparison.second])


def _arrays(statistic: GroupStatistic | None) -> dict[str, Floats]:
    """Return the arrays of a statistic by their names."""
    if statistic is None:
        return {}
    return {"estimate": statistic.estimate, "low": statistic.low, "high": statistic.high}
