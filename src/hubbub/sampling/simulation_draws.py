"""Repeatable randomness, and draws by floats, for simulations and tests: never for real reports."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import MechanismError, shorten
from hubbub.sampling.random_source import RandomSource, SystemSource

Randomness = np.random.Generator | int | None


class SeededSource(RandomSource):
    """A NumPy generator."""

    secure = False

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh words."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


def source_of(rng: Randomness) -> RandomSource:
    """Return the source for `rng`: the operating system for None, repeatable for a generator or a seed."""
    if rng is None:
        return SystemSource()
    if isinstance(rng, np.random.Generator):
        return SeededSource(rng)
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return SeededSource(np.random.default_rng(rng))
    what = "rng is not a source of randomness"
    expected = "None (the operating system), a numpy.random.Generator, or a seed that is at least 0"
    remedy = "pass numpy.random.default_rng(seed) to simulate, or leave rng out to privatize for real"
    raise MechanismError(what, where="rng=", got=shorten(rng), expected=expected, remedy=remedy)


def choose_rows(probabilities: Floats, rows: Positions, source: RandomSource) -> Positions:
    """Draw one column for each entry of `rows` from that row of a stochastic matrix, by inverting its sums."""
    uniforms = source.uniforms(rows.size)
    chosen = np.empty(rows.size, dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    distinct, starts = np.unique(rows[order], return_index=True)
    ends = np.append(starts[1:], rows.size)
    for row, start, end in zip(distinct, starts, ends[: distinct.size], strict=True):
        members = order[start:end]
        sums = np.cumsum(probabilities[row])
        sums /= sums[-1]  # the last possible column then ends at exactly 1, which no uniform reaches
        chosen[members] = np.searchsorted(sums, uniforms[members], side="right")
    return chosen


def two_sided_geometric(epsilon: float, count: int, source: RandomSource) -> Positions:
    """Draw integers with probability proportional to exp(-epsilon |z|): the difference of two geometric draws."""
    largest = 2.0**62  # keeps the sum with any label inside int64
    up, down = (np.floor(np.log(source.positive_uniforms(count)) / -epsilon) for _ in range(2))
    drawn: Positions = np.clip(up - down, -largest, largest).astype(np.int64)
    return drawn
