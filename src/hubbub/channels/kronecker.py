"""Patterns with one output for each attribute: likelihoods multiply over the axes of a box of cells.

    g[(x_1, ..., x_d), i] = factor_1[x_1, z_i1] ... factor_d[x_d, z_id]

The matrix is never formed. Patterns are sorted, so that those that begin alike share their sums: after the first axis
there is one table of sums for each output there, after the second one for each pair that occurs, and so on. Where
(nearly) all combinations occur, an axis is one product with a small matrix; where they are few, as with rows of bits
that hardly repeat, each pattern is multiplied by its own column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from hubbub.channels.base import CHUNK_ENTRIES, Channel, check_entries
from hubbub.channels.dense import DenseChannel
from hubbub.channels.diagonal_plus_constant import DiagonalPlusConstantChannel
from hubbub.channels.exponential_decay import DecayChannel
from hubbub.channels.rounding import RoundingBound, gamma
from hubbub.core.arrays import Floats, Positions, frozen

MISSING = -1  # the output of an attribute that a pattern says nothing about
MAX_EMPTY = 3  # combinations of outputs that may be computed for each one that occurs
MIN_STRUCTURED_ENTRIES = 4_096  # from which on one value against all others is quicker than a matrix
GATHERED_ENTRIES = 131_072  # gathered at a time, so that they stay in a fast cache


class Axis:
    """The likelihoods of one attribute: a matrix, or by their structure where that is one value against all others.

    The last output is that of patterns without this attribute, with 1 for every value, if there are some.
    """

    def __init__(self, factor: Channel, *, has_missing: bool) -> None:
        self.values, self.outputs = factor.values, factor.patterns + has_missing
        self.log_scale = np.append(factor.log_scale, 0.0) if has_missing else factor.log_scale
        self.factor, self.has_missing = factor, has_missing
        self._structured = factor if _keeps_structure(factor) else None
        if self._structured is None:
            check_entries(factor.values, factor.patterns)

    @cached_property
    def columns(self) -> Floats:
        """All likelihoods, outputs by values: each output's lie side by side, because patterns pick outputs."""
        columns = np.ones((self.outputs, self.values))
        columns[: self.factor.patterns] = self.factor.dense().T
        return columns

    def chosen(self, outputs: Positions) -> Floats:
        """Return the columns of some outputs, rising: without a copy where they follow each other."""
        first, last = int(outputs[0]), int(outputs[-1])
        columns: Floats = self.columns[first : last + 1] if last - first + 1 == outputs.size else self.columns[outputs]
        return columns

    def summed(self, sums: Floats) -> Floats:
        """Return sums over this axis for all outputs: (prefixes, values, rest) to (prefixes, outputs, rest)."""
        if self._structured is None:
            return _times(self.columns, sums)
        applied = self._structured.forward(np.moveaxis(sums, 1, -1))
        if self.has_missing:
            applied = np.concatenate([applied, sums.sum(axis=1)[..., None]], axis=-1)
        return np.moveaxis(applied, -1, 1)

    def spread(self, ratios: Floats) -> Floats:
        """Return the adjoint of `summed`: (prefixes, outputs, rest) to (prefixes, values, rest)."""
        if self._structured is None:
            return _times(self.columns.T, ratios)
        moved = np.moveaxis(ratios, 1, -1)
        if not self.has_missing:
            return np.moveaxis(self._structured.backward(moved), -1, 1)
        return np.moveaxis(self._structured.backward(moved[..., :-1]) + moved[..., -1:], -1, 1)

    def forward_rounding(self) -> float:
        """Return the relative error of `summed`, for numbers that are not negative."""
        plain = gamma(self.values + 4.0)
        if self._structured is None:
            return plain
        some = np.ones(self.values)
        return max(plain, self._structured.forward_rounding(some, self._structured.forward(some)).relative)

    def backward_rounding(self) -> float:
        """Return the relative error of `spread`, for numbers that are not negative."""
        plain = gamma(self.outputs + 4.0)
        if self._structured is None:
            return plain
        bound = self._structured.backward_rounding(np.ones(self._structured.patterns)).relative
        return max(plain, bound + gamma(2.0))


