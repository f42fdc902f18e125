"""Channels made of other channels: concatenated, restricted, reindexed, and products of several outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from hubbub.channels.base import CHUNK_ENTRIES, Channel
from hubbub.channels.dense import DenseChannel
from hubbub.channels.rounding import UNDERFLOW_NATS, RoundingBound, entry_error, gamma
from hubbub.core.arrays import Floats, Positions, frozen

MAX_KEPT_ENTRIES = 250_000_000  # 2 GB: larger products are not kept, but multiplied again each time


class ConcatenatedChannel(Channel):
    """Several channels over the same values, with their patterns one after the other."""

    def __init__(self, parts: Sequence[Channel]) -> None:
        self.parts = tuple(parts)
        self.values = self.parts[0].values
        self.patterns = sum(part.patterns for part in self.parts)
        self.log_scale = frozen(np.concatenate([part.log_scale for part in self.parts]))
        self._cuts = np.cumsum([part.patterns for part in self.parts])[:-1]

    def rows(self, positions: Positions) -> Floats:
        """Return rows of all parts, side by side."""
        return np.concatenate([part.rows(positions) for part in self.parts], axis=1)

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g of some patterns, each from its own part."""
        which = np.searchsorted(self._cuts, patterns, side="right")
        starts = np.concatenate([[0], self._cuts])
        logs = np.empty((self.values, patterns.size))
        for place in np.unique(which):
            logs[:, which == place] = self.parts[place].log_columns(patterns[which == place] - starts[place])
        return logs

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return np.concatenate([part.forward(theta) for part in self.parts], axis=-1)

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        pieces = np.split(ratio, self._cuts, axis=-1)
        total = self.parts[0].backward(pieces[0])
        for part, piece in zip(self.parts[1:], pieces[1:], strict=True):
            total = total + part.backward(piece)
        return total

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:
        """Return the largest relative bound of a part, and each part's absolute one."""
        pieces = np.split(fitted, self._cuts)
        bounds = [part.forward_rounding(theta, piece) for part, piece in zip(self.parts, pieces, strict=True)]
        return self._side_by_side(bounds)

    def _side_by_side(self, bounds: Sequence[RoundingBound]) -> RoundingBound:
        relative = max(bound.relative for bound in bounds)
        if all(isinstance(bound.absolute, float) and bound.absolute == 0.0 for bound in bounds):
            return RoundingBound(relative)
        own = [np.broadcast_to(bound.absolute, part.patterns) for bound, part in zip(bounds, self.parts, strict=True)]
        return RoundingBound(relative, np.concatenate(own))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the bound for the sum of all parts' sums."""
        pieces = np.split(ratio, self._cuts)
        bounds = [part.backward_rounding(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        adding = 1.0 + gamma(len(self.parts))
        absolute = sum((bound.absolute for bound in bounds[1:]), start=bounds[0].absolute)
        return RoundingBound(max(bound.relative for bound in bounds) * adding + adding - 1.0, absolute * adding)

    @property
    def entry_rounding(self) -> float:
        """The largest of all parts."""
        return max(part.entry_rounding for part in self.parts)

    def accurate_forward(self, theta: Floats) -> tuple[Floats, RoundingBound] | None:
        """Return careful sums from the parts that have them, and plain sums from the others."""
        careful = [part.accurate_forward(theta) for part in self.parts]
        if all(answer is None for answer in careful):
            return None
        pieces, bounds = [], []
        for part, answer in zip(self.parts, careful, strict=True):
            sums = part.forward(theta) if answer is None else answer[0]
            pieces.append(sums)
            bounds.append(part.forward_rounding(theta, sums) if answer is None else answer[1])
        return np.concatenate(pieces), self._side_by_side(bounds)

    @property
    def local(self) -> bool:
        """Whether neighbouring values are alike in one of the channels."""
        return any(part.local for part in self.parts)

    def local_maxima(self, scores: Floats) -> Positions:
        """Return the shortest list that one of the channels gives."""
        return min((part.local_maxima(scores) for part in self.parts), key=len)

    def part(self, positions: Positions) -> Channel:
        """Return the channels of some values, side by side; a matrix where that is small enough."""
        if positions.size * self.patterns <= self.max_written_entries:
            return super().part(positions)
        return ConcatenatedChannel([part.part(positions) for part in self.parts])

    def near_products(self, weights: Floats) -> sparse.csc_array | None:
        """Return the sum over the channels, with the diagonal alone of those that do not know theirs."""
        pieces = np.split(weights, self._cuts)
        known = [part.near_products(piece) for part, piece in zip(self.parts, pieces, strict=True)]
        if all(near is None for near in known):
            return None
        total = sparse.csc_array((self.values, self.values))
        for part, piece, near in zip(self.parts, pieces, known, strict=True):
            total = sparse.csc_array(total + (sparse.diags_array(part.squares(piece)) if near is None else near))
        return total

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        pieces = np.split(weights, self._cuts)
        return np.asarray(np.sum([part.squares(piece) for part, piece in zip(self.parts, pieces, strict=True)], axis=0))


class RestrictedChannel(Channel):
    """Some values of another channel, whose other values have mass 0."""

    def __init__(self, whole: Channel, positions: Positions) -> None:
        self.values, self.patterns, self.log_scale = positions.size, whole.patterns, whole.log_scale
        self.whole, self.positions = whole, positions

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        return self.whole.forward(self._spread(theta))

    def _spread(self, theta: Floats) -> Floats:
        spread = np.zeros((*theta.shape[:-1], self.whole.values))
        spread[..., self.positions] = theta
        return spread

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        chosen: Floats = self.whole.backward(ratio)[..., self.positions]
        return chosen

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:
        """Return the bound of the other channel."""
        return self.whole.forward_rounding(self._spread(theta), fitted)

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the bound of the other channel."""
        relative, absolute = self.whole.backward_rounding(ratio)
        return RoundingBound(relative, absolute if isinstance(absolute, float) else absolute[self.positions])

    @property
    def entry_rounding(self) -> float:
        """As in the other channel."""
        return self.whole.entry_rounding

    def accurate_forward(self, theta: Floats) -> tuple[Floats, RoundingBound] | None:
        """Return the answer of the other channel."""
        return self.whole.accurate_forward(self._spread(theta))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        chosen: Floats = self.whole.squares(weights)[self.positions]
        return chosen

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        return self.whole.rows(self.positions[positions])

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g of some patterns."""
        chosen: Floats = self.whole.log_columns(patterns)[self.positions]
        return chosen


class ReindexedChannel(Channel):
    """Patterns of another channel in another order, possibly repeated."""

    def __init__(self, whole: Channel, picks: Positions) -> None:
        self.values, self.patterns = whole.values, picks.size
        self.log_scale = frozen(whole.log_scale[picks])
        self._whole, self._picks = whole, picks

    def _spread(self, numbers: Floats) -> Floats:
        """Return for each pattern of the other channel the sum over its repetitions."""
        spread = np.empty((*numbers.shape[:-1], self._whole.patterns))
        for batch in np.ndindex(*numbers.shape[:-1]):
            spread[batch] = np.bincount(self._picks, weights=numbers[batch], minlength=self._whole.patterns)
        return spread

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        chosen: Floats = self._whole.forward(theta)[..., self._picks]
        return chosen

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        return self._whole.backward(self._spread(ratio))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return self._whole.squares(self._spread(weights))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        chosen: Floats = self._whole.rows(positions)[:, self._picks]
        return chosen

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g of some patterns."""
        return self._whole.log_columns(self._picks[patterns])

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:
        """Return the bound of the other channel, for the patterns kept."""
        whole = np.full(self._whole.patterns, np.inf)
        whole[self._picks] = fitted
        return self._picked(self._whole.forward_rounding(theta, whole))

    def _picked(self, bound: RoundingBound) -> RoundingBound:
        absolute = bound.absolute
        return RoundingBound(bound.relative, absolute if isinstance(absolute, float) else absolute[self._picks])

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the bound of the other channel, after sums over repeated patterns."""
        often = 1.0 + gamma(int(np.bincount(self._picks).max(initial=1)))
        relative, absolute = self._whole.backward_rounding(self._spread(ratio))
        return RoundingBound(relative * often + often - 1.0, absolute)

    @property
    def entry_rounding(self) -> float:
        """As in the other channel."""
        return self._whole.entry_rounding

    def accurate_forward(self, theta: Floats) -> tuple[Floats, RoundingBound] | None:
        """Return the answer of the other channel."""
        careful = self._whole.accurate_forward(theta)
        return None if careful is None else (careful[0][self._picks], self._picked(careful[1]))

    @property
    def local(self) -> bool:
        """Whether neighbouring values are alike."""
        return self._whole.local

    def local_maxima(self, scores: Floats) -> Positions:
        """Return the answer of the other channel."""
        return self._whole.local_maxima(scores)

    def part(self, positions: Positions) -> Channel:
        """Return the same patterns for some values."""
        if positions.size * self.patterns <= self.max_written_entries:
            return super().part(positions)
        return ReindexedChannel(self._whole.part(positions), self._picks)

    def near_products(self, weights: Floats) -> sparse.csc_array | None:
        """Return the answer of the other channel."""
        return self._whole.near_products(self._spread(weights))


def reindexed(whole: Channel, picks: Positions) -> Channel:
    """Return the channel of the patterns at `picks`: the channel itself if these are all of them, in order."""
    return whole if np.array_equal(picks, np.arange(whole.patterns)) else ReindexedChannel(whole, picks)


class ProductChannel(Channel):
    """Patterns of several items each, whose likelihoods multiply; products are computed when needed, some at a time.

    `log_items` is values by items; row i of `repeats` says how often each item occurs in pattern i. Memory grows
    with the number of items, not of patterns.
    """

    def __init__(self, log_items: Floats, repeats: sparse.csr_array) -> None:
        self.values, self.patterns = log_items.shape[0], repeats.shape[0]
        self._by_item = np.ascontiguousarray(log_items.T)
        self._repeats: Any = repeats  # the types of sparse indices would keep a type checker busy for ten seconds
        scale = np.zeros(self.patterns)
        for part in self._parts():
            top = self._logs(part).max(axis=1)
            scale[part] = np.where(np.isfinite(top), top, 0.0)
        self.log_scale = frozen(scale)

    def _parts(self) -> Iterator[slice]:
        step = max(1, CHUNK_ENTRIES // max(1, self.values))
        for first in range(0, self.patterns, step):
            yield slice(first, min(first + step, self.patterns))

    def _logs(self, part: slice | Positions) -> Floats:
        # Only stored entries are multiplied, so that an impossible item (-inf) touches its own patterns alone.
        return np.asarray(sparse.csr_array(self._repeats[part]) @ self._by_item)

    def _stored(self, part: slice) -> Floats:
        """Return some columns of the stored matrix, patterns by values."""
        logs = self._logs(part)
        logs -= self.log_scale[part, None]
        return np.exp(logs, out=logs)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        chosen = np.empty((positions.size, self.patterns))
        some = np.ascontiguousarray(self._by_item[:, positions])
        for part in self._parts():
            logs = np.asarray(sparse.csr_array(self._repeats[part]) @ some)
            chosen[:, part] = np.exp(logs - self.log_scale[part, None]).T
        return chosen

    def log_columns(self, patterns: Positions) -> Floats:
        """Return the sums of logarithms themselves."""
        return self._logs(patterns).T

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        fitted = np.empty((*theta.shape[:-1], self.patterns))
        for part in self._parts():
            fitted[..., part] = theta @ self._stored(part).T
        return fitted

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        gathered = np.zeros((*ratio.shape[:-1], self.values))
        for part in self._parts():
            gathered += ratio[..., part] @ self._stored(part)
        return gathered

    def backward_rounding(self, ratio: Floats) -> RoundingBound:
        """Return the bound for sums over some patterns at a time."""
        parts = list(self._parts())
        longest = max((part.stop - part.start for part in parts), default=0)
        return RoundingBound(gamma(min(longest, np.count_nonzero(ratio)) + len(parts) + 4))

    @property
    def entry_rounding(self) -> float:
        """From the sums of logarithms that entries are made of."""
        return entry_error(float(np.abs(self.log_scale).max(initial=0.0)) + UNDERFLOW_NATS, _most_items(self._repeats))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        gathered = np.zeros(self.values)
        for part in self._parts():
            gathered += weights[part] @ self._stored(part) ** 2
        return gathered


def product_channel(log_items: Floats, repeats: sparse.csr_array) -> Channel:
    """Return the channel of patterns of several items: a matrix if that fits, a `ProductChannel` otherwise."""
    if log_items.shape[0] * repeats.shape[0] > MAX_KEPT_ENTRIES:
        return ProductChannel(log_items, repeats)
    by_item = np.ascontiguousarray(log_items.T)
    rows: Any = repeats  # as above
    return DenseChannel.from_logs(
        log_items.shape[0],
        repeats.shape[0],
        lambda part: np.asarray(sparse.csr_array(rows[part]) @ by_item).T,
        terms=_most_items(repeats),
    )


def _most_items(repeats: sparse.csr_array) -> int:
    """Return how many different items the longest pattern has: the number of logarithms in one sum."""
    return int(np.diff(repeats.indptr).max(initial=1))
