"""Exact laws of randomized response, noisy bits and subsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Positions
from hubbub.sampling.base import Law
from hubbub.sampling.bit_rows import CHUNK_BYTES, draw_rows
from hubbub.sampling.random_source import RandomSource

SHORT_PIECES = 4096  # values up to which 16 bits choose one, and are seldom passed over


@dataclass(frozen=True)
class ResponseLaw(Law):
    """The truth with probability keep / 2^width, otherwise any of the values."""

    values: int
    width: int
    keep: int

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Compare the first bits, and then all others."""
        rest = self.width - _half(self.values)
        top = self.keep >> rest
        return _respond(self.values, top, lambda: (top << rest) | source.number(rest) < self.keep, positions, source)


@dataclass(frozen=True)
class FractionResponseLaw(Law):
    """The truth with probability `keep`, any fraction, otherwise any of the values."""

    values: int
    keep: Fraction

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Compare the first bits, and then what is left of the fraction."""
        top, rest = divmod(self.keep.numerator << _half(self.values), self.keep.denominator)
        return _respond(self.values, top, lambda: source.below(self.keep.denominator) < rest, positions, source)


@dataclass(frozen=True)
class SetResponseLaw(Law):
    """Any member of the value's set of outputs with probability keep / 2^width, otherwise any of all outputs.

    Every value has a set of `size` of the `outputs`, and no two values have the same; ``member(positions, places)``
    returns the member at a place, from 0 to size - 1, of each value's set.
    """

    outputs: int
    size: int
    width: int
    keep: int
    member: Callable[[Positions, Positions], Positions]

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Take a member for everybody, and keep or replace it as randomized response does."""
        members = self.member(positions, source.integers(self.size, positions.size))
        return ResponseLaw(self.outputs, self.width, self.keep).draw(members, source)


@dataclass(frozen=True)
class EndResponseLaw(Law):
    """One of two ends of a line of `values`: rounded to one at random, so that the mean stays, and then responded.

    The value at position i is rounded to the far end, 1, with probability i / (values - 1), and otherwise to 0.
    """

    values: int
    response: ResponseLaw

    @property
    def chances(self) -> tuple[Fraction, ...]:
        """The probability of the far end, for each value."""
        keep, steps = Fraction(self.response.keep, 1 << self.response.width), self.values - 1
        return tuple((1 - keep) / 2 + keep * Fraction(place, steps) for place in range(self.values))

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Round to an end, and send it as randomized response does."""
        ends = source.integers(self.values - 1, positions.size) < positions
        return self.response.draw(ends.astype(np.int64), source)


def _half(values: int) -> int:
    """Return how many bits decide whether to keep the truth; as many choose a value."""
    return 16 if values <= SHORT_PIECES else 32


def _respond(values: int, top: int, keeps: Callable[[], bool], positions: Positions, source: RandomSource) -> Positions:
    """Half a word decides whether to keep the truth, the other half which value comes instead.

    `top` is the first half-word of the probability of keeping it; `keeps` decides where these bits are drawn.
    """
    from hubbub.sampling.compiled_draws import REDRAW, UNDECIDED, respond

    words = source.half_words(positions.size) if _half(values) == 16 else source.words(positions.size)
    drawn = respond(words, positions, values, top)
    again = np.flatnonzero(drawn == REDRAW)
    for place in np.flatnonzero(drawn == UNDECIDED):
        drawn[place] = positions[place] if keeps() else source.below(values)
    drawn[again] = source.integers(values, again.size)
    return drawn


@dataclass(frozen=True)
class BitFlipLaw(Law):
    """A bit for each value on its own: 1 with probability own / 2^width for the true one, else other / 2^width."""

    values: int
    width: int
    own: int
    other: int

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Look up eight bits at a time."""
        whole = 1 << self.width
        return draw_rows(self.values, Fraction(self.own, whole), Fraction(self.other, whole), positions, source)


@dataclass(frozen=True)
class SubsetLaw(Law):
    """A subset of `size` values that leaves the true one out with probability out / 2^width, and is otherwise any."""

    values: int
    size: int
    width: int
    out: int

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Decide on the true value, then choose the others."""
        from hubbub.sampling.compiled_draws import choose

        packed = np.zeros((positions.size, -(-self.values // 8)), dtype=np.uint8)
        taken = self._taken(positions.size, source)
        kind: type[np.unsignedinteger[Any]] = np.uint16 if self.values <= SHORT_PIECES else np.uint32
        step, done = max(1, CHUNK_BYTES // (self.size * np.dtype(kind).itemsize)), 0
        while done < positions.size:
            part = positions[done : done + step]
            needed = part.size * self.size
            pieces = source.bytes((needed + needed // 32 + 64) * np.dtype(kind).itemsize).view(kind)
            done += choose(pieces, part, taken[done : done + step], self.values, self.size, packed[done:])
        return packed

    def _taken(self, count: int, source: RandomSource) -> NDArray[np.bool_]:
        rest = self.width - 16
        pieces, top = source.bytes(2 * count).view(np.uint16), self.out >> rest
        taken = pieces > top
        for place in np.flatnonzero(pieces == top):
            taken[place] = (top << rest) | source.number(rest) >= self.out
        return taken
