"""A lower bound on epsilon from draws of the sampler.

If an event has probability p under one value and p' under another, epsilon is at least log(p / p') (over their
distance). Half of the draws choose the values and the event. The other half, drawn separately, bound p from below and
p' from above, each at half the error that the level allows (Clopper and Pearson). The bound holds with at least the
probability `level`, whatever the sampler is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

from hubbub.auditing.distinguishing_events import Counts, Event, EventFamily, sortable_keys
from hubbub.core.arrays import Array, Floats, Positions, as_array, plain
from hubbub.core.errors import MechanismError, shorten
from hubbub.core.progress import Progress
from hubbub.domains import Domain

MAX_AUDITED_VALUES = 6  # of larger domains: the ends, the middle, and neighbours of these
COINCIDENCE_LOG_PROBABILITY = -40.0  # two equal runs that are less likely than this are no coincidence
Sampler = Callable[[Array], object]


@dataclass(frozen=True)
class EmpiricalBound:
    """A lower bound on epsilon at a level, and the event behind it.

    Half of the outputs were counted: the event happened `happened` times of `counted` for `value`, and
    `happened_other` times of `counted_other` for `other`. `repeated` says that two runs of the sampler gave the same
    outputs.
    """

    low: float
    level: float
    draws: int
    counted: int
    counted_other: int
    values: tuple[object, ...]
    value: object
    other: object
    distance: float | None
    event: str
    happened: int
    happened_other: int
    refuted: bool
    repeated: bool


@dataclass(frozen=True)
class DrawnOutputs:
    """Outputs of the audited values: one half to choose the event by, the other to count it in."""

    positions: Positions
    choosing: tuple[Array, ...]
    counting: tuple[Array, ...]

    @property
    def repeated(self) -> bool:
        """Whether both halves are the same, and chance cannot explain it."""
        for first, second in zip(self.choosing, self.counting, strict=True):
            keys, others = sortable_keys(first), sortable_keys(second)
            if keys.shape != others.shape or not bool((keys == others).all()):
                return False
        log_probability = 0.0
        for outputs in self.choosing:  # two draws agree by chance with probability sum(p^2)
            shares = np.unique(sortable_keys(outputs), return_counts=True)[1] / len(outputs)
            log_probability += len(outputs) * math.log(float((shares**2).sum()))
        return log_probability < COINCIDENCE_LOG_PROBABILITY


def audited_positions(domain: Domain) -> Positions:
    """Return the positions of the values whose outputs are drawn."""
    size = len(domain)
    if size <= MAX_AUDITED_VALUES:
        return np.arange(size)
    middle = size // 2
    chosen = {0, 1, middle, middle + 1, size - 1}
    grid = domain.grid
    if grid is not None and grid.cells is None and domain.among is None and grid.rows > 1:
        chosen.add(grid.columns)  # north of the first cell
    else:
        chosen.add(size - 2)
    return np.array(sorted(chosen))


def draw_outputs(sampler: Sampler, domain: Domain, draws: int) -> Generator[Progress, None, DrawnOutputs]:
    """Draw both halves for each audited value, in separate calls."""
    positions = audited_positions(domain)
    halves: tuple[list[Array], list[Array]] = ([], [])
    for done, position in enumerate(positions.tolist()):
        yield Progress(done, positions.size, "drawing outputs")
        for half, count in zip(halves, (draws // 2, draws - draws // 2), strict=True):
            values = np.repeat(domain.labels[position : position + 1], count)
            half.append(_checked_outputs(sampler(values), count))
    return in_halves(positions, *halves)


def in_halves(positions: Positions, choosing: list[Array], counting: list[Array]) -> DrawnOutputs:
    """Return outputs that are of one type and shape throughout."""
    outputs = _with_common_type([*choosing, *counting])
    return DrawnOutputs(positions, tuple(outputs[: positions.size]), tuple(outputs[positions.size :]))


def _with_common_type(arrays: list[Array]) -> list[Array]:
    """Return outputs of one type and shape; if those of different calls differ, they are compared as objects."""
    if len({array.shape[1:] for array in arrays}) == 1:
        if len({array.dtype for array in arrays}) == 1 and not arrays[0].dtype.hasobject:
            return arrays
        if all(array.dtype.kind in "biuf" for array in arrays):
            return [array.astype(np.result_type(*arrays)) for array in arrays]
    return [np.fromiter(array.tolist(), dtype=object, count=len(array)) for array in arrays]


def _checked_outputs(returned: object, count: int) -> Array:
    outputs = as_array(returned)
    if outputs.ndim == 0 or len(outputs) != count:
        raise MechanismError(
            "the sampler must return one output for each value",
            where="audit(sampler)",
            got=shorten(returned) if outputs.ndim == 0 else f"{len(outputs):,} outputs",
            expected=f"{count:,} outputs for {count:,} values",
            remedy="return a list or an array as long as the array of values",
        )
    return outputs


def bound_from_draws(
    drawn: DrawnOutputs,
    families: Sequence[EventFamily],
    domain: Domain,
    claim: float,
    *,
    metric: bool,
    level: float,
    refutation_level: float,
) -> EmpiricalBound:
    """Choose two values and an event by the first half of the draws, and count it in the second.

    The bound holds at `level`. A claim is refuted at `refutation_level` if that is higher: a proven claim must not be
    refuted by chance in one of a hundred audits.
    """
    chosen = choose_event(drawn, families, domain, metric=metric, level=level)
    counts = chosen.counts(drawn)
    labels = domain.labels[drawn.positions]
    return EmpiricalBound(
        low=counts.bound(level),
        level=level,
        draws=len(drawn.choosing[chosen.first]) + counts.counted,
        counted=counts.counted,
        counted_other=counts.counted_other,
        values=tuple(plain(label) for label in labels),
        value=plain(labels[chosen.first]),
        other=plain(labels[chosen.second]),
        distance=chosen.distance if metric else None,
        event=chosen.event.text,
        happened=counts.happened,
        happened_other=counts.happened_other,
        refuted=counts.bound(max(level, refutation_level)) > claim,
        repeated=drawn.repeated,
    )


class EventCounts(NamedTuple):
    """How often an event happened for two values, and the distance of these (1 where epsilon is plain)."""

    happened: int
    counted: int
    happened_other: int
    counted_other: int
    distance: float

    def bound(self, confidence: float) -> float:
        """Return a lower bound on epsilon that holds with this probability."""
        error = (1 - confidence) / 2
        low = float(clopper_pearson_bounds(self.happened, self.counted, error)[0])
        high = float(clopper_pearson_bounds(self.happened_other, self.counted_other, error)[1])
        nats = max(0.0, math.log(low / high)) if low > 0 else 0.0
        return nats / self.distance if self.distance > 0 else (math.inf if nats > 0 else 0.0)


class ChosenEvent(NamedTuple):
    """Two values, by their place among the audited ones, an event, and the bound on epsilon by which it was chosen."""

    first: int
    second: int
    event: Event
    rate: float
    distance: float

    def counts(self, drawn: DrawnOutputs) -> EventCounts:
        """Count the event in the other half."""
        first, second = drawn.counting[self.first], drawn.counting[self.second]
        happened, happened_other = (int(np.count_nonzero(self.event.happens(each))) for each in (first, second))
        return EventCounts(happened, len(first), happened_other, len(second), self.distance)


def choose_event(
    drawn: DrawnOutputs, families: Sequence[EventFamily], domain: Domain, *, metric: bool, level: float
) -> ChosenEvent:
    """Return the two values and the event with the largest bound in the outputs to choose by."""
    size = drawn.positions.size
    distances = domain.distances_between(drawn.positions, drawn.positions) if metric else np.ones((size, size))
    sizes = np.array([len(outputs) for outputs in drawn.choosing])[:, None]
    error = (1 - level) / 2
    best, choice = -math.inf, (0, 1, families[0].event(0))
    for family in families:
        counts = np.stack([family.counts(outputs) for outputs in drawn.choosing])
        lows, highs = clopper_pearson_bounds(counts, sizes, error)
        with np.errstate(divide="ignore"):
            log_lows, log_highs = np.log(lows), np.log(highs)
        for first, second in permutations(range(size), 2):
            if distances[first, second] > 0:
                rates = (log_lows[first] - log_highs[second]) / distances[first, second]
                index = int(np.argmax(rates))
                if rates[index] > best:
                    best, choice = float(rates[index]), (first, second, family.event(index))
    return ChosenEvent(*choice, best, float(distances[choice[0], choice[1]]))


def clopper_pearson_bounds(happened: Counts | int, trials: Counts | int, error: float) -> tuple[Floats, Floats]:
    """Return lower and upper bounds of a probability, each wrong with at most the probability `error`.

    At the lower bound, as many events or more have the probability `error`; at the upper bound, as many or fewer.
    """
    from scipy.special import betainccinv, betaincinv

    counts, sizes = np.broadcast_arrays(happened, trials)
    pairs, inverse = np.unique(np.stack([counts.ravel(), sizes.ravel()]), axis=1, return_inverse=True)
    count, size = pairs
    lows = np.where(count > 0, betaincinv(np.maximum(count, 1), size - count + 1, error), 0.0)
    highs = np.where(count < size, betainccinv(count + 1, np.maximum(size - count, 1), error), 1.0)
    return lows[inverse.ravel()].reshape(counts.shape), highs[inverse.ravel()].reshape(counts.shape)
