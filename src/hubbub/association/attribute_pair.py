"""Two attributes: the reports about them alone, and distributions as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Product
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.reports.attribute_reduction import about_attributes


@dataclass(frozen=True, eq=False)
class AttributePair:
    """Two attributes of a product, in its order, and the reports about both or either of them."""

    names: tuple[str, str]
    reports: Reports

    @classmethod
    def of(cls, reports: Reports, names: tuple[str, str], where: str) -> AttributePair:
        """Leave out of the reports what they say about other attributes."""
        order = getattr(reports.domain, "attributes", {})
        texts = [name for name in names if isinstance(name, str)]
        in_order = tuple(name for name in order if name in texts)
        reduced = about_attributes(reports, in_order if len(in_order) == len(names) else names, where)
        first, second = cast("Product", reduced.domain).attributes  # what is left is a product of two
        return cls((first, second), reduced)

    @property
    def domain(self) -> Product:
        """The product of the two."""
        return cast("Product", self.reports.domain)  # as in `of`

    @property
    def sides(self) -> tuple[int, int]:
        """The number of values of each."""
        first, second = self.domain.sides
        return first, second

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the reports, over all combinations."""
        return Likelihood.of(self.reports)

    def margins(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the shares of each attribute's values, given those of combinations."""
        table = shares.reshape(self.sides)
        return table.sum(axis=1), table.sum(axis=0)


def margin_moves(first: Floats, second: Floats) -> Floats:
    """Return how the shares of combinations move with those of each attribute's values, from first times second.

    A row for each value of the first attribute, then for each of the second.
    """
    along_first = np.kron(np.eye(first.size), second)
    along_second = np.kron(first, np.eye(second.size))
    return np.concatenate([along_first, along_second])