def _keeps_structure(factor: Channel) -> bool:
    """Whether an axis is summed by its structure: where that is quicker, and its sums lose no digits.

    An FFT's errors are relative to the largest sums: those of one axis would spoil small sums over the others.
    """
    if isinstance(factor, DiagonalPlusConstantChannel):
        return factor.at >= factor.elsewhere and factor.entries > MIN_STRUCTURED_ENTRIES
    return isinstance(factor, DecayChannel)


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
    parents: Positions  # not decreasing, every one of them at least once
    outputs: Positions

    @property
    def size(self) -> int:
        """The number of beginnings."""
        return self.outputs.size

    @cached_property
    def starts(self) -> Positions:
        """The first beginning of each parent, and the end."""
        count = int(self.parents[-1]) + 1 if self.size else 0
        return np.searchsorted(self.parents, np.arange(count + 1))

    def forward(self, sums: Floats, first: int, last: int, start: int) -> Floats:
        """Return the sums of the beginnings from `first` to `last`, given those of their parents, from `start` on."""
        parents, outputs = self.parents[first:last] - start, self.outputs[first:last]
        if sums.shape[0] * self.axis.outputs <= MAX_EMPTY * outputs.size:
            return self.axis.summed(sums)[parents, outputs]
        done = np.empty((outputs.size, sums.shape[2]))
        for part in _pieces(outputs.size, sums.shape[1] * sums.shape[2], GATHERED_ENTRIES):
            own, table = self.axis.columns[outputs[part]], sums[parents[part]]
            if sums.shape[2] == 1:
                done[part, 0] = np.vecdot(own, table[:, :, 0])
            else:
                done[part] = np.matmul(own[:, None, :], table)[:, 0]
        return done

    def backward(self, ratios: Floats, first: int, last: int, start: int, stop: int) -> Floats:
        """Return the adjoint of `forward`, for the parents from `start` to `stop`."""
        parents, outputs = self.parents[first:last] - start, self.outputs[first:last]
        rest = ratios.shape[1]
        if (stop - start) * self.axis.outputs <= MAX_EMPTY * outputs.size:
            table = np.zeros((stop - start, self.axis.outputs, rest))
            table[parents, outputs] = ratios
            return self.axis.spread(table)
        if rest == 1:
            shape, starts = (stop - start, self.axis.outputs), self.starts[start : stop + 1] - first
            sums = sparse.csr_array((ratios[:, 0], outputs, starts), shape=shape) @ self.axis.columns
            return np.asarray(sums)[:, :, None]
        gathered = np.zeros((stop - start, self.axis.values, rest))
        for part in _pieces(outputs.size, self.axis.values * rest, GATHERED_ENTRIES):
            own = self.axis.columns[outputs[part]][:, :, None] * ratios[part, None, :]
            starts = np.flatnonzero(np.diff(parents[part], prepend=-1))
            gathered[parents[part][starts]] += np.add.reduceat(own, starts, axis=0)
        return gathered


