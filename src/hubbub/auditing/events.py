"""Events that may tell two values apart: what is counted among outputs.

A family counts all its events at once, over outputs that are given value by value, and gives each event as a test of
its own. Families are built from outputs that are not used again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Array, Floats, Positions
from hubbub.core.errors import shorten
from hubbub.domains import Domain, Grid
from hubbub.mechanisms.local_hashing import hash_v1

MOST_SINGLE = 2_000  # outputs that are events of their own: the most frequent
THRESHOLDS = 256
MOST_COLUMNS = 4  # of outputs that are rows of numbers
Counts = NDArray[np.int64]
Happens = Callable[[Array], NDArray[np.bool_]]


@dataclass(frozen=True)
class Event:
    """Something that an output does or does not do."""

    words: str
    happens: Happens


class Family(ABC):
    """Events of one kind."""

    @abstractmethod
    def counts(self, parts: Sequence[Array]) -> Counts:
        """Return how often each event happens, parts by events."""

    @abstractmethod
    def event(self, place: int) -> Event:
        """Return one of the events."""


class Listed(Family):
    """A short list of events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    def counts(self, parts: Sequence[Array]) -> Counts:
        """Try each on all outputs."""
        return np.array([[np.count_nonzero(one.happens(part)) for one in self._events] for part in parts])

    def event(self, place: int) -> Event:
        """Return one of the list."""
        return self._events[place]


class SingleOutputs(Family):
    """One output each."""

    def __init__(self, parts: Sequence[Array]) -> None:
        distinct, times = np.unique(np.concatenate([keys(part) for part in parts]), return_counts=True)
        most = np.sort(np.argsort(-times, kind="stable")[:MOST_SINGLE])
        self._keys = distinct[most]
        self._words = [""] * most.size
        missing = set(range(most.size))
        for part in parts:  # how outputs look, from the first of each
            seen, first = np.unique(keys(part), return_index=True)
            places = np.searchsorted(self._keys, seen)
            for key, at, place in zip(seen, first.tolist(), places.tolist(), strict=True):
                if place in missing and self._keys[place] == key:
                    self._words[place] = told(part[at])
                    missing.remove(place)

    def counts(self, parts: Sequence[Array]) -> Counts:
        """Count the outputs that are listed."""
        return np.stack([self._count(keys(part)) for part in parts])

    def _count(self, part: Array) -> Counts:
        places = np.minimum(np.searchsorted(self._keys, part), self._keys.size - 1)
        return np.bincount(places[self._keys[places] == part], minlength=self._keys.size)

    def event(self, place: int) -> Event:
        """Return whether an output is this one."""
        key = self._keys[place]
        return Event(f"the output is {self._words[place]}", lambda outputs: keys(outputs) == key)


class Thresholds(Family):
    """Numbers up to a threshold, or from one on."""

    def __init__(self, parts: Sequence[Array], numbers: Callable[[Array], Floats], words: str) -> None:
        self._numbers, self._words = numbers, words
        pooled = np.concatenate([numbers(part) for part in parts])
        self._at: Floats = np.unique(np.quantile(pooled, np.linspace(0, 1, THRESHOLDS), method="inverted_cdf"))

    def counts(self, parts: Sequence[Array]) -> Counts:
        """Return how many are at most each threshold, then how many are at least that."""
        rows = []
        for part in parts:
            ordered = np.sort(self._numbers(part))
            most = np.searchsorted(ordered, self._at, side="right")
            least = ordered.size - np.searchsorted(ordered, self._at, side="left")
            rows.append(np.concatenate([most, least]))
        return np.stack(rows)

    def event(self, place: int) -> Event:
        """Return whether a number is on one side of a threshold."""
        limit = self._at[place % self._at.size]
        if place < self._at.size:
            return Event(f"{self._words} is at most {limit:.15g}", lambda outputs: self._numbers(outputs) <= limit)
        return Event(f"{self._words} is at least {limit:.15g}", lambda outputs: self._numbers(outputs) >= limit)


def numbers_and_rows(parts: Sequence[Array]) -> list[Family]:
    """Return what can be asked of outputs of which nothing else is known."""
    families: list[Family] = [SingleOutputs(parts)]
    one = parts[0]
    if one.dtype.kind in "iuf" and all(np.isfinite(part).all() for part in parts):
        if one.ndim == 1:
            families.append(Thresholds(parts, as_numbers, "the output"))
        elif one.ndim == 2 and one.shape[1] <= MOST_COLUMNS:
            families += [
                Thresholds(parts, partial(_column, column), f"number {column + 1} of the output")
                for column in range(one.shape[1])
            ]
    return families


def sides_of_a_map(grid: Grid, parts: Sequence[Array]) -> list[Family]:
    """Return for outputs that are cells of a map: columns, and rows, up to one or from one on."""
    if any(part.dtype.kind != "i" or part.ndim != 1 or (grid.find(part) < 0).any() for part in parts):
        return []
    return [
        Thresholds(parts, lambda cells: as_numbers(cells % grid.columns), "the column of the output"),
        Thresholds(parts, lambda cells: as_numbers(cells // grid.columns), "the row of the output"),
    ]


def as_numbers(outputs: Array) -> Floats:
    """Return outputs as floats."""
    return np.asarray(outputs, dtype=np.float64)


def _column(column: int, outputs: Array) -> Floats:
    return as_numbers(outputs[:, column])


def bit_pairs(domain: Domain, values: Positions, bit: Callable[[Array, int], NDArray[np.bool_]], words: str) -> Family:
    """Return for any two values: the output points at the first and not at the second, in words with both in them."""

    def apart(first: int, second: int, outputs: Array) -> NDArray[np.bool_]:
        return bit(outputs, first) & ~bit(outputs, second)

    return Listed(
        [
            Event(
                words.format(told(domain.labels[a]), told(domain.labels[b])),
                partial(apart, a, b),
            )
            for a in values.tolist()
            for b in values.tolist()
            if a != b
        ]
    )


def packed_bit(outputs: Array, position: int) -> NDArray[np.bool_]:
    """Return one bit of packed rows."""
    bits: NDArray[np.bool_] = (outputs[:, position // 8] >> np.uint8(7 - position % 8)) & np.uint8(1) == 1
    return bits


def plain_bit(outputs: Array, position: int) -> NDArray[np.bool_]:
    """Return one bit of rows of 0 and 1."""
    bits: NDArray[np.bool_] = outputs[:, position] == 1
    return bits


def hashed_bit(buckets: int, outputs: Array, position: int) -> NDArray[np.bool_]:
    """Return whether a value hashes to the reported bucket."""
    hashed: NDArray[np.bool_] = hash_v1(outputs["seed"], np.array([position]), buckets) == outputs["bucket"]
    return hashed


def keys(outputs: Array) -> Array:
    """Return something for each output that can be sorted and compared, equal for equal outputs."""
    if outputs.ndim > 1 or outputs.dtype.names is not None:
        rows = np.ascontiguousarray(outputs).reshape(len(outputs), -1)
        return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    if outputs.dtype == object:
        return np.array([repr(output) for output in outputs.tolist()])
    return outputs


def told(output: object) -> str:
    """Return an output, or a value, as sentences write it."""
    return shorten(output.item() if isinstance(output, np.generic) else _listed(output), 60)


def _listed(output: object) -> object:
    return output.tolist() if isinstance(output, np.ndarray) else output
