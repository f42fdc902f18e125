"""The places of a domain's values: what smoothing, neighbours and smooth curves need to know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.domains import Domain

MAX_SPACINGS = 1e6  # places farther apart are all equally far
KNOTS_PER_WIDTH = 3.0  # of a smoothing
FILTER_REACH = 4.0  # deviations after which a smoothing filter ends


@dataclass(frozen=True)
class DomainShape:
    """Places of values in space; none for values without an order or a distance.

    `steps` counts them from the corner of a box along each axis, where they are on a lattice.
    """

    values: int
    places: Floats | None = None  # values by dimensions
    steps: Positions | None = None  # values by dimensions: whole numbers from 0

    @classmethod
    def of(cls, domain: Domain) -> DomainShape:
        """Return the shape of a domain."""
        coordinates, steps = domain.coordinates, domain.steps
        if coordinates is None or steps is None or len(domain) < 2:
            return cls(len(domain))
        corner = 0 if domain.among is None else steps.min(axis=0)
        return cls(len(domain), coordinates, steps - corner)

    @cached_property
    def spacing(self) -> float:
        """The usual distance between neighbours; where none touch, between each value and the nearest."""
        if self.places is None or self.values < 2:
            return 1.0
        first, second = self.neighbours
        if first.size:
            return float(np.median(np.hypot.reduce(self.places[first] - self.places[second], axis=1, initial=0.0)))
        from scipy.spatial import KDTree

        apart, _ = KDTree(self.places).query(self.places, k=[2])
        return float(np.median(apart))

    @cached_property
    def scaled(self) -> Floats:
        """Places in spacings, from 0; places beyond MAX_SPACINGS are all the same."""
        assert self.places is not None  # noqa: S101 (used only where there are places)
        return np.asarray(np.minimum((self.places - self.places.min(axis=0)) / self.spacing, MAX_SPACINGS))

    @property
    def dimensions(self) -> int:
        """The number of axes along which there is more than one place: a column of cells is a line."""
        return int(np.count_nonzero(np.ptp(self.scaled, axis=0)))

    @cached_property
    def neighbours(self) -> tuple[Positions, Positions]:
        """Pairs of values that are next to each other: one after the other on a line, with a common side on a map."""
        pairs = self.along_axes
        return np.concatenate([first for first, _ in pairs]), np.concatenate([second for _, second in pairs])

    @cached_property
    def along_axes(self) -> list[tuple[Positions, Positions]]:
        """Pairs of neighbours for each axis."""
        if self.steps is None:
            none: Positions = np.zeros(0, dtype=np.int64)
            return [(none, none)]
        if self.steps.shape[1] == 1:
            order = np.argsort(self.steps[:, 0], kind="stable")
            return [(order[:-1], order[1:])]  # also across a gap: the values in between are not part of the domain
        # One column more than there are, so that the last cell of a row has no neighbour in the east.
        columns = int(self.steps[:, 0].max()) + 2
        numbers = self.steps[:, 0] + columns * self.steps[:, 1]
        order = np.argsort(numbers, kind="stable")
        pairs = []
        for step in (1, columns):
            after = np.searchsorted(numbers[order], numbers + step)
            has_next = numbers[order][np.minimum(after, self.values - 1)] == numbers + step
            pairs.append((np.flatnonzero(has_next), order[after[has_next]]))
        return pairs

    def averaged(self, theta: Floats) -> Floats:
        """Return each value's mean with its neighbours, which count half, axis by axis: the smoothing of EMS."""
        for first, second in self.along_axes:
            total, count = 2.0 * theta, np.full(self.values, 2.0)
            for here, there in ((first, second), (second, first)):  # each list holds a value at most once
                total[here] += theta[there]
                count[here] += 1.0
            theta = total / count
        return np.asarray(theta / theta.sum())

    @cached_property
    def distances(self) -> Floats:
        """Distances between all values, in spacings."""
        squares = sum((axis[:, None] - axis[None, :]) ** 2 for axis in self.scaled.T)
        return np.asarray(np.sqrt(squares))

    @cached_property
    def extent(self) -> float:
        """The diagonal of the domain, in spacings; at most twice the number of values."""
        return min(float(np.linalg.norm(np.ptp(self.scaled, axis=0))), 2.0 * self.values)

    def trends(self, degree: int) -> Floats:
        """Return an orthonormal basis of the polynomials of degree up to 1 or 2 (values by polynomials)."""
        axes = (self.scaled - self.scaled.mean(axis=0)).T / max(float(np.ptp(self.scaled, axis=0).max()), 1.0)
        count = len(axes)
        squares = [axes[first] * axes[second] for first in range(count) for second in range(first, count)]
        terms = np.array([np.ones(self.values), *axes, *(squares if degree > 1 else [])]).T
        basis, sizes, _ = np.linalg.svd(terms, full_matrices=False)  # on a narrow map some depend on others
        return np.asarray(basis[:, sizes > 1e-9 * sizes[0]])

    @cached_property
    def lattice(self) -> tuple[int, ...] | None:
        """The sides of the box (slowest axis first) where values fill it evenly and in order; None otherwise."""
        if self.steps is None or self.places is None:
            return None
        sides = tuple(int(side) + 1 for side in self.steps.max(axis=0)[::-1])
        full = np.ravel_multi_index(tuple(self.steps.T[::-1]), sides)
        gaps = np.diff(self.places[:, 0]) if len(sides) == 1 else np.zeros(1)
        even = bool(np.ptp(gaps) <= 1e-6 * np.abs(gaps).max(initial=1e-300)) if gaps.size else True
        return (
            sides if even and np.array_equal(full, np.arange(self.values)) and np.prod(sides) == self.values else None
        )

    def kernel(self, width: float) -> Floats:
        """Return a matrix that spreads each value's mass over those within a few `width` spacings: rows sum to 1."""
        spread = np.exp(-0.5 * (self.distances / width) ** 2)
        return np.asarray(spread / spread.sum(axis=1, keepdims=True))

    def knots(self, width: float) -> Positions:
        """Return values so close together that after smoothing over `width` no more are needed: a part of a lattice."""
        step = int(width / KNOTS_PER_WIDTH)
        if step < 2 or self.lattice is None or self.steps is None:
            return np.arange(self.values)
        return np.flatnonzero(((self.steps % step) == step // 2).all(axis=1))

    def smoothed(self, rows: Floats, width: float) -> Floats:
        """Spread mass along the axes of a full lattice; what would leave the box is reflected. Its own adjoint."""
        from scipy.ndimage import gaussian_filter1d

        assert self.lattice is not None  # noqa: S101
        box = rows.reshape(-1, *self.lattice)
        for axis in range(1, box.ndim):
            box = gaussian_filter1d(box, width, axis=axis, mode="reflect", truncate=FILTER_REACH)
        return np.asarray(box.reshape(rows.shape))

    def gathered(self, rows: Floats, width: float) -> Floats:
        """Return the adjoint of `smoothed`."""
        return self.smoothed(rows, width)

    @property
    def smooths_along_axes(self) -> bool:
        """Whether smoothing is quicker axis by axis than by a matrix, however few values there are."""
        return False
