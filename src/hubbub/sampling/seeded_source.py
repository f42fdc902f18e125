"""Repeatable words for simulations and tests: never for real reports."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


def source(rng: Randomness) -> RandomSource:
    """Return the source that `rng` stands for: None is the operating system, a generator or seed is repeatable."""
    if rng is None:
        return SystemSource()
    if isinstance(rng, np.random.Generator):
        return SeededSource(rng)
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return SeededSource(np.random.default_rng(rng))
    raise MechanismError(
        "not a source of randomness",
        where="rng=",
        got=shorten(rng),
        expected="None (the operating system), a numpy.random.Generator, or a seed that is at least 0",
        remedy="pass numpy.random.default_rng(seed) to simulate, or leave rng out to privatize for real",
    )
