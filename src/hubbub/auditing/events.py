"""Events by which the outputs of two values may differ, and how often each happens.

A family counts all its events at once, over outputs grouped by value, and gives each event as a test of its own.
Families are built from outputs that are not counted afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Array, Floats, Positions
from hubbub.core.errors import shorten
from hubbub.domains import Domain, Grid
from hubbub.mechanisms.local_hashing import hash_v1

MAX_SINGLE_OUTPUTS = 2_000  # outputs that are events of their own: the most frequent ones
MAX_THRESHOLDS = 256
MAX_NUMBER_COLUMNS = 4  # of outputs that are rows of numbers
BIT_EVENT = "the bit of {} is 1 and that of {} is 0"
BUCKET_EVENT = "the bucket is that of {} and not that of {}"
Counts = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Event:
    """A property that an output has or lacks."""

    text: str
    happens: Callable[[Array], Bools]


class EventFamily(ABC):
    """Events of one kind."""

    @abstractmethod
    def counts(self, outputs_by_value: Sequence[Array]) -> Counts:
        """Return how often each event happens, values by events."""

    @abstractmethod
    def event(self, index: int) -> Event:
        """Return one of the events."""


class ListedEvents(EventFamily):
    """A short list of events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    def counts(self, outputs_by_value: Sequence[Array]) -> Counts:
        """Test each event on all outputs."""
        return np.array(
            [[np.count_nonzero(event.happens(outputs)) for event in self._events] for outputs in outputs_by_value]
        )

    def event(self, index: int) -> Event:
        """Return an event of the list."""
        return self._events[index]


class SingleOutputEvents(EventFamily):
    """The output is a certain one, for each of the most frequent outputs."""

    def __init__(self, outputs_by_value: Sequence[Array]) -> None:
        pooled = np.concatenate([sortable_keys(outputs) for outputs in outputs_by_value])
        distinct, frequencies = np.unique(pooled, return_counts=True)
        frequent = np.sort(np.argsort(-frequencies, kind="stable")[:MAX_SINGLE_OUTPUTS])
        self._keys = distinct[frequent]
        self._texts = [""] * frequent.size
        missing = set(range(frequent.size))
        for outputs in outputs_by_value:  # the text of an output comes from its first occurrence
            seen, first = np.unique(sortable_keys(outputs), return_index=True)
            indices = np.searchsorted(self._keys, seen)
            for key, at, index in zip(seen, first.tolist(), indices.tolist(), strict=True):
                if index in missing and self._keys[index] == key:
                    self._texts[index] = value_text(outputs[at])
                    missing.remove(index)

    def counts(self, outputs_by_value: Sequence[Array]) -> Counts:
        """Count the listed outputs."""
        return np.stack([self._count(sortable_keys(outputs)) for outputs in outputs_by_value])

    def _count(self, keys: Array) -> Counts:
        indices = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        return np.bincount(indices[self._keys[indices] == keys], minlength=self._keys.size)

    def event(self, index: int) -> Event:
        """Return the event that an output is this one."""
        key = self._keys[index]
        return Event(f"the output is {self._texts[index]}", lambda outputs: sortable_keys(outputs) == key)


class ThresholdEvents(EventFamily):
    """A number of the output is at most, or at least, a threshold."""

    def __init__(self, outputs_by_value: Sequence[Array], numbers: Callable[[Array], Floats], subject: str) -> None:
        self._numbers, self._subject = numbers, subject
        pooled = np.concatenate([numbers(outputs) for outputs in outputs_by_value])
        quantiles = np.quantile(pooled, np.linspace(0, 1, MAX_THRESHOLDS), method="inverted_cdf")
        self._thresholds: Floats = np.unique(quantiles)

    def counts(self, outputs_by_value: Sequence[Array]) -> Counts:
        """Return how many numbers are at most each threshold, then how many are at least each threshold."""
        rows = []
        for outputs in outputs_by_value:
            ordered = np.sort(self._numbers(outputs))
            at_most = np.searchsorted(ordered, self._thresholds, side="right")
            at_least = ordered.size - np.searchsorted(ordered, self._thresholds, side="left")
            rows.append(np.concatenate([at_most, at_least]))
        return np.stack(rows)

    def event(self, index: int) -> Event:
        """Return the event that a number is on one side of a threshold."""
        limit = self._thresholds[index % self._thresholds.size]
        if index < self._thresholds.size:
            return Event(f"{self._subject} is at most {limit:.15g}", lambda outputs: self._numbers(outputs) <= limit)
        return Event(f"{self._subject} is at least {limit:.15g}", lambda outputs: self._numbers(outputs) >= limit)


