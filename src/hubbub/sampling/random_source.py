"""Sources of random words, and the operating system's.

Real reports are drawn from `SystemSource` and nothing else. It keeps no words back, so that forked processes
share nothing.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions


class RandomSource(ABC):
    """A supply of independent uniform 64-bit words."""

    secure: bool

    @abstractmethod
    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh words."""

    def bytes(self, count: int) -> NDArray[np.uint8]:
        """Return `count` fresh bytes."""
        return self.words(-(-count // 8)).view(np.uint8)[:count]

    def half_words(self, count: int) -> NDArray[np.uint32]:
        """Return `count` fresh numbers of 32 bits."""
        return self.words(-(-count // 2)).view(np.uint32)[:count]

    def number(self, bits: int) -> int:
        """Return a whole number of `bits` random bits."""
        words = -(-bits // 64)
        return int.from_bytes(self.words(words).tobytes(), "little") >> (64 * words - bits)

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to bound - 1, each exactly as likely."""
        width = bound.bit_length() + 64
        limit = (1 << width) // bound * bound
        while (drawn := self.number(width)) >= limit:
            pass
        return drawn % bound

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


class SystemSource(RandomSource):
    """The operating system's generator."""

    secure = True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` fresh words."""
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)
