"""Values on a line: integers, and bins of a continuous quantity."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np

from hubbub.client import MAX_EXACT_INTEGER, MAX_LENGTH, even_step
from hubbub.core.arrays import Array, Floats, Positions, as_array, as_integer, as_integers, as_real, frozen
from hubbub.core.errors import DomainError, shorten
from hubbub.domains.base import Domain, check_size


class LineDomain(Domain):
    """A domain whose values have a place on a line, at distance ``|a - b|`` of their places."""

    @property
    @abstractmethod
    def places(self) -> Floats:
        """Where each value lies, increasing (read-only)."""

    @cached_property
    def step(self) -> Fraction | None:
        """The distance between neighbours, exactly; None if it is not the same everywhere."""
        return even_step(self.places.tolist()) if len(self) > 1 else None

    @property
    def unit(self) -> str:
        """The unit of the line itself."""
        return "unit"

    @property
    def diameter(self) -> float:
        """From the first value to the last."""
        return float(self.places[-1] - self.places[0])

    def distances_between(self, rows: Positions, columns: Positions) -> Floats:
        """Return |a - b| between the values' places."""
        distances: Floats = np.abs(self.places[rows][:, None] - self.places[columns][None, :])
        return distances

    def squared_distance(self, first: int, second: int) -> Fraction:
        """Return (a - b)^2, exactly."""
        return (Fraction(float(self.places[first])) - Fraction(float(self.places[second]))) ** 2

    @property
    def least_distance(self) -> float:
        """The distance between the two nearest neighbours."""
        return float(np.diff(self.places).min())


