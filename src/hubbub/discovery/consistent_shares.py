"""Shares of all candidates of all rounds that agree with each other, nearest to what each round says alone.

The continuations of a prefix are all there are, so that their shares add up to the prefix's own. What one round says of
a prefix is therefore news about its continuations: a candidate with many supports whose prefix has few was lucky. The
shares are the least squares::

    minimize  sum over candidates c of w_c (f_c - e_c)^2   subject to  f >= 0,  f_c = sum of f over c's continuations

with e the estimates of single rounds and w the inverse of their variances. The candidates of all rounds are a tree, and
the minimum is exact, found in one pass up and one down. For a node, let t(m) be the total share below it that balances
a price m: for a leaf max(0, e + m / w), and for children together the sum S(l) of theirs. A node that is measured
itself answers the price m = l + w (S(l) - e) with t = S(l). All these are piecewise linear, convex, with slopes that
increase, so a node is a list of knots and of the slopes behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions


class RoundShares(NamedTuple):
    """What a round says of its candidates, and how they go together with those of the round before.

    `parents` are places among the kept candidates of the round before, `kept` the places of those that were extended.
    """

    estimates: Floats
    weights: Floats
    parents: Positions
    kept: Positions


class _Supply(NamedTuple):
    """A total share as a function of a price: 0 up to the first knot, `totals` at the knots, `slopes` behind them."""

    knots: Floats
    totals: Floats
    slopes: Floats

    def at(self, price: float) -> float:
        """Return the total at a price."""
        place = int(np.searchsorted(self.knots, price, side="right")) - 1
        return 0.0 if place < 0 else float(self.totals[place] + self.slopes[place] * (price - self.knots[place]))

    def measured(self, estimate: float, weight: float) -> _Supply:
        """Return the supply of a node that was measured itself, from that of its children."""
        knots = self.knots + weight * (self.totals - estimate)
        return _Supply(knots, self.totals, self.slopes / (1.0 + weight * self.slopes))


def consistent_shares(rounds: Sequence[RoundShares]) -> Floats:
    """Return the shares of the last round's candidates."""
    supplies: list[list[_Supply]] = [[] for _ in rounds]  # of the children of each kept candidate
    for turn in range(len(rounds) - 1, 0, -1):
        supplies[turn - 1] = _supplies_by_parent(rounds, turn, supplies[turn])
    prices = np.zeros(1)  # of the children of each kept candidate of the round before: first, any total may be
    for turn, tested in enumerate(rounds[:-1]):
        own = prices[tested.parents[tested.kept]]
        prices = np.array(
            [
                _price_below(below, float(price), float(tested.estimates[node]), float(tested.weights[node]))
                for below, price, node in zip(supplies[turn], own, tested.kept, strict=True)
            ]
        )
    last = rounds[-1]
    return np.maximum(0.0, last.estimates + prices[last.parents] / last.weights)


def _price_below(below: _Supply, price: float, estimate: float, weight: float) -> float:
    return price - weight * (below.measured(estimate, weight).at(price) - estimate)


def _supplies_by_parent(rounds: Sequence[RoundShares], turn: int, supplies: list[_Supply]) -> list[_Supply]:
    """Return what the children of each kept candidate of the round before supply together."""
    tested, parents = rounds[turn], rounds[turn - 1].kept.size
    order = np.argsort(tested.parents, kind="stable")
    ends = np.searchsorted(tested.parents[order], np.arange(parents + 1))
    return [_joined(tested, order[ends[place] : ends[place + 1]], supplies) for place in range(parents)]


def _joined(tested: RoundShares, nodes: Positions, supplies: list[_Supply]) -> _Supply:
    """Return the sum of the supplies of some candidates of a round: leaves, and those that were extended."""
    extended = np.full(tested.estimates.size, -1)
    if supplies:
        extended[tested.kept] = np.arange(tested.kept.size)
    leaves = nodes[extended[nodes] < 0]
    knots, steps = [-tested.weights[leaves] * tested.estimates[leaves]], [1.0 / tested.weights[leaves]]
    for node in nodes[extended[nodes] >= 0].tolist():
        own = supplies[extended[node]].measured(tested.estimates[node], tested.weights[node])
        knots.append(own.knots)
        steps.append(np.diff(own.slopes, prepend=0.0))
    return _supply(np.concatenate(knots), np.concatenate(steps))


def _supply(knots: Floats, steps: Floats) -> _Supply:
    order = np.argsort(knots, kind="stable")
    knots, slopes = knots[order], np.cumsum(steps[order])
    totals = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(knots))])
    return _Supply(knots, totals, slopes)
