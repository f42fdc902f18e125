"""One event for each value, counted over all values at once: few outputs of each of many values still bound epsilon.

Each value x has a partner x', and an event E that tells the two apart. Epsilon at least log(p / p') follows from the
sums p and p' of P(E | x) and P(E | x') over all pairs just as it does from one pair: if each P(E | x) is at most
e^epsilon P(E | x'), so are the sums. Each pair counts as many outputs of x as of x'. Sums of unlike draws vary less
than binomial ones, so that bounds by Clopper and Pearson hold (Hoeffding, 1956).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.auditing.empirical_bounds import EventCounts
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.mechanisms import DBitFlip, Geometric, LocalHashing, Mechanism, PlanarGeometric, RandomizedResponse
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.hadamard_response import ListedSets
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.mechanisms.sketches import Sketch

NATS_APART = 1.5  # of two values along a line: the claim times their distance
Happens = Callable[[Codes, Positions, Positions], NDArray[np.bool_]]  # of outputs, their pairs' values and partners


@dataclass(frozen=True)
class PooledEvent:
    """Pairs of values, the event of each pair, and the largest distance of a pair (1 where epsilon is plain)."""

    text: str
    values: Positions
    partners: Positions
    distance: float
    happens: Happens

    def counts(self, positions: Positions, codes: Codes) -> EventCounts:
        """Count the events in some outputs."""
        order = np.argsort(positions, kind="stable")
        sizes = np.bincount(positions, minlength=int(max(self.values.max(), self.partners.max(), positions.max())) + 1)
        starts = np.cumsum(sizes) - sizes
        numbers = np.minimum(sizes[self.values], sizes[self.partners])  # of outputs that a pair counts of each
        pair_of = np.repeat(np.arange(numbers.size), numbers)
        within = np.arange(pair_of.size) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        first, second = self.values[pair_of], self.partners[pair_of]
        happened, happened_other = (
            int(np.count_nonzero(self.happens(codes[order[starts[side] + within]], first, second)))
            for side in (first, second)
        )
        return EventCounts(happened, pair_of.size, happened_other, pair_of.size, self.distance)


def pooled_event(mechanism: Mechanism, positions: Positions) -> PooledEvent | None:
    """Return an event for each value that occurs; None for kinds of outputs that have none."""
    values = np.unique(positions)
    if values.size < 2:
        return None
    described = _set_event(mechanism)
    if described is not None:
        return PooledEvent(described[0], values, np.roll(values, -1), 1.0, described[1])
    return _side_event(mechanism, values)


def _set_event(mechanism: Mechanism) -> tuple[str, Happens] | None:
    """Return the event that an output's set holds the value and not its partner."""
    if isinstance(mechanism, RandomizedResponse):
        return "the output is the value itself", lambda codes, first, _: codes == first
    if isinstance(mechanism, LocalHashing):
        buckets = int(mechanism.buckets or 2)

        def hashed(codes: Codes, first: Positions, second: Positions) -> NDArray[np.bool_]:
            own, other = (hash_v1(codes[:, 0], each, buckets) == codes[:, 1] for each in (first, second))
            return np.asarray(own & ~other)

        return "the bucket is that of the value and not that of its partner", hashed
    if isinstance(mechanism, ListedSets | Sketch):
        text = "the output is in the value's set and not in that of its partner"
        return text, lambda codes, first, second: mechanism.holds(codes, first) & ~mechanism.holds(codes, second)
    if isinstance(mechanism, DBitFlip):
        return "the answer about the value's bucket is 1, and that about its partner's is not", _answered(mechanism)
    if isinstance(mechanism, SetValuedOracle) and isinstance(mechanism.output_space, BitRowOutputs):

        def bits(codes: Codes, first: Positions, second: Positions) -> NDArray[np.bool_]:
            rows = np.arange(len(codes))
            own, other = ((codes[rows, each // 8] >> (7 - each % 8)) & 1 == 1 for each in (first, second))
            return np.asarray(own & ~other)

        return "the value's bit is 1 and that of its partner is 0", bits
    return None


def _answered(mechanism: DBitFlip) -> Happens:
    """Return the event that the first bucket has a one and the second, if more than one is asked, a zero."""

    def happens(codes: Codes, first: Positions, second: Positions) -> NDArray[np.bool_]:
        asked, ones = mechanism.answered(codes)
        rows, (own, other) = np.arange(len(codes)), (mechanism.bucket_of(each) for each in (first, second))
        if mechanism.bits == 1:
            return np.asarray(ones[rows, own] & ~ones[rows, other])
        return np.asarray(ones[rows, own] & asked[rows, other] & ~ones[rows, other])

    return happens


def _side_event(mechanism: Mechanism, values: Positions) -> PooledEvent | None:
    """Return the event that an output lies on the value's side: not beyond it towards a partner up the line."""
    steps = mechanism.domain.steps
    place_of = _first_axis(mechanism)
    if not mechanism.metric or steps is None or place_of is None or not 0 < mechanism.epsilon < math.inf:
        return None
    # The partner is as many steps up the first axis as make about NATS_APART, at most half of the values.
    length = int(np.ptp(steps[:, 0])) + 1
    apart = mechanism.domain.diameter / max(1, length - 1) if steps.shape[1] == 1 else _column_width(mechanism)
    step = int(np.clip(round(NATS_APART / (mechanism.epsilon * apart)), 1, max(1, length // 2)))
    lookup = {tuple(own): place for place, own in enumerate(steps.tolist())}
    goals = [lookup.get((own[0] + step, *own[1:]), -1) for own in steps[values].tolist()]
    partners = np.array(goals, dtype=np.int64)
    kept = np.isin(partners, values) & (partners >= 0)
    if not kept.any():
        return None
    values, partners = values[kept], partners[kept]
    coordinates = mechanism.domain.coordinates
    assert coordinates is not None  # noqa: S101  # what has steps has coordinates
    distance = float(np.linalg.norm(coordinates[values] - coordinates[partners], axis=1).max())
    own_places: Floats = steps[:, 0].astype(np.float64)
    text = f"the output is not beyond the value towards one {step:,} {'steps' if step > 1 else 'step'} up"
    return PooledEvent(
        text, values, partners, distance, lambda codes, first, _: np.asarray(place_of(codes) <= own_places[first])
    )


def _column_width(mechanism: Mechanism) -> float:
    grid = mechanism.domain.grid
    return 1.0 if grid is None else float(grid.width)


def _first_axis(mechanism: Mechanism) -> Callable[[Codes], Array] | None:
    """Return how far along the first axis of a lattice encoded outputs are; None where they are not on it."""
    steps = mechanism.domain.steps
    if isinstance(mechanism, Geometric):
        low = mechanism.domain.low
        return lambda codes: codes - low
    if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:
        return lambda codes: codes[:, 0]
    if steps is not None and mechanism.answers_in_domain:
        return lambda codes: steps[codes, 0]
    return None