@dataclass(frozen=True)
class Integers(LineDomain):
    """The whole numbers from `low` to `high`, both included, at distance ``|a - b|``.

    Parameters
    ----------
    low, high
        The first and the last whole number, at most 2^53 from 0.

    Raises
    ------
    DomainError
        If a limit is not a whole number or further than 2^53 from 0, or `low` is not below `high`.

    Examples
    --------
    >>> import hubbub as hb
    >>> ages = hb.Integers(18, 99)
    >>> len(ages), ages.index([18, 20])
    (82, array([0, 2]))
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            number = as_integer(getattr(self, name), DomainError, where=f"Integers({name}=)", expected="a whole number")
            object.__setattr__(self, name, number)
        where, got = "Integers(low, high)", f"{self.low}, {self.high}"
        if self.low > self.high:
            what = "low must be below high"
            raise DomainError(what, where=where, got=got, expected="low < high", remedy="swap the two")
        if max(abs(self.low), abs(self.high)) > MAX_EXACT_INTEGER:
            expected = "at most 2^53 from 0: beyond, distances are no longer exact"
            remedy = "subtract an offset, such as the first day of the study"
            what = "the integers are too far from 0"
            raise DomainError(what, where=where, got=got, expected=expected, remedy=remedy)
        check_size(self.high - self.low + 1, f"Integers({self.low}, {self.high})")

    def __len__(self) -> int:
        return self.high - self.low + 1

    @cached_property
    def labels(self) -> Array:
        """The integers, increasing."""
        return frozen(np.arange(self.low, self.high + 1, dtype=np.int64))

    @cached_property
    def step(self) -> Fraction | None:
        """Always 1."""
        return Fraction(1)

    @property
    def places(self) -> Floats:
        """The integers themselves."""
        return self.labels.astype(np.float64)

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        numbers = as_integers(values, DomainError, where="values", expected=self.describe())
        with np.errstate(over="ignore"):  # far numbers wrap around, and stay outside
            positions = np.asarray(numbers - self.low)
        outside = positions.view(np.uint64) >= np.uint64(len(self))
        return np.where(outside, -1, positions) if outside.any() else positions

    def fields(self) -> dict[str, Any]:
        """Return both limits, as study files hold them."""
        return {"low": self.low, "high": self.high}

    def describe(self) -> str:
        """Return one line for messages."""
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Bins(LineDomain):
    """Intervals between consecutive `edges`; the values are the bin numbers 0, 1, ...

    `locate` puts raw numbers into bins: each includes its left edge, the last one also its right edge.
    The distance between two bins is that of their centres.

    Parameters
    ----------
    edges
        At least three increasing numbers: bin i reaches from ``edges[i]`` to ``edges[i + 1]``.

    Raises
    ------
    DomainError
        If there are fewer than three edges, or they are not finite and increasing.

    Examples
    --------
    >>> import hubbub as hb
    >>> hours = hb.Bins([0, 6, 12, 18, 24])
    >>> hours.locate([5.9, 6.0, 24.0])
    array([0, 1, 3])
    """

    edges: tuple[float, ...]

    def __init__(self, edges: Iterable[float]) -> None:
        if isinstance(edges, str | bytes | Mapping) or not isinstance(edges, Iterable):
            what, remedy = "bins need a list of edges", "pass a list such as [0, 10, 20]"
            expected = "increasing numbers"
            raise DomainError(what, where="Bins(edges)", got=shorten(edges), expected=expected, remedy=remedy)
        entries = list(edges)
        numbers = np.array([as_real(edge) for edge in entries])
        close = "close the first and last bin at the widest values you accept"
        limit = f"at most {MAX_LENGTH:g} from 0: beyond, distances overflow"
        for wrong, what, expected, remedy in (
            (~np.isfinite(numbers), "an edge is not a finite number", "finite numbers", "give numbers"),
            (np.abs(numbers) > MAX_LENGTH, "an edge is too far from 0", limit, "use another unit"),
        ):
            if wrong.any():
                position = int(np.argmax(wrong))
                got, remedy = shorten(entries[position]), f"{remedy}, and {close}"
                raise _wrong_edge(what, position, got=got, expected=expected, remedy=remedy)
        check_size(max(0, numbers.size - 1), "Bins(edges)")
        widths = np.diff(numbers)
        if (widths <= 0).any():
            position = int(np.argmax(widths <= 0)) + 1
            got, expected = f"{numbers[position - 1]:g} then {numbers[position]:g}", "each edge above the one before"
            remedy = "sort the edges and keep each once"
            raise _wrong_edge("edges must increase", position, got=got, expected=expected, remedy=remedy)
        object.__setattr__(self, "edges", tuple(numbers.tolist()))

    def __repr__(self) -> str:
        return f"Bins({shorten(list(self.edges))})"

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

    @property
    def intervals(self) -> Floats:
        """The left and the right edge of each bin."""
        return np.stack([self.edges[:-1], self.edges[1:]], axis=1)

    @property
    def raw_locator(self) -> Callable[[object], Positions]:
        """`locate`."""
        return self.locate

    def title(self, position: int) -> str:
        """Return the bin's number and its edges."""
        return f"{position}: {self.edges[position]:g} to {self.edges[position + 1]:g}"

    def locate(self, numbers: object) -> Positions:
        """Return the bin of each raw number.

        Parameters
        ----------
        numbers
            Raw numbers, in an array or list of any shape, or a single one.

        Returns
        -------
        numpy.ndarray
            Bin numbers, in the shape of `numbers`.

        Raises
        ------
        DomainError
            If a number lies outside all bins, or is not a number.
        """
        where = "Bins.locate(numbers)"
        array = as_array(numbers)
        if array.dtype.kind == "O":  # exact fractions and decimals, as databases give them; mixtures are refused below
            with contextlib.suppress(OverflowError):
                entries = array.ravel().tolist()
                if all(isinstance(entry, Number) and not isinstance(entry, bool | complex) for entry in entries):
                    array = np.array([float(entry) for entry in entries]).reshape(array.shape)
        if array.dtype.kind not in "iuf":
            remedy = "convert texts to numbers first, and leave missing ones out on purpose"
            got = shorten(numbers)
            raise DomainError("not a number", where=where, got=got, expected="raw numbers", remedy=remedy)
        raw = array.astype(np.float64)
        if np.isnan(raw).any():
            position = int(np.argmax(np.isnan(raw).ravel()))
            remedy = "leave missing numbers out on purpose"
            where = f"{where}, position {position}"
            raise DomainError("a number is missing", where=where, got="nan", expected="raw numbers", remedy=remedy)
        inside = (raw >= self.edges[0]) & (raw <= self.edges[-1])
        if not inside.all():
            position = int(np.argmin(inside.ravel()))
            raise DomainError(
                "a number is outside all bins",
                where=f"{where}, position {position}",
                got=float(raw.ravel()[position]),
                expected=f"from {self.edges[0]:g} to {self.edges[-1]:g}",
                remedy="widen the first or last bin, or deliberately leave that person out; a noisy number belongs to "
                "the nearest bin: clip noisy numbers to the edges first, since leaving them out biases the estimate",
            )
        bins = np.searchsorted(np.array(self.edges), raw, side="right") - 1
        return np.minimum(bins, len(self) - 1)

    def find(self, values: object) -> Positions:
        """Return positions, -1 for what is not in the domain."""
        numbers = as_integers(values, DomainError, where="values", expected=self.describe())
        return np.where((numbers >= 0) & (numbers < len(self)), numbers, -1)

    def fields(self) -> dict[str, Any]:
        """Return the edges, as study files hold them."""
        return {"edges": list(self.edges)}

    def describe(self) -> str:
        """Return one line for messages."""
        return f"a bin number from 0 to {len(self) - 1} (use bins.locate for raw numbers)"


def _wrong_edge(what: str, position: int, *, got: str, expected: str, remedy: str) -> DomainError:
    return DomainError(what, where=f"Bins(edges), position {position}", got=got, expected=expected, remedy=remedy)
