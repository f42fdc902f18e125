"""What draws of the sampler itself prove: a lower bound on its epsilon.

If an event has probability p under one value and p' under another, epsilon is at least log(p / p') (over their
distance). Half of the draws choose the values and the event; the other half, drawn apart, bound p from below and p'
from above, each at half of what the level allows (Clopper and Pearson). The bound holds with probability `level` or
more, whatever the sampler is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.auditing.events import Counts, Event, Family, keys
from hubbub.core.arrays import Array, Floats, Positions, as_array, plain
from hubbub.core.errors import MechanismError, shorten
from hubbub.core.progress import Progress
from hubbub.domains import Domain

MOST_TRIED = 6  # values; of larger domains the ends, the middle and neighbours of these
ALL_ALIKE = -40.0  # log-probability below which two runs that agree are no accident
Sampler = Callable[[Array], object]


@dataclass(frozen=True)
class Empirical:
    """A lower bound on epsilon at a level, and the event behind it.

    Of `draws` outputs of each value tried, half were counted: the event happened `happened` times for `value` and
    `happened_other` times for `other`. `repeated` says that two runs of the sampler gave the same outputs.
    """

    low: float
    level: float
    draws: int
    counted: int
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
    """Outputs of some values: one half to look at, the other to count."""

    positions: Positions
    first: tuple[Array, ...]
    second: tuple[Array, ...]

    @property
    def repeated(self) -> bool:
        """Whether both halves are the same where chance would not have it."""
        for one, other in zip(self.first, self.second, strict=True):
            own, others = keys(one), keys(other)
            if own.shape != others.shape or not bool((own == others).all()):
                return False
        surprise = 0.0
        for one in self.first:  # all agree by accident with probability sum(p^2) for each draw
            shares = np.unique(keys(one), return_counts=True)[1] / len(one)
            surprise += len(one) * math.log(float((shares**2).sum()))
        return surprise < ALL_ALIKE


def tried(domain: Domain) -> Positions:
    """Return the positions of the values that are tried."""
    size = len(domain)
    if size <= MOST_TRIED:
        return np.arange(size)
    middle = size // 2
    chosen = {0, 1, middle, middle + 1, size - 1}
    grid = domain.grid
    if grid is not None and grid.cells is None and domain.among is None and grid.rows > 1:
        chosen.add(grid.columns)  # north of the first cell
    else:
        chosen.add(size - 2)
    return np.array(sorted(chosen))


def drawing(sampler: Sampler, domain: Domain, draws: int) -> Generator[Progress, None, DrawnOutputs]:
    """Draw both halves for each value, apart."""
    positions = tried(domain)
    halves: tuple[list[Array], list[Array]] = ([], [])
    for done, position in enumerate(positions.tolist()):
        yield Progress(done, positions.size, "drawing outputs")
        for half, count in zip(halves, (draws // 2, draws - draws // 2), strict=True):
            values = np.repeat(domain.labels[position : position + 1], count)
            half.append(_outputs(sampler(values), count))
    alike = _alike([*halves[0], *halves[1]])
    return DrawnOutputs(positions, tuple(alike[: positions.size]), tuple(alike[positions.size :]))


def _alike(parts: list[Array]) -> list[Array]:
    """Return outputs of one type and shape: those of different calls may differ, and are then compared as objects."""
    if len({part.shape[1:] for part in parts}) == 1:
        if len({part.dtype for part in parts}) == 1 and parts[0].dtype.kind != "O":
            return parts
        if all(part.dtype.kind in "biuf" for part in parts):
            return [part.astype(np.result_type(*parts)) for part in parts]
    return [np.fromiter(part.tolist(), dtype=object, count=len(part)) for part in parts]


def _outputs(given: object, count: int) -> Array:
    outputs = as_array(given)
    if outputs.ndim == 0 or len(outputs) != count:
        raise MechanismError(
            "the sampler does not give one output for each value",
            where="audit(sampler)",
            got=shorten(given) if outputs.ndim == 0 else f"{len(outputs):,} outputs",
            expected=f"{count:,} outputs for {count:,} values",
            remedy="return a list or an array as long as the values that were passed",
        )
    return outputs


def testing(
    drawn: DrawnOutputs,
    families: Sequence[Family],
    domain: Domain,
    claim: float,
    metric: bool,
    level: float,
    sure: float,
) -> Empirical:
    """Choose two values and an event by the first half, and count it in the second.

    The bound has the level that is asked for. A claim is refuted at the level `sure`, where that is higher: one that is
    proven must not be refuted by chance in one of a hundred audits.
    """
    apart = (
        domain.distances_between(drawn.positions, drawn.positions) if metric else np.ones((drawn.positions.size,) * 2)
    )
    first, second, event = _chosen(drawn.first, families, apart, level)
    counted = len(drawn.second[first])
    happened, happened_other = (int(np.count_nonzero(event.happens(drawn.second[at]))) for at in (first, second))

    def bound(confidence: float) -> float:
        share, distance = (1 - confidence) / 2, float(apart[first, second])
        low, high = lower(happened, counted, share), upper(happened_other, len(drawn.second[second]), share)
        nats = max(0.0, math.log(low / high)) if low > 0 else 0.0
        return nats / distance if distance > 0 else (math.inf if nats > 0 else 0.0)

    labels = domain.labels[drawn.positions]
    return Empirical(
        low=bound(level),
        level=level,
        draws=len(drawn.first[first]) + counted,
        counted=counted,
        values=tuple(plain(label) for label in labels),
        value=plain(labels[first]),
        other=plain(labels[second]),
        distance=float(apart[first, second]) if metric else None,
        event=event.words,
        happened=happened,
        happened_other=happened_other,
        refuted=bound(max(level, sure)) > claim,
        repeated=drawn.repeated,
    )


def _chosen(parts: Sequence[Array], families: Sequence[Family], apart: Floats, level: float) -> tuple[int, int, Event]:
    """Return the two values and the event with the largest bound in these outputs."""
    sizes = np.array([len(part) for part in parts])[:, None]
    share = (1 - level) / 2
    best, found = -math.inf, (0, 1, families[0].event(0))
    for family in families:
        counts = family.counts(parts)
        lows, highs = bounds(counts, np.broadcast_to(sizes, counts.shape), share)
        with np.errstate(divide="ignore"):
            logs, against = np.log(lows), np.log(highs)
        for first in range(len(parts)):
            for second in range(len(parts)):
                if first != second and apart[first, second] > 0:
                    rates = (logs[first] - against[second]) / apart[first, second]
                    place = int(np.argmax(rates))
                    if rates[place] > best:
                        best, found = float(rates[place]), (first, second, family.event(place))
    return found


def bounds(happened: Counts, of: Counts, share: float) -> tuple[Floats, Floats]:
    """Return both bounds of Clopper and Pearson, each wrong with probability `share` at most."""
    pairs, back = np.unique(np.stack([happened.ravel(), of.ravel()]), axis=1, return_inverse=True)
    lows = np.array([lower(count, size, share) for count, size in pairs.T.tolist()])
    highs = np.array([upper(count, size, share) for count, size in pairs.T.tolist()])
    return lows[back.ravel()].reshape(happened.shape), highs[back.ravel()].reshape(happened.shape)


def lower(happened: int, of: int, share: float) -> float:
    """Return the probability p at which so many or more happen with probability `share`; 0 where none did."""
    from scipy.special import betaincinv

    return float(betaincinv(happened, of - happened + 1, share)) if happened else 0.0


def upper(happened: int, of: int, share: float) -> float:
    """Return the probability p at which so many or fewer happen with probability `share`; 1 where all did."""
    from scipy.special import betainccinv

    return float(betainccinv(happened + 1, of - happened, share)) if happened < of else 1.0
