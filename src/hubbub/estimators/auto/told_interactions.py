"""Which attributes' interactions the reports can tell, whatever the shares are.

Somebody who reports one attribute says nothing about how it goes together with others. If nobody reports both of two
attributes, distributions with equal margins otherwise fit alike, and a maximum of the likelihood is one of many. Of
these, the one that assumes least has the largest entropy: the log-linear model of what is told, with the same margins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.domains.product_shape import ProductShape
from hubbub.solvers.log_linear_model import LogLinearModel

MAX_UNTOLD_CHANGE = 1e-10  # of a fitted probability, relative: rounding
MAX_SWEEPS, SWEEP_TOL = 1_000, 1e-13
SEED = 1  # of the direction that is tried: any but an exceptional one does


def told_model(channel: Channel, shape: ProductShape) -> LogLinearModel | None:
    """Return the log-linear model of the pairs that the reports tell; None where they tell more than pairs."""
    places = range(len(shape.sides))
    pairs = [pair for pair in combinations(places, 2) if _tells(channel, _only_with(shape, pair))]
    everything = len(pairs) == len(places) * (len(places) - 1) // 2
    if everything and (len(places) == 2 or _tells(channel, _without_margins(shape, pairs))):
        return None
    alone = [(place,) for place in places if not any(place in pair for pair in pairs)]
    return LogLinearModel(shape, (*alone, *pairs))


def untold(model: LogLinearModel) -> tuple[tuple[str, ...], ...]:
    """Return the pairs of attributes whose interaction is not told; one of all attributes where only more is not."""
    names = model.shape.names
    pairs = [pair for pair in combinations(range(len(names)), 2) if pair not in model.margins]
    return tuple((names[first], names[second]) for first, second in pairs) or (names,)


def _only_with(shape: ProductShape, pair: tuple[int, int]) -> Floats:
    """Return a change of shares that shows only to those who see both attributes."""
    places = range(len(shape.sides))
    return _without_margins(shape, [tuple(other for other in places if other != place) for place in pair])


def _without_margins(shape: ProductShape, margins: Sequence[tuple[int, ...]]) -> Floats:
    """Return a change of shares (a row) that leaves some margins as they are, by alternating projections."""
    inside = shape.boxed(np.ones((1, shape.values)))
    change = inside * np.random.default_rng(SEED).standard_normal(inside.shape)
    for _ in range(MAX_SWEEPS):
        largest = 0.0
        for margin in margins:
            others = tuple(place + 1 for place in range(len(shape.sides)) if place not in margin)
            sums, counts = (box.sum(axis=others, keepdims=True) for box in (change, inside))
            means = sums / np.maximum(counts, 1.0)
            change = change - inside * means
            largest = max(largest, float(np.abs(means).max()))
        if largest <= SWEEP_TOL:
            break
    return shape.unboxed(change)


def _tells(channel: Channel, change: Floats) -> bool:
    """Whether the change, made to the uniform distribution, changes what is fitted to the reports."""
    size = float(np.abs(change).max())
    if size < 1e-6:  # no such change is possible
        return False
    uniform = np.full(change.shape, 1.0 / change.size)
    before, after = channel.forward(np.concatenate([uniform, uniform + 0.5 * change / (size * change.size)]))
    return bool(np.abs(after - before).max() > MAX_UNTOLD_CHANGE * before.max())
