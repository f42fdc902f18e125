"""Sources of 64-bit words: the operating system for real reports, a seeded generator for simulations.

Every draw of every mechanism is made from such words, so that simulated and real reports take one path.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from hubbub.arrays import Floats, Positions
from hubbub.errors import MechanismError, shorten

Randomness = np.random.Generator | int | None


class Source(ABC):
    """An endless supply of independent uniform 64-bit words."""

    secure: bool

    @abstractmethod
    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh words."""

    def uniforms(self, count: int) -> Floats:
        """Return numbers in [0, 1), multiples of 2^-53."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def positive_uniforms(self, count: int) -> Floats:
        """Return numbers in (0, 1], so that their logarithm is finite."""
        return 1.0 - self.uniforms(count)

    def integers(self, bound: int, count: int) -> Positions:
        """Return whole numbers uniform on 0 .. bound - 1, exactly: words beyond the last multiple are redrawn."""
        limit = np.uint64(2**64 - 1 - (2**64 % bound))
        words = self.words(count)
        while (beyond := words > limit).any():
            words[beyond] = self.words(int(beyond.sum()))
        return (words % np.uint64(bound)).astype(np.int64)


class SystemSource(Source):
    """The operating system's generator. It keeps no state here, so that forked processes share nothing."""

    secure = True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh words."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64).copy()


class SeededSource(Source):
    """A NumPy generator: repeatable, for simulations and tests only."""

    secure = False

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh words."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


def source(rng: Randomness) -> Source:
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