def _pieces(count: int, entries: int, limit: int = CHUNK_ENTRIES) -> Iterator[slice]:
    """Yield pieces of `count` things with some entries each, so that none has more than `limit` of them."""
    step = max(1, limit // max(1, entries))
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
        # What no pattern says anything about is summed over at once: its outputs would be computed in vain.
        never = (picks == MISSING).all(axis=0)
        self.axes = tuple(
            Axis(DenseChannel(np.empty((factor.values, 0)), np.empty(0)) if none else factor, has_missing=bool(some))
            for factor, none, some in zip(factors, never, has_missing, strict=True)
        )
        self.picks = np.where(picks == MISSING, [axis.outputs - 1 for axis in self.axes], picks)
        scales = [axis.log_scale[own] for axis, own in zip(self.axes, self.picks.T, strict=True)]
        self.log_scale = frozen(np.sum(scales, axis=0) + (0.0 if log_weights is None else log_weights))
        # Axes that leave the fewest sums come first.
        self._order = sorted(range(len(self.axes)), key=lambda place: self.axes[place].outputs / self.sides[place])
        self._levels, self._leaf = self._sorted()

    def _sorted(self) -> tuple[list[Level], Positions]:
        """Return the distinct beginnings of patterns, axis by axis, and the place of each pattern among the last."""
        rows = self.picks[:, self._order]
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

    def _blocks(self, batch: int, levels: Sequence[Level]) -> Iterator[list[tuple[int, int]]]:
        """Yield, a few beginnings at a time, their places at every level: so many that their sums fit in memory."""
        rest = batch * math.prod(level.axis.values for level in levels[1:])
        for part in _pieces(levels[0].size, 4 * rest):
            ranges = [(part.start, part.stop)]
            for level in levels[1:]:
                low, high = level.starts[list(ranges[-1])]
                ranges.append((int(low), int(high)))
            yield ranges

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        batch = int(np.prod(theta.shape[:-1], dtype=np.int64))
        box = theta.reshape(batch, *self.sides)
        box = np.ascontiguousarray(np.transpose(box, [1 + place for place in self._order] + [0]))
        top, blocks = self._levels[0], list(self._blocks(batch, self._levels))
        whole = box.reshape(1, top.axis.values, -1)
        done = np.empty((self._levels[-1].size, batch))
        for ranges in blocks:
            if len(blocks) == 1:
                sums = top.axis.summed(whole)[0][top.outputs]
            else:
                sums = top.axis.chosen(top.outputs[slice(*ranges[0])]) @ whole[0]
            for level, before, own in zip(self._levels[1:], ranges, ranges[1:], strict=False):
                sums = level.forward(sums.reshape(sums.shape[0], level.axis.values, -1), *own, before[0])
            done[slice(*ranges[-1])] = sums
        return np.ascontiguousarray(done[self._leaf].T).reshape(*theta.shape[:-1], self.patterns)

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        batch = int(np.prod(ratio.shape[:-1], dtype=np.int64))
        box = self._gathered(self._leaves(ratio.reshape(batch, self.patterns)), self._levels)
        return box.reshape(*ratio.shape[:-1], self.values)

    def _leaves(self, rows: Floats) -> Floats:
        """Return for each distinct combination the sum over its patterns, one column for each row."""
        size = self._levels[-1].size
        return np.stack([np.bincount(self._leaf, weights=row, minlength=size) for row in rows], axis=1)

    def _gathered(self, leaves: Floats, levels: Sequence[Level]) -> Floats:
        """Return the sums over all patterns for each cell: a box with the axes in their own order, after the batch."""
        batch, top = leaves.shape[1], levels[0]
        blocks = list(self._blocks(batch, levels))
        total: Floats = np.zeros(0)
        if not blocks:  # no patterns
            total = np.zeros(batch * math.prod(level.axis.values for level in levels))
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
                piece = top.axis.chosen(top.outputs[slice(*ranges[0])]).T @ ratios
            total = piece if total.size == 0 else total + piece
        box = total.reshape(*(level.axis.values for level in levels), batch)
        back = [len(self._order), *np.argsort(self._order).tolist()]
        return np.ascontiguousarray(np.transpose(box, back))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        levels = [replace(level, axis=SquaredAxis(level.axis)) for level in self._levels]
        return self._gathered(self._leaves(weights[None]), levels).ravel()

    def times(self, other: KroneckerChannel) -> KroneckerChannel | None:
        """Return the products of both channels' likelihoods, pattern by pattern, where no axis is in both."""
        factors, picks = [], []
        for mine, theirs, own, others in zip(self.axes, other.axes, self.picks.T, other.picks.T, strict=True):
            axis, chosen = (mine, own) if mine.factor.patterns else (theirs, others)
            if mine.factor.patterns and theirs.factor.patterns:
                return None
            factors.append(axis.factor)
            picks.append(np.where(chosen < axis.factor.patterns, chosen, MISSING))
        return KroneckerChannel(factors, np.stack(picks, axis=1))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        rows = np.ones((positions.size, self.patterns))
        for axis, places, picks in zip(self.axes, np.unravel_index(positions, self.sides), self.picks.T, strict=True):
            here, back = np.unique(places, return_inverse=True)
            own = axis.factor.rows(here)
            if axis.has_missing:
                own = np.concatenate([own, np.ones((here.size, 1))], axis=1)
            rows *= own[:, picks][back.ravel()]
        return rows

    def log_columns(self, patterns: Positions) -> Floats:
        """Return the sums of the axes' logarithms."""
        logs = np.zeros((*self.sides, patterns.size))
        shift = self.log_scale[patterns].copy()
        for place, axis in enumerate(self.axes):
            picks = self.picks[patterns, place]
            present = picks < axis.factor.patterns
            own = np.zeros((axis.values, patterns.size))
            own[:, present] = axis.factor.log_columns(picks[present])
            shift -= axis.log_scale[picks]
            logs += own.reshape(*(-1 if place == other else 1 for other in range(len(self.sides))), patterns.size)
        return np.asarray(logs.reshape(self.values, patterns.size) + shift)

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for one sum after the other."""
        return RoundingBound(_compounded(axis.forward_rounding() for axis in self.axes))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for one sum after the other, those of equal patterns first, and of blocks last."""
        repeated = gamma(int(np.bincount(self._leaf, minlength=1).max(initial=1)))
        often = [gamma(np.diff(level.starts).max(initial=1) + 4.0) for level in self._levels]
        each = [max(own, level.axis.backward_rounding()) for own, level in zip(often, self._levels, strict=True)]
        return RoundingBound(_compounded([repeated, *each, gamma(sum(1 for _ in self._blocks(1, self._levels)))]))

    @property
    def entry_rounding(self) -> float:
        """The factors', one after the other, and their product's."""
        return (
            float(np.prod([1.0 + axis.factor.entry_rounding for axis in self.axes])) * (1.0 + gamma(len(self.axes)))
            - 1.0
        )


def _compounded(bounds: Iterable[float]) -> float:
    """Return the relative error of what passes through several computations, each with an error of its own."""
    return math.expm1(math.fsum(map(math.log1p, bounds))) * (1.0 + 1e-9)


class SquaredAxis(Axis):
    """An axis whose likelihoods are squared."""

    def __init__(self, axis: Axis) -> None:
        self.values, self.outputs, self.has_missing = axis.values, axis.outputs, axis.has_missing
        self.log_scale, self.factor = 2.0 * axis.log_scale, axis.factor
        self._structured = None
        self.__dict__["columns"] = axis.columns**2
