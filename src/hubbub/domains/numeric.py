"""Values on a line: integers, and bins of a continuous quantity."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Number

import numpy as np

from hubbub.client import MAX_EXACT_INTEGER, MAX_LENGTH
from hubbub.core.arrays import Array, Floats, Positions, as_array, as_integer, as_integers, as_real, frozen
from hubbub.core.errors import DomainError, shorten
from hubbub.domains.base import Domain, check_size


class LineDomain(Domain):
    """A domain whose values have a place on a line."""

    @property
    @abstractmethod
    def places(self) -> Floats:
        """Where each value lies, increasing (read-only)."""

    @property
    def unit(self) -> str:
        """The line's own unit."""
        return "unit"

    @property
    def diameter(self) -> float:
        """From the first value to the last."""
        return float(self.places[-1] - self.places[0])

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return |a - b| between the values' places."""
        distances: Floats = np.abs(self.places[rows][:, None] - self.places[columns][None, :])
        return distances


@dataclass(frozen=True)
class Integers(LineDomain):
    """The whole numbers from `low` to `high`, both included, at distance ``|a - b|``.

    >>> ages = Integers(18, 99)
    >>> len(ages), ages.index([18, 20])
    (82, array([0, 2]))
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            number = as_integer(getattr(self, name), DomainError, where=f"Integers({name}=)", expected="a whole number")
            object.__setattr__(self, name, number)
        if self.low > self.high:
            raise DomainError(
                "the lowest integer is above the highest",
                where="Integers(low, high)",
                got=f"{self.low}, {self.high}",
                expected="low < high",
                remedy="swap the two",
            )
        if max(abs(self.low), abs(self.high)) > MAX_EXACT_INTEGER:
            raise DomainError(
                "the integers are too far from 0",
                where="Integers(low, high)",
                got=f"{self.low}, {self.high}",
                expected="at most 2^53 from 0: beyond, distances are no longer exact",
                remedy="subtract an offset, such as the first day of the study",
            )
        check_size(self.high - self.low + 1, f"Integers({self.low}, {self.high})")

    def __len__(self) -> int:
        return self.high - self.low + 1

    @cached_property
    def labels(self) -> Array:
        """The integers, increasing."""
        return frozen(np.arange(self.low, self.high + 1, dtype=np.int64))

    @property
    def places(self) -> Floats:
        """The integers themselves."""
        return self.labels.astype(np.float64)

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        numbers = as_integers(values, DomainError, where="values", expected=self.describe())
        return np.where((numbers >= self.low) & (numbers <= self.high), numbers - self.low, -1)

    def describe(self) -> str:
        """One line for messages."""
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Bins(LineDomain):
    """Intervals between consecutive `edges`; the values are the bin numbers 0, 1, ...

    `locate` puts raw numbers into bins (each includes its left edge, the last one also its right edge).
    The distance between two bins is that of their centres.

    >>> hours = Bins([0, 6, 12, 18, 24])
    >>> hours.locate([5.9, 6.0, 24.0])
    array([0, 1, 3])
    """

    edges: tuple[float, ...]

    def __init__(self, edges: Iterable[float]) -> None:
        where = "Bins(edges)"
        if isinstance(edges, str | bytes | Mapping) or not isinstance(edges, Iterable):
            raise DomainError(
                "bins need a list of edges",
                where=where,
                got=shorten(edges),
                expected="increasing numbers",
                remedy="pass a list such as [0, 10, 20]",
            )
        listed = list(edges)
        given = np.array([as_real(edge) for edge in listed])
        if not np.isfinite(given).all():
            place = int(np.argmin(np.isfinite(given)))
            raise DomainError(
                "an edge is not a finite number",
                where=f"{where}, position {place}",
                got=shorten(listed[place]),
                expected="finite numbers",
                remedy="give numbers, and close the first and last bin at the widest values you accept",
            )
        if (np.abs(given) > MAX_LENGTH).any():
            place = int(np.argmax(np.abs(given) > MAX_LENGTH))
            raise DomainError(
                "an edge is too far from 0",
                where=f"{where}, position {place}",
                got=shorten(listed[place]),
                expected=f"at most {MAX_LENGTH:g} from 0: beyond, distances overflow",
                remedy="use another unit, and close the first and last bin at the widest values you accept",
            )
        check_size(max(0, given.size - 1), where)
        steps = np.diff(given)
        if (steps <= 0).any():
            place = int(np.argmax(steps <= 0))
            raise DomainError(
                "edges must increase",
                where=f"{where}, position {place + 1}",
                got=f"{given[place]:g} then {given[place + 1]:g}",
                expected="each edge above the one before",
                remedy="sort the edges and keep each once",
            )
        object.__setattr__(self, "edges", tuple(given.tolist()))

    def __len__(self) -> int:
        return len(self.edges) - 1

    @cached_property
    def labels(self) -> Array:
        """The bin numbers."""
        return frozen(np.arange(len(self), dtype=np.int64))

    @cached_property
    def places(self) -> Floats:
        """The centres of the bins."""
        edges = np.array(self.edges)
        return frozen((edges[:-1] + edges[1:]) / 2)

    def title(self, position: int) -> str:
        """Return the bin's number and its edges."""
        return f"{position}: {self.edges[position]:g} to {self.edges[position + 1]:g}"

    def __repr__(self) -> str:
        return f"Bins({shorten(list(self.edges))})"

    def locate(self, numbers: object) -> Positions:
        """Return the bin of each raw number; one outside all bins is an error."""
        given = as_array(numbers)
        if given.dtype.kind == "O":  # exact fractions and decimals, as databases give them; mixtures are refused below
            with contextlib.suppress(OverflowError):
                listed = given.ravel().tolist()
                if all(isinstance(each, Number) and not isinstance(each, bool | complex) for each in listed):
                    given = np.array([float(each) for each in listed]).reshape(given.shape)
        if given.dtype.kind not in "iuf":
            raise DomainError(
                "not a number",
                where="Bins.locate(numbers)",
                got=shorten(numbers),
                expected="raw numbers",
                remedy="convert texts to numbers first, and leave missing ones out on purpose",
            )
        raw = given.astype(np.float64)
        inside = (raw >= self.edges[0]) & (raw <= self.edges[-1])
        if not inside.all():
            place = int(np.argmin(inside.ravel()))
            raise DomainError(
                "a number lies outside all bins",
                where=f"Bins.locate(numbers), position {place}",
                got=float(raw.ravel()[place]),
                expected=f"from {self.edges[0]:g} to {self.edges[-1]:g}",
                remedy="widen the first or last bin, or leave that person out knowingly; a noisy number belongs to the "
                "nearest bin: clip noisy numbers to the edges first, since leaving them out biases the estimate",
            )
        bins = np.searchsorted(np.array(self.edges), raw, side="right") - 1
        return np.minimum(bins, len(self) - 1)

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        numbers = as_integers(values, DomainError, where="values", expected=self.describe())
        return np.where((numbers >= 0) & (numbers < len(self)), numbers, -1)

    def describe(self) -> str:
        """One line for messages."""
        return f"a bin number from 0 to {len(self) - 1} (use bins.locate for raw numbers)"
