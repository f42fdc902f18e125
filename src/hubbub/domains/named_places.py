"""A map whose cells are called by the districts that they lie in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.core.arrays import Positions
from hubbub.core.errors import DomainError
from hubbub.core.text import listed
from hubbub.domains.base import Domain
from hubbub.domains.subset import Subset

MAX_NAMED_REGIONS = 2  # of an area that lies in several


@dataclass(frozen=True)
class NamedPlaces(Subset):
    """All values of `whole`, with the same labels: only their titles begin with the name of a region.

    Numbers are computed for `whole`; this is for pages and sentences about them.
    """

    names: tuple[str | None, ...]  # the region of each value of `whole`; None: in no region

    @classmethod
    def of(cls, whole: Domain, names: Sequence[str | None]) -> NamedPlaces:
        """Return the values of a domain with the names of their places, in the order of its labels."""
        if len(names) != len(whole):
            raise DomainError(
                "the names of places do not match the values",
                where="NamedPlaces.of(names)",
                got=f"{len(names):,} names",
                expected=f"one for each of {len(whole):,} values, or None",
                remedy="give the names in the order of domain.labels",
            )
        return cls(whole, tuple(range(len(whole))), tuple(names))

    def title(self, position: int) -> str:
        """Return the region, and where in it the value is."""
        name, place = self.names[position], self.whole.title(position)
        return place if name is None else f"{name} ({place})"

    def area_title(self, positions: Positions) -> str:
        """Return the regions that have the most of some cells, and where these cells are."""
        names = [self.names[position] for position in positions.tolist()]
        counted = Counter(name for name in names if name is not None)
        place = self.whole.area_title(positions)
        if not counted:
            return place
        most_first = sorted(counted, key=lambda name: (-counted[name], names.index(name)))
        return f"{listed(most_first, most=MAX_NAMED_REGIONS)} ({place})"
