"""The privacy constraints that imply all others, as a sparse operator on the columns of a mechanism.

A mechanism A keeps the bounds b if A[x, z] <= exp(b[x, y]) A[y, z] for all places x, y and outputs z: each column
lies in

    K = {v >= 0 : v_x <= exp(b_xy) v_y for all x, y}.

With b_xy <= b_xu + b_uy a pair (x, y) follows from the pairs (x, u) and (u, y) where equality holds. The pairs that
follow from no others are the **edges**; on a grid with Euclidean distances they are the pairs of places that see each
other, about 6 / pi^2 of all. Edges longer than `MAX_LOG_BOUND` are left out, too: exp(b) is a number no more. Whoever
leaves out edges has a relaxation, so lower bounds stay lower bounds; `privacy_repair` restores what was left out.

**Scale.** The slack of an edge is written e^(b/2) v_y - e^(-b/2) v_x, so that no coefficient overflows and the
off-diagonal entries of G' W G are -(w_xy + w_yx).

**Equal places.** Places with b_xy = 0 share a row of A. They are one place whose costs are the sum of theirs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions

MAX_LOG_BOUND = 300.0  # bounds beyond it restrict nothing that a number can show
EQUALITY_TOLERANCE = 1e-12  # relative, of b_xu + b_uy = b_xy: distances along a line are rounded
MIN_LEG_SHARE = 1e-9  # of b_xy, for b_xu and b_uy: otherwise rounding could remove (x, y) and (u, y) for each other


class PrivacyEdges(NamedTuple):
    """Ordered pairs x -> y with v_x <= exp(b_xy) v_y, as the operator G; `low` is e^(-b/2), `high` e^(b/2)."""

    places: int
    firsts: Positions
    seconds: Positions
    lengths: Floats
    low: Floats
    high: Floats

    def slacks(self, column: Floats) -> Floats:
        """Return G v: e^(b/2) v_y - e^(-b/2) v_x for each edge."""
        return self.high * column[self.seconds] - self.low * column[self.firsts]

    def gather(self, values: Floats) -> Floats:
        """Return G' f."""
        return self._sums(self.high * values, -self.low * values)

    def gather_squares(self, weights: Floats) -> Floats:
        """Return the diagonal of G' diag(w) G."""
        return self._sums(self.high**2 * weights, self.low**2 * weights)

    def gather_magnitudes(self, values: Floats) -> Floats:
        """Return |G|' f: what rounding of G' f is relative to."""
        return self._sums(self.high * values, self.low * values)

    def part(self, chosen: Positions) -> PrivacyEdges:
        """Return some of the edges."""
        return PrivacyEdges(
            self.places,
            self.firsts[chosen],
            self.seconds[chosen],
            self.lengths[chosen],
            self.low[chosen],
            self.high[chosen],
        )

    def _sums(self, at_seconds: Floats, at_firsts: Floats) -> Floats:
        size = self.places
        sums = np.bincount(self.seconds, at_seconds, size) + np.bincount(self.firsts, at_firsts, size)
        return sums.astype(np.float64, copy=False)


def privacy_edges(bounds: Floats) -> PrivacyEdges:
    """Return the edges of symmetric `bounds` that obey the triangle inequality and are 0 on the diagonal only."""
    firsts, seconds = np.nonzero(_needed(bounds))
    lengths = bounds[firsts, seconds]
    return PrivacyEdges(len(bounds), firsts, seconds, lengths, np.exp(-lengths / 2), np.exp(lengths / 2))


def equal_places(bounds: Floats) -> Positions:
    """Return for each place the number of its group: places with a bound of 0 between them are in one group."""
    leaders = np.argmax(bounds <= 0.0, axis=1)  # the first place that is equal to this one
    groups: Positions = np.unique(leaders, return_inverse=True)[1].astype(np.int64)
    return groups


def _needed(bounds: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return which pairs are edges."""
    needed = bounds < MAX_LOG_BOUND
    np.fill_diagonal(needed, False)
    limits = bounds * (1.0 + EQUALITY_TOLERANCE)
    for place, row in enumerate(bounds):
        detours = row[:, None] + bounds
        legs = np.minimum(row[:, None], bounds)
        follows = (detours <= limits[place]) & (legs > MIN_LEG_SHARE * row) & np.isfinite(detours)
        needed[place] &= ~follows.any(axis=0)
    return needed & needed.T