def generic_events(outputs_by_value: Sequence[Array]) -> list[EventFamily]:
    """Return events for outputs about which nothing is known but their type."""
    families: list[EventFamily] = [SingleOutputEvents(outputs_by_value)]
    first = outputs_by_value[0]
    if first.dtype.kind in "iuf" and all(np.isfinite(outputs).all() for outputs in outputs_by_value):
        if first.ndim == 1:
            families.append(ThresholdEvents(outputs_by_value, _as_floats, "the output"))
        elif first.ndim == 2 and first.shape[1] <= MAX_NUMBER_COLUMNS:
            families += [
                ThresholdEvents(outputs_by_value, partial(_column, column), f"number {column + 1} of the output")
                for column in range(first.shape[1])
            ]
    return families


def map_side_events(grid: Grid, outputs_by_value: Sequence[Array]) -> list[EventFamily]:
    """Return the columns and the rows of the output as thresholds, if all outputs are cells of the map."""
    if any(
        outputs.dtype.kind != "i" or outputs.ndim != 1 or (grid.find(outputs) < 0).any() for outputs in outputs_by_value
    ):
        return []
    return [
        ThresholdEvents(outputs_by_value, lambda cells: _as_floats(cells % grid.columns), "the column of the output"),
        ThresholdEvents(outputs_by_value, lambda cells: _as_floats(cells // grid.columns), "the row of the output"),
    ]


def _as_floats(outputs: Array) -> Floats:
    return np.asarray(outputs, dtype=np.float64)


def _column(column: int, outputs: Array) -> Floats:
    return _as_floats(outputs[:, column])


def bit_pair_events(domain: Domain, values: Positions, bit: Callable[[Array, int], Bools], text: str) -> EventFamily:
    """Return, for any two values, the event that the output's bit is set for the first and not for the second."""

    def only_first(first: int, second: int, outputs: Array) -> Bools:
        return bit(outputs, first) & ~bit(outputs, second)

    texts = {position: value_text(domain.labels[position]) for position in values.tolist()}
    return ListedEvents(
        [
            Event(text.format(texts[first], texts[second]), partial(only_first, first, second))
            for first, second in permutations(texts, 2)
        ]
    )


def packed_bit(outputs: Array, position: int) -> Bools:
    """Return one bit of packed rows."""
    bits: Bools = (outputs[:, position // 8] >> np.uint8(7 - position % 8)) & np.uint8(1) == 1
    return bits


def unpacked_bit(outputs: Array, position: int) -> Bools:
    """Return one bit of rows of 0 and 1."""
    bits: Bools = outputs[:, position] == 1
    return bits


def hashed_bit(buckets: int, outputs: Array, position: int) -> Bools:
    """Return whether a value hashes to the reported bucket."""
    hashed: Bools = hash_v1(outputs["seed"], np.array([position]), buckets) == outputs["bucket"]
    return hashed


def sortable_keys(outputs: Array) -> Array:
    """Return a sortable key for each output, equal for equal outputs."""
    if outputs.ndim > 1 or outputs.dtype.names is not None:
        rows = np.ascontiguousarray(outputs).reshape(len(outputs), -1)
        return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    if outputs.dtype == object:
        return np.array([repr(output) for output in outputs.tolist()])
    return outputs


def value_text(value: object) -> str:
    """Return a value or an output as sentences show it."""
    if isinstance(value, np.generic):
        return shorten(value.item())
    return shorten(value.tolist() if isinstance(value, np.ndarray) else value)
