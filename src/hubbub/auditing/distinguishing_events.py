"""Events by which the outputs of two values may differ, and how often each happens.

A family counts all its events at once, over outputs grouped by value, and gives each event as a test of its own.
Families are built from outputs that are not counted afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Array, Floats, Positions, as_array
from hubbub.core.errors import shorten
from hubbub.domains import Domain
from hubbub.mechanisms import DBitFlip, LocalHashing, Mechanism
from hubbub.mechanisms.hadamard_response import ListedSets
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.mechanisms.sketches import Sketch

MAX_SINGLE_OUTPUTS = 2_000  # outputs that are events of their own: the most frequent ones
MAX_THRESHOLDS = 256
MAX_NUMBER_COLUMNS = 4  # of outputs that are rows of numbers
BIT_EVENT = "the bit of {} is 1 and that of {} is 0"
SET_EVENT = "the output is in the set of {} and not in that of {}"
BUCKET_EVENT = "the bucket is that of {} and not that of {}"
ANSWER_EVENT = "the answer about the bucket of {} is 1 and that about the bucket of {} is 0"
ONE_ANSWER_EVENT = "the answer is 1 for the bucket of {}, and so not about that of {}"
Counts = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Event:
    """A property that an output has or lacks."""

    text: str
    happens: Callable[[Array], Bools]


@dataclass(frozen=True)
class EventFamily:
    """Events of one kind: how often each of them happens in some outputs, and each event by its number."""

    counts: Callable[[Array], Counts]
    event: Callable[[int], Event]


def event_families(
    mechanism: Mechanism | None, domain: Domain, values: Positions, outputs_by_value: Sequence[Array]
) -> list[EventFamily]:
    """Return the events that may distinguish values, for outputs that look like these; None stands for a sampler."""
    if isinstance(mechanism, SeveralAttributes):
        each = [
            family
            for place in range(len(mechanism.parts))
            for family in _attribute_events(mechanism, place, values, outputs_by_value)
        ]
        return [_single_output_events(outputs_by_value, mechanism.output_space.write), *each]
    if isinstance(mechanism, LocalHashing):
        hashed = partial(_hashed_bit, int(mechanism.buckets or 2))
        return [_bit_pair_events(domain, values, hashed, BUCKET_EVENT)]
    if isinstance(mechanism, ListedSets | Sketch):
        return [_bit_pair_events(domain, values, partial(_in_set, mechanism), SET_EVENT)]
    if isinstance(mechanism, DBitFlip):
        one, zero = (partial(_answer, mechanism, answer) for answer in (1, 0))
        return [_bit_pair_events(domain, values, one, ONE_ANSWER_EVENT if mechanism.bits == 1 else ANSWER_EVENT, zero)]
    if mechanism is not None and isinstance(mechanism.output_space, BitRowOutputs):
        return [_bit_pair_events(domain, values, _packed_bit, BIT_EVENT)]
    first = outputs_by_value[0]  # all outputs have one type and shape
    families = [_single_output_events(outputs_by_value, value_text)]

    def add_thresholds(numbers: Callable[[Array], Array], subject: str) -> None:
        families.append(_threshold_events(outputs_by_value, numbers, subject))

    if first.dtype.kind in "iuf" and all(np.isfinite(outputs).all() for outputs in outputs_by_value):
        if first.ndim == 1:
            add_thresholds(lambda outputs: outputs, "the output")
        elif first.ndim == 2 and first.shape[1] <= MAX_NUMBER_COLUMNS:
            for column in range(first.shape[1]):
                add_thresholds(partial(_column, column), f"number {column + 1} of the output")
    if first.ndim == 2 and first.shape[1] == len(domain) and first.dtype.kind in "biu":
        families.append(_bit_pair_events(domain, values, _unpacked_bit, BIT_EVENT))
    grid = domain.grid if domain.among is None else None
    is_on_map = grid is not None and first.ndim == 1 and first.dtype.kind == "i"
    if grid is not None and is_on_map and all((grid.find(outputs) >= 0).all() for outputs in outputs_by_value):
        add_thresholds(lambda cells: cells % grid.columns, "the column of the output")
        add_thresholds(lambda cells: cells // grid.columns, "the row of the output")
    return families


def _attribute_events(
    mechanism: SeveralAttributes, place: int, values: Positions, outputs_by_value: Sequence[Array]
) -> list[EventFamily]:
    """Return the events of one attribute's outputs; where an output lacks the attribute, none of them happens."""
    name, part = list(mechanism.parts.items())[place]
    own = np.unique(mechanism.domain.coordinates_of(values)[place])
    entries = [attribute_entries(mechanism, place, outputs)[0] for outputs in outputs_by_value]
    if own.size < 2 or not all(map(len, entries)):
        return []

    def counts(inner: EventFamily, outputs: Array) -> Counts:
        return inner.counts(attribute_entries(mechanism, place, outputs)[0])

    def event(inner: EventFamily, index: int) -> Event:
        found = inner.event(index)

        def happens(outputs: Array) -> Bools:
            sent, has = attribute_entries(mechanism, place, outputs)
            happened = np.zeros(len(outputs), dtype=bool)
            happened[has] = found.happens(sent)
            return happened

        return Event(f"of {name}, {found.text}", happens)

    families = event_families(part, part.domain, own, entries)
    return [EventFamily(partial(counts, family), partial(event, family)) for family in families]


