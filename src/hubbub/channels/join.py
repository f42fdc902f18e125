"""Channels made of channels: side by side, and products for several outputs of one user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import sparse

from hubbub.arrays import Floats, Positions, frozen
from hubbub.channels.base import PART, Channel
from hubbub.channels.dense import Dense

MOST_KEPT = 250_000_000  # entries (2 GB) of a product that are kept; more are multiplied anew each time


class Joined(Channel):
    """Several channels over the same values, their patterns one after the other."""

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

    @property
    def local(self) -> bool:
        """Whether neighbouring values are alike in one of the channels."""
        return any(part.local for part in self.parts)

    def local_maxima(self, scores: Floats) -> Positions:
        """Return the fewest that a channel knows of."""
        return min((part.local_maxima(scores) for part in self.parts), key=len)

    def part(self, positions: Positions) -> Channel:
        """Return the channels of some values, side by side; a matrix where that is small enough."""
        if positions.size * self.patterns <= self.written_up_to:
            return super().part(positions)
        return Joined([part.part(positions) for part in self.parts])

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


class Picked(Channel):
    """Patterns of another channel in another order, some of them perhaps several times."""

    def __init__(self, whole: Channel, picks: Positions) -> None:
        self.values, self.patterns = whole.values, picks.size
        self.log_scale = frozen(whole.log_scale[picks])
        self._whole, self._picks = whole, picks

    def _spread(self, numbers: Floats) -> Floats:
        """Return for each pattern of the other channel the sum over the picks of it."""
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

    @property
    def local(self) -> bool:
        """Whether neighbouring values are alike."""
        return self._whole.local

    def local_maxima(self, scores: Floats) -> Positions:
        """Return what the other channel knows."""
        return self._whole.local_maxima(scores)

    def part(self, positions: Positions) -> Channel:
        """Return the same patterns for some values."""
        if positions.size * self.patterns <= self.written_up_to:
            return super().part(positions)
        return Picked(self._whole.part(positions), self._picks)

    def near_products(self, weights: Floats) -> sparse.csc_array | None:
        """Return what the other channel knows."""
        return self._whole.near_products(self._spread(weights))


def picked(whole: Channel, picks: Positions) -> Channel:
    """Return the patterns at `picks`: the channel itself where these are all of them, in order."""
    return whole if np.array_equal(picks, np.arange(whole.patterns)) else Picked(whole, picks)


class Product(Channel):
    """Patterns made of several items: g is the product, hence log g the sum, over them; multiplied some at a time.

    `log_items` is values by items; row i of `repeats` says how often each item occurs in pattern i. What is kept grows
    with the number of items, not of patterns.
    """

    def __init__(self, log_items: Floats, repeats: sparse.csr_array) -> None:
        self.values, self.patterns = log_items.shape[0], repeats.shape[0]
        self._by_item = np.ascontiguousarray(log_items.T)
        self._repeats = repeats
        scale = np.zeros(self.patterns)
        for part in self._parts():
            top = self._logs(part).max(axis=1)
            scale[part] = np.where(np.isfinite(top), top, 0.0)
        self.log_scale = frozen(scale)

    def _parts(self) -> Iterator[slice]:
        step = max(1, PART // max(1, self.values))
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

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        gathered = np.zeros(self.values)
        for part in self._parts():
            gathered += weights[part] @ self._stored(part) ** 2
        return gathered


def product(log_items: Floats, repeats: sparse.csr_array) -> Channel:
    """Return the channel of patterns made of several items: as a matrix where that fits, multiplied anew where not."""
    if log_items.shape[0] * repeats.shape[0] > MOST_KEPT:
        return Product(log_items, repeats)
    by_item = np.ascontiguousarray(log_items.T)
    return Dense(
        log_items.shape[0], repeats.shape[0], lambda part: np.asarray(sparse.csr_array(repeats[part]) @ by_item).T
    )
