"""Patterns with one output for each attribute: likelihoods multiply over the axes of a box of cells.

    g[(x_1, ..., x_d), i] = factor_1[x_1, z_i1] ... factor_d[x_d, z_id]

The matrix is never formed. Patterns are sorted, so that those that begin alike share their sums: after the first axis
there is one table of sums for each output there, after the second one for each pair that occurs, and so on. Where
(nearly) all combinations occur, an axis is one product with a small matrix; where they are few, as with rows of bits
that hardly repeat, each pattern is multiplied by its own column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.channels.base import CHUNK_ENTRIES, MAX_PART_ENTRIES, Channel, check_entries
from hubbub.channels.diagonal_plus_constant import DiagonalPlusConstantChannel
from hubbub.channels.rounding import RoundingBound, gamma, pairwise_additions
from hubbub.core.arrays import Floats, Positions, frozen

MISSING = -1  # the output of an attribute that a pattern says nothing about
MAX_EMPTY = 3  # combinations of outputs that may be computed for each one that occurs


class Axis:
    """The likelihoods of one attribute: a matrix, or by their structure where that is one value against all others.

    The last column is that of patterns without this attribute, with 1 for every value, if there are some.
    """

    def __init__(self, factor: Channel, *, has_missing: bool) -> None:
        self.values, self.outputs = factor.values, factor.patterns + has_missing
        self.log_scale = np.append(factor.log_scale, 0.0) if has_missing else factor.log_scale
        self.factor, self.has_missing = factor, has_missing
        peaked = isinstance(factor, DiagonalPlusConstantChannel) and factor.at >= factor.elsewhere
        self._structured = factor if peaked and factor.entries > 4096 else None
        if self._structured is None and factor.entries > MAX_PART_ENTRIES:
            check_entries(factor.values, factor.patterns)
        self._matrix: Floats | None = None

    @property
    def matrix(self) -> Floats:
        """All likelihoods, values by outputs."""
        if self._matrix is None:
            ones = np.ones((self.values, int(self.has_missing)))
            self._matrix = np.ascontiguousarray(np.concatenate([self.factor.dense(), ones], axis=1))
        return self._matrix

    def summed(self, sums: Floats) -> Floats:
        """Return sums over this axis for all outputs: (prefixes, values, rest) to (prefixes, outputs, rest)."""
        if self._structured is None:
            return _times(self.matrix.T, sums)
        applied = self._structured.forward(np.moveaxis(sums, 1, -1))
        if self.has_missing:
            applied = np.concatenate([applied, sums.sum(axis=1)[..., None]], axis=-1)
        return np.moveaxis(applied, -1, 1)

    def spread(self, ratios: Floats) -> Floats:
        """Return the adjoint of `summed`: (prefixes, outputs, rest) to (prefixes, values, rest)."""
        if self._structured is None:
            return _times(self.matrix, ratios)
        moved = np.moveaxis(ratios, 1, -1)
        if not self.has_missing:
            return np.moveaxis(self._structured.backward(moved), -1, 1)
        return np.moveaxis(self._structured.backward(moved[..., :-1]) + moved[..., -1:], -1, 1)

    @property
    def forward_operations(self) -> float:
        """The roundings that a term of a sum over values passes through."""
        return self.values + 4.0 if self._structured is None else pairwise_additions(self.values) + 14.0

    @property
    def backward_operations(self) -> float:
        """The roundings that a term of a sum over outputs passes through."""
        return self.outputs + 4.0


def _times(matrix: Floats, table: Floats) -> Floats:
    """Return matrix @ table for each prefix, as few large products."""
    prefixes, inner, rest = table.shape
    if prefixes == 1 or rest >= 16:
        return np.asarray(np.matmul(matrix, table))
    last = np.ascontiguousarray(np.moveaxis(table, 1, 2)).reshape(prefixes * rest, inner)
    return np.moveaxis((last @ matrix.T).reshape(prefixes, rest, matrix.shape[0]), 2, 1)


@dataclass(frozen=True)
class Level:
    """The distinct beginnings of patterns up to one axis: the beginning before it, and the output on it."""

    axis: Axis
    parents: Positions  # not decreasing
    outputs: Positions

    @property
    def size(self) -> int:
        """The number of beginnings."""
        return self.outputs.size

    def forward(self, sums: Floats, first: int, last: int, start: int) -> Floats:
        """Return the sums of the beginnings from `first` to `last`, given those of their parents, from `start` on."""
        parents, outputs = self.parents[first:last] - start, self.outputs[first:last]
        if sums.shape[0] * self.axis.outputs <= MAX_EMPTY * outputs.size:
            return self.axis.summed(sums)[parents, outputs]
        columns = self.axis.matrix.T
        done = np.empty((outputs.size, sums.shape[2]))
        for part in _pieces(outputs.size, sums.shape[1] * sums.shape[2]):
            done[part] = np.matmul(columns[outputs[part], None, :], sums[parents[part]])[:, 0]
        return done

    def backward(self, ratios: Floats, first: int, last: int, start: int, stop: int) -> Floats:
        """Return the adjoint of `forward`, for the parents from `start` to `stop`."""
        parents, outputs = self.parents[first:last] - start, self.outputs[first:last]
        rest = ratios.shape[1]
        if (stop - start) * self.axis.outputs <= MAX_EMPTY * outputs.size:
            table = np.zeros((stop - start, self.axis.outputs, rest))
            table[parents, outputs] = ratios
            return self.axis.spread(table)
        columns = self.axis.matrix.T
        gathered = np.zeros((stop - start, self.axis.values, rest))
        for part in _pieces(outputs.size, self.axis.values * rest):
            own = columns[outputs[part], :, None] * ratios[part, None, :]
            starts = np.flatnonzero(np.diff(parents[part], prepend=-1))
            gathered[parents[part][starts]] += np.add.reduceat(own, starts, axis=0)
        return gathered


def _pieces(count: int, entries: int) -> Iterator[slice]:
    step = max(1, CHUNK_ENTRIES // max(1, entries))
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))


class KroneckerChannel(Channel):
    """The product of one channel for each axis of a box of cells, the last axis varying fastest.

    `picks` has a line for each pattern: the patterns of the factors that it consists of, `MISSING` where it says
    nothing about an attribute. `log_weights` multiplies each pattern's likelihoods by a number.
    """

    def __init__(self, factors: Sequence[Channel], picks: Positions, log_weights: Floats | None = None) -> None:
        self.sides = tuple(factor.values for factor in factors)
        self.values, self.patterns = int(np.prod(self.sides)), len(picks)
        has_missing = (picks == MISSING).any(axis=0)
        self.axes = tuple(
            Axis(factor, has_missing=bool(some)) for factor, some in zip(factors, has_missing, strict=True)
        )
        self._picks = np.where(picks == MISSING, [axis.outputs - 1 for axis in self.axes], picks)
        scales = [axis.log_scale[own] for axis, own in zip(self.axes, self._picks.T, strict=True)]
        self.log_scale = frozen(np.sum(scales, axis=0) + (0.0 if log_weights is None else log_weights))
        # Axes that leave the fewest sums come first.
        self._order = sorted(range(len(self.axes)), key=lambda place: self.axes[place].outputs / self.sides[place])
        self._levels, self._leaf = self._sorted()

    def _sorted(self) -> tuple[list[Level], Positions]:
        """Return the distinct beginnings of patterns, axis by axis, and the place of each pattern among the last."""
        rows = self._picks[:, self._order]
        order = np.lexsort(rows.T[::-1])
        rows = rows[order]
        new, group = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=np.int64)
        levels = []
        for place, column in zip(self._order, rows.T, strict=True):
            new[:1] = True
            new[1:] |= column[1:] != column[:-1]
            levels.append(Level(self.axes[place], group[new], column[new]))
            group = np.cumsum(new) - 1
        leaf = np.empty(len(rows), dtype=np.int64)
        leaf[order] = group
        return levels, leaf

    def _blocks(self, batch: int) -> Iterator[list[tuple[int, int]]]:
        """Yield, a few beginnings at a time, their places at every level: so many that their sums fit in memory."""
        first = self._levels[0]
        rest = batch * self.values // first.axis.values
        for part in _pieces(first.size, 4 * rest):
            ranges = [(part.start, part.stop)]
            for level in self._levels[1:]:
                low, high = np.searchsorted(level.parents, ranges[-1])
                ranges.append((int(low), int(high)))
            yield ranges

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        batch = int(np.prod(theta.shape[:-1], dtype=np.int64))
        box = theta.reshape(batch, *self.sides)
        box = np.ascontiguousarray(np.transpose(box, [1 + place for place in self._order] + [0]))
        top, blocks = self._levels[0], list(self._blocks(batch))
        whole = box.reshape(1, top.axis.values, -1)
        done = np.empty((self._levels[-1].size, batch))
        for ranges in blocks:
            if len(blocks) == 1:
                sums = top.axis.summed(whole)[0][top.outputs]
            else:
                sums = top.axis.matrix.T[top.outputs[slice(*ranges[0])]] @ whole[0]
            for level, before, own in zip(self._levels[1:], ranges, ranges[1:], strict=False):
                sums = level.forward(sums.reshape(sums.shape[0], level.axis.values, -1), *own, before[0])
            done[slice(*ranges[-1])] = sums
        return np.ascontiguousarray(done[self._leaf].T).reshape(*theta.shape[:-1], self.patterns)

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        batch = int(np.prod(ratio.shape[:-1], dtype=np.int64))
        return self._gathered(self._leaves(ratio.reshape(batch, self.patterns)), self._levels).reshape(
            *ratio.shape[:-1], self.values
        )

    def _leaves(self, rows: Floats) -> Floats:
        """Return for each distinct combination the sum over its patterns, one column for each row."""
        size = self._levels[-1].size
        return np.stack([np.bincount(self._leaf, weights=row, minlength=size) for row in rows], axis=1)

    def _gathered(self, leaves: Floats, levels: Sequence[Level]) -> Floats:
        batch, top = leaves.shape[1], levels[0]
        blocks = list(self._blocks(batch))
        total: Floats = np.zeros(0)
        for ranges in blocks:
            ratios = leaves[slice(*ranges[-1])]
            for level, before, own in reversed(list(zip(levels[1:], ranges, ranges[1:], strict=False))):
                ratios = level.backward(ratios, *own, *before)
                ratios = ratios.reshape(ratios.shape[0], -1)
            if len(blocks) == 1:
                table = np.zeros((1, top.axis.outputs, ratios.shape[1]))
                table[0, top.outputs] = ratios
                piece = top.axis.spread(table)[0]
            else:
                piece = top.axis.matrix[:, top.outputs[slice(*ranges[0])]] @ ratios
            total = piece if total.size == 0 else total + piece
        box = total.reshape(*(self.sides[place] for place in self._order), batch)
        back = [len(self._order), *np.argsort(self._order).tolist()]
        return np.ascontiguousarray(np.transpose(box, back)).reshape(batch, self.values)

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        squared = {place: SquaredAxis(self.axes[place]) for place in self._order}
        levels = [
            Level(squared[place], level.parents, level.outputs)
            for place, level in zip(self._order, self._levels, strict=True)
        ]
        return np.asarray(self._gathered(self._leaves(weights[None]), levels)[0])

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        rows = np.ones((positions.size, self.patterns))
        for axis, places, picks in zip(self.axes, np.unravel_index(positions, self.sides), self._picks.T, strict=True):
            here, back = np.unique(places, return_inverse=True)
            own = axis.factor.rows(here)
            if axis.has_missing:
                own = np.concatenate([own, np.ones((here.size, 1))], axis=1)
            rows *= own[back.ravel()][:, picks]
        return rows

    def log_columns(self, patterns: Positions) -> Floats:
        """Return the sums of the axes' logarithms."""
        logs = np.zeros((*self.sides, patterns.size))
        shift = self.log_scale[patterns].copy()
        for place, axis in enumerate(self.axes):
            picks = self._picks[patterns, place]
            present = picks < axis.factor.patterns
            own = np.zeros((axis.values, patterns.size))
            own[:, present] = axis.factor.log_columns(picks[present])
            shift -= axis.log_scale[picks]
            logs += own.reshape(*(-1 if place == other else 1 for other in range(len(self.sides))), patterns.size)
        return np.asarray(logs.reshape(self.values, patterns.size) + shift)

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for one sum after the other."""
        return RoundingBound(gamma(sum(axis.forward_operations for axis in self.axes)))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for one sum after the other, those of equal patterns first, and of blocks last."""
        repeated = int(np.bincount(self._leaf, minlength=1).max(initial=1))
        often = [np.bincount(level.parents, minlength=1).max(initial=1) + 4.0 for level in self._levels]
        operations = sum(
            max(own, level.axis.backward_operations) for own, level in zip(often, self._levels, strict=True)
        )
        return RoundingBound(gamma(repeated + operations + sum(1 for _ in self._blocks(1))))

    @property
    def entry_rounding(self) -> float:
        """The factors', one after the other, and their product's."""
        return (
            float(np.prod([1.0 + axis.factor.entry_rounding for axis in self.axes])) * (1.0 + gamma(len(self.axes)))
            - 1.0
        )


class SquaredAxis(Axis):
    """An axis whose likelihoods are squared."""

    def __init__(self, axis: Axis) -> None:
        self.values, self.outputs, self.has_missing = axis.values, axis.outputs, axis.has_missing
        self.log_scale, self.factor = 2.0 * axis.log_scale, axis.factor
        self._structured = None
        self._matrix = axis.matrix**2