def attribute_entries(mechanism: SeveralAttributes, place: int, outputs: Array) -> tuple[Array, Bools]:
    """Return what outputs say about one attribute, where they do, and which these are."""
    space = mechanism.output_space
    codes, has = space.entries(space.encode(outputs), place)
    part = list(mechanism.parts.values())[place]
    return as_array(part.output_space.decode(codes)), has


def _single_output_events(outputs_by_value: Sequence[Array], text_of: Callable[[object], str]) -> EventFamily:
    """Return the events that the output is a certain one, for each of the most frequent outputs."""
    keys_by_value = [sortable_keys(outputs) for outputs in outputs_by_value]
    distinct, frequencies = np.unique(np.concatenate(keys_by_value), return_counts=True)
    keys = distinct[np.sort(np.argsort(-frequencies, kind="stable")[:MAX_SINGLE_OUTPUTS])]

    def counts(outputs: Array) -> Counts:
        sent = sortable_keys(outputs)
        indices = np.minimum(np.searchsorted(keys, sent), keys.size - 1)
        return np.bincount(indices[keys[indices] == sent], minlength=keys.size)

    def event(index: int) -> Event:
        key = keys[index]
        same = [outputs[sent == key][:1] for outputs, sent in zip(outputs_by_value, keys_by_value, strict=True)]
        text = next((text_of(outputs[0]) for outputs in same if len(outputs)), "no number")  # NaN is not itself
        return Event(f"the output is {text}", lambda outputs: sortable_keys(outputs) == key)

    return EventFamily(counts, event)


def _threshold_events(
    outputs_by_value: Sequence[Array], numbers: Callable[[Array], Array], subject: str
) -> EventFamily:
    """Return the events that a number of the output is at most, or at least, a threshold."""

    def as_floats(outputs: Array) -> Floats:
        return np.asarray(numbers(outputs), dtype=np.float64)

    pooled = np.concatenate([as_floats(outputs) for outputs in outputs_by_value])
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, MAX_THRESHOLDS), method="inverted_cdf"))

    def counts(outputs: Array) -> Counts:
        """Count the numbers that are at most each threshold, then those that are at least each threshold."""
        ordered = np.sort(as_floats(outputs))
        at_most = np.searchsorted(ordered, thresholds, side="right")
        at_least = ordered.size - np.searchsorted(ordered, thresholds, side="left")
        return np.concatenate([at_most, at_least])

    def event(index: int) -> Event:
        limit = thresholds[index % thresholds.size]
        if index < thresholds.size:
            return Event(f"{subject} is at most {limit:.15g}", lambda outputs: as_floats(outputs) <= limit)
        return Event(f"{subject} is at least {limit:.15g}", lambda outputs: as_floats(outputs) >= limit)

    return EventFamily(counts, event)


def _bit_pair_events(
    domain: Domain,
    values: Positions,
    bit: Callable[[Array, int], Bools],
    text: str,
    zero: Callable[[Array, int], Bools] | None = None,
) -> EventFamily:
    """Return, for any two values, the event that the output's bit is set for the first and not for the second.

    Where a bit may be missing, `zero` says whether it is there and not set.
    """

    def only_first(first: int, second: int, outputs: Array) -> Bools:
        return bit(outputs, first) & (~bit(outputs, second) if zero is None else zero(outputs, second))

    texts = {position: value_text(domain.labels[position]) for position in values.tolist()}
    events = [
        Event(text.format(texts[first], texts[second]), partial(only_first, first, second))
        for first, second in permutations(texts, 2)
    ]

    def counts(outputs: Array) -> Counts:
        return np.array([np.count_nonzero(event.happens(outputs)) for event in events])

    return EventFamily(counts, events.__getitem__)


def _column(column: int, outputs: Array) -> Array:
    return outputs[:, column]


def _packed_bit(outputs: Array, position: int) -> Bools:
    """Return one bit of packed rows."""
    bits: Bools = (outputs[:, position // 8] >> np.uint8(7 - position % 8)) & np.uint8(1) == 1
    return bits


def _answer(mechanism: DBitFlip, answer: int, outputs: Array, position: int) -> Bools:
    """Return whether the bucket of a value has this answer; where but one is asked, 0 stands for any other bucket."""
    bucket = int(mechanism.bucket_of(np.array([position]))[0])
    asked, ones = (_packed_bit(rows, bucket) for rows in np.split(outputs, 2, axis=1))
    if answer == 1:
        return ones
    return ~asked if mechanism.bits == 1 else asked & ~ones


def _unpacked_bit(outputs: Array, position: int) -> Bools:
    """Return one bit of rows of 0 and 1."""
    bits: Bools = outputs[:, position] == 1
    return bits


def _hashed_bit(buckets: int, outputs: Array, position: int) -> Bools:
    """Return whether a value hashes to the reported bucket."""
    hashed: Bools = hash_v1(outputs["seed"], np.array([position]), buckets) == outputs["bucket"]
    return hashed


def _in_set(mechanism: ListedSets | Sketch, outputs: Array, position: int) -> Bools:
    """Return whether outputs are in the set of a value."""
    return mechanism.holds(mechanism.output_space.encode(outputs), np.array(position))


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
