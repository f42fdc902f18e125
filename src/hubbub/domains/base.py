"""The protocol of domains: labels, positions, distances, and what charts, study files and mechanisms ask of them.

A domain answers every question that depends on what its values are: whether they lie on a line (`places`) or on a map
(`grid`), which chart shows them, how a study file describes them. Callers never ask for the class of a domain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from hubbub.client import MAX_VALUES
from hubbub.core.arrays import Array, Floats, Positions, as_array, plain
from hubbub.core.errors import DomainError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import plural

if TYPE_CHECKING:
    from hubbub.domains.grid import Grid
    from hubbub.domains.product import Product

MAX_DISTANCE_MATRIX_VALUES = 20_000  # whose distance matrix takes 3.2 GB

Chart = Literal["bars", "line", "map"]


class Domain(Portable, ABC):
    """A finite set of values, each known by its label, in a fixed order.

    Estimates, matrices and distances are aligned with `labels`; `index` turns labels into positions. To add a domain
    of your own, define the abstract members: `labels`, `unit`, `find`, `distances_between`, `diameter`, `describe` and
    the length. Override `places` where values lie on a line.

    Examples
    --------
    Four directions, where north is as near to west as to east:

    >>> import numpy as np
    >>> import hubbub as hb
    >>> class Compass(hb.Domain):
    ...     labels = np.array(["north", "east", "south", "west"])
    ...     unit = "quarter turn"
    ...     diameter = 2.0
    ...
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def find(self, values):
    ...         same = np.asarray(values)[..., None] == self.labels
    ...         return np.where(same.any(axis=-1), same.argmax(axis=-1), -1)
    ...
    ...     def distances_between(self, rows, columns):
    ...         apart = np.abs(rows[:, None] - columns[None, :])
    ...         return np.minimum(apart, 4.0 - apart)
    ...
    ...     def describe(self):
    ...         return "north, east, south or west"
    >>> mechanism = hb.Exponential(Compass(), epsilon=2.0)
    >>> mechanism.matrix()[0].round(2)
    array([0.53, 0.2 , 0.07, 0.2 ])
    """

    @property
    @abstractmethod
    def labels(self) -> Array:
        """The values, in order (read-only)."""

    @property
    @abstractmethod
    def unit(self) -> str | None:
        """The unit of `distances`; None where values are merely different."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def find(self, values: object) -> Positions:
        """Return the positions of values, -1 for those that are not in the domain.

        Parameters
        ----------
        values
            Labels, in an array or list of any shape.

        Returns
        -------
        numpy.ndarray
            Positions from 0 to len - 1, or -1, in the shape of `values`.
        """

    @abstractmethod
    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return the distances of some values to some others.

        Parameters
        ----------
        rows, columns
            Positions of values.

        Returns
        -------
        numpy.ndarray
            A row for each position in `rows`, a column for each in `columns`.
        """

    @property
    @abstractmethod
    def diameter(self) -> float:
        """The largest distance between two values."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line for messages: what the values are."""

    # -- labels and positions ------------------------------------------------------------------------

    def title(self, position: int) -> str:
        """Return a value as tables and charts show it.

        Parameters
        ----------
        position
            The position of the value.

        Returns
        -------
        str
            A few words.
        """
        return str(self.labels[position])

    def area_title(self, positions: Positions) -> str:
        """Return several values in a few words: how many they are, and on a map where.

        Parameters
        ----------
        positions
            The positions of the values.

        Returns
        -------
        str
            A few words.
        """
        return plural(positions.size, "value")

    def label_array(self, values: object) -> Array:
        """Return labels as an array, one entry for each, as they are.

        Parameters
        ----------
        values
            Labels, in an array or list of any shape, or a single one.

        Returns
        -------
        numpy.ndarray
            The same labels.
        """
        return as_array(values)

    def index(self, values: object) -> Positions:
        """Return the positions of values.

        Parameters
        ----------
        values
            Labels, in an array or list of any shape, or a single one.

        Returns
        -------
        numpy.ndarray
            Positions from 0 to len - 1, in the shape of `values`.

        Raises
        ------
        DomainError
            If a value is not in the domain.
        """
        array = self.label_array(values)
        positions = self.find(array)
        outside = positions < 0
        if outside.any():
            position = int(np.argmax(outside.ravel()))
            count = int(np.count_nonzero(outside))
            raise DomainError(
                "a value is not in the domain" if count == 1 else f"{count} values are not in the domain",
                where=f"values, position {position}",
                got=shorten(plain(array.ravel()[position])),
                expected=self.describe(),
                remedy="correct the value, or build the domain so that it includes it",
            )
        return positions[()]

    # -- distances -----------------------------------------------------------------------------------

    def distances(self) -> Floats:
        """Return the matrix of distances between all values.

        Returns
        -------
        numpy.ndarray
            Values by values, in `unit`.

        Raises
        ------
        DomainError
            If there are more than 20,000 values.
        """
        if len(self) > MAX_DISTANCE_MATRIX_VALUES:
            raise DomainError(
                "the matrix of distances is too large",
                where="distances()",
                got=f"{len(self):,} values",
                expected=f"at most {MAX_DISTANCE_MATRIX_VALUES:,}",
                remedy="use a coarser domain, or distances_between(rows, columns) for the values you need",
            )
        everything = np.arange(len(self))
        return self.distances_between(everything, everything)

    def squared_distance(self, first: int, second: int) -> Fraction:
        """Return the square of the distance between two values, exactly.

        Parameters
        ----------
        first, second
            The positions of the values.

        Returns
        -------
        fractions.Fraction
            The square, as a fraction.
        """
        return Fraction(float(self.distances_between(np.array([first]), np.array([second]))[0, 0])) ** 2

    @property
    def least_distance(self) -> float:
        """A lower bound of the distance between two different values."""
        distances = self.distances()
        return float(distances[distances > 0].min(initial=np.inf))

    @property
    def is_equidistant(self) -> bool:
        """Whether any two values are at distance 1: they are merely different."""
        return False

    # -- where values are ----------------------------------------------------------------------------

    @property
    def places(self) -> Floats | None:
        """Where each value lies on a line, increasing (read-only); None where values have no order."""
        return None

    @property
    def step(self) -> Fraction | None:
        """The distance between neighbours on a line, exactly; None where it is not the same everywhere, or no line."""
        return None

    @property
    def intervals(self) -> Floats | None:
        """The left and the right end of each value, values by 2, where values are intervals; None elsewhere."""
        return None

    @property
    def raw_locator(self) -> Callable[[object], Positions] | None:
        """The function from raw numbers to labels, where values are bins of raw numbers; None elsewhere."""
        return None

    @property
    def grid(self) -> Grid | None:
        """The grid whose cells the values are; None elsewhere."""
        return None

    @property
    def product(self) -> Product | None:
        """The product whose combinations of attributes the values are; None elsewhere."""
        return None

    @property
    def is_on_map(self) -> bool:
        """Whether values have a latitude and a longitude."""
        return self.grid is not None and self.grid.box is not None

    @property
    def chart(self) -> Chart:
        """The chart that shows shares of the values: bars, a line or a map."""
        if self.grid is not None:
            return "map"
        return "bars" if self.places is None else "line"

    @property
    def coordinates(self) -> Floats | None:
        """Where values lie in space, values by dimensions, in `unit`; None where they are merely different."""
        return None if self.places is None else self.places[:, None]

    @property
    def steps(self) -> Positions | None:
        """Where values lie on a lattice, in whole steps along each dimension of `coordinates`; None like these."""
        return None if self.places is None else np.arange(len(self))[:, None]

    # -- parts of a domain (`Reports.restrict`) ------------------------------------------------------

    @property
    def unrestricted(self) -> Domain:
        """The domain that this one is a part of: itself, unless it is restricted."""
        return self

    @cached_property
    def positions(self) -> Positions:
        """The positions in `unrestricted` of these values."""
        return np.arange(len(self))

    @property
    def among(self) -> Positions | None:
        """The positions in `unrestricted` of these values; None where the domain is not restricted."""
        return None

    # -- study files ---------------------------------------------------------------------------------

    def fields(self) -> dict[str, Any]:
        """Return what a study file says of the domain, besides its kind, as plain JSON values.

        Returns
        -------
        dict
            The constructor's keywords and their values.

        Raises
        ------
        DomainError
            If the domain has no form in a study file, as one of your own.
        """
        raise DomainError(
            "a study file cannot describe this domain",
            where=f"{type(self).__name__}.fields()",
            got=shorten(self),
            expected="Categories, Integers, Bins or Grid",
            remedy="use one of these in a study, or define fields() to return the constructor's keywords",
        )

    @classmethod
    def constructor(cls, fields: Mapping[str, Any]) -> Callable[..., Self]:  # noqa: ARG003
        """Return the function that builds a domain from the fields of a study file.

        Parameters
        ----------
        fields
            What the study file says of the domain.

        Returns
        -------
        callable
            The class, or one of its class methods.
        """
        return cls


def check_size(size: int, where: str) -> None:
    """Refuse domains with fewer than two values (nothing to estimate) or more than fit in memory."""
    if size < 2:
        what, expected = "a domain needs at least two values", "2 or more distinct values"
        remedy = "add the values that users may hold; with a single value there is nothing to estimate"
    elif size > MAX_VALUES:
        what, expected = "the domain is too large", f"at most {MAX_VALUES:,}"
        remedy = "use coarser values: wider bins or larger cells"
    else:
        return
    raise DomainError(what, where=where, got=plural(size, "value"), expected=expected, remedy=remedy)
