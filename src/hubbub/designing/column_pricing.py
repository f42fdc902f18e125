"""Which columns would improve a design, and by how much any column could.

Around the weights w, the goal is at least F(w) + gradient . (w' - w) for any other mechanism w', because it is convex.
With multipliers for the sums (lambda) and for the budget (nu), a column r lowers this by at most ::

    gain(r) = lambda . r + r' P r / (centre . r) - nu cost(r)

for P the price of information. Where no column of mean 1 gains more than d, no mechanism is better than
gradient . w - sum(lambda) - nu budget + d below F(w): that is the certificate. `gain` is convex, so it is largest at
extreme rays: all of them are compared where they are few, and otherwise searched, from many starts, by moving to the
best ray of the linearised gain (which never loses) and by single steps.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.designing.column_costs import ColumnCost
from hubbub.designing.ray_families import RayFamily

MAX_ASCENT_STEPS = 30
NEW_COLUMNS = 30  # that join the design in one round
MAX_FLIPPED_STARTS = 40
DISTINCT = 1e-6  # columns that differ by less, relative, are one


@dataclass(frozen=True, eq=False)
class ColumnPrices:
    """What decides the gain of a column."""

    sums: Floats
    information: Floats | None  # P
    centre: Floats
    budget: float = 0.0  # nu
    cost: ColumnCost | None = None

    def gains(self, columns: Floats) -> Floats:
        """Return the gain of each column."""
        gains = columns @ self.sums
        if self.information is not None:
            squares = np.einsum("ij,ij->i", columns @ self.information, columns)
            gains = gains + squares / (columns @ self.centre)
        if self.cost is not None and self.budget:
            gains = gains - self.budget * self.cost.costs(columns)
        return np.asarray(gains)

    def slopes(self, columns: Floats) -> Floats:
        """Return the gradient of the gain at each column; a tangent that the gain is never below."""
        slopes = np.broadcast_to(self.sums, columns.shape).copy()
        if self.information is not None:
            told = columns @ self.information
            totals = (columns @ self.centre)[:, None]
            squares = np.einsum("ij,ij->i", told, columns)[:, None]
            slopes += 2 * told / totals - squares / totals**2 * self.centre
        if self.cost is not None and self.budget:
            slopes -= self.budget * self.cost.slopes(columns)
        return slopes


@dataclass(frozen=True, eq=False)
class PricedColumns:
    """The columns that gain most, best first, with the largest gain; `complete` if no column was left out."""

    columns: Floats
    largest_gain: float
    complete: bool


def price_columns(
    rays: RayFamily, prices: ColumnPrices, known: Floats, generator: np.random.Generator, *, starts: int
) -> Generator[Progress, None, PricedColumns]:
    """Return the columns with the largest gains: of all rays where they are listed, else of those that a search finds.

    The search starts at `known` columns and at `starts` random ones.
    """
    if rays.is_listed:
        best, gains = np.empty((0, rays.values)), np.empty(0)
        for number, block in enumerate(rays.blocks()):
            yield Progress(number, 0, "comparing all columns")
            block_gains = prices.gains(block)
            top = np.argsort(-block_gains)[:NEW_COLUMNS]
            best, gains = np.vstack([best, block[top]]), np.append(gains, block_gains[top])
        order = np.argsort(-gains)[:NEW_COLUMNS]
        return PricedColumns(best[order], float(gains[order[0]]), complete=True)
    if len(known) > starts and rays.count is None:  # a linear program for each of them takes too long
        known = known[generator.choice(len(known), size=starts, replace=False)]
    points = np.vstack([known, rays.sample(starts, generator)])
    found = yield from _ascend(rays, prices, points)
    promising = found[np.argsort(-prices.gains(found))[:MAX_FLIPPED_STARTS]]
    turned = [_climb(rays, prices, ray) for ray in promising]
    found = distinct_columns(np.vstack([*turned, found]) if turned else found)
    gains = prices.gains(found)
    order = np.argsort(-gains)[:NEW_COLUMNS]
    return PricedColumns(found[order], float(gains[order[0]]), complete=False)


def distinct_columns(columns: Floats) -> Floats:
    """Return columns without repetitions, in their order."""
    keys = np.round(np.log(columns / columns.max(axis=1, keepdims=True)) / DISTINCT).astype(np.int64)
    _, first = np.unique(keys, axis=0, return_index=True)
    return np.asarray(columns[np.sort(first)])


def _ascend(rays: RayFamily, prices: ColumnPrices, points: Floats) -> Generator[Progress, None, Floats]:
    """Move each point to the best ray of the linearised gain until none moves."""
    current, gains = points, prices.gains(points)
    moving = np.arange(len(points))
    for number in range(MAX_ASCENT_STEPS):
        yield Progress(number, 0, "searching for better columns")
        moved = rays.maximise(prices.slopes(current[moving]))
        new_gains = prices.gains(moved)
        better = new_gains > gains[moving] + 1e-12 * np.abs(gains[moving])
        if number == 0:  # starts need not be rays
            better = new_gains >= gains[moving] - 1e-9 * np.abs(gains[moving])
        moving, moved, new_gains = moving[better], moved[better], new_gains[better]
        if not moving.size:
            break
        current = current.copy()
        current[moving], gains[moving] = moved, new_gains
        _, first = np.unique(np.round(current[moving], 9), axis=0, return_index=True)
        moving = moving[np.sort(first)]
    return distinct_columns(current)


def _climb(rays: RayFamily, prices: ColumnPrices, ray: Floats) -> Floats:
    """Take single steps as long as one gains; return the last ray as one row."""
    gain = float(prices.gains(ray[None, :])[0])
    while True:
        around = rays.flipped(ray)
        if not len(around):
            return ray[None, :]
        gains = prices.gains(around)
        best = int(np.argmax(gains))
        if gains[best] <= gain + 1e-12 * abs(gain):
            return ray[None, :]
        ray, gain = around[best], float(gains[best])
