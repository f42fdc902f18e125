"""The shape of a product: a box of cells with an axis for each attribute, some of them lines or maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.domains.base import Domain
from hubbub.domains.domain_shape import DomainShape
from hubbub.domains.product import Product

MAX_SMOOTHED_SIDE = 2_000  # values of an attribute, up to which it is smoothed by a matrix


@dataclass(frozen=True, eq=False)
class ProductShape(DomainShape):
    """Where the values of a product lie in the box of all combinations, and the shape of each attribute.

    Smoothing is along the attributes whose values have neighbours; others stay as they are.
    """

    names: tuple[str, ...] = ()
    axes: tuple[DomainShape, ...] = ()
    cells: Positions | None = None  # in the box; None where the values fill it

    @classmethod
    def of_product(cls, product: Product, positions: Positions | None) -> ProductShape:
        """Return the shape of a product, or of those of its values that are at some positions."""
        cells = product.cells
        if positions is not None:
            cells = positions if cells is None else cells[positions]
        axes = tuple(DomainShape.of(domain) for domain in product.attributes.values())
        values = len(product) if positions is None else positions.size
        return cls(values, names=tuple(product.attributes), axes=axes, cells=cells)

    @property
    def sides(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(axis.values for axis in self.axes)

    @cached_property
    def lines(self) -> tuple[int, ...]:
        """The attributes whose values have neighbours."""
        axes = enumerate(self.axes)
        return tuple(place for place, axis in axes if axis.places is not None and 2 < axis.values <= MAX_SMOOTHED_SIDE)

    @property
    def smooths_along_axes(self) -> bool:
        """True: smoothing is one small product for each attribute."""
        return True

    @property
    def coordinates(self) -> tuple[Positions, ...]:
        """The position of each value on each attribute."""
        return np.unravel_index(np.arange(self.values) if self.cells is None else self.cells, self.sides)

    def boxed(self, rows: Floats, empty: float = 0.0) -> Floats:
        """Return rows over values as rows over the box, with `empty` where there is no value."""
        if self.cells is None:
            return rows.reshape(len(rows), *self.sides)
        box = np.full((len(rows), int(np.prod(self.sides))), empty)
        box[:, self.cells] = rows
        return box.reshape(len(rows), *self.sides)

    def unboxed(self, box: Floats) -> Floats:
        """Return the entries of rows over the box at the values."""
        rows = box.reshape(len(box), -1)
        return rows if self.cells is None else rows[:, self.cells]

    def kernel(self, width: float) -> Floats:
        """Return a matrix that spreads each value's mass along the attributes: rows sum to 1."""
        return self.smoothed(np.eye(self.values), width)

    def knots(self, width: float) -> Positions:  # noqa: ARG002
        """Return all values."""
        return np.arange(self.values)

    def smoothed(self, rows: Floats, width: float) -> Floats:
        """Spread mass along the attributes; none goes to combinations that are no values."""
        return self.unboxed(self._along_lines(self.boxed(rows / self._kept(width)), width, adjoint=False))

    def gathered(self, rows: Floats, width: float) -> Floats:
        """Return the adjoint of `smoothed`."""
        return self.unboxed(self._along_lines(self.boxed(rows), width, adjoint=True)) / self._kept(width)

    def _along_lines(self, box: Floats, width: float, *, adjoint: bool) -> Floats:
        for place in self.lines:
            kernel = self._kernels(width)[place]
            moved = np.moveaxis(box, place + 1, -1) @ (kernel.T if adjoint else kernel)
            box = np.moveaxis(moved, -1, place + 1)
        return box

    def _kept(self, width: float) -> Floats:
        """Return how much of each value's mass stays on values when it is spread."""
        if self.cells is None:
            return np.ones(1)
        known = self._kept_by_width
        if width not in known:
            known[width] = self.unboxed(self._along_lines(self.boxed(np.ones((1, self.values))), width, adjoint=True))
        return known[width]

    def _kernels(self, width: float) -> dict[int, Floats]:
        known = self._kernels_by_width
        if width not in known:
            known[width] = {place: self.axes[place].kernel(width) for place in self.lines}
        return known[width]

    @cached_property
    def _kept_by_width(self) -> dict[float, Floats]:
        return {}

    @cached_property
    def _kernels_by_width(self) -> dict[float, dict[int, Floats]]:
        return {}


def shape_of(domain: Domain) -> DomainShape:
    """Return the shape of any domain: that of a product has an axis for each attribute."""
    whole = domain.unrestricted
    if isinstance(whole, Product):
        return ProductShape.of_product(whole, domain.among)
    return DomainShape.of(domain)
